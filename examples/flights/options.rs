//! The command line.

use super::job::Job;
use std::ffi::OsString;
use std::path::PathBuf;

pub(crate) const USAGE: &str = "\
usage: flights [PATH] [--planes PATH] [--json] [--out DIR]
       flights [PATH] [--planes PATH] [--json] --job DIR [--rate N]
       flights [PATH] --advise

  PATH           flights as CSV; January 2013 if left out
  --planes PATH  planes as CSV
  --json         print one JSON object of counts instead of a table
  --out DIR      where to write the outputs; target/flights if left out
  --job DIR      run as a job that survives crashes, with all outputs in DIR; needs the
                 feature `job`
  --rate N       read at most N flights a second
  --advise       do not run; say what bound and lateness the flights ask for";

/// What the command line asks for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    pub(crate) job: Job,
    pub(crate) json: bool,
    pub(crate) advise: bool,
    /// Where to run as a job that survives crashes.
    pub(crate) directory: Option<PathBuf>,
    /// Records a second.
    pub(crate) rate: Option<u32>,
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
                Some("--job") => {
                    let directory = arguments.next().ok_or("`--job` needs a directory")?;
                    options.directory = Some(directory.into());
                }
                Some("--rate") => {
                    let rate = arguments.next().ok_or("`--rate` needs a number")?;
                    let rate = rate.to_str().and_then(|rate| rate.parse().ok());
                    options.rate =
                        Some(rate.filter(|rate| *rate > 0).ok_or("`--rate` is no number")?);
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
        if options.rate.is_some() && options.directory.is_none() {
            return Err("`--rate` goes with `--job`".to_owned());
        }
        if let Some(path) = path {
            options.job.flights = path.into();
        }
        Ok(Some(options))
    }
}
