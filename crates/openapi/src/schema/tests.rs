use serde_json::json;

use super::*;

const DETAIL: Detail = Detail { top: 100, nested: 100, depth: 16, choices: 100 };

/// The schema of an argument whose schema is `#/components/schemas/Root`.
fn convert_with(detail: Detail, version: &str, schemas: Value) -> Value {
    let text = json!({ "openapi": version, "paths": {}, "components": { "schemas": schemas } });
    let description = Description::parse("x", text.to_string().as_bytes()).unwrap();
    let root = description.root().get("components").unwrap().get("schemas").unwrap();
    let mut converter = Converter::new(&description, detail, Direction::Request);
    let argument = converter.argument(root.get("Root").unwrap(), None);
    converter.finish(Map::from_iter([("a".to_owned(), argument)]))
}

fn convert(schemas: Value) -> Value {
    convert_with(DETAIL, "3.0.0", schemas)
}

#[test]
fn a_cycle_ends_in_a_definition() {
    let schema = convert(json!({
        "Root": { "$ref": "#/components/schemas/Tree" },
        "Tree": { "type": "object", "properties": {
            "left": { "$ref": "#/components/schemas/Tree" }, "leaf": { "$ref": "#/components/schemas/Leaf" } } },
        "Leaf": { "type": "string" },
    }));
    assert_eq!(
        schema,
        json!({
            "a": { "$ref": "#/$defs/Tree" },
            "$defs": { "Tree": { "type": "object", "properties": {
                "left": { "$ref": "#/$defs/Tree" }, "leaf": { "type": "string" } } } },
        })
    );
}

#[test]
fn a_definition_that_is_used_once_is_put_back_in_its_place() {
    let schema = convert(json!({
        "Root": { "type": "array", "items": { "$ref": "#/components/schemas/A" } },
        "A": { "properties": { "b": { "$ref": "#/components/schemas/B" } } },
        "B": { "allOf": [{ "$ref": "#/components/schemas/C" }] },
        "C": { "type": "object", "additionalProperties": { "type": "integer" } },
    }));
    assert_eq!(
        schema,
        json!({ "a": { "type": "array", "items": { "type": "object", "properties": {
            "b": { "type": "object", "additionalProperties": { "type": "integer" } } } } } })
    );
}

#[test]
fn a_reference_bomb_is_no_larger_than_its_description() {
    let mut schemas = json!({ "Root": { "$ref": "#/components/schemas/S0" } });
    for level in 0..30 {
        let next = json!({ "$ref": format!("#/components/schemas/S{}", level + 1) });
        schemas[format!("S{level}")] =
            json!({ "type": "object", "properties": { "x": next, "y": next, "z": next } });
    }
    schemas["S30"] = json!({ "type": "string", "description": "the end".repeat(20) });
    let detail = Detail { depth: 64, ..DETAIL };
    assert!(convert_with(detail, "3.0.0", schemas).to_string().len() < 6000);
}

#[test]
fn keywords_of_older_versions_are_translated() {
    let schema = convert(json!({ "Root": {
        "type": "integer", "nullable": true, "minimum": 1, "exclusiveMinimum": true, "maximum": "9",
        "enum": [1, 2], "default": 2, "example": 3, "x-a": 1, "xml": {}, "title": "T", "description": " D ",
    } }));
    assert_eq!(
        schema["a"],
        json!({ "type": ["integer", "null"], "enum": [1, 2, null], "default": 2,
                "exclusiveMinimum": 1, "maximum": 9, "description": "D" })
    );
    let newer =
        json!({ "Root": { "type": ["string", "null"], "exclusiveMinimum": 3, "const": "x" } });
    assert_eq!(
        convert_with(DETAIL, "3.1.0", newer)["a"],
        json!({ "type": ["string", "null"], "const": "x", "exclusiveMinimum": 3 })
    );
}

#[test]
fn invalid_keywords_are_left_out() {
    let schema = convert(json!({ "Root": {
        "type": "object", "required": true, "minProperties": -1, "maxProperties": 2.0,
        "properties": {
            "pattern": { "type": "string", "pattern": "(", "minLength": "x", "maxLength": 1e300 },
            "delimited": { "type": "string", "pattern": "/a/" },
            "often": { "type": "string", "pattern": "^a{0,101}[{1,101}]\\{9,999}b{99999999999,}$" },
            "never": { "type": "string", "pattern": "^(?!a{0,101})$" },
            "seldom": { "type": "string", "pattern": "^a{0,100}$" },
            "braces": { "type": "string", "pattern": "^({[0-9{]{4}}|\\{x{2,})$" },
            "class": { "type": "string", "pattern": "^\\p{L}$" },
            "kind": { "type": "any", "enum": "x" },
            "number": { "type": "string", "enum": [1, true], "default": 3 },
            "mismatch": { "type": "integer", "enum": ["a"], "default": "a" },
            "list": { "type": "array" }, "tuple": { "type": "array", "items": [{}] },
            "odd": 7, "truth": true,
        },
    } }));
    assert_eq!(
        schema["a"],
        json!({ "type": "object", "maxProperties": 2, "properties": {
            "pattern": { "type": "string" }, "delimited": { "type": "string" }, "never": { "type": "string" },
            "often": { "type": "string", "pattern": "^a{0,}[{1,101}]\\{9,999\\}b{100,}$" },
            "seldom": { "type": "string", "pattern": "^a{0,100}$" }, "kind": {},
            "braces": { "type": "string", "pattern": "^(\\{[0-9{]{4}\\}|\\{x{2,})$" },
            "class": { "type": "string" },
            "number": { "type": "string", "enum": ["1", "true"], "default": "3" },
            "mismatch": { "type": "integer" },
            "list": { "type": "array", "items": {} }, "tuple": { "type": "array", "items": {} },
            "odd": {}, "truth": {},
        } })
    );
}

#[test]
fn read_only_properties_are_left_out_of_requests() {
    let schema = convert(json!({
        "Root": { "required": ["id", "name", "gone"], "properties": {
            "id": { "readOnly": true }, "key": { "$ref": "#/components/schemas/Key" }, "name": { "writeOnly": true } } },
        "Key": { "type": "string", "readOnly": true },
    }));
    assert_eq!(
        schema["a"],
        json!({ "type": "object", "properties": { "name": {} }, "required": ["name"] })
    );
}

#[test]
fn alternatives_are_not_exclusive_and_parts_do_not_refuse_each_other() {
    let schema = convert(json!({ "Root": {
        "nullable": true,
        "oneOf": [{ "type": "string" }, { "type": "integer" }],
        "allOf": [{ "type": "object", "additionalProperties": false, "properties": { "a": {} } }, { "properties": { "b": {} } }],
        "not": {},
    } }));
    assert_eq!(
        schema["a"],
        json!({
            "anyOf": [{ "type": "string" }, { "type": "integer" }, { "type": "null" }],
            "allOf": [{ "type": "object", "properties": { "a": {} } }, { "type": "object", "properties": { "b": {} } }],
        })
    );
}

#[test]
fn below_the_depth_only_types_are_left() {
    let schemas = json!({ "Root": { "properties": { "a": { "properties": { "b": { "type": "string", "enum": ["x"] },
        "c": { "type": "array", "items": { "type": "string" } } } } } } });
    let at =
        |depth| convert_with(Detail { depth, ..DETAIL }, "3.0.0", schemas.clone())["a"].clone();
    assert_eq!(at(1), json!({ "type": "object" }));
    assert_eq!(at(2), json!({ "type": "object", "properties": { "a": { "type": "object" } } }));
    assert_eq!(
        at(3)["properties"]["a"]["properties"],
        json!({ "b": { "type": "string", "enum": ["x"] }, "c": { "type": "array", "items": {} } })
    );
}

#[test]
fn long_lists_of_choices_are_left_out_and_references_to_nowhere_reported() {
    let choices: Vec<_> = (0..20).map(|n| format!("choice{n:04}")).collect();
    let schema = convert(json!({ "Root": { "properties": {
        "many": { "type": "string", "enum": choices }, "gone": { "$ref": "#/nowhere" } } } }));
    assert_eq!(schema["a"]["properties"], json!({ "many": { "type": "string" }, "gone": {} }));
}
