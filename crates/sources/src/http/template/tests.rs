use serde_json::json;
use serde_json::value::RawValue;

use super::*;
use crate::command::Input;

fn with<T>(arguments: Value, render: impl FnOnce(&Values<'_>) -> T) -> T {
    let input =
        Input::from_schema(json!({ "type": "object", "properties": { "d": { "default": 7 } } }));
    let input = input.unwrap();
    let raw = RawValue::from_string(arguments.to_string()).unwrap();
    render(&Values::parse(&raw, &input).unwrap())
}

fn url(template: &str, arguments: Value) -> Result<String, String> {
    let template = UrlTemplate::parse(template).unwrap();
    with(arguments, |values| template.render(values))
}

#[test]
fn values_stay_in_their_segment_and_their_parameter() {
    let template = "https://x.test/a/{id}.json?q={q?}&n={d}&all={all?all}&fixed=1";
    assert_eq!(
        url(template, json!({ "id": "../b", "q": "x&y=1 2", "all": true })).unwrap(),
        "https://x.test/a/%2E%2E%2Fb.json?q=x%26y%3D1%202&n=7&all=all&fixed=1"
    );
    assert_eq!(
        url(template, json!({ "id": 1, "q": [1, "a"], "d": 8 })).unwrap(),
        "https://x.test/a/1.json?q=1&q=a&n=8&fixed=1"
    );
    for bad in ["", ".", ".."] {
        assert!(url("https://x.test/{id}/c", json!({ "id": bad })).is_err(), "{bad}");
    }
    assert_eq!(url("http://x.test", json!({})).unwrap(), "http://x.test/");
}

#[test]
fn hosts_and_names_of_parameters_have_no_placeholders() {
    for bad in [
        "https://{host}/",
        "ftp://x",
        "/a",
        "https:///a",
        "https://u@h/",
        "https://h/?{a}=1",
        "https://h/{",
    ] {
        assert!(UrlTemplate::parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn json_keeps_types_and_leaves_out_what_is_absent() {
    let template = json!({ "n": "{n}", "text": "<{n}>", "none": "{none?}", "list": ["{none?}", "{n}", 1], "o": { "b": true }, "braces": "{{}}" });
    let template = JsonTemplate::parse(template).unwrap();
    assert_eq!(template.texts().len(), 5);
    let text = with(json!({ "n": 1.5 }), |values| template.render(values)).unwrap().unwrap();
    assert_eq!(text, r#"{"n":1.5,"text":"<1.5>","list":[1.5,1],"o":{"b":true},"braces":"{}"}"#);
}

#[test]
fn forms_and_headers_are_encoded_or_refused() {
    let template = |text: &str| TextTemplate::parse_at(Place::Key("headers"), text).unwrap();
    let fields = [
        ("a b".to_owned(), template("{x}")),
        ("c".to_owned(), template("1 2")),
        ("d".to_owned(), template("{y?}")),
    ];
    let form = with(json!({ "x": ["&", "="] }), |values| render_form(&fields, values));
    assert_eq!(form.unwrap(), "a%20b=%26&a%20b=%3D&c=1%202");
    let header =
        |arguments| with(arguments, |values| render_header("h", &template("v {x}"), values));
    assert_eq!(header(json!({ "x": "1" })), Ok(Some("v 1".into())));
    assert_eq!(header(json!({})), Ok(None));
    assert!(header(json!({ "x": "a\r\nb: c" })).is_err());
}
