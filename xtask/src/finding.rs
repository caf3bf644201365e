//! The result of a rule: a place in the tree, the problem and a hint.

use std::fmt;

/// One problem, or a note, and its place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    pub(crate) path: String,
    pub(crate) line: usize,
    pub(crate) weight: Weight,
    pub(crate) what: String,
    pub(crate) hint: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Weight {
    /// Fails the run.
    Wrong,
    /// Is printed only.
    Note,
}

impl Finding {
    pub(crate) fn wrong(
        path: &str,
        line: usize,
        what: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self {
            path: path.into(),
            line,
            weight: Weight::Wrong,
            what: what.into(),
            hint: hint.into(),
        }
    }

    pub(crate) fn note(
        path: &str,
        line: usize,
        what: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self { weight: Weight::Note, ..Self::wrong(path, line, what, hint) }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, line, what, hint, .. } = self;
        let note = if self.weight == Weight::Note { "note: " } else { "" };
        write!(f, "{path}:{line}: {note}{what} ({hint})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_one_line_from_place_to_hint() {
        let wrong = Finding::wrong("a/b.rs", 7, "too long", "split it");
        assert_eq!(wrong.to_string(), "a/b.rs:7: too long (split it)");
        let note = Finding::note("a/b.rs", 1, "long", "consider splitting it");
        assert_eq!(note.to_string(), "a/b.rs:1: note: long (consider splitting it)");
    }
}
