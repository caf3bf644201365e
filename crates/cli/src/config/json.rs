//! Tables with keys of the author's choice, and their conversion to JSON.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::{Map, Number, Value};
use toml::Spanned;

/// The entries of a table in the order of the file, with the places of the keys.
#[derive(Debug, Default)]
pub(crate) struct Entries(pub(crate) Vec<(Spanned<String>, toml::Value)>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Entries;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

/// Converts to JSON. A date becomes a string. `None`: a number is not valid in JSON.
pub(crate) fn json(value: &toml::Value) -> Option<Value> {
    Some(match value {
        toml::Value::String(text) => text.as_str().into(),
        toml::Value::Integer(number) => (*number).into(),
        toml::Value::Float(number) => Number::from_f64(*number)?.into(),
        toml::Value::Boolean(truth) => (*truth).into(),
        toml::Value::Datetime(date) => date.to_string().into(),
        toml::Value::Array(items) => items.iter().map(json).collect::<Option<Vec<_>>>()?.into(),
        toml::Value::Table(table) => {
            let members = table.iter().map(|(name, value)| Some((name.clone(), json(value)?)));
            members.collect::<Option<Map<_, _>>>()?.into()
        }
    })
}
