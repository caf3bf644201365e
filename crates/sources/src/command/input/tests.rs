use serde_json::json;

use super::*;
use crate::command::template::{CommandLine, RunItem, Stdin, TextTemplate};

fn short(short: Value) -> Result<Input, DefinitionError> {
    Input::from_short(short.as_object().unwrap())
}

/// The error as `location: message; hint`.
fn shown(error: &DefinitionError) -> String {
    let hint = error.hint.iter().map(|hint| format!("; {hint}"));
    hint.fold(error.to_string(), |text, hint| text + &hint)
}

fn check_schema(form: Value, property: &str, required: bool) {
    let input = short(json!({ "a": form })).unwrap();
    let required = if required { r#""required":["a"],"# } else { "" };
    let expected = format!(
        r#"{{"type":"object","properties":{{"a":{property}}},{required}"additionalProperties":false}}"#
    );
    assert_eq!(input.schema().to_string(), expected);
}

#[test]
fn the_short_form_becomes_a_json_schema() {
    check_schema(json!("number"), r#"{"type":"number"}"#, true);
    check_schema(json!("string?"), r#"{"type":"string"}"#, false);
    check_schema(json!("integer[]"), r#"{"type":"array","items":{"type":"integer"}}"#, true);
    check_schema(json!("object[]?"), r#"{"type":"array","items":{"type":"object"}}"#, false);
    check_schema(json!(["kg", "lb"]), r#"{"type":"string","enum":["kg","lb"]}"#, true);
    check_schema(
        json!({"type": "integer", "description": "How many", "minimum": 1, "default": 10}),
        r#"{"type":"integer","description":"How many","minimum":1,"default":10}"#,
        false,
    );
    check_schema(
        json!({"enum": ["a", "b"], "optional": true}),
        r#"{"type":"string","enum":["a","b"]}"#,
        false,
    );
    check_schema(
        json!({"type": "string[]", "description": "d", "enum": ["a"], "minItems": 1, "default": ["a"]}),
        r#"{"type":"array","description":"d","minItems":1,"default":["a"],"items":{"type":"string","enum":["a"]}}"#,
        false,
    );
}

#[test]
fn arguments_keep_their_order() {
    let input = short(json!({"z": "string", "a": "string", "m": "string?"})).unwrap();
    let names: Vec<_> = input.schema()["properties"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["z", "a", "m"]);
    assert_eq!(input.schema()["required"], json!(["z", "a"]));
    let empty = short(json!({})).unwrap();
    assert_eq!(
        empty.schema().to_string(),
        r#"{"type":"object","properties":{},"additionalProperties":false}"#
    );
}

#[test]
fn errors_in_the_short_form_have_a_location_and_a_hint() {
    let check = |form: Value, message: &str| {
        assert_eq!(shown(&short(json!({ "a": form })).unwrap_err()), message);
    };
    check(json!("nubmer"), "input.a: unknown type `nubmer`; did you mean `number`?");
    check(
        json!("date"),
        "input.a: unknown type `date`; the types are string, number, integer, boolean, object and file, with [] for lists and ? for optional",
    );
    check(json!("string?[]"), "input.a: unknown type `string?[]`; did you mean `string[]`?");
    check(json!(5), "input.a: must be a type like \"string?\", a list of choices, or a table");
    check(json!([]), "input.a: the choices must be different, and at least one");
    check(json!(["x", "x"]), "input.a: the choices must be different, and at least one");
    check(json!(["x", 1]), "input.a: 1 is not of type string");
    check(json!({"description": "x"}), "input.a: needs a `type` or an `enum`");
    check(json!({"type": 1}), "input.a.type: must be a type like \"string?\"");
    check(
        json!({"type": "string", "descripton": "x"}),
        "input.a.descripton: unknown key; did you mean `description`?",
    );
    check(
        json!({"type": "string", "oneOf": []}),
        "input.a.oneOf: unknown key; use `input_schema` for all of JSON Schema",
    );
    check(json!({"type": "string", "maxLength": -1}), "input.a.maxLength: must be a whole number");
    check(json!({"type": "string", "optional": "yes"}), "input.a.optional: must be true or false");
    check(json!({"type": "string", "enum": "x"}), "input.a.enum: must be a list of choices");
    check(json!({"type": "integer", "default": 1.5}), "input.a: 1.5 is not of type integer");
    check(json!({"type": "string[]", "default": "x"}), "input.a: \"x\" is not a list");
    check(
        json!({"enum": ["x"], "default": "y"}),
        "input.a: the default \"y\" is not one of the choices",
    );
    check(
        json!({"type": "string?", "optional": false}),
        "input.a: cannot be both optional and required",
    );
    check(
        json!({"type": "string", "default": "x", "optional": false}),
        "input.a: cannot be both optional and required",
    );
    let name = short(json!({"a b": "string"})).unwrap_err();
    assert_eq!(
        name.to_string(),
        "input.a b: invalid argument name (expected letters, digits, `_`, `-` or `.`)"
    );
}

#[test]
fn a_schema_must_be_of_an_object_and_is_not_changed() {
    let schema = json!({"type": "object", "properties": {"b": {}, "a": {"default": 1}}, "x-y": 1});
    assert_eq!(Input::from_schema(schema.clone()).unwrap().schema(), &schema);
    for wrong in [json!({"type": "string"}), json!({}), json!(true)] {
        assert_eq!(Input::from_schema(wrong).unwrap_err().location, Location::Schema);
    }
}

fn mismatches(input: &Input, run: &[&str], stdin: &Stdin, dash: &[&str]) -> Vec<String> {
    let run: Vec<_> = run.iter().map(|argument| RunItem::Argument((*argument).into())).collect();
    let dash: Vec<_> = dash.iter().map(|name| (*name).to_owned()).collect();
    let line = CommandLine::parse(&run, &dash).unwrap();
    input.mismatches(&line, stdin, None).iter().map(shown).collect()
}

#[test]
fn placeholders_that_match_the_input_are_accepted() {
    let input = short(json!({
        "limit": "integer?", "path": "string", "all": "boolean?", "n": {"type": "number", "default": 1},
        "tags": "string[]",
    }))
    .unwrap();
    let run = ["p", "--limit", "{limit?}", "{path}", "{all?-a}", "{n}", "{n?}", "--tag", "{tags}"];
    assert_eq!(mismatches(&input, &run, &Stdin::Empty, &["path"]), [""; 0]);
    // A program that reads the JSON gets every argument.
    assert_eq!(mismatches(&input, &["p"], &Stdin::Json, &[]), [""; 0]);
}

#[test]
fn every_mismatch_has_a_location_and_a_hint() {
    let input = short(json!({
        "limit": "integer?", "path": "string", "unit": "string", "x": "string[]", "y": "string[]",
    }))
    .unwrap();
    let text = Stdin::Text(TextTemplate::parse("{pth} {nonsense}").unwrap());
    let run = ["p", "{limit}", "{path?}", "{unit?-u}", "{x}{y}"];
    assert_eq!(
        mismatches(&input, &run, &text, &["limt"]),
        [
            "run[1]: `limit` is optional; write `{limit?}`, give it a default, or require it",
            "run[2]: `path` is required; write `{path}`, or make it optional",
            "run[3]: `{unit?…}` needs an argument of type boolean",
            "stdin: unknown argument `pth`; did you mean `path`?",
            "stdin: unknown argument `nonsense`; add it: input = { nonsense = \"string\" }",
            "run[4]: `x` and `y` are both lists (expected one list per argument or group)",
            "allow_dash: `limt` is not used in `run`; did you mean `limit`?",
        ]
    );
    let unused = short(json!({"a": "string", "b": "string"})).unwrap();
    assert_eq!(
        mismatches(&unused, &["p", "{a}"], &Stdin::Empty, &[]),
        ["input.b: is not used; use `{b}` in `run` or `stdin`"]
    );
}

#[test]
fn a_schema_that_may_allow_more_arguments_is_not_checked() {
    let closed = Input::from_schema(json!({"type": "object", "properties": {}})).unwrap();
    assert_eq!(mismatches(&closed, &["p", "{a}"], &Stdin::Empty, &[]).len(), 1);
    for open in [
        json!({"type": "object", "additionalProperties": {"type": "string"}}),
        json!({"type": "object", "$ref": "#/$defs/x"}),
        json!({"type": "object", "patternProperties": {".*": {}}}),
    ] {
        let open = Input::from_schema(open).unwrap();
        assert_eq!(mismatches(&open, &["p", "{a}"], &Stdin::Empty, &[]), [""; 0]);
    }
    let nullable = json!({"type": "object", "required": ["a"], "properties": {"a": {"type": ["string", "null"]}}});
    let nullable = Input::from_schema(nullable).unwrap();
    assert_eq!(mismatches(&nullable, &["p", "{a?}"], &Stdin::Empty, &[]), [""; 0]);
}
