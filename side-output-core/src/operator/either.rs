/// A record of one of two inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Either<L, R> {
    /// From the first input.
    Left(L),
    /// From the second input.
    Right(R),
}
