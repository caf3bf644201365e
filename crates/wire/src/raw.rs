//! A JSON value left as text.
//!
//! JSON of clients and other servers passes through as bytes: numbers beyond 2^53, unknown members
//! and key order stay because nothing parses them. A clone shares the bytes of the message that it
//! came in.

use std::borrow::Cow;

use bytes::Bytes;
use bytestring::ByteString;
use serde::{Deserialize, Deserializer as _, Serialize, Serializer};
use serde_json::value::RawValue;

/// One JSON value, as its author wrote it. It is always valid JSON, and always on one line, because a
/// message is a line.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Raw(ByteString);

impl Raw {
    /// Reads `text` as one JSON value and keeps its bytes.
    pub fn parse(text: impl Into<Bytes>) -> Result<Self, serde_json::Error> {
        let text = ByteString::try_from(text.into()).map_err(serde::de::Error::custom)?;
        let value: &RawValue = serde_json::from_str(&text)?;
        Ok(Self(on_one_line(text.slice_ref(value.get()))))
    }

    /// Writes `value` as JSON.
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Result<Self, serde_json::Error> {
        serde_json::to_string(value).map(|text| Self(on_one_line(text.into())))
    }

    /// The part of `whole`, which is JSON on one line, that `part` was borrowed from. No copy.
    pub(crate) fn part(whole: &ByteString, part: &str) -> Self {
        Self(whole.slice_ref(part))
    }

    /// The part of this value that `part` was borrowed from. No copy.
    pub(crate) fn subset(&self, part: &str) -> Self {
        Self::part(&self.0, part)
    }

    /// The part of the text that `part` was borrowed from. No copy.
    pub(crate) fn slice(&self, part: &str) -> ByteString {
        self.0.slice_ref(part)
    }

    /// The same text in memory of its own. A value that is kept longer than its message should not
    /// keep the message in memory.
    pub fn compact(&self) -> Self {
        Self(ByteString::from(&*self.0))
    }

    /// The members of an object, in their order; empty for any other value.
    pub fn members(&self) -> Vec<(String, Raw)> {
        let members = self.named_members().unwrap_or_default();
        members.into_iter().map(|(name, value)| (name.into(), value)).collect()
    }

    /// The member `name` of an object.
    pub fn member(&self, name: &str) -> Option<Raw> {
        let mut found = None;
        self.for_each_member(|at, value| {
            if at == name {
                found.get_or_insert(value);
            }
        })?;
        found.map(|value| self.subset(value.get()))
    }

    /// The items of an array; `None` for any other value. No copy.
    pub(crate) fn items(&self) -> Option<Vec<Raw>> {
        let items: Vec<&RawValue> = self.read().ok()?;
        Some(items.into_iter().map(|item| self.subset(item.get())).collect())
    }

    /// The members of an object, in their order; `None` for any other value. No copy, unless a name
    /// has escapes.
    pub(crate) fn named_members(&self) -> Option<Vec<(ByteString, Raw)>> {
        let mut members = Vec::new();
        self.for_each_member(|name, value| {
            let name = match name {
                Cow::Borrowed(name) => self.slice(name),
                Cow::Owned(name) => name.into(),
            };
            members.push((name, self.subset(value.get())));
        })?;
        Some(members)
    }

    /// Visits the members of an object, in their order; `None` for any other value.
    fn for_each_member<'a>(&'a self, visit: impl FnMut(Cow<'a, str>, &'a RawValue)) -> Option<()> {
        let mut reader = serde_json::Deserializer::from_str(&self.0);
        reader.deserialize_map(ForEach(visit)).ok()
    }

    /// JSON that was written by this crate: valid, and on one line.
    pub(crate) fn written(json: Vec<u8>) -> Self {
        Self(String::from_utf8(json).unwrap_or_default().into())
    }

    /// `{}`.
    pub fn empty_object() -> Self {
        Self(ByteString::from_static("{}"))
    }

    /// Reads the value as a `T`, which may borrow from the text.
    pub fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        serde_json::from_str(&self.0)
    }

    /// The JSON text.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// The JSON text, as bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// Whether the value is an object.
    pub fn is_object(&self) -> bool {
        self.0.starts_with('{')
    }

    /// Whether the value is `null`.
    pub fn is_null(&self) -> bool {
        &*self.0 == "null"
    }
}

/// An empty object.
impl Default for Raw {
    fn default() -> Self {
        Self::empty_object()
    }
}

impl std::fmt::Debug for Raw {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.text())
    }
}

impl From<Box<RawValue>> for Raw {
    fn from(value: Box<RawValue>) -> Self {
        Self(on_one_line(Box::<str>::from(value).into()))
    }
}

impl From<&RawValue> for Raw {
    fn from(value: &RawValue) -> Self {
        Self(on_one_line(value.get().into()))
    }
}

impl From<serde_json::Value> for Raw {
    fn from(value: serde_json::Value) -> Self {
        Self(on_one_line(value.to_string().into()))
    }
}

impl Serialize for Raw {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value: &RawValue = self.read().map_err(serde::ser::Error::custom)?;
        value.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Self::from)
    }
}

/// The same JSON without line breaks. In valid JSON they occur only between values, where a space
/// means the same; inside a string they are escaped.
pub(crate) fn on_one_line(json: ByteString) -> ByteString {
    if !has_line_break(json.as_bytes()) {
        return json;
    }
    json.replace(['\n', '\r'], " ").into()
}

pub(crate) fn has_line_break(json: &[u8]) -> bool {
    memchr::memchr2(b'\n', b'\r', json).is_some()
}

/// A name that is borrowed unless it has escapes.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

/// Hands each member of an object to a function, in their order.
struct ForEach<F>(F);

impl<'de, F: FnMut(Cow<'de, str>, &'de RawValue)> serde::de::Visitor<'de> for ForEach<F> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: serde::de::MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some((Name(name), value)) = map.next_entry()? {
            self.0(name, value);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_survives_as_written() {
        let text = r#"{"z":1,"a":12345678901234567890123,"unknown":{"b":[1.0,1e400]}}"#;
        let raw = Raw::parse(text).unwrap();
        assert_eq!(raw.text(), text);
        assert_eq!(serde_json::to_string(&raw).unwrap(), text);
    }

    #[test]
    fn json_of_several_lines_becomes_one() {
        let text = "{\n  \"a\": \"x\\ny\",\r\n  \"b\": [1,\n2]\n}";
        let one_line = r#"{   "a": "x\ny",    "b": [1, 2] }"#;
        assert_eq!(Raw::parse(text).unwrap().text(), one_line);
        let boxed = RawValue::from_string(text.to_owned()).unwrap();
        assert_eq!(Raw::from(&*boxed).text(), one_line);
        assert_eq!(Raw::of(&boxed).unwrap().text(), one_line);
        assert_eq!(Raw::from(boxed).text(), one_line);
        let read: Vec<Raw> = serde_json::from_str(&format!("[{text}]")).unwrap();
        assert_eq!(read[0].text(), one_line);
    }

    #[test]
    fn what_is_not_json_is_refused() {
        for text in ["", "{", "nul", "{} {}", "\u{feff}1", "\"a\nb\""] {
            assert!(Raw::parse(text).is_err(), "{text:?} was taken for JSON");
        }
    }
}
