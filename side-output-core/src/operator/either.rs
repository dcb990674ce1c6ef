/// A record of one of two inputs.
///
/// # Examples
///
/// ```
/// use side_output::Either;
///
/// fn describe(record: &Either<&str, u32>) -> String {
///     match record {
///         Either::Left(word) => format!("the word {word}"),
///         Either::Right(number) => format!("the number {number}"),
///     }
/// }
///
/// assert_eq!(describe(&Either::Right(7)), "the number 7");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Either<L, R> {
    /// From the first input.
    Left(L),
    /// From the second input.
    Right(R),
}
