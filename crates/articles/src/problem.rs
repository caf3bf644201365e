//! Problems of files, for their authors.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A problem of a file that its author should correct. The article is served as far as it can be
/// read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// The path of the file, relative to the folder, with `/`. Empty: the folder itself.
    pub file: String,
    /// The line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// The problem.
    pub message: String,
}

impl Problem {
    pub(crate) fn of(file: &str, message: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line: None, message: message.into() }
    }

    pub(crate) fn at(file: &str, line: usize, message: &str) -> Self {
        Self { file: file.to_owned(), line: Some(line), message: message.to_owned() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.message),
            None if self.file.is_empty() => f.write_str(&self.message),
            None => write!(f, "{}: {}", self.file, self.message),
        }
    }
}
