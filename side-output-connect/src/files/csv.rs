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
///
/// A record is a flat struct: its fields are the columns, and their names the first line. `None` is
/// an empty field, and an empty text is one in quotes. Lines end in `\n`.
///
/// # Guarantee
///
/// Exactly once, as [JSON lines](super::JsonLines), with the same errors. A record is refused that
/// has a value with parts, or other columns than the first one.
///
/// # Examples
///
/// ```
/// use serde::Serialize;
/// use side_output::checkpoint::JobSink;
/// use side_output::connect::files;
///
/// #[derive(Serialize)]
/// struct Delay {
///     origin: &'static str,
///     minutes: Option<u32>,
/// }
///
/// # futures::executor::block_on(async {
/// # let path = std::env::temp_dir().join(format!("csv-{}.csv", std::process::id()));
/// # std::fs::remove_file(&path).unwrap_or_default();
/// let mut sink = files::csv(&path);
/// # JobSink::<Delay>::open(&mut sink, None).await?;
/// let mut records =
///     vec![Delay { origin: "JFK", minutes: Some(3) }, Delay { origin: "a,b", minutes: None }];
/// sink.write(&mut records, &mut Vec::new()).await?;
/// # JobSink::<Delay>::prepare(&mut sink, 1).await?;
/// # JobSink::<Delay>::commit(&mut sink, 1).await?;
/// // After the checkpoint:
/// assert_eq!(std::fs::read_to_string(&path)?, "origin,minutes\nJFK,3\n\"a,b\",\n");
/// # std::fs::remove_file(&path)?;
/// # Ok::<_, side_output::checkpoint::BoxError>(())
/// # }).unwrap();
/// ```
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Disk;
    use crate::disk::simulated::Simulated;
    use futures::executor::block_on;
    use std::collections::BTreeMap;
    use std::path::Path;

    type Record = BTreeMap<&'static str, Option<&'static str>>;

    fn open(disk: &Simulated, prepared: Option<&[u8]>) -> Csv {
        let mut sink = csv("out.csv");
        sink.file.disk = Disk::Simulated(disk.clone());
        block_on(JobSink::<Record>::open(&mut sink, prepared)).unwrap();
        sink
    }

    fn write(sink: &mut Csv, records: &[&[(&'static str, Option<&'static str>)]]) -> Vec<String> {
        let mut batch: Vec<Record> =
            records.iter().map(|record| record.iter().copied().collect()).collect();
        let mut refused = Vec::new();
        block_on(sink.write(&mut batch, &mut refused)).unwrap();
        refused.into_iter().map(|failed: Failed<Record>| failed.error).collect()
    }

    fn checkpoint(sink: &mut Csv) -> Vec<u8> {
        let prepared = block_on(JobSink::<Record>::prepare(sink, 1)).unwrap();
        block_on(JobSink::<Record>::commit(sink, 1)).unwrap();
        prepared
    }

    #[test]
    fn names_come_once_and_what_must_be_in_quotes_is() {
        let disk = Simulated::default();
        let mut sink = open(&disk, None);
        let refused = write(
            &mut sink,
            &[
                &[("a", Some("x")), ("b,", Some("1\"2"))],
                &[("a", None), ("b,", Some(""))],
                &[("a", Some("no")), ("c", None)],
                &[("a", Some("\r")), ("b,", Some("\n"))],
            ],
        );
        assert_eq!(refused, ["its columns are a,c, and those of the file a,b,"]);
        let prepared = checkpoint(&mut sink);
        let mut sink = open(&disk, Some(&prepared));
        assert_eq!(write(&mut sink, &[&[("a", None)]]).len(), 1);
        assert_eq!(write(&mut sink, &[&[("a", None), ("b,", None)]]), [""; 0]);
        checkpoint(&mut sink);
        let file = String::from_utf8(disk.contents(Path::new("out.csv")).unwrap()).unwrap();
        assert_eq!(file, "a,\"b,\"\nx,\"1\"\"2\"\n,\"\"\n\"\r\",\"\n\"\n,\n");
    }
}
