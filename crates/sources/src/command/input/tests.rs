use serde_json::json;

use super::*;
use crate::command::template::{CommandLine, RunItem, Stdin, TextTemplate};

fn short(short: Value) -> Result<Input, InputError> {
    Input::from_short(short.as_object().unwrap())
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
fn arguments_stand_in_the_order_in_which_they_were_written() {
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
fn mistakes_in_the_short_form_are_named_with_their_place() {
    let check = |form: Value, message: &str| {
        assert_eq!(short(json!({ "a": form })).unwrap_err().to_string(), message);
    };
    check(json!("nubmer"), "input.a: there is no type `nubmer`; did you mean `number`?");
    check(
        json!("date"),
        "input.a: there is no type `date`; the types are string, number, integer, boolean and object, with [] for lists and ? for optional",
    );
    check(json!("string?[]"), "input.a: there is no type `string?[]`; did you mean `string[]`?");
    check(json!(5), "input.a: must be a type like \"string?\", a list of choices, or a table");
    check(json!([]), "input.a: the choices must be different, and at least one");
    check(json!(["x", "x"]), "input.a: the choices must be different, and at least one");
    check(json!(["x", 1]), "input.a: 1 is not of type string");
    check(json!({"description": "x"}), "input.a: needs a `type` or an `enum`");
    check(json!({"type": 1}), "input.a.type: must be a type like \"string?\"");
    check(
        json!({"type": "string", "descripton": "x"}),
        "input.a.descripton: there is no such key; did you mean `description`?",
    );
    check(
        json!({"type": "string", "oneOf": []}),
        "input.a.oneOf: there is no such key; use `input_schema` for all of JSON Schema",
    );
    check(json!({"type": "string", "maxLength": -1}), "input.a.maxLength: must be a whole number");
    check(json!({"type": "string", "optional": "yes"}), "input.a.optional: must be true or false");
    check(json!({"type": "string", "enum": "x"}), "input.a.enum: must be a list of choices");
    check(json!({"type": "integer", "default": 1.5}), "input.a: 1.5 is not of type integer");
    check(json!({"type": "string[]", "default": "x"}), "input.a: \"x\" is not of type list");
    check(
        json!({"enum": ["x"], "default": "y"}),
        "input.a: the default \"y\" is none of the choices",
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
        "input: `a b` is no name of an argument; use letters, digits, `_`, `-` and `.`"
    );
}

#[test]
fn a_schema_must_be_one_of_an_object_and_is_not_touched() {
    let schema = json!({"type": "object", "properties": {"b": {}, "a": {"default": 1}}, "x-y": 1});
    assert_eq!(Input::from_schema(schema.clone()).unwrap().schema(), &schema);
    for wrong in [json!({"type": "string"}), json!({}), json!(true)] {
        assert_eq!(Input::from_schema(wrong).unwrap_err(), InputError::NotAnObject);
    }
}

fn disagreements(input: &Input, run: &[&str], stdin: &Stdin, dash: &[&str]) -> Vec<String> {
    let run: Vec<_> = run.iter().map(|argument| RunItem::Argument((*argument).into())).collect();
    let dash: Vec<_> = dash.iter().map(|name| (*name).to_owned()).collect();
    let line = CommandLine::parse(&run, &dash).unwrap();
    input.disagreements(&line, stdin).iter().map(ToString::to_string).collect()
}

#[test]
fn placeholders_and_input_that_agree_are_let_through() {
    let input = short(json!({
        "limit": "integer?", "path": "string", "all": "boolean?", "n": {"type": "number", "default": 1},
        "tags": "string[]",
    }))
    .unwrap();
    let run = ["p", "--limit", "{limit?}", "{path}", "{all?-a}", "{n}", "{n?}", "--tag", "{tags}"];
    assert_eq!(disagreements(&input, &run, &Stdin::Empty, &["path"]), [""; 0]);
    // Whoever reads the JSON has seen every argument.
    assert_eq!(disagreements(&input, &["p"], &Stdin::Json, &[]), [""; 0]);
}

#[test]
fn every_disagreement_is_told_with_its_place() {
    let input = short(json!({
        "limit": "integer?", "path": "string", "unit": "string", "x": "string[]", "y": "string[]",
    }))
    .unwrap();
    let text = Stdin::Text(TextTemplate::parse("{pth} {nonsense}").unwrap());
    let run = ["p", "{limit}", "{path?}", "{unit?-u}", "{x}{y}"];
    assert_eq!(
        disagreements(&input, &run, &text, &["limt"]),
        [
            "run[1]: `limit` may be absent; write `{limit?}`, give it a default, or require it",
            "run[2]: `path` is never absent; write `{path}`, or make it optional",
            "run[3]: `{unit?…}` needs an argument of type boolean",
            "stdin: there is no argument `pth`; did you mean `path`?",
            "stdin: there is no argument `nonsense`",
            "run[4]: `x` and `y` are lists; only one can repeat this",
            "allow_dash: `limt` stands nowhere in `run`; did you mean `limit`?",
        ]
    );
    let unused = short(json!({"a": "string", "b": "string"})).unwrap();
    assert_eq!(
        disagreements(&unused, &["p", "{a}"], &Stdin::Empty, &[]),
        ["input.b: is used nowhere; put `{b}` into `run` or `stdin`"]
    );
}

#[test]
fn a_schema_that_may_know_more_arguments_is_believed() {
    let closed = Input::from_schema(json!({"type": "object", "properties": {}})).unwrap();
    assert_eq!(disagreements(&closed, &["p", "{a}"], &Stdin::Empty, &[]).len(), 1);
    for open in [
        json!({"type": "object", "additionalProperties": {"type": "string"}}),
        json!({"type": "object", "$ref": "#/$defs/x"}),
        json!({"type": "object", "patternProperties": {".*": {}}}),
    ] {
        let open = Input::from_schema(open).unwrap();
        assert_eq!(disagreements(&open, &["p", "{a}"], &Stdin::Empty, &[]), [""; 0]);
    }
    let nullable = json!({"type": "object", "required": ["a"], "properties": {"a": {"type": ["string", "null"]}}});
    let nullable = Input::from_schema(nullable).unwrap();
    assert_eq!(disagreements(&nullable, &["p", "{a?}"], &Stdin::Empty, &[]), [""; 0]);
}
