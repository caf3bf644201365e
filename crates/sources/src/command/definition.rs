//! Mistakes in the definition of a command or a prompt.

use std::fmt;

/// A mistake in the definition of a command or a prompt.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{location}: {message}")]
pub struct DefinitionError {
    /// Where it is.
    pub location: Location,
    /// The mistake.
    pub message: String,
    /// How to correct it.
    pub hint: Option<String>,
}

impl DefinitionError {
    pub(crate) fn new(location: Location, message: impl Into<String>) -> Self {
        Self { location, message: message.into(), hint: None }
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Hints at the known name that was probably meant, if there is one.
    pub(super) fn did_you_mean(self, near: Option<String>) -> Self {
        match near {
            Some(near) => self.hint(format!("did you mean `{near}`?")),
            None => self,
        }
    }
}

/// A part of a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A text with placeholders, and a character in it, counted from 1.
    Text(Place, Option<usize>),
    /// An argument in `input`, and a key of its table.
    Argument(String, Option<String>),
    /// `input_schema`.
    Schema,
    /// `allow_dash`.
    AllowDash,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(place, None) => write!(f, "{place}"),
            Self::Text(place, Some(character)) => write!(f, "{place}, character {character}"),
            Self::Argument(name, None) => write!(f, "input.{name}"),
            Self::Argument(name, Some(key)) => write!(f, "input.{name}.{key}"),
            Self::Schema => f.write_str("input_schema"),
            Self::AllowDash => f.write_str("allow_dash"),
        }
    }
}

/// A text with placeholders in a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// An entry of `run`, counted from 0, and the entry of its inner list.
    Run(usize, Option<usize>),
    /// `stdin`.
    Stdin,
    /// `cwd`.
    Folder,
    /// The `text` of a prompt, or of one of its messages, counted from 0.
    Message(Option<usize>),
    /// A key of a request, such as `url`.
    Key(&'static str),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run(index, None) => write!(f, "run[{index}]"),
            Self::Run(index, Some(inner)) => write!(f, "run[{index}][{inner}]"),
            Self::Stdin => f.write_str("stdin"),
            Self::Key(key) => f.write_str(key),
            Self::Folder => f.write_str("cwd"),
            Self::Message(None) => f.write_str("text"),
            Self::Message(Some(index)) => write!(f, "messages[{index}].text"),
        }
    }
}
