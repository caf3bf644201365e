//! JSON Schemas of Rust types, as clients like them: nothing is referred to, no Rust names.

use sabir_wire::Raw;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};

/// The schema of a type.
pub(crate) fn of<T: JsonSchema>() -> Raw {
    raw(&generate::<T>())
}

/// The schema of a type whose values are a tool's arguments: always of an object.
pub(crate) fn of_arguments<T: JsonSchema>() -> Raw {
    let mut schema = generate::<T>();
    // A type without fields, such as `()`, is written `null`; as arguments it is an empty object.
    if matches!(schema.get("type").and_then(|name| name.as_str()), None | Some("null")) {
        schema.insert("type".into(), "object".into());
    }
    raw(&schema)
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

fn raw(schema: &Schema) -> Raw {
    // A schema has string keys and can always be written.
    Raw::of(schema).unwrap_or_else(|_| Raw::empty_object())
}
