use serde_json::{Value, json};

use super::*;
use crate::command::template::RunItem;

/// `run` as written in a file: strings and inner lists of strings.
fn line(run: &Value, allow_dash: &[&str]) -> CommandLine {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let items = run.as_array().unwrap().iter().map(|item| match item {
        Value::Array(inner) => RunItem::Group(inner.iter().map(text).collect()),
        one => RunItem::Argument(text(one)),
    });
    let allow_dash: Vec<_> = allow_dash.iter().map(|name| (*name).to_owned()).collect();
    CommandLine::parse(&items.collect::<Vec<_>>(), &allow_dash).unwrap()
}

fn any_input() -> Input {
    Input::from_schema(json!({"type": "object"})).unwrap()
}

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap()
}

fn render(line: &CommandLine, arguments: &str) -> Result<Vec<String>, RenderError> {
    let (raw, input) = (raw(arguments), any_input());
    let rendered = line.render(&Values::parse(&raw, &input)?)?;
    Ok(rendered.into_iter().map(|argument| argument.into_string().unwrap()).collect())
}

fn check(run: Value, arguments: &str, expected: &[&str]) {
    assert_eq!(render(&line(&run, &[]), arguments).unwrap(), expected, "{run} {arguments}");
}

#[test]
fn values_are_whole_arguments_or_parts_of_one() {
    check(json!(["p", "{a}", "x{a}y{b}"]), r#"{"a":"1 2","b":true}"#, &["1 2", "x1 2ytrue"]);
    check(json!(["p", "", "{a}"]), r#"{"a":""}"#, &["", ""]);
    check(json!(["p", "{{a}}"]), "{}", &["{a}"]);
}

#[test]
fn values_keep_their_exact_text() {
    let text = r#"it's "quoted"\n\\ $(rm -rf /) 'é' 🦀"#;
    let json = serde_json::to_string(&json!({ "a": text })).unwrap();
    check(json!(["p", "{a}"]), &json, &[text]);
    check(json!(["p", "{a}"]), r#"{"a":"line\nline\u00e9\ud83e\udd80"}"#, &["line\nlineé🦀"]);
    for number in ["1.10", "12345678901234567890123", "1e3", "0.30000000000000004"] {
        check(json!(["p", "{a}"]), &format!(r#"{{"a":{number}}}"#), &[number]);
    }
    check(json!(["p", "{a}"]), r#"{"a":{"k" : [1, 2]}}"#, &[r#"{"k" : [1, 2]}"#]);
    check(json!(["p", "{ä}"]), r#"{"\u00e4":"x"}"#, &["x"]);
}

#[test]
fn an_absent_value_takes_its_flag_along() {
    let run = json!(["p", "--limit", "{limit?}", "--x={x?}", ["-e", "{e?}", "-i"], "end"]);
    check(run.clone(), "{}", &["end"]);
    check(run.clone(), r#"{"limit":null,"x":null}"#, &["end"]);
    check(run, r#"{"limit":5,"x":"","e":"r"}"#, &["--limit", "5", "--x=", "-e", "r", "-i", "end"]);
}

#[test]
fn a_list_repeats_its_argument_with_its_flag() {
    let list = r#"{"tags":["a","b c"]}"#;
    check(json!(["p", "{tags}"]), list, &["a", "b c"]);
    check(json!(["p", "--tag", "{tags}"]), list, &["--tag", "a", "--tag", "b c"]);
    check(json!(["p", "--tag={tags}"]), list, &["--tag=a", "--tag=b c"]);
    check(json!(["p", ["-e", "{tags}", "-i"]]), list, &["-e", "a", "-i", "-e", "b c", "-i"]);
    check(json!(["p", "-l", "--", "{tags}"]), list, &["-l", "--", "a", "b c"]);
    check(json!(["p", "{tags}={tags}"]), list, &["a=a", "b c=b c"]);
    check(json!(["p", "--tag", "{tags}", "end"]), r#"{"tags":[]}"#, &["end"]);
    check(
        json!(["p", "{tags}"]),
        r#"{"tags":[1.0,[2],{"a":null}]}"#,
        &["1.0", "[2]", r#"{"a":null}"#],
    );
    let two = line(&json!(["p", "{a}{b}"]), &[]);
    let error = render(&two, r#"{"a":[1],"b":[2]}"#).unwrap_err();
    assert_eq!(error, RenderError::TwoLists("a".into(), "b".into()));
}

#[test]
fn a_switch_is_there_if_and_only_if_it_is_true() {
    let run = json!(["p", "{all?--all}", "{loud?-v}"]);
    check(run.clone(), r#"{"all":true,"loud":false}"#, &["--all"]);
    check(run.clone(), r#"{"all":null}"#, &[]);
    check(run, r#"{"all":"true"}"#, &[]);
}

#[test]
fn a_value_never_becomes_a_flag_by_accident() {
    let refused = |run: Value, arguments: &str, name: &str| {
        let error = render(&line(&run, &[]), arguments).unwrap_err();
        assert_eq!(error, RenderError::Dash(name.into()), "{run} {arguments}");
    };
    refused(json!(["p", "{a}"]), r#"{"a":"-rf"}"#, "a");
    refused(json!(["p", "{a}"]), r#"{"a":"-"}"#, "a");
    refused(json!(["p", "{a}"]), r#"{"a":-5}"#, "a");
    refused(json!(["p", "{a}"]), r#"{"a":["x","--y"]}"#, "a");
    refused(json!(["p", "--limit", "{a?}"]), r#"{"a":"--all"}"#, "a");
    refused(json!(["p", "{a}{b}"]), r#"{"a":"","b":"-x"}"#, "a");
    refused(json!(["p", "{a}-x"]), r#"{"a":""}"#, "a");
    refused(json!(["p", ["{a}", "--"]]), r#"{"a":"-x"}"#, "a");
    // A dash that the author wrote or allowed is passed on.
    check(json!(["p", "--", "{a}"]), r#"{"a":"-rf"}"#, &["--", "-rf"]);
    check(json!(["p", "--a={a}", "x{a}"]), r#"{"a":"-rf"}"#, &["--a=-rf", "x-rf"]);
    let allowed = line(&json!(["p", "{a}", "{b}"]), &["a"]);
    assert_eq!(render(&allowed, r#"{"a":"-5","b":"x"}"#).unwrap(), ["-5", "x"]);
    let error = render(&allowed, r#"{"a":"-5","b":"-x"}"#).unwrap_err();
    assert_eq!(error, RenderError::Dash("b".into()));
}

#[test]
fn what_a_program_cannot_be_given_is_refused() {
    let one = line(&json!(["p", "{a}"]), &[]);
    let error = |arguments: &str| render(&one, arguments).unwrap_err();
    assert_eq!(error(r#"{"a":"x\u0000y"}"#), RenderError::Nul("a".into()));
    assert_eq!(error(r#"{"a":"\ud800"}"#), RenderError::NotText("a".into()));
    assert_eq!(error("{}"), RenderError::Missing("a".into()));
    assert_eq!(error(r#"{"a":null}"#), RenderError::Missing("a".into()));
    assert_eq!(error("[]"), RenderError::NotAnObject);
}

#[test]
fn an_argument_is_bounded_at_its_edge() {
    let one = line(&json!(["p", "x{a}"]), &[]);
    let with = |length: usize| render(&one, &json!({"a": "y".repeat(length)}).to_string());
    assert_eq!(with(MAX_ARGUMENT - 1).unwrap()[0].len(), MAX_ARGUMENT);
    let (name, bytes) = ("a".to_owned(), MAX_ARGUMENT + 1);
    assert_eq!(with(MAX_ARGUMENT), Err(RenderError::ArgumentTooLong { name, bytes }));
}

#[test]
fn a_command_line_is_bounded_at_its_edge() {
    let one = line(&json!(["p", "{a}", "{last}"]), &[]);
    let item = "y".repeat(100_000 - PER_ARGUMENT);
    let left = MAX_COMMAND_LINE - 10 * 100_000 - PER_ARGUMENT;
    let with = |last: usize| {
        let arguments = json!({"a": vec![&item[..]; 10], "last": "z".repeat(last)});
        render(&one, &arguments.to_string())
    };
    assert_eq!(with(left).unwrap().len(), 11);
    assert_eq!(with(left + 1), Err(RenderError::CommandLineTooLong));
}

fn stdin(template: &str, arguments: &str) -> Result<String, RenderError> {
    let (raw, input) = (raw(arguments), any_input());
    let stdin = Stdin::Text(TextTemplate::parse(template).unwrap());
    let bytes = stdin.render(&Values::parse(&raw, &input)?)?.unwrap();
    Ok(String::from_utf8(bytes).unwrap())
}

#[test]
fn standard_input_takes_any_text() {
    assert_eq!(stdin("{a}\n", r#"{"a":"-x\n🦀"}"#).unwrap(), "-x\n🦀\n");
    assert_eq!(stdin("{a?}|{b}|{c?yes}", r#"{"b":["x","y"],"c":true}"#).unwrap(), "|x\ny|yes");
    assert_eq!(stdin("{a}", r#"{"a":"\u0000"}"#), Err(RenderError::Nul("a".into())));
    assert_eq!(stdin("{a}", "{}"), Err(RenderError::Missing("a".into())));
}

#[test]
fn standard_input_is_bounded_at_its_edge() {
    let with = |length: usize| stdin("{a}{a}", &json!({"a": "x".repeat(length)}).to_string());
    assert_eq!(with(MAX_STDIN / 2).unwrap().len(), MAX_STDIN);
    assert_eq!(with(MAX_STDIN / 2 + 1), Err(RenderError::StdinTooLong));
}

#[test]
fn defaults_stand_in_for_what_was_not_given() {
    let short = json!({"unit": {"type": "string", "default": "kg"}, "n": "integer?"});
    let input = Input::from_short(short.as_object().unwrap()).unwrap();
    let line = line(&json!(["p", "{unit}", "{n?}"]), &[]);
    for (arguments, expected) in [
        ("{}", ["kg"].as_slice()),
        (r#"{"unit":null}"#, &["kg"]),
        (r#"{"unit":"lb","n":1}"#, &["lb", "1"]),
    ] {
        let raw = raw(arguments);
        let values = Values::parse(&raw, &input).unwrap();
        assert_eq!(line.render(&values).unwrap(), expected, "{arguments}");
    }
    for (arguments, expected) in [
        ("{ }", r#"{ "unit":"kg"}"#),
        (r#"{"n": 1.0 }"#, r#"{"n": 1.0 ,"unit":"kg"}"#),
        (r#"{ "unit" : "lb" }"#, r#"{ "unit" : "lb" }"#),
    ] {
        let raw = raw(arguments);
        let values = Values::parse(&raw, &input).unwrap();
        let json = Stdin::Json.render(&values).unwrap().unwrap();
        assert_eq!(String::from_utf8(json).unwrap(), expected);
    }
}
