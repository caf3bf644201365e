use serde_json::json;

use super::*;

fn read_with(text: &Value, budget: Budget) -> Operation {
    let description =
        Description::parse("https://x.test/api", text.to_string().as_bytes()).unwrap();
    let (entries, _) = description.entries();
    description.read(&entries[0], budget, &ReadOptions::default()).unwrap()
}

fn read(text: &Value) -> Operation {
    read_with(text, Budget::ALONE)
}

fn post(body: &Value) -> Operation {
    read(&json!({ "openapi": "3.0.0", "paths": { "/p/{id}": { "post": {
        "parameters": [{ "name": "id", "in": "path", "schema": { "type": "integer" } }],
        "requestBody": { "required": true, "content": { "application/json": { "schema": body } } },
    } } } }))
}

#[test]
fn parameters_and_fields_are_one_flat_object_and_collisions_have_a_suffix() {
    let operation = post(&json!({
        "allOf": [
            { "type": "object", "required": ["id"], "properties": { "id": { "type": "string" } } },
            { "properties": { "name": { "type": "string", "description": "N" }, "made": { "readOnly": true } } },
        ],
        "required": ["name", "made"],
    }));
    assert_eq!(
        operation.schema,
        json!({
            "type": "object",
            "properties": { "id": { "type": "integer" }, "id_body": { "type": "string" }, "name": { "type": "string", "description": "N" } },
            "required": ["id", "id_body", "name"],
            "additionalProperties": false,
        })
    );
}

#[test]
fn bodies_that_are_no_objects_are_the_argument_body() {
    for body in [
        json!({ "type": "array", "items": { "type": "string" } }),
        json!({ "type": "string" }),
        json!({ "oneOf": [{ "properties": { "a": {} } }, { "properties": { "b": {} } }] }),
        json!({ "type": "object", "additionalProperties": { "type": "string" } }),
        json!({}),
    ] {
        let operation = post(&body);
        assert_eq!(operation.argument_names().collect::<Vec<_>>(), ["id", "body"], "{body}");
        assert_eq!(operation.schema["required"], json!(["id", "body"]));
    }
    let named = post(&json!({ "properties": { "a": {} }, "anyOf": [{ "required": ["a"] }] }));
    assert_eq!(named.argument_names().collect::<Vec<_>>(), ["id", "a"]);
}

#[test]
fn a_body_that_contains_itself_is_read() {
    let text = json!({ "openapi": "3.0.0", "paths": { "/": { "post": { "requestBody": {
        "content": { "application/json": { "schema": { "$ref": "#/components/schemas/A" } } } } } } },
        "components": { "schemas": { "A": { "allOf": [{ "$ref": "#/components/schemas/A" }],
            "properties": { "next": { "$ref": "#/components/schemas/A" } } } } } });
    let operation = read(&text);
    assert_eq!(operation.argument_names().collect::<Vec<_>>(), ["next"]);
    assert_eq!(operation.schema["properties"]["next"]["$ref"], "#/$defs/A");
}

#[test]
fn swagger_2_is_read_like_openapi_3() {
    let operation = read(&json!({
        "swagger": "2.0", "host": "x.test", "consumes": ["application/json"], "produces": ["text/csv"],
        "parameters": { "page": { "name": "page", "in": "query", "type": "integer", "minimum": 1 } },
        "paths": { "/a/{b}": {
            "parameters": [{ "$ref": "#/parameters/page" }],
            "post": { "summary": "S", "parameters": [
                { "name": "b", "in": "path", "required": true, "type": "string" },
                { "name": "ids", "in": "query", "type": "array", "items": { "type": "integer" }, "collectionFormat": "pipes" },
                { "name": "thing", "in": "body", "required": true, "schema": { "$ref": "#/definitions/Thing" } },
            ] } } },
        "definitions": { "Thing": { "type": "object", "properties": { "x": { "type": "string", "x-nullable": true } } } },
    }));
    assert_eq!(operation.description, "S");
    assert_eq!(operation.accept, "text/csv, */*;q=0.1");
    assert_eq!(
        operation.schema["properties"],
        json!({
            "b": { "type": "string" },
            "ids": { "type": "array", "items": { "type": "integer" } },
            "page": { "type": "integer", "minimum": 1 },
            "x": { "type": ["string", "null"] },
        })
    );
}

#[test]
fn a_budget_costs_detail_and_never_an_argument() {
    let words = "word ".repeat(200);
    let mut properties = json!({});
    for n in 0..50 {
        properties[format!("field{n}")] = json!({ "description": words, "type": "object", "properties": {
            "inner": { "type": "string", "description": words } } });
    }
    let text = json!({ "openapi": "3.0.0", "paths": { "/": { "post": { "description": words, "requestBody": {
        "content": { "application/json": { "schema": { "properties": properties } } } } } } } });
    let sizes = [1 << 20, 16 << 10, 4 << 10, 100].map(|budget| {
        let operation = read_with(&text, Budget(budget));
        assert_eq!(operation.argument_names().count(), 50);
        assert_eq!(operation.shortened, budget != 1 << 20);
        operation.size()
    });
    assert!(sizes[0] > 40_000 && sizes[1] <= 16 << 10 && sizes[2] <= 4 << 10, "{sizes:?}");
    assert!(sizes[3] < 3000, "{sizes:?}");
}

#[test]
fn odd_parameters_are_left_out_and_reported() {
    let operation = read(
        &json!({ "openapi": "3.0.0", "paths": { "/{a}/{+b}": { "get": { "parameters": [
        { "$ref": "#/nowhere" }, { "name": "x" }, { "name": "Accept", "in": "header" },
        { "name": "gone", "in": "path" }, { "name": "v", "in": "query", "required": true, "schema": { "enum": ["1"] } },
        { "name": "q", "in": "query", "content": { "application/json": { "schema": { "type": "object" } } } },
        7,
    ] } } } }),
    );
    assert_eq!(operation.argument_names().collect::<Vec<_>>(), ["a", "b", "v", "q"]);
    // The only choice is the default.
    assert_eq!(operation.schema["required"], json!(["a", "b"]));
    assert_eq!(operation.problems.len(), 2, "{:?}", operation.problems);
}

#[test]
fn security_and_servers_of_an_operation_replace_those_of_the_description() {
    let text = json!({ "openapi": "3.0.0", "security": [{ "a": [] }], "servers": [{ "url": "/root" }],
        "paths": { "/": { "servers": [{ "url": "https://up.test/" }], "get": {} } } });
    let operation = read(&text);
    assert_eq!(operation.servers, Some(vec!["https://up.test".to_owned()]));
    assert_eq!(operation.security, [["a"]]);
}

#[test]
fn the_schema_of_answers_is_loose_and_bounded() {
    let text = json!({ "openapi": "3.0.0", "paths": { "/": { "get": { "responses": { "200": { "content": {
        "application/json": { "schema": { "type": "object", "required": ["a"], "properties": {
            "a": { "type": "string", "enum": ["x"] }, "b": { "type": "array", "items": { "type": "object", "required": ["z"] } } } } } } } } } } } });
    let description = Description::parse("x", text.to_string().as_bytes()).unwrap();
    let (entries, _) = description.entries();
    let output = |bytes| {
        let options = ReadOptions { output: Some(bytes), ..ReadOptions::default() };
        description.read(&entries[0], Budget::ALONE, &options).unwrap().output
    };
    assert_eq!(
        output(1000),
        Some(json!({ "type": "object", "properties": {
            "a": { "type": ["string", "null"] },
            "b": { "type": ["array", "null"], "items": { "type": "object" } } } }))
    );
    assert_eq!(output(10), None);
}

/// The places of all values inside of a value.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(members) => {
            for (key, inner) in members {
                places(
                    inner,
                    &format!("{at}/{}", key.replace('~', "~0").replace('/', "~1")),
                    found,
                );
            }
        }
        Value::Array(items) => {
            for (index, inner) in items.iter().enumerate() {
                places(inner, &format!("{at}/{index}"), found);
            }
        }
        _ => {}
    }
}

#[test]
fn a_wrong_value_anywhere_costs_at_most_its_operation() {
    let schema = json!({ "type": "object", "required": ["a"], "allOf": [{ "$ref": "#/components/schemas/S" }],
        "properties": { "a": { "type": "array", "items": { "type": "string", "enum": ["x"], "pattern": "x" } } } });
    let whole = json!({
        "openapi": "3.0.0", "info": { "title": "T" }, "servers": [{ "url": "https://{v}.test", "variables": { "v": { "default": "x" } } }],
        "paths": {
            "/good": { "get": { "operationId": "good" } },
            "/{id}": { "parameters": [{ "name": "id", "in": "path", "schema": { "type": "integer", "minimum": 1 } }],
                "post": { "operationId": "o", "tags": ["t"], "summary": "s", "security": [{ "k": [] }],
                    "parameters": [{ "name": "q", "in": "query", "style": "form", "explode": false, "content": { "application/json": { "schema": {} } } }],
                    "requestBody": { "required": true, "content": { "multipart/form-data": { "schema": schema, "encoding": { "a": { "contentType": "text/plain" } } } } },
                    "responses": { "200": { "content": { "application/json": { "schema": schema } } } } } } },
        "components": { "schemas": { "S": { "type": "object", "properties": { "b": { "$ref": "#/components/schemas/S" } } } },
            "securitySchemes": { "k": { "type": "apiKey", "in": "query", "name": "k" } } },
    });
    let mut all = Vec::new();
    places(&whole, "", &mut all);
    let arguments = serde_json::value::to_raw_value(&json!({ "id": 1, "a": ["x"] })).unwrap();
    for place in all.iter().filter(|place| !place.is_empty()) {
        for odd in [
            json!(null),
            json!(7),
            json!("x"),
            json!([]),
            json!([1]),
            json!({}),
            json!({ "$ref": "#/nowhere" }),
            json!(true),
        ] {
            let mut changed = whole.clone();
            *changed.pointer_mut(place).unwrap() = odd;
            let Ok(description) = Description::parse("x", changed.to_string().as_bytes()) else {
                continue;
            };
            let (entries, _) = description.entries();
            let options = ReadOptions { output: Some(500), ..ReadOptions::default() };
            description.servers(&BTreeMap::new());
            description.schemes();
            for entry in &entries {
                if let Ok(operation) = description.read(entry, Budget(500), &options) {
                    let _ =
                        operation.request("https://x.test", &arguments, &crate::request::NoFiles);
                }
            }
            let is_elsewhere = !place.starts_with("/paths/~1good") && place != "/paths";
            let is_there = entries.iter().any(|entry| entry.id.as_deref() == Some("good"));
            assert!(is_there || !is_elsewhere, "{place}");
        }
    }
}
