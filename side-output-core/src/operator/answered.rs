use side_output_macros::splitter;

/// Where a record goes for which [asynchronous work](crate::stream::DataStream::map_async) was done.
#[splitter(crate = crate)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answered<T, U, E> {
    /// Records with their answers.
    #[main]
    #[output(name = "results")]
    Result((T, U)),
    /// Records for which the last attempt has failed.
    #[output(name = "failures")]
    Failure(FailedCall<T, E>),
    /// Records for which no answer came in time.
    #[output(name = "timeouts")]
    Timeout(T),
}

/// A record for which the last attempt has failed.
///
/// # Examples
///
/// ```
/// use side_output::FailedCall;
///
/// let failed = FailedCall { record: "order 7", error: "no such customer", attempts: 1 };
/// assert_eq!(failed.to_string(), "attempt 1 failed: no such customer");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct FailedCall<T, E> {
    /// The record.
    pub record: T,
    /// The error of the last attempt.
    pub error: E,
    /// How many attempts there were.
    pub attempts: u32,
}

impl<T, E: std::fmt::Display> std::fmt::Display for FailedCall<T, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "attempt {} failed: {}", self.attempts, self.error)
    }
}
