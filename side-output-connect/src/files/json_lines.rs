use super::committed::Committed;
use serde::Serialize;
use side_output_core::checkpoint::{BoxError, Failed, Guarantee, JobSink};
use std::path::PathBuf;

/// Each record as a line of JSON, appended to a file exactly once.
///
/// See [`JsonLines`].
pub fn json_lines(path: impl Into<PathBuf>) -> JsonLines {
    JsonLines { file: Committed::new(path.into()), line: Vec::new() }
}

/// A file of JSON lines; made by [`json_lines()`].
///
/// # Guarantee
///
/// Exactly once. Readers see what checkpoints have completed, and nothing else: lines stay in
/// memory, and beyond 4 MiB in a hidden file beside, until the checkpoint they belong to is in the
/// store. Then they are written at the length that the checkpoint has recorded. A job that is
/// started again does so once more, and cuts off what was written beyond.
///
/// A record that cannot be serialized is refused, with the reason.
///
/// # Errors
///
/// A job that begins finds no file, or an empty one; any other is left alone, and is an error. So is
/// a file that is shorter than what checkpoints have completed.
///
/// # Examples
///
/// ```
/// use side_output::checkpoint::JobSink;
/// use side_output::connect::files;
///
/// # futures::executor::block_on(async {
/// # let path = std::env::temp_dir().join(format!("json-lines-{}.jsonl", std::process::id()));
/// # std::fs::remove_file(&path).unwrap_or_default();
/// // This is what a job does.
/// let mut sink = files::json_lines(&path);
/// # let sink = &mut sink;
/// # JobSink::<(&'static str, i32)>::open(sink, None).await?;
/// sink.write(&mut vec![("JFK", 3), ("LGA", 5)], &mut Vec::new()).await?;
/// # JobSink::<(&'static str, i32)>::prepare(sink, 1).await?;
/// # assert!(!path.exists());
/// # JobSink::<(&'static str, i32)>::commit(sink, 1).await?;
/// // And after the checkpoint:
/// assert_eq!(std::fs::read_to_string(&path)?, "[\"JFK\",3]\n[\"LGA\",5]\n");
/// # std::fs::remove_file(&path)?;
/// # Ok::<_, side_output::checkpoint::BoxError>(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct JsonLines {
    file: Committed,
    line: Vec<u8>,
}

impl<T: Serialize + Send + 'static> JobSink<T> for JsonLines {
    const GUARANTEE: Guarantee = Guarantee::ExactlyOnce;

    async fn open(&mut self, prepared: Option<&[u8]>) -> Result<(), BoxError> {
        self.file.open(prepared)
    }

    async fn write(
        &mut self,
        batch: &mut Vec<T>,
        refused: &mut Vec<Failed<T>>,
    ) -> Result<(), BoxError> {
        for record in batch.drain(..) {
            self.line.clear();
            match serde_json::to_writer(&mut self.line, &record) {
                Ok(()) => {
                    self.line.push(b'\n');
                    self.file.append(&self.line)?;
                }
                Err(error) => refused.push(Failed::new(record, error.to_string())),
            }
        }
        Ok(())
    }

    async fn prepare(&mut self, _: u64) -> Result<Vec<u8>, BoxError> {
        self.file.prepare()
    }

    async fn commit(&mut self, _: u64) -> Result<(), BoxError> {
        self.file.commit()
    }
}
