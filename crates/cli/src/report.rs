//! Failures as a person sees them: what, where, and a hint.

use std::io::Write as _;
use std::process::ExitCode;

use crate::config::Mistakes;
use crate::escape::escaped_lines;

/// The exit codes. Clap exits with 2, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Done = 0,
    Failed = 1,
    Usage = 2,
    Config = 3,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why a command failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The configuration is wrong.
    Config(Mistakes),
    /// The command line is wrong.
    Usage(String),
    /// It was reported already.
    Silent,
    /// Something else failed.
    Other { what: String, hint: Option<&'static str> },
}

impl Failure {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self::Other { what: what.into(), hint: None }
    }

    pub(crate) fn usage(what: impl Into<String>) -> Self {
        Self::Usage(what.into())
    }
}

impl From<Mistakes> for Failure {
    fn from(mistakes: Mistakes) -> Self {
        Self::Config(mistakes)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::new(error.to_string())
    }
}

/// Prints a failure, and returns the exit code.
pub(crate) fn show(failure: &Failure) -> Exit {
    match failure {
        Failure::Config(mistakes) => {
            if mistakes.iter().next().is_some() {
                say(&mistakes.to_string());
            }
            Exit::Config
        }
        Failure::Usage(what) => {
            say(&format!("error: {what}"));
            Exit::Usage
        }
        Failure::Silent => Exit::Failed,
        Failure::Other { what, hint } => {
            say(&format!("error: {what}"));
            if let Some(hint) = hint {
                say(&format!("  hint: {hint}"));
            }
            Exit::Failed
        }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Config(mistakes) => write!(f, "{mistakes}"),
            Self::Silent => Ok(()),
            Self::Usage(what) | Self::Other { what, .. } => f.write_str(what),
        }
    }
}

/// Writes text to standard output.
pub(crate) fn print_text(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

/// Writes JSON to standard output, for programs that read the result of a command.
pub(crate) fn print(value: &serde_json::Value) {
    let _ = writeln!(std::io::stdout(), "{value:#}");
}

/// Writes one or more lines to standard error. Errors are ignored: they could only be reported here.
pub(crate) fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{}", escaped_lines(text));
}
