//! Failures, as a person sees them: what, where, what to do.

use std::io::Write as _;
use std::process::ExitCode;

use crate::config::Mistake;

/// How the process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Done = 0,
    Failed = 1,
    /// Wrong usage is 2, and clap's.
    Config = 3,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why a command did not do its work.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The configuration is wrong.
    Config(Mistake),
    /// Something else failed.
    Other(String),
}

impl From<Mistake> for Failure {
    fn from(mistake: Mistake) -> Self {
        Self::Config(mistake)
    }
}

/// Tells a person what went wrong, and picks the exit code.
pub(crate) fn show(failure: &Failure) -> Exit {
    match failure {
        Failure::Config(mistake) => {
            say(&mistake.to_string());
            Exit::Config
        }
        Failure::Other(reason) => {
            say(&format!("error: {reason}"));
            Exit::Failed
        }
    }
}

/// Says something to a person. Whether anybody listens is none of our business.
pub(crate) fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
