//! What is wrong with a configuration, where, and what to do about it.

use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A mistake in a configuration.
#[derive(Debug)]
pub(crate) struct Mistake {
    what: String,
    path: PathBuf,
    line: Option<usize>,
    hint: Option<String>,
}

/// A file's text, for telling lines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text<'a> {
    pub(crate) path: &'a Path,
    pub(crate) text: &'a str,
}

impl Text<'_> {
    /// A mistake at a place in the text.
    pub(crate) fn mistake(&self, place: Range<usize>, what: impl Into<String>) -> Mistake {
        let before = &self.text.as_bytes()[..place.start.min(self.text.len())];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        Mistake { what: what.into(), path: self.path.into(), line: Some(line), hint: None }
    }

    /// What the parser did not like.
    pub(crate) fn misread(&self, error: &toml::de::Error) -> Mistake {
        let what = error.message().trim().replace('\n', " ");
        match error.span() {
            Some(place) => self.mistake(place, what),
            None => Mistake { what, path: self.path.into(), line: None, hint: None },
        }
    }
}

impl Mistake {
    /// A file that cannot be read.
    pub(crate) fn unreadable(path: &Path, error: &io::Error) -> Self {
        let hint = match error.kind() {
            io::ErrorKind::NotFound => Some("`sabir init` writes one".to_owned()),
            _ => None,
        };
        let what = format!("the configuration cannot be read: {error}");
        Self { what, path: path.into(), line: None, hint }
    }

    /// The same, with what to do about it.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}\n  --> {}", self.what, self.path.display())?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\n  hint: {hint}")?;
        }
        Ok(())
    }
}
