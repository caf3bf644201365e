//! JSON Schemas of Rust types, as clients like them: nothing is referred to, no Rust names.

use sabir_wire::Raw;
use sabir_wire::types::PromptArgument;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::Value;

/// The schema of a type.
pub(crate) fn of<T: JsonSchema>() -> Raw {
    raw(&generate::<T>())
}

/// The schema of a type whose values are arguments: always of an object.
pub(crate) fn of_arguments<T: JsonSchema>() -> Schema {
    let mut schema = generate::<T>();
    // A type without fields, such as `()`, is written `null`; as arguments it is an empty object.
    if matches!(schema.get("type").and_then(|name| name.as_str()), None | Some("null")) {
        schema.insert("type".into(), "object".into());
    }
    schema
}

/// The schema of a tool without arguments, or with arguments of any kind.
pub(crate) fn of_any_object() -> Schema {
    schemars::json_schema!({ "type": "object" })
}

fn generate<T: JsonSchema>() -> Schema {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    // The name of a Rust type says nothing to a model.
    schema.remove("title");
    schema
}

pub(crate) fn raw(schema: &Schema) -> Raw {
    // A schema has string keys and can always be written.
    Raw::of(schema).unwrap_or_else(|_| Raw::empty_object())
}

/// Arguments that clients send as strings: of a prompt, or in a URI.
#[derive(Clone, Default)]
pub(crate) struct StringArguments {
    /// In the order of the fields.
    pub(crate) listed: Vec<PromptArgument>,
    /// Those whose type takes no strings: numbers, booleans.
    parsed: Vec<String>,
}

impl StringArguments {
    pub(crate) fn of(schema: Option<Schema>) -> Self {
        let schema = schema.map(Value::from).unwrap_or_default();
        let Some(properties) = schema["properties"].as_object() else { return Self::default() };
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let required = schema["required"].as_array();
        let is_required = |name: &str| {
            required.is_some_and(|names| names.iter().any(|required| required == name))
        };
        let listed = properties.iter().map(|(name, property)| PromptArgument {
            name: name.clone(),
            title: text(&property["title"]),
            description: text(&property["description"]),
            required: is_required(name),
            ..PromptArgument::default()
        });
        let parsed = properties.iter().filter(|(_, property)| !takes_strings(&property["type"]));
        Self { listed: listed.collect(), parsed: parsed.map(|(name, _)| name.clone()).collect() }
    }

    /// The arguments as a JSON object, as the type reads them.
    pub(crate) fn read(&self, arguments: impl IntoIterator<Item = (String, String)>) -> Raw {
        let value = |(name, text): (String, String)| {
            let parsed = self.parsed.contains(&name).then(|| serde_json::from_str(&text).ok());
            (name, parsed.flatten().unwrap_or(Value::String(text)))
        };
        let object: serde_json::Map<String, Value> = arguments.into_iter().map(value).collect();
        Raw::of(&object).unwrap_or_else(|_| Raw::empty_object())
    }
}

/// Whether a schema with this `type` takes strings. Without a type it may.
fn takes_strings(types: &Value) -> bool {
    match types {
        Value::String(one) => one == "string",
        Value::Array(several) => several.iter().any(|one| one == "string"),
        _ => true,
    }
}
