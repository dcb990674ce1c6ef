//! A destination that writes one JSON object a line.

use futures::Sink;
use serde::Serialize;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll};

/// A file of JSON Lines.
///
/// It writes to the page cache without leaving the thread, so it never keeps anybody waiting for
/// long; a destination over a network would wait in `poll_ready`.
pub(crate) struct JsonLines<T> {
    file: BufWriter<File>,
    path: PathBuf,
    records: PhantomData<fn(T)>,
}

impl<T: Serialize> JsonLines<T> {
    /// Creates the file `name` in `directory`, or empties it.
    pub(crate) fn create(directory: &Path, name: &str) -> Result<Self, String> {
        let path = directory.join(name);
        match File::create(&path) {
            Ok(file) => Ok(Self { file: BufWriter::new(file), path, records: PhantomData }),
            Err(error) => Err(format!("cannot create {}: {error}", path.display())),
        }
    }

    fn write(&mut self, record: &T) -> std::io::Result<()> {
        serde_json::to_writer(&mut self.file, record)?;
        self.file.write_all(b"\n")
    }

    fn explain(&self, result: std::io::Result<()>) -> Result<(), String> {
        result.map_err(|error| format!("cannot write {}: {error}", self.path.display()))
    }
}

impl<T: Serialize> Sink<T> for JsonLines<T> {
    type Error = String;

    fn poll_ready(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Result<(), String>> {
        Poll::Ready(Ok(()))
    }

    fn start_send(mut self: Pin<&mut Self>, record: T) -> Result<(), String> {
        let result = self.write(&record);
        self.explain(result)
    }

    fn poll_flush(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Result<(), String>> {
        let result = self.file.flush();
        Poll::Ready(self.explain(result))
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), String>> {
        self.poll_flush(cx)
    }
}
