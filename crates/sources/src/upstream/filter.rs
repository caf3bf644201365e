//! Which names of an upstream are passed on.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

/// A choice of names by patterns: `*` matches any text, `?` one character, `{a,b}` one of several.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// `None` allows every name.
    allow: Option<GlobSet>,
    deny: GlobSet,
}

/// A pattern that is not valid.
#[derive(Clone, Debug, thiserror::Error)]
#[error("invalid pattern `{pattern}`: {reason}")]
pub struct BadPattern {
    /// The pattern.
    pub pattern: String,
    reason: String,
}

impl Filter {
    /// Passes on names that match a pattern of `allow` (`None`: all names) and no pattern of
    /// `deny`.
    pub fn new(allow: Option<&[String]>, deny: &[String]) -> Result<Self, BadPattern> {
        Ok(Self { allow: allow.map(set).transpose()?, deny: set(deny)? })
    }

    /// Whether a name is passed on.
    pub fn passes(&self, name: &str) -> bool {
        self.refusal(name).is_none()
    }

    /// Why a name is not passed on; `None` if it is.
    pub fn refusal(&self, name: &str) -> Option<&'static str> {
        let is_allowed = self.allow.as_ref().is_none_or(|allow| allow.is_match(name));
        match self.deny.is_match(name) {
            true => Some("a pattern of `deny` excludes it"),
            false => (!is_allowed).then_some("no pattern of `allow` includes it"),
        }
    }
}

fn set(patterns: &[String]) -> Result<GlobSet, BadPattern> {
    let bad = |pattern: &str, error: &globset::Error| BadPattern {
        pattern: pattern.to_owned(),
        reason: error.kind().to_string(),
    };
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        set.add(GlobBuilder::new(pattern).build().map_err(|error| bad(pattern, &error))?);
    }
    set.build().map_err(|error| bad(error.glob().unwrap_or_default(), &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(allow: Option<&[&str]>, deny: &[&str]) -> Filter {
        let own = |all: &[&str]| all.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>();
        Filter::new(allow.map(own).as_deref(), &own(deny)).unwrap()
    }

    #[test]
    fn what_is_allowed_and_not_denied_passes() {
        let some = filter(Some(&["read_*", "list"]), &["*_secret"]);
        let passed = ["read_file", "list", "read_secret", "lists", "write"].map(|n| some.passes(n));
        assert_eq!(passed, [true, true, false, false, false]);
        assert!(filter(None, &[]).passes("any/name://at all"));
        assert!(!filter(Some(&[]), &[]).passes("x"), "an empty list allows nothing");
        assert!(filter(Some(&["file:///docs/*"]), &[]).passes("file:///docs/a/b"));
    }

    #[test]
    fn an_invalid_pattern_is_named() {
        let error = Filter::new(Some(&["a[".to_owned()]), &[]).unwrap_err();
        assert!(error.to_string().starts_with("invalid pattern `a[`: "), "{error}");
    }
}
