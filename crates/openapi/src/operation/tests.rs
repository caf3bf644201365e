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
