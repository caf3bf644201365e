//! Valid tool names. A [`ToolName`] is always valid.

/// A name that every client accepts: 1 to 128 letters, digits, `_`, `-` and `.`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ToolName(Box<str>);

/// Why a name is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadName {
    /// Empty, or too long.
    #[error("a name has 1 to 128 characters")]
    Length,
    /// A character that some clients refuse.
    #[error("a name is made of letters, digits, `_`, `-` and `.`")]
    Character,
}

impl ToolName {
    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<&str> for ToolName {
    type Error = BadName;

    fn try_from(name: &str) -> Result<Self, BadName> {
        let legal = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        match name.len() {
            1..=128 if name.chars().all(legal) => Ok(Self(name.into())),
            1..=128 => Err(BadName::Character),
            _ => Err(BadName::Length),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_bounded_at_their_edges() {
        assert!(ToolName::try_from("a".repeat(128).as_str()).is_ok());
        assert_eq!(ToolName::try_from("a".repeat(129).as_str()), Err(BadName::Length));
        assert_eq!(ToolName::try_from(""), Err(BadName::Length));
        assert!(ToolName::try_from("DATA_EXPORT-v2.get").is_ok());
        for name in ["a b", "a/b", "é", "a,b"] {
            assert_eq!(ToolName::try_from(name), Err(BadName::Character), "{name}");
        }
    }
}
