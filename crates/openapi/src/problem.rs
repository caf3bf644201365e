//! Mistakes in a description.

use std::fmt;

/// A mistake in a description, or a part of it that is not supported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where it is: an operation such as `GET /pets`, or a place in the file.
    pub place: String,
    /// The mistake.
    pub what: String,
}

impl Problem {
    pub(crate) fn new(place: impl Into<String>, what: impl Into<String>) -> Self {
        Self { place: place.into(), what: what.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}
