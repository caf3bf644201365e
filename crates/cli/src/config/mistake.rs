//! Mistakes in a configuration: what is wrong, where, and a hint.

use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use sabir_sources::command::DefinitionError;
use toml::Spanned;

use crate::escape::escaped;

/// A mistake in a configuration.
#[derive(Clone, Debug)]
pub(crate) struct Mistake {
    what: String,
    path: PathBuf,
    line: Option<usize>,
    hint: Option<String>,
}

/// The hint for a path that does not exist.
pub(super) const RELATIVE: &str = "paths are relative to the folder of this file";

/// The path and the text of a configuration file.
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

    /// An invalid value: its kind, and what was expected instead.
    pub(crate) fn invalid(&self, value: &Spanned<String>, kind: &str, expected: &str) -> Mistake {
        let what = format!("invalid {kind} `{}` (expected {expected})", value.get_ref());
        self.mistake(value.span(), what)
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

    /// The absolute path of the file's folder.
    pub(crate) fn folder(&self) -> PathBuf {
        let folder = self.path.parent().unwrap_or(self.path);
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        // It fails only for an empty path, or without a current folder.
        let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        folder.components().collect()
    }

    /// The absolute path for a path that is relative to the file's folder.
    pub(crate) fn resolve(&self, written: &str) -> PathBuf {
        self.folder().join(written).components().collect()
    }

    /// A place in the text, for mistakes that are found later.
    pub(crate) fn place(&self, at: Range<usize>) -> Place {
        Place(self.mistake(at, ""))
    }

    /// An error of the TOML parser.
    pub(crate) fn syntax_error(&self, error: &toml::de::Error) -> Mistake {
        let what = error.message().trim().replace('\n', " ");
        match error.span() {
            Some(place) => self.mistake(place, what),
            None => Mistake { what, path: self.path.into(), line: None, hint: None },
        }
    }
}

/// A place in a file, for mistakes that are found later.
#[derive(Clone, Debug)]
pub(crate) struct Place(Mistake);

impl Place {
    /// Adds a hint to every mistake at this place.
    pub(crate) fn hint(self, hint: &str) -> Self {
        Self(self.0.hint(hint))
    }

    /// A mistake at this place.
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
        let what = format!("cannot read the configuration: {error}");
        Self { what, path: path.into(), line: None, hint }
    }

    /// A mistake about the whole file.
    pub(crate) fn of_file(path: &Path, what: impl Into<String>) -> Self {
        Self { what: what.into(), path: path.into(), line: None, hint: None }
    }

    /// Adds a hint.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// All mistakes that were found, at least one.
#[derive(Debug)]
pub(crate) struct Mistakes(Vec<Mistake>);

impl Mistakes {
    /// All values, or all mistakes.
    pub(super) fn all<T>(
        results: impl IntoIterator<Item = Result<T, Mistake>>,
    ) -> Result<Vec<T>, Self> {
        let (mut values, mut mistakes) = (Vec::new(), Vec::new());
        for result in results {
            match result {
                Ok(value) => values.push(value),
                Err(mistake) => mistakes.push(mistake),
            }
        }
        if mistakes.is_empty() { Ok(values) } else { Err(Self(mistakes)) }
    }
}

impl From<Mistake> for Mistakes {
    fn from(mistake: Mistake) -> Self {
        Self(vec![mistake])
    }
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mistakes: Vec<_> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&mistakes.join("\n"))
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display().to_string();
        write!(f, "error: {}\n  --> {}", escaped(&self.what), escaped(&path))?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\n  hint: {}", escaped(hint))?;
        }
        Ok(())
    }
}
