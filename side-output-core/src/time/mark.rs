use super::Timestamp;

/// What travels between the records of a stream, in order with them, to every output.
///
/// # Examples
///
/// ```
/// use side_output::{Mark, Timestamp};
///
/// let mark = Mark::Watermark(Timestamp::from_millis(999));
/// assert_eq!(format!("{mark:?}"), "Watermark(999)");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mark {
    /// No more records with a timestamp at or below this one are expected.
    Watermark(Timestamp),
    /// A checkpoint's cut: what came before belongs to it, what comes after does not.
    Barrier(u64),
    /// The stream has nothing to say for now and must not hold back the time of others.
    Idle,
    /// The stream is not idle any more.
    Active,
}
