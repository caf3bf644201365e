use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;
use crate::definition::Budget;
use crate::description::Description;
use crate::operation::ReadOptions;

fn operation(method: &str, path: &str, definition: &Value) -> Operation {
    let text = json!({ "openapi": "3.0.0", "paths": { path: { method: definition } } });
    let description = Description::parse("x", text.to_string().as_bytes()).unwrap();
    let (entries, _) = description.entries();
    description.read(&entries[0], Budget::ALONE, &ReadOptions::default()).unwrap()
}

struct Folder(BTreeMap<&'static str, &'static str>);

impl Files for Folder {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        self.0.get(path).map(|text| text.as_bytes().to_vec()).ok_or("no such file".to_owned())
    }
}

fn send(operation: &Operation, arguments: &str) -> Result<Request, ArgumentError> {
    let files = Folder(BTreeMap::from([("a/b.txt", "from a file")]));
    let arguments = RawValue::from_string(arguments.to_owned()).unwrap();
    operation.request("https://x.test/v1", &arguments, &files)
}

fn body_of(request: &Request) -> (&str, &str) {
    let media = request.headers.iter().find(|(name, _)| name == "content-type").unwrap();
    (&media.1, std::str::from_utf8(request.body.as_deref().unwrap()).unwrap())
}

fn with_body(media: &str, schema: Value) -> Value {
    json!({ "requestBody": { "required": true, "content": { media: { "schema": schema } } } })
}

#[test]
fn every_place_gets_its_values() {
    let get = operation(
        "get",
        "/a/{id}.json",
        &json!({ "parameters": [
        { "name": "id", "in": "path" }, { "name": "q", "in": "query" }, { "name": "X-H", "in": "header" },
        { "name": "c", "in": "cookie" }, { "name": "d", "in": "cookie" },
        { "name": "v", "in": "query", "required": true, "schema": { "default": "2024" } },
    ] }),
    );
    let request = send(&get, r#"{"id":"x/y","q":[1,2],"X-H":"h","c":"1;2","d":3}"#).unwrap();
    assert_eq!(request.url, "https://x.test/v1/a/x%2Fy.json?q=1&q=2&v=2024");
    let headers: Vec<_> = request.headers.iter().map(|(n, v)| format!("{n}: {v}")).collect();
    assert_eq!(headers, ["accept: application/json, */*;q=0.5", "X-H: h", "cookie: c=1%3B2; d=3"]);
    assert_eq!((request.method, request.body), (Method::Get, None));
}

#[test]
fn a_value_cannot_leave_its_segment() {
    let plain = operation("get", "/a/{id}/b", &json!({}));
    for bad in ["", ".", ".."] {
        let refused = send(&plain, &json!({ "id": bad }).to_string());
        assert_eq!(refused, Err(ArgumentError::Path("id".into())), "{bad}");
    }
    let url = |value: &str| send(&plain, &json!({ "id": value }).to_string()).unwrap().url;
    assert_eq!(url("../../c?d#e"), "https://x.test/v1/a/%2E%2E%2F%2E%2E%2Fc%3Fd%23e/b");
    assert_eq!(url("%2e%2e"), "https://x.test/v1/a/%252e%252e/b");
    for (style, bad) in [
        ("simple", json!([".."])),
        ("simple", json!([])),
        ("label", json!(["."])),
        ("matrix", json!({})),
    ] {
        let parameter = json!({ "name": "id", "in": "path", "style": style, "explode": true });
        let list = operation("get", "/a/{id}/b", &json!({ "parameters": [parameter] }));
        let refused = send(&list, &json!({ "id": bad }).to_string());
        assert_eq!(refused, Err(ArgumentError::Path("id".into())), "{style} {bad}");
    }
    let reserved = operation("get", "/a/{+id}", &json!({}));
    let name = |value: &str| send(&reserved, &json!({ "id": value }).to_string());
    assert_eq!(name("projects/p q").unwrap().url, "https://x.test/v1/a/projects/p%20q");
    assert!(name("a/../b").is_err() && name("/a").is_err());
}

#[test]
fn json_bodies_keep_the_text_of_their_values() {
    let fields = json!({ "properties": { "n": {}, "x y": {}, "nothing": { "nullable": true } }, "additionalProperties": true });
    let post = operation("post", "/", &with_body("application/vnd.x+json", fields));
    let request =
        send(&post, r#"{"x_y":"é\n","n":1.10,"nothing":null,"more":12345678901234567890123}"#);
    assert_eq!(
        body_of(&request.unwrap()),
        (
            "application/vnd.x+json",
            r#"{"n":1.10,"x y":"é\n","nothing":null,"more":12345678901234567890123}"#
        )
    );
    let list = operation("post", "/", &with_body("application/json", json!({ "type": "array" })));
    assert_eq!(body_of(&send(&list, r#"{"body":[1, 2]}"#).unwrap()).1, "[1, 2]");
    assert_eq!(send(&list, "{}"), Err(ArgumentError::Missing("body".into())));
    assert_eq!(send(&list, r#"{"other":1}"#), Err(ArgumentError::Unknown("other".into())));
}

#[test]
fn a_field_that_is_required_without_being_described_can_be_sent() {
    let body = json!({ "required": ["b", "a"], "properties": { "a": {} } });
    let post = operation("post", "/", &with_body("application/json", body));
    assert_eq!(post.schema["required"], json!(["a", "b"]));
    assert_eq!(body_of(&send(&post, r#"{"a":1,"b":[2]}"#).unwrap()).1, r#"{"a":1,"b":[2]}"#);
}

#[test]
fn an_optional_body_is_left_out_without_arguments() {
    let mut definition =
        with_body("application/json", json!({ "required": ["a"], "properties": { "a": {} } }));
    definition["requestBody"]["required"] = false.into();
    let post = operation("post", "/", &definition);
    assert_eq!(send(&post, "{}").unwrap().body, None);
    assert!(send(&post, r#"{"a":1}"#).unwrap().body.is_some());
    assert_eq!(post.schema.get("required"), None);
    // With a body, its required fields are needed.
    definition["requestBody"]["content"]["application/json"]["schema"]["properties"]["b"] =
        json!({});
    let post = operation("post", "/", &definition);
    assert_eq!(post.schema["dependentRequired"], json!({ "b": ["a"] }));
}

#[test]
fn forms_repeat_lists_and_put_objects_into_brackets() {
    let mut definition = with_body(
        "application/x-www-form-urlencoded",
        json!({ "properties": {
        "a": {}, "list": {}, "csv": {}, "object": {}, "flat": {} } }),
    );
    let media = &mut definition["requestBody"]["content"]["application/x-www-form-urlencoded"];
    media["encoding"] =
        json!({ "csv": { "explode": false }, "flat": { "style": "form", "explode": true } });
    let post = operation("post", "/", &definition);
    let request =
        send(&post, r#"{"a":"1 2","list":[1,2],"csv":[1,2],"object":{"k":[3]},"flat":{"m":4}}"#)
            .unwrap();
    assert_eq!(body_of(&request).1, "a=1%202&list=1&list=2&csv=1,2&object%5Bk%5D%5B%5D=3&m=4");
}

#[test]
fn multipart_bodies_have_files() {
    let mut definition = with_body(
        "multipart/form-data",
        json!({ "properties": {
        "file": { "type": "string", "format": "binary" }, "note": { "type": "string" },
        "more": { "type": "array", "items": { "type": "string", "format": "binary" } },
        "meta": { "type": "object" }, "tags": { "type": "array", "items": {} } } }),
    );
    definition["requestBody"]["content"]["multipart/form-data"]["encoding"] =
        json!({ "file": { "contentType": "image/png" } });
    let post = operation("post", "/", &definition);
    let request = send(&post, r#"{"file":{"base64":"aGk=","filename":"a\"b.png"},"note":"n",
        "more":[{"path":"a/b.txt"},{"text":"t","type":"text/plain"}],"meta":{"k":1},"tags":["x","y"]}"#).unwrap();
    let (media, body) = body_of(&request);
    let boundary = media.strip_prefix("multipart/form-data; boundary=").unwrap();
    let body = body.replace(boundary, "B").replace("\r\n", "\n");
    let part =
        |head: &str, text: &str| format!("--B\nContent-Disposition: form-data; {head}\n\n{text}\n");
    let expected = [
        part("name=\"file\"; filename=\"a%22b.png\"\nContent-Type: image/png", "hi"),
        part("name=\"note\"", "n"),
        part(
            "name=\"more\"; filename=\"b.txt\"\nContent-Type: application/octet-stream",
            "from a file",
        ),
        part("name=\"more\"; filename=\"more\"\nContent-Type: text/plain", "t"),
        part("name=\"meta\"\nContent-Type: application/json", "{\"k\":1}"),
        part("name=\"tags\"", "x"),
        part("name=\"tags\"", "y"),
    ];
    assert_eq!(body, expected.concat() + "--B--\n");
}

#[test]
fn the_parts_of_a_multipart_body_have_their_styles() {
    let mut definition = with_body(
        "multipart/form-data",
        json!({ "properties": { "csv": {}, "many": {}, "pipe": {}, "flat": {}, "deep": {} } }),
    );
    definition["requestBody"]["content"]["multipart/form-data"]["encoding"] = json!({
        "csv": { "style": "form", "explode": false }, "many": { "explode": true },
        "pipe": { "style": "pipeDelimited" }, "flat": { "style": "form" },
        "deep": { "style": "deepObject" },
    });
    let post = operation("post", "/", &definition);
    let request = send(
        &post,
        r#"{"csv":["a&b","=,"],"many":[1,2],"pipe":["x","y"],
        "flat":{"k":"v w"},"deep":{"k":"v"}}"#,
    )
    .unwrap();
    let (media, body) = body_of(&request);
    let boundary = media.strip_prefix("multipart/form-data; boundary=").unwrap();
    let parts: Vec<_> =
        body.split(boundary).filter_map(|part| part.split_once("name=\"")).collect();
    let parts: Vec<_> =
        parts.iter().map(|(_, part)| part.trim_end_matches("--").trim_end()).collect();
    let expected = ["csv|a&b,=,", "many|1", "many|2", "pipe|x|y", "k|v w", "deep[k]|v"];
    let written = expected.map(|part| part.replacen('|', "\"\r\n\r\n", 1));
    assert_eq!(parts, written);
}

#[test]
fn a_fragment_only_tells_operations_apart() {
    let get = operation(
        "get",
        "/{id}/#Action=List?{x}",
        &json!({ "parameters": [{ "name": "q", "in": "query" }] }),
    );
    assert_eq!(get.argument_names().collect::<Vec<_>>(), ["id", "q"]);
    let request = send(&get, r#"{"id":"a","q":1}"#).unwrap();
    assert_eq!(request.url, "https://x.test/v1/a/?q=1");
}

#[test]
fn bytes_are_a_file_and_xml_is_text() {
    let post = operation(
        "put",
        "/",
        &with_body("application/octet-stream", json!({ "type": "string", "format": "binary" })),
    );
    let request = send(&post, r#"{"body":{"text":"abc"}}"#).unwrap();
    assert_eq!(body_of(&request), ("application/octet-stream", "abc"));
    assert_eq!(post.schema["properties"]["body"]["type"], "object");
    for (argument, what) in [
        (r#"{"body":{}}"#, "expected exactly one of `text`, `base64` and `path`"),
        (
            r#"{"body":{"text":"a","path":"b"}}"#,
            "expected exactly one of `text`, `base64` and `path`",
        ),
        (r#"{"body":{"base64":"*"}}"#, "`base64` is not valid Base64"),
        (r#"{"body":{"path":"nowhere"}}"#, "no such file"),
        (r#"{"body":[]}"#, "expected a file with `text`, `base64` or `path`"),
    ] {
        let expected = ArgumentError::File { name: "body".into(), what: what.into() };
        assert_eq!(send(&post, argument), Err(expected));
    }
    let xml =
        operation("post", "/", &with_body("application/xml", json!({ "properties": { "a": {} } })));
    let request = send(&xml, r#"{"body":"<a/>"}"#).unwrap();
    assert_eq!(body_of(&request), ("application/xml", "<a/>"));
    let about = "XML, as text, with the elements `a`.";
    let schema = json!({ "type": "string", "description": about });
    assert_eq!(xml.schema["properties"]["body"], schema);
}

#[test]
fn json_is_preferred_and_patches_keep_their_type() {
    let content = |types: &[&str]| {
        let content: serde_json::Map<_, _> = types
            .iter()
            .map(|media| ((*media).to_owned(), json!({ "schema": { "type": "array" } })))
            .collect();
        let patch = operation(
            "patch",
            "/",
            &json!({ "requestBody": { "required": true, "content": content } }),
        );
        body_of(&send(&patch, r#"{"body":[]}"#).unwrap()).0.to_owned()
    };
    assert_eq!(content(&["application/xml", "application/json"]), "application/json");
    assert_eq!(content(&["application/json-patch+json", "text/json"]), "text/json");
    assert_eq!(content(&["application/json-patch+json"]), "application/json-patch+json");
    assert_eq!(content(&["*/*"]), "application/json");
}

#[test]
fn the_length_of_a_request_is_bounded_at_its_edge() {
    let get = operation("get", "/a", &json!({ "parameters": [{ "name": "q", "in": "query" }] }));
    let rest = "https://x.test/v1/a?q=".len();
    let sized = |length: usize| send(&get, &json!({ "q": "x".repeat(length - rest) }).to_string());
    assert!(sized(MAX_TARGET).is_ok());
    assert_eq!(sized(MAX_TARGET + 1), Err(ArgumentError::TooLarge(MAX_TARGET)));
}
