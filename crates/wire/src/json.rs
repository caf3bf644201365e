//! Reading and writing the types of the specification without loss.
//!
//! Each type lists its members once, in an [`Object`] implementation, mostly by the `object!` table
//! beside its definition. The list serves reading and writing, in every revision. Members that the
//! type does not know are kept in its [`Extra`], together with the order of all members and the
//! spelling of numbers, so that a value that was read is written as its author wrote it.
//!
//! Three things are not kept: an optional member that is `null` is read as absent, a string may be
//! escaped differently, and a member that a revision does not have is left out of it.

mod edit; // changes of single members of an object
mod extra; // members that a type does not know
mod object; // members of an object, read and written
mod values; // strings, numbers, lists

use std::borrow::Cow;
use std::fmt;

use crate::raw::Raw;
use crate::revision::{Features, Revision};

pub(crate) use edit::{changed, with_members, write_changed};
pub use extra::Extra;
pub(crate) use object::{Flat, MemberReader, MemberWriter, Object, SERVER, SUBSCRIPTION};
pub(crate) use object::{object, write_object};
pub(crate) use values::{Number, read_word, text_of, write_entries, write_word};

/// A type of the specification that can be read from JSON of any revision.
pub trait ReadJson: Sized {
    /// Reads the value, or names the invalid member.
    fn read_json(json: &Raw) -> Result<Self, Invalid>;

    /// The value of a member that is absent; `None` if the member is required.
    fn absent() -> Option<Self> {
        None
    }

    /// Whether the text of a member of this type is kept: it can be spelled in several ways, or
    /// the type does not hold all of it.
    fn keeps_text() -> bool {
        false
    }
}

/// A type of the specification that can be written in any revision.
pub trait WriteJson {
    /// Appends the value as JSON, without the members that the revision does not have.
    fn write_json(&self, to: &'static Features, out: &mut Vec<u8>);

    /// Whether there is nothing to write, so that a member of this value is always left out.
    fn is_none(&self) -> bool {
        false
    }

    /// Whether an optional member of this value is left out if it was not there when it was read.
    fn is_default(&self) -> bool {
        self.is_none()
    }

    /// Whether `text`, from which the value was read, still has the same value.
    fn still_says(&self, _text: &Raw) -> bool {
        false
    }

    /// The value as JSON of `revision`.
    fn to_raw(&self, revision: Revision) -> Raw {
        let mut out = Vec::new();
        self.write_json(revision.features(), &mut out);
        Raw::written(out)
    }
}

/// Why JSON is not of the expected type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// The path, as `tools[3].inputSchema`; empty for the value itself.
    pub path: String,
    /// The type that was expected there; empty if the member is missing.
    pub expected: Cow<'static, str>,
}

impl Invalid {
    pub(crate) fn new(expected: impl Into<Cow<'static, str>>) -> Self {
        Self { path: String::new(), expected: expected.into() }
    }

    pub(crate) fn missing(name: &str) -> Self {
        Self::new("").in_member(name)
    }

    /// The same error, seen from the object that has the member `name`.
    pub(crate) fn in_member(mut self, name: &str) -> Self {
        let dot = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path = format!("{name}{dot}{}", self.path);
        self
    }

    /// The same error, seen from the array that has it as its item `nth`.
    pub(crate) fn in_item(self, nth: usize) -> Self {
        self.in_member(&format!("[{nth}]"))
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_str() {
            path if self.expected.is_empty() => write!(f, "missing `{path}`"),
            "" => write!(f, "invalid value (expected {})", self.expected),
            path => write!(f, "invalid `{path}` (expected {})", self.expected),
        }
    }
}

impl std::error::Error for Invalid {}

/// Reads a value inside of a serde deserializer, for types that are also read by serde.
pub(crate) fn deserialize<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: ReadJson,
    D: serde::Deserializer<'de>,
{
    let json = <Raw as serde::Deserialize>::deserialize(deserializer)?;
    T::read_json(&json).map_err(serde::de::Error::custom)
}
