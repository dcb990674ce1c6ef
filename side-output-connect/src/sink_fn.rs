use side_output_core::checkpoint::{BoxError, Failed, Guarantee, JobSink};
use std::fmt;

/// Calls a closure for each record, at least once.
///
/// After a crash it is called again for what came after the last checkpoint. A record counts as
/// written when its future has returned; an error fails the job.
///
/// # Examples
///
/// ```
/// use side_output::checkpoint::JobSink as _;
/// use side_output::connect::sink_fn;
///
/// # futures::executor::block_on(async {
/// let (sender, receiver) = std::sync::mpsc::channel();
/// let mut sink = sink_fn(move |record: u32| {
///     let sent = sender.send(record);
///     async move { Ok(sent?) }
/// });
/// sink.write(&mut vec![1, 2], &mut Vec::new()).await?;
/// assert_eq!(receiver.try_iter().collect::<Vec<_>>(), [1, 2]);
/// # Ok::<_, side_output::checkpoint::BoxError>(())
/// # }).unwrap();
/// ```
pub const fn sink_fn<F>(function: F) -> SinkFn<F> {
    SinkFn { function }
}

/// A sink that calls a closure; made by [`sink_fn()`].
pub struct SinkFn<F> {
    function: F,
}

impl<F> fmt::Debug for SinkFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SinkFn").finish_non_exhaustive()
    }
}

impl<T, F, R> JobSink<T> for SinkFn<F>
where
    T: Send + 'static,
    F: FnMut(T) -> R + Send + 'static,
    R: Future<Output = Result<(), BoxError>> + Send,
{
    const GUARANTEE: Guarantee = Guarantee::AtLeastOnce;

    async fn open(&mut self, _: Option<&[u8]>) -> Result<(), BoxError> {
        Ok(())
    }

    async fn write(&mut self, batch: &mut Vec<T>, _: &mut Vec<Failed<T>>) -> Result<(), BoxError> {
        for record in batch.drain(..) {
            (self.function)(record).await?;
        }
        Ok(())
    }

    async fn prepare(&mut self, _: u64) -> Result<Vec<u8>, BoxError> {
        Ok(Vec::new())
    }

    async fn commit(&mut self, _: u64) -> Result<(), BoxError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::executor::block_on;
    use std::sync::mpsc;

    #[test]
    fn a_closure_that_fails_is_called_again_after_the_restart() {
        let (sender, receiver) = mpsc::channel();
        let mut fails = true;
        let mut sink = sink_fn(move |record: u32| {
            let is_refused = record == 2 && std::mem::take(&mut fails);
            let sent = sender.send(record);
            async move { if is_refused { Err("not now".into()) } else { Ok(sent?) } }
        });
        block_on(sink.write(&mut vec![1, 2, 3], &mut Vec::new())).unwrap_err();
        block_on(JobSink::<u32>::open(&mut sink, Some(&[]))).unwrap();
        block_on(sink.write(&mut vec![1, 2, 3], &mut Vec::new())).unwrap();
        assert_eq!(receiver.try_iter().collect::<Vec<_>>(), [1, 2, 1, 2, 3]);
    }
}
