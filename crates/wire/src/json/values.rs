//! Strings, numbers, words and lists.

use std::borrow::Cow;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Invalid, ReadJson, WriteJson};
use crate::id::{Id, write_json_string};
use crate::raw::Raw;
use crate::revision::Features;

/// The string that `json` is.
pub(crate) fn text_of(json: &Raw) -> Result<String, Invalid> {
    json.read().map_err(|_| Invalid::new("a string"))
}

impl ReadJson for String {
    fn read_json(json: &Raw) -> Result<Self, Invalid> {
        text_of(json)
    }
}

impl ReadJson for Box<str> {
    fn read_json(json: &Raw) -> Result<Self, Invalid> {
        text_of(json).map(Into::into)
    }
}

impl WriteJson for str {
    fn write_json(&self, _: &'static Features, out: &mut Vec<u8>) {
        write_json_string(self, out);
    }
}

impl WriteJson for String {
    fn write_json(&self, _: &'static Features, out: &mut Vec<u8>) {
        write_json_string(self, out);
    }
}

impl WriteJson for Box<str> {
    fn write_json(&self, _: &'static Features, out: &mut Vec<u8>) {
        write_json_string(self, out);
    }
}

impl ReadJson for bool {
    fn read_json(json: &Raw) -> Result<Self, Invalid> {
        json.read().map_err(|_| Invalid::new("true or false"))
    }

    fn absent() -> Option<Self> {
        Some(false)
    }
}

impl WriteJson for bool {
    fn write_json(&self, _: &'static Features, out: &mut Vec<u8>) {
        out.extend_from_slice(if *self { b"true" } else { b"false" });
    }

    fn is_default(&self) -> bool {
        !self
    }
}

/// The nearest `f64` of a JSON number; infinite beyond its range.
fn number_of(json: &Raw) -> Option<f64> {
    let is_number = json.text().starts_with(|c: char| c == '-' || c.is_ascii_digit());
    json.text().parse().ok().filter(|_| is_number)
}

/// An integer may be spelled `1.0` or `1e3`; beyond the range it is the greatest.
impl ReadJson for u64 {
    fn read_json(json: &Raw) -> Result<Self, Invalid> {
        let rounded =
            || number_of(json).filter(|n| *n >= 0.0 && (n.is_infinite() || n.fract() == 0.0));
        let read = json.text().parse().ok().or_else(|| rounded().map(|number| number as Self));
        read.ok_or_else(|| Invalid::new("an integer from 0"))
    }

    fn keeps_text() -> bool {
        true
    }
}

impl WriteJson for u64 {
    fn write_json(&self, _: &'static Features, out: &mut Vec<u8>) {
        out.extend_from_slice(itoa::Buffer::new().format(*self).as_bytes());
    }

    fn still_says(&self, text: &Raw) -> bool {
        Self::read_json(text).as_ref() == Ok(self)
    }
}

impl ReadJson for f64 {
    fn read_json(json: &Raw) -> Result<Self, Invalid> {
        number_of(json).ok_or_else(|| Invalid::new("a number"))
    }

    fn keeps_text() -> bool {
        true
    }
}

impl WriteJson for f64 {
    fn write_json(&self, _: &'static Features, out: &mut Vec<u8>) {
        // Writing a number into memory cannot fail.
        let _ = serde_json::to_writer(out, self);
    }

    fn still_says(&self, text: &Raw) -> bool {
        Self::read_json(text).as_ref() == Ok(self)
    }
}

/// A number that is written as an integer if it is one: `50`, not `50.0`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Number(pub(crate) f64);

impl WriteJson for Number {
    fn write_json(&self, to: &'static Features, out: &mut Vec<u8>) {
        const EXACT: f64 = 9_007_199_254_740_992.0;
        if self.0.fract() == 0.0 && self.0.abs() < EXACT {
            out.extend_from_slice(itoa::Buffer::new().format(self.0 as i64).as_bytes());
        } else {
            self.0.write_json(to, out);
        }
    }

    fn still_says(&self, text: &Raw) -> bool {
        self.0.still_says(text)
    }
}

impl ReadJson for Raw {
    fn read_json(json: &Raw) -> Result<Self, Invalid> {
        Ok(json.clone())
    }
}

impl WriteJson for Raw {
    fn write_json(&self, _: &'static Features, out: &mut Vec<u8>) {
        out.extend_from_slice(self.as_bytes());
    }
}

impl ReadJson for Id {
    fn read_json(json: &Raw) -> Result<Self, Invalid> {
        let id = Self::parse(json.text()).filter(|id| !id.is_null());
        id.ok_or_else(|| Invalid::new("a string or an integer"))
    }
}

impl WriteJson for Id {
    fn write_json(&self, _: &'static Features, out: &mut Vec<u8>) {
        self.write(out);
    }
}

impl<T: ReadJson> ReadJson for Option<T> {
    fn read_json(json: &Raw) -> Result<Self, Invalid> {
        T::read_json(json).map(Some)
    }

    fn absent() -> Option<Self> {
        Some(None)
    }

    fn keeps_text() -> bool {
        T::keeps_text()
    }
}

impl<T: WriteJson> WriteJson for Option<T> {
    fn write_json(&self, to: &'static Features, out: &mut Vec<u8>) {
        match self {
            Some(value) => value.write_json(to, out),
            None => out.extend_from_slice(b"null"),
        }
    }

    fn is_none(&self) -> bool {
        self.is_none()
    }

    fn still_says(&self, text: &Raw) -> bool {
        self.as_ref().is_some_and(|value| value.still_says(text))
    }
}

impl<T: ReadJson> ReadJson for Vec<T> {
    fn read_json(json: &Raw) -> Result<Self, Invalid> {
        let items = json.items().ok_or_else(|| Invalid::new("an array"))?;
        let read = |(nth, item)| T::read_json(item).map_err(|error| error.in_item(nth));
        items.iter().enumerate().map(read).collect()
    }

    fn absent() -> Option<Self> {
        Some(Self::new())
    }
}

impl<T: WriteJson> WriteJson for [T] {
    fn write_json(&self, to: &'static Features, out: &mut Vec<u8>) {
        out.push(b'[');
        for (nth, item) in self.iter().enumerate() {
            if nth > 0 {
                out.push(b',');
            }
            item.write_json(to, out);
        }
        out.push(b']');
    }

    fn is_default(&self) -> bool {
        self.is_empty()
    }
}

impl<T: WriteJson> WriteJson for Vec<T> {
    fn write_json(&self, to: &'static Features, out: &mut Vec<u8>) {
        self.as_slice().write_json(to, out);
    }

    fn is_default(&self) -> bool {
        self.is_empty()
    }
}

impl<T: WriteJson + Clone> WriteJson for Cow<'_, [T]> {
    fn write_json(&self, to: &'static Features, out: &mut Vec<u8>) {
        (**self).write_json(to, out);
    }
}

/// Appends an object that has these members.
pub(crate) fn write_entries<T: WriteJson>(
    entries: &[(String, T)],
    to: &'static Features,
    out: &mut Vec<u8>,
) {
    out.push(b'{');
    for (nth, (name, value)) in entries.iter().enumerate() {
        if nth > 0 {
            out.push(b',');
        }
        name.write_json(to, out);
        out.push(b':');
        value.write_json(to, out);
    }
    out.push(b'}');
}

/// Reads one of the words of an enum.
pub(crate) fn read_word<T: DeserializeOwned>(
    json: &Raw,
    words: &'static str,
) -> Result<T, Invalid> {
    json.read().map_err(|_| Invalid::new(words))
}

/// Appends the word of an enum.
pub(crate) fn write_word(word: &impl Serialize, out: &mut Vec<u8>) {
    // Writing a word into memory cannot fail.
    let _ = serde_json::to_writer(out, word);
}
