//! The command line.

use super::job::Job;
use std::ffi::OsString;

pub(crate) const USAGE: &str = "\
usage: flights [PATH] [--json] [--out DIR]

  PATH       flights as CSV; January 2013 if left out
  --json     print one JSON object of counts instead of a table
  --out DIR  where to write the outputs; target/flights if left out";

/// What the command line asks for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    pub(crate) job: Job,
    pub(crate) json: bool,
}

impl Options {
    /// Reads the arguments; `None` where help is asked for.
    pub(crate) fn parse(
        arguments: impl IntoIterator<Item = OsString>,
    ) -> Result<Option<Self>, String> {
        let mut options = Self::default();
        let mut path = None;
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            match argument.to_str() {
                Some("--help" | "-h") => return Ok(None),
                Some("--json") => options.json = true,
                Some("--out") => {
                    let directory = arguments.next().ok_or("`--out` needs a directory")?;
                    options.job.out = directory.into();
                }
                Some(option) if option.starts_with('-') => {
                    return Err(format!("unknown option `{option}`"));
                }
                _ if path.is_some() => return Err("more than one PATH".to_owned()),
                _ => path = Some(argument),
            }
        }
        if let Some(path) = path {
            options.job.flights = path.into();
        }
        Ok(Some(options))
    }
}
