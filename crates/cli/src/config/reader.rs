//! Reads a TOML file into its types, and reports all mistakes instead of the first.
//!
//! The deserializer sees which type each key should have. It reports a mistake with its place and
//! leaves the wrong value out; then the file is read again without it, until it can be read. So a
//! section needs no code of its own: `#[derive(Deserialize)]` is enough.

use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt;
use std::ops::Range;

use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error as _, IntoDeserializer, MapAccess,
    SeqAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_spanned::de::{SpannedDeserializer, is_spanned};
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use super::expected::{Expected, Key};
use super::file::HTTP_REQUESTS;
use super::mistake::{Mistake, Text};

/// How many mistakes of one file are reported. The others appear when these are corrected.
const MAX_MISTAKES: usize = 100;

/// Reads a file. Its mistakes are reported to `text`.
pub(super) fn read<T: DeserializeOwned + Default>(text: &Text<'_>) -> T {
    let (table, errors) = DeTable::parse_recoverable(text.text);
    if !errors.is_empty() {
        let mut lines = HashSet::new();
        let mistakes = errors.iter().map(|error| text.syntax_error(error));
        // What follows a syntax error on the same line is its consequence.
        mistakes.filter(|mistake| lines.insert(mistake.line())).for_each(|one| text.report(one));
        return T::default();
    }
    let place = table.span();
    let table = DeValue::Table(table.into_inner());
    let reader = Reader { text, left_out: RefCell::default() };
    for _ in 0..MAX_MISTAKES {
        let root =
            Node { value: &table, place: place.clone(), key: Key::default(), reader: &reader };
        let id = root.id();
        match T::deserialize(root) {
            Ok(value) => return value,
            Err(Failed { left_out: Some(node), .. }) if node != id => reader.leave_out(node),
            Err(_) => break,
        }
    }
    T::default()
}

struct Reader<'a> {
    text: &'a Text<'a>,
    /// The wrong values, by their addresses.
    left_out: RefCell<HashSet<usize>>,
}

impl Reader<'_> {
    fn leave_out(&self, node: usize) {
        self.left_out.borrow_mut().insert(node);
    }

    fn is_left_out(&self, value: &DeValue<'_>) -> bool {
        self.left_out.borrow().contains(&id(value))
    }
}

fn id(value: &DeValue<'_>) -> usize {
    std::ptr::from_ref(value).addr()
}

/// A value of the file.
#[derive(Clone)]
struct Node<'a> {
    value: &'a DeValue<'a>,
    place: Range<usize>,
    key: Key<'a>,
    reader: &'a Reader<'a>,
}

impl<'a> Node<'a> {
    fn id(&self) -> usize {
        id(self.value)
    }

    /// Reports a mistake at this value.
    fn report(&self, mistake: Mistake) -> Failed {
        self.reader.text.report_unread(mistake);
        Failed { problem: Problem::Reported, left_out: Some(self.id()) }
    }

    /// What a visitor made of this value. `None`: it has another type than expected.
    fn read<T>(&self, visited: Option<Result<T, Failed>>, expected: Expected) -> Result<T, Failed> {
        match visited {
            Some(visited) => visited.map_err(|failed| self.at(failed)),
            None => {
                let text = self.reader.text;
                let written = text.text.get(self.place.clone()).unwrap_or_default();
                let (what, hint) = self.key.mismatch(written, self.value, expected);
                Err(self.report(text.mistake(self.place.clone(), what).hint(hint)))
            }
        }
    }

    /// Reports an error of a type at this value, unless it was reported at a value within it.
    fn at(&self, failed: Failed) -> Failed {
        if failed.left_out.is_some() {
            return failed;
        }
        let text = self.reader.text;
        let wrong = |what: String| text.mistake(self.place.clone(), what);
        self.report(match failed.problem {
            Problem::Reported => return Failed { left_out: Some(self.id()), ..failed },
            Problem::Missing(field) => {
                if let DeValue::Table(table) = self.value
                    && table.contains_key(field)
                {
                    return Failed { problem: Problem::Reported, left_out: Some(self.id()) };
                }
                let (what, hint) = self.key.missing(field);
                wrong(what).hint(hint)
            }
            Problem::Unknown(found, known) => {
                let (what, hint) = self.key.unknown_value(&found, known);
                wrong(what).hint(hint)
            }
            Problem::Other(reason) => wrong(format!("{}: {reason}", self.key)),
        })
    }

    /// The integer, if it is one.
    fn integer(&self) -> Option<i64> {
        let integer = self.value.as_integer()?;
        i64::from_str_radix(integer.as_str(), integer.radix()).ok()
    }

    fn table(&self, table: &'a DeTable<'a>, fields: Option<&'static [&'static str]>) -> Table<'a> {
        Table { entries: table.iter(), value: None, fields, of: self.clone() }
    }

    fn list(&self, list: &'a DeArray<'a>) -> List<'a> {
        List { items: list.iter(), of: self.clone() }
    }
}

impl<'de> Deserializer<'de> for Node<'_> {
    type Error = Failed;

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        let visited = self.value.as_bool().map(|truth| visitor.visit_bool(truth));
        self.read(visited, Expected::Truth)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        let visited = self.value.as_str().map(|text| visitor.visit_str(text));
        self.read(visited, Expected::Text)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        self.deserialize_str(visitor)
    }

    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        let visited = self.integer().map(|number| visitor.visit_i64(number));
        self.read(visited, Expected::Integer)
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        let count = self.integer().and_then(|number| u64::try_from(number).ok());
        self.read(count.map(|number| visitor.visit_u64(number)), Expected::Count)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        let float = self.value.as_float().and_then(|float| float.as_str().parse().ok());
        let number = float.or_else(|| self.integer().map(|number| number as f64));
        self.read(number.map(|number| visitor.visit_f64(number)), Expected::Number)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        let visited = self.value.as_array().map(|list| visitor.visit_seq(self.list(list)));
        self.read(visited, Expected::List)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        let table = self.value.as_table();
        let visited = table.map(|table| visitor.visit_map(self.table(table, None)));
        self.read(visited, Expected::Table)
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        match self.value {
            DeValue::String(text) => visitor.visit_str(text),
            DeValue::Boolean(truth) => visitor.visit_bool(*truth),
            DeValue::Integer(_) => return self.deserialize_i64(visitor),
            DeValue::Float(_) => return self.deserialize_f64(visitor),
            DeValue::Array(list) => visitor.visit_seq(self.list(list)),
            DeValue::Table(table) => visitor.visit_map(self.table(table, None)),
            DeValue::Datetime(date) => {
                let date = Spanned::new(self.place.clone(), DeValue::Datetime(*date));
                toml::de::ValueDeserializer::from(date)
                    .deserialize_any(visitor)
                    .map_err(|error| Failed::custom(error.message()))
            }
        }
        .map_err(|failed| self.at(failed))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Failed> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failed> {
        if is_spanned(name) {
            let place = self.place.clone();
            return visitor.visit_map(SpannedDeserializer::new(self, place));
        }
        let table = self.value.as_table();
        let visited = table.map(|table| visitor.visit_map(self.table(table, Some(fields))));
        self.read(visited, Expected::Table)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failed> {
        let visited = self.value.as_str().map(|text| {
            let variant: StrDeserializer<'_, Failed> = text.into_deserializer();
            visitor.visit_enum(variant)
        });
        self.read(visited, Expected::Text)
    }

    // The visitors of the smaller integers check the range.
    fn deserialize_u8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        self.deserialize_u64(visitor)
    }

    fn deserialize_u16<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        self.deserialize_u64(visitor)
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        self.deserialize_u64(visitor)
    }

    fn deserialize_i32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        self.deserialize_i64(visitor)
    }

    forward_to_deserialize_any! {
        i8 i16 f32 char bytes byte_buf unit unit_struct tuple tuple_struct identifier ignored_any
    }
}

impl<'de> IntoDeserializer<'de, Failed> for Node<'_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// The entries of a table, without those that are unknown or left out.
struct Table<'a> {
    entries: toml::map::Iter<'a, Spanned<std::borrow::Cow<'a, str>>, Spanned<DeValue<'a>>>,
    value: Option<Node<'a>>,
    /// The known keys; all keys if `None`.
    fields: Option<&'static [&'static str]>,
    of: Node<'a>,
}

impl<'de> MapAccess<'de> for Table<'_> {
    type Error = Failed;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Failed> {
        for (key, value) in self.entries.by_ref() {
            let Node { reader, key: path, .. } = &self.of;
            if reader.is_left_out(value.get_ref()) {
                continue;
            }
            let own = path.then(key.get_ref());
            let name = match value.get_ref() {
                DeValue::Array(_) if own.is_http() => HTTP_REQUESTS,
                _ => key.get_ref(),
            };
            if let Some(fields) = self.fields.filter(|fields| !fields.contains(&name)) {
                let (what, hint) = path.unknown(key.get_ref(), fields);
                reader.text.report_unread(reader.text.mistake(key.span(), what).hint(hint));
                reader.leave_out(id(value.get_ref()));
                continue;
            }
            let node = Node { value: value.get_ref(), place: value.span(), key: own, reader };
            self.value = Some(node);
            return seed.deserialize(TableKey { name, place: key.span() }).map(Some);
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Failed> {
        match self.value.take() {
            Some(node) => seed.deserialize(node),
            None => Err(Failed::custom("a value was read before its key")),
        }
    }
}

/// The items of a list, without those that are left out.
struct List<'a> {
    items: std::slice::Iter<'a, Spanned<DeValue<'a>>>,
    of: Node<'a>,
}

impl<'de> SeqAccess<'de> for List<'_> {
    type Error = Failed;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Failed> {
        let Node { reader, key, .. } = &self.of;
        let Some(item) = self.items.find(|item| !reader.is_left_out(item.get_ref())) else {
            return Ok(None);
        };
        let node = Node { value: item.get_ref(), place: item.span(), key: key.item(), reader };
        seed.deserialize(node).map(Some)
    }
}

/// The key of a table, with or without its place.
struct TableKey<'a> {
    name: &'a str,
    place: Range<usize>,
}

impl<'de> Deserializer<'de> for TableKey<'_> {
    type Error = Failed;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        visitor.visit_str(self.name)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failed> {
        if is_spanned(name) {
            visitor.visit_map(SpannedDeserializer::new(self.name, self.place))
        } else {
            self.deserialize_any(visitor)
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        newtype_struct unit unit_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// Why a value could not be read, and the value that is left out when the file is read again.
#[derive(Debug)]
struct Failed {
    problem: Problem,
    left_out: Option<usize>,
}

#[derive(Debug)]
enum Problem {
    Reported,
    Missing(&'static str),
    Unknown(String, &'static [&'static str]),
    Other(String),
}

impl From<Problem> for Failed {
    fn from(problem: Problem) -> Self {
        Self { problem, left_out: None }
    }
}

impl serde::de::Error for Failed {
    fn custom<T: fmt::Display>(reason: T) -> Self {
        Problem::Other(reason.to_string()).into()
    }

    fn missing_field(field: &'static str) -> Self {
        Problem::Missing(field).into()
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        Problem::Unknown(variant.to_owned(), expected).into()
    }

    /// `expected` is the text of a visitor that was written by hand, or a range of numbers.
    fn invalid_value(found: serde::de::Unexpected<'_>, expected: &dyn serde::de::Expected) -> Self {
        use serde::de::Unexpected::{Signed, Unsigned};
        match found {
            Signed(_) | Unsigned(_) => Self::custom("the number is out of range"),
            _ => Self::custom(format!("invalid value (expected {expected})")),
        }
    }

    fn invalid_type(found: serde::de::Unexpected<'_>, expected: &dyn serde::de::Expected) -> Self {
        Self::invalid_value(found, expected)
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.problem)
    }
}

impl std::error::Error for Failed {}
