use serde_json::json;

use super::*;

fn arguments(schema: Value) -> Result<Checker, BadSchema> {
    Checker::for_arguments(&Raw::of(&schema).unwrap())
}

fn check(schema: Value, value: &str) -> Result<(), String> {
    arguments(schema).unwrap().check(&Raw::parse(value.to_owned()).unwrap())
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    let schema = json!({
        "type": "object",
        "properties": { "a": { "type": "number" }, "b": { "type": "array", "items": { "type": "string" } } },
        "required": ["a"],
    });
    assert_eq!(check(schema.clone(), r#"{"a":1}"#), Ok(()));
    assert_eq!(check(schema.clone(), "{}").unwrap_err(), r#""a" is a required property"#);
    assert_eq!(
        check(schema, r#"{"a":"x","b":["y",1]}"#).unwrap_err(),
        r#"`/a`: "x" is not of type "number"; `/b/1`: 1 is not of type "string""#
    );
}

#[test]
fn an_error_for_the_log_quotes_no_value() {
    let schema = json!({
        "type": "object",
        "properties": { "p": { "type": "string", "maxLength": 3, "pattern": "^a" } },
    });
    let value = Raw::of(&json!({ "p": "open sesame" })).unwrap();
    let error = arguments(schema).unwrap().check_unquoted(&value).unwrap_err();
    assert!(error.contains("`/p`: value is longer than 3 characters"), "{error}");
    assert!(!error.contains("sesame"), "{error}");
}

#[test]
fn the_default_dialect_is_2020_12_and_draft_07_is_told_by_its_name() {
    // `prefixItems` means nothing in draft-07; `items` as an array means nothing in 2020-12.
    let tuple = |keyword: &str, dialect: Option<&str>| {
        let mut schema = json!({ "type": "object", "properties": { "a": {} } });
        schema["properties"]["a"][keyword] = json!([{ "type": "string" }]);
        if let Some(dialect) = dialect {
            schema["$schema"] = json!(dialect);
        }
        check(schema, r#"{"a":[1]}"#)
    };
    let draft_07 = Some("http://json-schema.org/draft-07/schema#");
    assert!(tuple("prefixItems", None).is_err());
    assert!(tuple("prefixItems", draft_07).is_ok());
    assert!(tuple("items", draft_07).is_err());
}

#[test]
fn other_dialects_are_refused() {
    let schema = json!({ "$schema": "http://json-schema.org/draft-04/schema#", "type": "object" });
    assert!(matches!(arguments(schema), Err(BadSchema::Dialect(_))));
}

#[test]
fn references_stay_inside() {
    let inside = json!({
        "type": "object",
        "properties": { "a": { "$ref": "#/$defs/text" } },
        "$defs": { "text": { "type": "string" } },
    });
    assert!(check(inside, r#"{"a":1}"#).is_err());
    for uri in ["http://127.0.0.1:9/schema.json", "file:///etc/passwd"] {
        let outside = json!({ "type": "object", "properties": { "a": { "$ref": uri } } });
        assert!(matches!(arguments(outside), Err(BadSchema::Invalid(_))), "{uri}");
    }
}

#[test]
fn arguments_are_an_object() {
    for schema in [json!(true), json!({}), json!({ "type": "array" }), json!([])] {
        assert!(matches!(arguments(schema), Err(BadSchema::NotAnObject(_))));
    }
}

#[test]
fn depth_and_size_are_bounded_at_their_edges() {
    let nested = |depth: usize| {
        let mut schema = json!({ "type": "object" });
        for _ in 0..depth - 1 {
            schema = json!({ "type": "object", "not": schema });
        }
        arguments(schema)
    };
    assert!(nested(Checker::MAX_DEPTH).is_ok());
    assert!(matches!(nested(Checker::MAX_DEPTH + 1), Err(BadSchema::TooDeep)));
    // Three values beside the members of `enum`.
    let sized = |values: usize| {
        arguments(json!({ "type": "object", "enum": (0..values - 3).collect::<Vec<_>>() }))
    };
    assert!(sized(Checker::MAX_NODES).is_ok());
    assert!(matches!(sized(Checker::MAX_NODES + 1), Err(BadSchema::TooLarge)));
}

#[test]
fn a_schema_that_tries_a_value_again_and_again_is_refused() {
    // Each definition tries the next one twice.
    let doubling = |levels: usize, keyword: &str| {
        let mut schema =
            json!({ "type": "object", "properties": { "a": { "$ref": "#/$defs/0" } } });
        for level in 0..levels {
            let next = json!({ "$ref": format!("#/$defs/{}", level + 1) });
            schema["$defs"][level.to_string()][keyword] = json!([next, next]);
        }
        schema["$defs"][levels.to_string()] = json!(false);
        arguments(schema)
    };
    for keyword in ["allOf", "anyOf", "oneOf"] {
        assert!(doubling(10, keyword).is_ok());
        assert!(matches!(doubling(40, keyword), Err(BadSchema::TooMuchWork)));
    }
    let chain = |length: usize| {
        let mut schema = json!({ "type": "object" });
        for link in 0..length {
            schema["$defs"][link.to_string()] = json!({ "$ref": format!("#/$defs/{}", link + 1) });
        }
        schema["$defs"][length.to_string()] = json!({});
        arguments(schema)
    };
    assert!(chain(100).is_ok());
    assert!(matches!(chain(5000), Err(BadSchema::TooMuchWork)));
    // Checks of nested values are bounded by the value, and a self-reference is not a chain.
    let tree = json!({
        "type": "object",
        "properties": { "left": { "$ref": "#" }, "right": { "$ref": "#" } },
        "additionalProperties": false,
    });
    assert!(check(tree.clone(), r#"{"left":{"right":{}},"right":{}}"#).is_ok());
    assert!(check(tree, r#"{"left":{"up":{}}}"#).is_err());
    let itself = json!({ "type": "object", "allOf": [{ "$ref": "#" }] });
    assert!(check(itself, "{}").is_ok());
}

#[test]
fn work_is_found_through_every_kind_of_reference() {
    // Each definition tries the next one twice, by a reference that `name` gives.
    let doubling = |levels: usize, id: fn(usize) -> Option<String>, name: fn(usize) -> String| {
        let mut schema = json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object", "properties": { "a": { "allOf": [{ "$ref": name(0) }] } },
        });
        for level in 0..=levels {
            let next = json!({ "$ref": name(level + 1) });
            let mut one =
                if level == levels { json!({}) } else { json!({ "anyOf": [next, next] }) };
            if let Some(id) = id(level) {
                one["$id"] = json!(id);
            }
            schema["definitions"][format!("d {level}")] = one;
        }
        arguments(schema)
    };
    type Case = (fn(usize) -> Option<String>, fn(usize) -> String);
    let cases: [Case; 6] = [
        (|n| Some(format!("d{n}")), |n| format!("d{n}")),
        (|n| Some(format!("http://host/d{n}")), |n| format!("http://HOST/x/../%64{n}#")),
        (|n| Some(format!("http://host/%64{n}")), |n| format!("http://host/d{n}")),
        (|n| Some(format!("#d{n}")), |n| format!("#d{n}")),
        (|_| None, |n| format!("#/definitions/d%20{n}")),
        (|_| None, |n| format!("json-schema:///#/definitions/d%20{n}")),
    ];
    for (nth, (id, name)) in cases.into_iter().enumerate() {
        let few = doubling(10, id, name);
        assert!(few.is_ok(), "{nth}: {few:?}");
        let many = doubling(18, id, name);
        assert!(matches!(many, Err(BadSchema::TooMuchWork)), "{nth}: {many:?}");
    }
    let node = json!({
        "$id": "node", "type": "object", "additionalProperties": false,
        "properties": { "left": { "$ref": "node" }, "right": { "$ref": "node#" } },
    });
    assert!(check(node.clone(), r#"{"left":{"right":{}},"right":{}}"#).is_ok());
    assert!(check(node, r#"{"left":{"up":{}}}"#).is_err());
}

#[test]
fn the_schemas_of_dependencies_count_as_work() {
    let doubling = |levels: usize| {
        let mut schema = json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object", "allOf": [{ "$ref": "#/definitions/0" }],
        });
        for level in 0..levels {
            let next = json!({ "$ref": format!("#/definitions/{}", level + 1) });
            schema["definitions"][level.to_string()] =
                json!({ "dependencies": { "a": next, "b": next, "c": ["a"] } });
        }
        schema["definitions"][levels.to_string()] = json!({});
        arguments(schema)
    };
    assert!(doubling(10).is_ok());
    assert!(matches!(doubling(18), Err(BadSchema::TooMuchWork)));
}

#[test]
fn a_reason_does_not_quote_a_book() {
    let schema = json!({ "type": "object", "properties": { "a": { "type": "number" } } });
    let book = "é".repeat(100_000);
    let reason = check(schema, &format!(r#"{{"a":"{book}"}}"#)).unwrap_err();
    assert!(reason.len() < 400 && reason.ends_with(r#"is not of type "number""#), "{reason}");
}

#[test]
fn a_schema_that_refers_to_itself_checks_deep_values_in_bounded_time() {
    let twice = |required: [&str; 2]| {
        let part =
            |name: &str| json!({ "properties": { "a": { "$ref": "#" } }, "required": [name] });
        json!({ "type": "object", "anyOf": required.map(part) })
    };
    let nested = |depth: usize, inner: &str| {
        format!("{}{inner}{}", r#"{"a":"#.repeat(depth), "}".repeat(depth))
    };
    for schema in [twice(["x", "y"]), twice(["a", "a"])] {
        // A few levels are explained, more are only refused, and many are not tried.
        let explained = check(schema.clone(), &nested(3, "1")).unwrap_err();
        assert!(explained.contains("is not valid under any of the schemas"), "{explained}");
        let refused = check(schema.clone(), &nested(11, "1")).unwrap_err();
        assert_eq!(refused, "the value does not match the schema");
        let untried = check(schema, &nested(60, "1")).unwrap_err();
        assert_eq!(untried, "the value is nested too deeply for its schema (60 levels)");
    }
    // One reference per level checks each value once.
    let list = json!({
        "type": "object",
        "properties": { "next": { "anyOf": [{ "$ref": "#" }, { "type": "null" }] } },
        "additionalProperties": false,
    });
    let deep = format!("{}null{}", r#"{"next":"#.repeat(60), "}".repeat(60));
    assert_eq!(check(list, &deep), Ok(()));
}

#[test]
fn one_mistake_of_a_long_value_is_named() {
    let schema = json!({
        "type": "object",
        "properties": { "a": { "type": "array", "items": { "type": "string" } } },
    });
    let long = format!(r#"{{"a":[{}1]}}"#, "1,".repeat(MAX_EXPLAINED_LENGTH));
    assert_eq!(check(schema, &long).unwrap_err(), r#"`/a/0`: 1 is not of type "string""#);
}
