//! Request ids.

use std::fmt;
use std::io::Write as _;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::scan;

/// The id of a request: a string or an integer, kept exactly as it came.
///
/// `1`, `"1"` and an integer too large for any machine word are three different ids, and each is
/// written as it was read.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Id(Repr);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Repr {
    Small(i64),
    /// Digits that no `i64` holds, or that it would write differently (`-0`).
    Digits(Box<str>),
    Text(Box<str>),
    /// JSON-RPC allows it, MCP does not; a dialect may accept it.
    Null,
}

impl Id {
    /// The id of a JSON-RPC error response to a message whose id could not be read.
    pub const NULL: Self = Self(Repr::Null);

    /// Reads an id from its JSON text; `None` if it is neither string, integer nor `null`.
    pub fn parse(json: &str) -> Option<Self> {
        let json = json.trim_ascii();
        if json.starts_with('"') {
            return serde_json::from_str(json).ok().map(|text| Self(Repr::Text(text)));
        }
        if json == "null" {
            return Some(Self::NULL);
        }
        let digits = json.strip_prefix('-').unwrap_or(json);
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        Some(Self(match json.parse() {
            Ok(small) if json != "-0" => Repr::Small(small),
            _ => Repr::Digits(json.into()),
        }))
    }

    /// Approximate size in bytes.
    pub fn size(&self) -> usize {
        match &self.0 {
            Repr::Digits(text) | Repr::Text(text) => text.len(),
            Repr::Small(_) | Repr::Null => 0,
        }
    }

    /// Whether this is `null`.
    pub fn is_null(&self) -> bool {
        self.0 == Repr::Null
    }

    /// Appends the id as JSON.
    pub fn write(&self, out: &mut Vec<u8>) {
        match &self.0 {
            Repr::Small(number) => {
                out.extend_from_slice(itoa::Buffer::new().format(*number).as_bytes());
            }
            Repr::Digits(digits) => out.extend_from_slice(digits.as_bytes()),
            Repr::Text(text) => write_json_string(text, out),
            Repr::Null => out.extend_from_slice(b"null"),
        }
    }
}

/// Appends `text` as a JSON string.
pub(crate) fn write_json_string(text: &str, out: &mut Vec<u8>) {
    let mut rest = text.as_bytes();
    out.push(b'"');
    loop {
        let (plain, special) = rest.split_at(scan::plain_length(rest));
        out.extend_from_slice(plain);
        let Some((byte, after)) = special.split_first() else { break };
        let letter = match byte {
            b'"' | b'\\' => *byte,
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0x08 => b'b',
            0x0c => b'f',
            // Writing into memory cannot fail.
            _ => {
                drop(write!(out, "\\u{byte:04x}"));
                rest = after;
                continue;
            }
        };
        out.extend_from_slice(&[b'\\', letter]);
        rest = after;
    }
    out.push(b'"');
}

/// As it is on the wire.
impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let json = RawValue::from_string(self.to_string()).map_err(serde::ser::Error::custom)?;
        json.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Box::<RawValue>::deserialize(deserializer)?;
        Self::parse(json.get())
            .ok_or_else(|| serde::de::Error::custom("invalid id (expected a string or an integer)"))
    }
}

impl From<i64> for Id {
    fn from(number: i64) -> Self {
        Self(Repr::Small(number))
    }
}

impl From<&str> for Id {
    fn from(text: &str) -> Self {
        Self(Repr::Text(text.into()))
    }
}

/// The id as JSON.
impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut json = Vec::new();
        self.write(&mut json);
        f.write_str(&String::from_utf8_lossy(&json))
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_written_as_they_were_read() {
        for json in
            ["0", "-0", "-7", "9223372036854775807", "18446744073709551616", r#""1""#, r#""""#]
        {
            assert_eq!(Id::parse(json).unwrap().to_string(), json);
        }
    }

    #[test]
    fn a_string_is_written_as_serde_json_writes_it() {
        let all: String = (0..0x180).filter_map(char::from_u32).collect();
        for text in [&all, "", "plain", "\"\\\"", "a\nb\u{1f}c\u{7f}", "é€😀"] {
            let mut written = Vec::new();
            write_json_string(text, &mut written);
            assert_eq!(String::from_utf8(written).unwrap(), serde_json::to_string(text).unwrap());
        }
    }

    #[test]
    fn an_escaped_string_is_the_same_id() {
        assert_eq!(Id::parse(r#""a\u0062""#), Id::parse(r#""ab""#));
    }

    #[test]
    fn a_number_is_not_the_string_of_its_digits() {
        assert_ne!(Id::parse("1"), Id::parse(r#""1""#));
    }

    #[test]
    fn fractions_and_containers_are_not_ids() {
        for json in ["1.0", "1e3", "true", "{}", "[]", "-", ""] {
            assert_eq!(Id::parse(json), None, "{json}");
        }
    }
}
