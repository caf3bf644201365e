//! The arguments of a command or a prompt: the short form of `input`, or any JSON Schema.
//!
//! The short form is made for people: `amount = "number"`, `note = "string?"`,
//! `tags = "string[]"`, `unit = ["kg", "lb"]`, or a table with `type`, `description`, `default`,
//! `enum`, `optional` and the usual bounds. It becomes a JSON Schema that keeps the order of the
//! properties and allows no others.
//!
//! The arguments of a call are checked in `registry` and rendered in `values`.

mod agree; // do the placeholders match the schema
mod code; // no placeholders inside of code
mod short; // the short form

use std::collections::BTreeMap;

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

use super::definition::{DefinitionError, Location};

/// The arguments of a command or a prompt.
#[derive(Clone, Debug)]
pub struct Input {
    schema: Value,
    properties: BTreeMap<String, Property>,
    /// Whether the schema may allow arguments that are not in `properties`.
    open: bool,
    defaults: BTreeMap<String, Box<RawValue>>,
}

/// The known facts about an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Property {
    required: bool,
    /// The types that it may have. Empty: unknown.
    types: Vec<String>,
}

impl Input {
    /// Parses the short form, a map from names to descriptions.
    pub fn from_short(short: &Map<String, Value>) -> Result<Self, DefinitionError> {
        short::schema(short).map(Self::from_object)
    }

    /// Takes a JSON Schema, which must be the schema of an object.
    pub fn from_schema(schema: Value) -> Result<Self, DefinitionError> {
        match schema {
            Value::Object(schema) if schema.get("type").is_some_and(|kind| kind == "object") => {
                Ok(Self::from_object(schema))
            }
            _ => {
                let expected = "must be a JSON Schema with `type = \"object\"`";
                Err(DefinitionError::new(Location::Schema, expected))
            }
        }
    }

    /// The JSON Schema of the arguments.
    pub fn schema(&self) -> &Value {
        &self.schema
    }

    /// The arguments that are files, in Base64.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        let described = self.schema["properties"].as_object().into_iter().flatten();
        let files = described.filter(|(_, property)| property["contentEncoding"] == "base64");
        files.map(|(name, _)| name.as_str())
    }

    /// Adds a placeholder whose value does not come from the client.
    pub fn with_placeholder(mut self, name: &str) -> Self {
        let types = vec!["string".to_owned()];
        self.properties.insert(name.to_owned(), Property { required: true, types });
        self
    }

    /// Whether this argument is required.
    pub fn requires(&self, name: &str) -> bool {
        self.properties.get(name).is_some_and(|property| property.required)
    }

    /// The defaults in the schema, by argument.
    pub(super) fn defaults(&self) -> &BTreeMap<String, Box<RawValue>> {
        &self.defaults
    }

    fn from_object(schema: Map<String, Value>) -> Self {
        let required: Vec<&str> = strings(schema.get("required"));
        let mut properties = BTreeMap::new();
        let mut defaults = BTreeMap::new();
        let described = schema.get("properties").and_then(Value::as_object);
        for (name, property) in described.into_iter().flatten() {
            let types = match property.get("type") {
                Some(Value::String(one)) => vec![one.clone()],
                several => strings(several).into_iter().map(str::to_owned).collect(),
            };
            let required = required.contains(&&**name);
            properties.insert(name.clone(), Property { required, types });
            // A default of null counts as none. A `Value` can always be written as JSON.
            let default = property.get("default").filter(|default| !default.is_null());
            if let Some(Ok(default)) = default.map(to_raw_value) {
                defaults.insert(name.clone(), default);
            }
        }
        let open = OPENING.iter().any(|keyword| schema.contains_key(*keyword))
            || !matches!(schema.get("additionalProperties"), None | Some(Value::Bool(false)));
        Self { schema: Value::Object(schema), properties, open, defaults }
    }
}

/// Keywords by which a schema can allow more arguments than its `properties`.
const OPENING: [&str; 7] =
    ["$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "patternProperties"];

fn strings(list: Option<&Value>) -> Vec<&str> {
    list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The known name that was probably meant, for a hint.
pub fn nearest<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Option<String> {
    known
        .map(|known| (strsim::damerau_levenshtein(name, known), known))
        .filter(|(distance, known)| *distance <= known.chars().count().max(3) / 3)
        .min()
        .map(|(_, known)| known.to_owned())
}

#[cfg(test)]
mod tests;
