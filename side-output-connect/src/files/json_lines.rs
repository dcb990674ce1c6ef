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
