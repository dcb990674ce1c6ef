//! The command line.

use super::job::Job;
use std::ffi::OsString;

pub(crate) const USAGE: &str = "\
usage: flights [PATH] [--planes PATH] [--json] [--out DIR]
       flights [PATH] --advise

  PATH           flights as CSV; January 2013 if left out
  --planes PATH  planes as CSV
  --json         print one JSON object of counts instead of a table
  --out DIR      where to write the outputs; target/flights if left out
  --advise       do not run; say what bound and lateness the flights ask for";

/// What the command line asks for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    pub(crate) job: Job,
    pub(crate) json: bool,
    pub(crate) advise: bool,
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
                Some("--advise") => options.advise = true,
                Some("--out") => {
                    options.job.out = arguments.next().ok_or("`--out` needs a directory")?.into();
                }
                Some("--planes") => {
                    options.job.planes = arguments.next().ok_or("`--planes` needs a path")?.into();
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
