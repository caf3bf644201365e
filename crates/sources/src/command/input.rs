//! What a command may be asked: the short form of `input`, and any JSON Schema.
//!
//! The short form is made for people: `amount = "number"`, `note = "string?"`,
//! `tags = "string[]"`, `unit = ["kg", "lb"]`, or a table with `type`, `description`, `default`,
//! `enum`, `optional` and the usual bounds. It becomes a JSON Schema in which the properties
//! stand as they were written and nothing else is allowed.
//!
//! Not here: checking a call against the schema (`registry` does), and filling in (`values`).

mod agree; // do the placeholders and the schema agree
mod short; // the short form

use std::collections::BTreeMap;

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

pub use agree::Disagreement;
pub use short::InputError;

/// What a command may be asked.
#[derive(Clone, Debug)]
pub struct Input {
    schema: Value,
    properties: BTreeMap<String, Property>,
    /// Whether arguments may exist that `properties` does not know.
    open: bool,
    defaults: BTreeMap<String, Box<RawValue>>,
}

/// What can be told about an argument without checking one.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Property {
    required: bool,
    /// The types it may have. Empty: not said.
    types: Vec<String>,
}

impl Input {
    /// Reads the short form: from the names of the arguments to what they may be.
    pub fn from_short(short: &Map<String, Value>) -> Result<Self, InputError> {
        short::schema(short).map(Self::from_object)
    }

    /// Takes a JSON Schema as it is. It must be one of an object.
    pub fn from_schema(schema: Value) -> Result<Self, InputError> {
        match schema {
            Value::Object(schema) if schema.get("type").is_some_and(|kind| kind == "object") => {
                Ok(Self::from_object(schema))
            }
            _ => Err(InputError::NotAnObject),
        }
    }

    /// The JSON Schema of the arguments.
    pub fn schema(&self) -> &Value {
        &self.schema
    }

    /// Whether this argument must be given.
    pub fn requires(&self, name: &str) -> bool {
        self.properties.get(name).is_some_and(|property| property.required)
    }

    /// The defaults that the schema states, by argument.
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
            // A default of null is the same as none. A `Value` always has a JSON text.
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

/// Keywords by which a schema can know more arguments than its `properties`.
const OPENING: [&str; 7] =
    ["$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "patternProperties"];

fn strings(list: Option<&Value>) -> Vec<&str> {
    list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The known name that was probably meant, for a hint.
fn nearest<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Option<String> {
    known
        .map(|known| (strsim::damerau_levenshtein(name, known), known))
        .filter(|(distance, known)| *distance <= known.chars().count().max(3) / 3)
        .min()
        .map(|(_, known)| known.to_owned())
}

#[cfg(test)]
mod tests;
