//! What is wrong with a configuration, where, and what to do about it.

use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use sabir_sources::command::DefinitionError;

/// A mistake in a configuration.
#[derive(Debug)]
pub(crate) struct Mistake {
    what: String,
    path: PathBuf,
    line: Option<usize>,
    hint: Option<String>,
}

/// What helps whoever wrote a path to nothing.
pub(super) const RELATIVE: &str = "paths are relative to the folder of this file";

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

    /// The same, for a message whose part behind a semicolon says what to do.
    pub(crate) fn told(&self, place: Range<usize>, message: impl AsRef<str>) -> Mistake {
        match message.as_ref().split_once("; ") {
            Some((what, hint)) => self.mistake(place, what).hint(hint),
            None => self.mistake(place, message.as_ref()),
        }
    }

    /// A mistake in the definition of `owner`.
    pub(crate) fn wrong_definition(
        &self,
        place: Range<usize>,
        owner: &str,
        error: &DefinitionError,
    ) -> Mistake {
        let mistake = self.mistake(place, format!("{owner}: {error}"));
        Mistake { hint: error.hint.clone(), ..mistake }
    }

    /// The folder that paths in this text are relative to: absolute.
    pub(crate) fn folder(&self) -> PathBuf {
        let folder = self.path.parent().unwrap_or(self.path);
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        // It fails only for an empty path, or where there is no current folder.
        let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        folder.components().collect()
    }

    /// The file that a path in this text means: absolute.
    pub(crate) fn resolve(&self, written: &str) -> PathBuf {
        self.folder().join(written).components().collect()
    }

    /// Where something stands, for later.
    pub(crate) fn place(&self, at: Range<usize>) -> Place {
        Place(self.mistake(at, ""))
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

/// A place in a file, for a mistake that is found later.
#[derive(Debug)]
pub(crate) struct Place(Mistake);

impl Place {
    /// The same, with what to do about any mistake there.
    pub(crate) fn hint(self, hint: &str) -> Self {
        Self(self.0.hint(hint))
    }

    /// A mistake there.
    pub(crate) fn mistake(self, what: impl Into<String>) -> Mistake {
        Mistake { what: what.into(), ..self.0 }
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
