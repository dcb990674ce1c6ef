use super::committed::Committed;
use crate::row::{Row, Value};
use serde::Serialize;
use side_output_core::checkpoint::{BoxError, Failed, Guarantee, JobSink};
use std::borrow::Cow;
use std::fmt::Write as _;
use std::path::PathBuf;

/// Each record as a line of comma-separated values, appended to a file exactly once.
///
/// See [`Csv`].
pub fn csv(path: impl Into<PathBuf>) -> Csv {
    Csv { file: Committed::new(path.into()), columns: None, line: String::new() }
}

/// A file of comma-separated values; made by [`csv()`].
#[derive(Debug)]
pub struct Csv {
    file: Committed,
    /// The names of the columns, once the file has them.
    columns: Option<Vec<Cow<'static, str>>>,
    line: String,
}

impl Csv {
    /// The line of this record, and before it that of the names, if it is the first one.
    fn render(&mut self, record: &impl Serialize) -> Result<(), String> {
        let row = Row::of(record).map_err(|error| error.to_string())?;
        self.line.clear();
        match &self.columns {
            Some(columns) if *columns != row.names => {
                let (expected, got) = (columns.join(","), row.names.join(","));
                return Err(format!("its columns are {got}, and those of the file {expected}"));
            }
            Some(_) => {}
            None => {
                for (at, name) in row.names.iter().enumerate() {
                    self.separate(at);
                    self.text(name);
                }
                self.line.push('\n');
            }
        }
        for (at, value) in row.values.iter().enumerate() {
            self.separate(at);
            match value {
                Value::Null => {}
                Value::Bool(value) => self.plain(value),
                Value::Integer(value) => self.plain(value),
                Value::Real(value) => self.plain(value),
                Value::Text(text) => self.text(text),
                Value::Bytes(_) => {
                    return Err(format!("column `{}`: bytes are no text", row.names[at]));
                }
            }
        }
        self.line.push('\n');
        self.columns.get_or_insert(row.names);
        Ok(())
    }

    fn separate(&mut self, at: usize) {
        if at > 0 {
            self.line.push(',');
        }
    }

    fn plain(&mut self, value: &impl std::fmt::Display) {
        write!(self.line, "{value}").unwrap_or_default();
    }

    /// A text, in quotes where it must be: an empty one too, which is not the same as none.
    fn text(&mut self, text: &str) {
        if text.is_empty() || text.contains([',', '"', '\n', '\r']) {
            self.line.push('"');
            self.line.push_str(&text.replace('"', "\"\""));
            self.line.push('"');
        } else {
            self.line.push_str(text);
        }
    }
}

impl<T: Serialize + Send + 'static> JobSink<T> for Csv {
    const GUARANTEE: Guarantee = Guarantee::ExactlyOnce;

    async fn open(&mut self, prepared: Option<&[u8]>) -> Result<(), BoxError> {
        let Some(prepared) = prepared else {
            self.columns = None;
            return self.file.open(None);
        };
        let mut rest = prepared;
        let mut decoder = rmp_serde::Deserializer::new(&mut rest);
        self.columns = serde::Deserialize::deserialize(&mut decoder)?;
        self.file.open(Some(rest))
    }

    async fn write(
        &mut self,
        batch: &mut Vec<T>,
        refused: &mut Vec<Failed<T>>,
    ) -> Result<(), BoxError> {
        for record in batch.drain(..) {
            match self.render(&record) {
                Ok(()) => self.file.append(self.line.as_bytes())?,
                Err(error) => refused.push(Failed::new(record, error)),
            }
        }
        Ok(())
    }

    async fn prepare(&mut self, _: u64) -> Result<Vec<u8>, BoxError> {
        let mut bytes = rmp_serde::to_vec_named(&self.columns)?;
        bytes.extend(self.file.prepare()?);
        Ok(bytes)
    }

    async fn commit(&mut self, _: u64) -> Result<(), BoxError> {
        self.file.commit()
    }
}
