//! What is wrong with a file of the folder, for the person who keeps it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One thing that the keeper of the folder should put right. The article is served all the same,
/// as far as it can be read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// The file, relative to the folder, with `/` between its parts. Empty: the folder itself.
    pub file: String,
    /// The line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// What is wrong.
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
