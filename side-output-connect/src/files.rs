//! Files: [lines](lines()) as a source, [JSON lines](json_lines()) and [CSV](csv()) as sinks.
//!
//! Files are read and written with blocking calls, in bounded portions, on the thread that runs the
//! job: what is local answers sooner than another thread would.

mod committed;
mod csv;
mod json_lines;
mod lines;

pub use self::csv::{Csv, csv};
pub use self::json_lines::{JsonLines, json_lines};
pub use self::lines::{BadLine, Line, Lines, lines};

use side_output_core::checkpoint::BoxError;
use std::fmt::Display;
use std::path::Path;

/// An error that names the file.
fn at(path: &Path, error: impl Display) -> BoxError {
    format!("{}: {error}", path.display()).into()
}
