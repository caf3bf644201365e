//! The JSON Schemas of the tools, derived from their types.
//!
//! They are kept plain (no `$ref`, no combinations, no `null`), because clients pass them on to
//! models that support different parts of JSON Schema.

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};

/// Categories that are listed in a schema. If there are more, the schema lists none, and an error
/// lists those that exist.
pub(super) const MOST_NAMED: usize = 100;

/// The schema of a tool's arguments.
pub(super) fn input<T: JsonSchema>() -> Value {
    generate::<T>(SchemaSettings::draft2020_12().for_deserialize())
}

/// The schema of a tool's structured result.
pub(super) fn output<T: JsonSchema>() -> Value {
    generate::<T>(SchemaSettings::draft2020_12().for_serialize())
}

/// Restricts the property `category` to these names. `None` if they are unknown or too many.
pub(super) fn with_categories(mut schema: Value, categories: Option<&[String]>) -> Value {
    match categories {
        None => {}
        // A folder without categories has no such property.
        Some([]) => _ = schema["properties"].as_object_mut().map(|all| all.remove("category")),
        Some(names) => schema["properties"]["category"]["enum"] = json!(names),
    }
    schema
}

fn generate<T: JsonSchema>(settings: SchemaSettings) -> Value {
    let settings = settings.with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
        settings.transforms.push(Box::new(RecursiveTransform(simplify)));
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.remove("title");
    schema.to_value()
}

/// Removes `null`, which is never written, and the formats of Rust's numbers.
fn simplify(schema: &mut Schema) {
    schema.remove("format");
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = &types[..] {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
}

#[cfg(test)]
mod tests {
    use sabir_articles::{Indexing, List, Search};
    use sabir_registry::Checker;
    use sabir_wire::Raw;

    use super::*;

    #[test]
    fn a_result_during_indexing_fits_its_schema() {
        let indexing = Some(Indexing { done: 1, total: 2 });
        let list = List { indexing, ..List::default() };
        let search = Search { hits: Vec::new(), total: 0, corrections: Vec::new(), indexing };
        let schemas = [(output::<List>(), json!(list)), (output::<Search>(), json!(search))];
        for (schema, value) in schemas {
            let checker = Checker::for_results(&Raw::of(&schema).unwrap()).unwrap();
            assert_eq!(checker.check(&Raw::of(&value).unwrap()), Ok(()));
            assert!(value["indexing"]["total"] == 2, "{value}");
        }
    }

    #[test]
    fn the_derived_schema_is_plain() {
        let list = output::<List>();
        assert_eq!(list["required"], json!(["articles", "total", "folders"]));
        let summary = &list["properties"]["articles"]["items"];
        let required = ["id", "slug", "title", "tags", "lastModified", "size", "uri"];
        assert_eq!(summary["required"], json!(required));
        assert_eq!(summary["properties"]["category"]["type"], "string");
        let indexing = &list["properties"]["indexing"];
        assert_eq!(indexing["type"], "object");
        assert_eq!(indexing["properties"]["done"]["type"], "integer");
        assert!(!list.to_string().contains("null"), "{list}");
    }

    #[test]
    fn categories_are_listed_if_they_are_known() {
        let schema = json!({"properties": {"category": {"type": "string"}}});
        let category = |names: Option<&[String]>| {
            with_categories(schema.clone(), names)["properties"]["category"].take()
        };
        assert_eq!(category(Some(&["a".into()]))["enum"], json!(["a"]));
        assert_eq!(category(None), json!({"type": "string"}));
        assert_eq!(category(Some(&[])), Value::Null);
    }
}
