use proptest::prelude::*;
use serde_json::json;

use super::*;

fn tool() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Search",
        "type": "object",
        "properties": {
            "query": { "description": "What to look for", "type": "string" },
            "limit": { "type": ["integer", "null"], "format": "uint32", "minimum": 0 },
            "kind": { "type": "string", "enum": ["a", "b"] },
            "ratio": { "type": "number" },
            "tags": { "type": "array", "items": { "type": "string" } },
            "where": {
                "type": "object",
                "properties": { "folder": { "type": "string" } },
                "additionalProperties": false,
            },
        },
        "required": ["query"],
    })
}

#[test]
fn usual_arguments_are_accepted_at_once() {
    let plain = Plain::compile(&tool()).unwrap();
    for json in [
        r#"{"query":""}"#,
        r#"{"query":"a\nb \"c\"","limit":0}"#,
        r#"{"limit":null,"query":"x","kind":"b","ratio":-1.5,"other":true}"#,
        r#"{"query":"x","ratio":1,"tags":["a",""],"where":{"folder":"f"}}"#,
        r#"{"query":"x","tags":[],"where":{}}"#,
    ] {
        assert_eq!(plain.accepts(json), Some(()), "{json}");
    }
}

#[test]
fn what_does_not_surely_fit_is_left_to_the_validator() {
    let plain = Plain::compile(&tool()).unwrap();
    for json in [
        "{}",
        "[]",
        r#"{"query":1}"#,
        r#"{"query":"x","query":"y"}"#,
        r#"{"query":"\ud800"}"#,
        r#"{"query":"x","limit":-1}"#,
        r#"{"query":"x","limit":1.0}"#,
        r#"{"query":"x","limit":1e2}"#,
        r#"{"query":"x","ratio":1e400}"#,
        r#"{"query":"x","ratio":1234567890123456}"#,
        r#"{"query":"x","kind":"c"}"#,
        r#"{"query":"x","kind":"\u0061"}"#,
        r#"{"query":"x","tags":["a",1]}"#,
        r#"{"query":"x","where":{"other":1}}"#,
        r#"{"query":"x","free":{"deep":["\ud800"]}}"#,
    ] {
        assert_eq!(plain.accepts(json), None, "{json}");
    }
}

#[test]
fn a_schema_that_says_more_is_not_plain() {
    for schema in [
        json!(true),
        json!({ "type": "string", "format": "uri" }),
        json!({ "type": "string", "minLength": 1 }),
        json!({ "type": "string", "pattern": "^a" }),
        json!({ "$ref": "#/$defs/a" }),
        json!({ "anyOf": [{ "type": "string" }] }),
        json!({ "enum": ["a", 1] }),
        json!({ "type": "object", "required": ["a"] }),
        json!({ "type": "object", "additionalProperties": { "type": "string" } }),
        json!({ "type": "object", "additionalProperties": false }),
        json!({ "type": "object", "properties": { "a": { "not": {} } } }),
        json!({ "type": "number", "minimum": 0.5 }),
        json!({ "type": "array", "items": [{ "type": "string" }] }),
    ] {
        assert!(Plain::compile(&schema).is_none(), "{schema}");
    }
}

fn schema() -> impl Strategy<Value = Value> {
    let kinds = vec!["string", "integer", "number", "boolean", "null", "object", "array"];
    let kind = prop::sample::select(kinds);
    let leaf = prop_oneof![
        Just(json!({})),
        kind.clone().prop_map(|kind| json!({ "type": kind })),
        (kind.clone(), kind.clone())
            .prop_filter_map("twice", |(a, b)| { (a != b).then(|| json!({ "type": [a, b] })) }),
        Just(json!({ "enum": ["a", "b"] })),
        Just(json!({ "type": [] })),
        Just(json!({ "type": ["null", "null"] })),
        Just(json!({ "title": 1 })),
        Just(json!({ "deprecated": "yes" })),
        Just(json!({ "examples": {} })),
        Just(json!({ "type": "integer", "format": 3 })),
        Just(json!({ "properties": { "a": {} }, "required": ["a", "a"] })),
        Just(json!({ "enum": [] })),
        (kind, -2..3i64).prop_map(|(kind, n)| json!({ "type": kind, "minimum": n, "maximum": 1 })),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let properties = prop::collection::btree_map("[ab]", inner.clone(), 0..3);
        prop_oneof![
            inner.prop_map(|items| json!({ "type": "array", "items": items })),
            (properties, any::<bool>(), any::<bool>()).prop_map(|(properties, open, all)| {
                let required: Vec<_> = properties.keys().filter(|_| all).cloned().collect();
                json!({
                    "type": "object", "properties": properties, "required": required,
                    "additionalProperties": open,
                })
            }),
        ]
    })
}

fn value() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "\"a\"",
        "\"\"",
        "\"\\ud800\"",
        "\"\\u0061\"",
        "0",
        "-1",
        "2",
        "1.0",
        "1.5",
        "1e2",
        "1e400",
        "-0",
        "12345678901234567890",
        "true",
        "null",
        "{}",
        "[]",
    ]);
    leaf.prop_map(str::to_owned).prop_recursive(3, 12, 3, |inner| {
        let items = prop::collection::vec(inner.clone(), 0..3);
        let members = prop::collection::vec(("[abc]", inner), 0..3);
        prop_oneof![
            items.prop_map(|items| format!("[{}]", items.join(", "))),
            members.prop_map(|members| {
                let members: Vec<_> =
                    members.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
                format!("{{{}}}", members.join(","))
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8192))]

    #[test]
    fn a_plain_schema_is_a_good_one(schema in schema()) {
        if Plain::compile(&schema).is_some() {
            prop_assert!(jsonschema::meta::is_valid(&schema), "{}", schema);
            prop_assert!(jsonschema::validator_for(&schema).is_ok(), "{}", schema);
        }
    }

    #[test]
    fn what_is_accepted_is_valid(schema in schema(), json in value()) {
        let plain = Plain::compile(&schema);
        if plain.is_some_and(|plain| plain.accepts(&json).is_some()) {
            let value: Value = serde_json::from_str(&json).expect(&json);
            prop_assert!(jsonschema::is_valid(&schema, &value), "{} for {}", json, schema);
        }
    }
}
