use std::sync::Arc;

use http::{HeaderName, HeaderValue};
use proptest::prelude::*;
use sabir_engine::Engine;
use sabir_registry::{Offer, Source};
use sabir_wire::types::Tool;
use sabir_wire::{Code, Id};
use serde_json::{Value, json};

use super::check as check_named;
use super::*;

/// One tool with every kind of repeated argument.
struct Mirror;

impl Source for Mirror {
    fn offer(&self) -> Offer {
        let schema = json!({ "type": "object", "properties": {
            "text": { "type": "string", "x-mcp-header": "Text" },
            "count": { "type": "integer", "x-mcp-header": "Count" },
            "dry": { "type": "boolean", "x-mcp-header": "Dry" },
            "where": { "type": "object", "properties": {
                "zone": { "type": "string", "x-mcp-header": "Zone" },
            } },
            "silent": { "type": "string" },
        } });
        let tools = vec![Tool::new("mirror", "Repeats.", Raw::of(&schema).unwrap())];
        Offer { tools, ..Offer::default() }
    }
}

fn catalog() -> Arc<Catalog> {
    let engine = Engine::new(sabir_engine::Settings::default());
    engine.registry().add(Arc::new(Mirror)).unwrap();
    engine.registry().snapshot()
}

fn check(headers: &HeaderMap, asked: &ParsedRequest, catalog: &Catalog) -> Result<(), Problem> {
    check_named(headers, named_revision(headers), asked, catalog)
}

fn asked(method: &str, mut params: Value) -> ParsedRequest {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": Revision::NEWEST.date(),
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = Raw::of(&params).unwrap();
    ParsedRequest::read(Id::from(1), Method::named(method), Some(params))
}

fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
    let version = [("mcp-protocol-version", Revision::NEWEST.date())];
    let pairs = version.iter().chain(pairs);
    let pair = |(name, value): &(&str, &str)| {
        (HeaderName::try_from(*name).unwrap(), HeaderValue::from_bytes(value.as_bytes()).unwrap())
    };
    let mut all = HeaderMap::new();
    for (name, value) in pairs.map(pair) {
        all.append(name, value);
    }
    all
}

/// The error of a call of `mirror`, if there is one.
fn wrong(arguments: Value, mirrored: &[(&str, &str)]) -> Option<String> {
    let asked = asked("tools/call", json!({ "name": "mirror", "arguments": arguments }));
    let standard = [("mcp-method", "tools/call"), ("mcp-name", "mirror")];
    let headers = headers(&[&standard, mirrored].concat());
    let problem = check(&headers, &asked, &catalog()).err()?;
    assert_eq!(problem.to_error().code, Code::HEADER_MISMATCH);
    Some(problem.to_error().message.into_owned())
}

fn is_wrong(arguments: Value, mirrored: &[(&str, &str)], reason: &str) {
    let found = wrong(arguments.clone(), mirrored).unwrap_or_default();
    assert!(found.contains(reason), "{arguments} with {mirrored:?}: {found:?}");
}

#[test]
fn the_method_must_be_repeated_exactly() {
    let list = asked("tools/list", json!({}));
    let check = |pairs: &[(&str, &str)]| check(&headers(pairs), &list, &catalog());
    assert_eq!(check(&[("mcp-method", "tools/list")]), Ok(()));
    assert_eq!(check(&[("Mcp-Method", "tools/list")]), Ok(()));
    for wrong in [
        &[][..],
        &[("mcp-method", "Tools/List")],
        &[("mcp-method", "tools/call")],
        &[("mcp-method", "")],
        &[("mcp-method", "tools/list"), ("mcp-method", "tools/call")],
        // A second version beside the correct one.
        &[("mcp-method", "tools/list"), ("mcp-protocol-version", "2025-11-25")],
    ] {
        assert!(check(wrong).is_err(), "{wrong:?}");
    }
}

#[test]
fn the_version_must_be_that_of_the_body() {
    let list = asked("tools/list", json!({}));
    let mut headers = headers(&[("mcp-method", "tools/list")]);
    headers.insert(VERSION, HeaderValue::from_static("2025-11-25"));
    let problem = check(&headers, &list, &catalog()).unwrap_err();
    assert_eq!(problem.to_error().code, Code::HEADER_MISMATCH);
    headers.remove(VERSION);
    assert!(check(&headers, &list, &catalog()).is_err());
}

#[test]
fn the_name_is_needed_by_three_methods_and_may_be_encoded() {
    for (method, params, name, encoded) in [
        ("tools/call", json!({ "name": "é" }), "é", "=?base64?w6k=?="),
        ("prompts/get", json!({ "name": " a" }), " a", "=?base64?IGE=?="),
        ("resources/read", json!({ "uri": "a:b" }), "a:b", "=?base64?YTpi?="),
    ] {
        let asked = asked(method, params);
        let check = |pairs: &[(&str, &str)]| {
            check(&headers(&[&[("mcp-method", method)], pairs].concat()), &asked, &catalog())
        };
        assert_eq!(check(&[("mcp-name", encoded)]), Ok(()), "{method}");
        assert_eq!(check(&[("mcp-name", name)]).is_ok(), name != "é", "{method}");
        assert!(check(&[]).is_err(), "{method}");
        assert!(check(&[("mcp-name", "other")]).is_err(), "{method}");
        assert!(check(&[("mcp-name", encoded), ("mcp-name", "other")]).is_err(), "{method}");
    }
    let list = asked("tools/list", json!({}));
    let unneeded = headers(&[("mcp-method", "tools/list"), ("mcp-name", "whatever")]);
    assert_eq!(check(&unneeded, &list, &catalog()), Ok(()));
}

#[test]
fn the_name_is_compared_even_if_the_params_are_invalid() {
    let bad = asked("prompts/get", json!({ "name": "p", "arguments": { "a": 1 } }));
    let check = |pairs: &[(&str, &str)]| {
        check(&headers(&[&[("mcp-method", "prompts/get")], pairs].concat()), &bad, &catalog())
    };
    assert!(check(&[]).is_err() && check(&[("mcp-name", "other")]).is_err());
    assert_eq!(check(&[("mcp-name", "p")]), Ok(()));
}

#[test]
fn an_absent_or_null_argument_needs_no_header_and_may_have_none() {
    assert_eq!(wrong(json!({}), &[]), None);
    assert_eq!(wrong(json!({ "text": null, "where": {} }), &[]), None);
    assert_eq!(wrong(json!({ "silent": "s" }), &[("mcp-param-silent", "other")]), None);
    is_wrong(json!({}), &[("mcp-param-text", "x")], "unexpected header");
    is_wrong(json!({ "text": null }), &[("mcp-param-text", "null")], "unexpected header");
    is_wrong(json!({ "text": "x" }), &[], "is missing");
    is_wrong(json!({ "where": { "zone": "z" } }), &[], "is missing");
}

#[test]
fn values_are_compared_by_their_type() {
    for (arguments, header, value) in [
        (json!({ "text": "plain text" }), "mcp-param-text", "plain text"),
        (json!({ "text": "" }), "mcp-param-text", ""),
        (json!({ "text": "Hello, 世界" }), "mcp-param-text", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        (json!({ "text": "line1\nline2" }), "mcp-param-text", "=?base64?bGluZTEKbGluZTI=?="),
        (json!({ "text": "=?base64?x" }), "mcp-param-text", "=?base64?x"),
        (json!({ "text": "x?=" }), "mcp-param-text", "x?="),
        (json!({ "count": 42 }), "mcp-param-count", "42"),
        (json!({ "count": 42 }), "mcp-param-count", "42.0"),
        (json!({ "count": -7 }), "mcp-param-count", "-7"),
        (json!({ "count": 9_007_199_254_740_993_i64 }), "mcp-param-count", "9007199254740993"),
        (json!({ "dry": true }), "mcp-param-dry", "true"),
        (json!({ "where": { "zone": "z" } }), "mcp-param-zone", "z"),
    ] {
        assert_eq!(wrong(arguments.clone(), &[(header, value)]), None, "{arguments} {value}");
    }
    for (arguments, header, value) in [
        (json!({ "text": "a" }), "mcp-param-text", "b"),
        (json!({ "text": "a" }), "mcp-param-text", "A"),
        (json!({ "text": "" }), "mcp-param-text", "=?base64?"),
        (json!({ "count": 42 }), "mcp-param-count", "43"),
        (json!({ "count": 42 }), "mcp-param-count", "forty-two"),
        (json!({ "count": 42 }), "mcp-param-count", "+42"),
        (json!({ "count": 9_007_199_254_740_993_i64 }), "mcp-param-count", "9007199254740992"),
        (json!({ "dry": true }), "mcp-param-dry", "True"),
        (json!({ "dry": false }), "mcp-param-dry", ""),
    ] {
        is_wrong(arguments, &[(header, value)], "the body says");
    }
}

#[test]
fn an_invalid_encoding_is_refused() {
    for value in ["=?base64?w6k?=", "=?base64?w6k!?=", "=?base64?/w==?=", "=?base64?w6l=?="] {
        is_wrong(json!({ "text": "é" }), &[("mcp-param-text", value)], "not valid Base64");
    }
    is_wrong(json!({ "text": "é" }), &[("mcp-param-text", "é")], "characters");
}

#[test]
fn of_a_duplicate_name_the_last_counts() {
    let params = Raw::parse(r#"{"text":"a","text":"b"}"#).unwrap();
    assert_eq!(value_at(&params, &["text".into()]).unwrap().text(), r#""b""#);
}

/// Encodes a value as a client must. Spec: "Value Encoding".
fn encode(value: &str) -> String {
    let is_plain = value.bytes().all(|byte| (0x20..0x7f).contains(&byte))
        && value.trim_ascii() == value
        && !(value.starts_with("=?base64?") && value.ends_with("?="));
    if is_plain { value.to_owned() } else { format!("=?base64?{}?=", STANDARD.encode(value)) }
}

proptest! {
    #[test]
    fn a_header_passes_if_and_only_if_it_says_what_the_body_says(body: String, other: String) {
        prop_assert_eq!(wrong(json!({ "text": body }), &[("mcp-param-text", &encode(&body))]), None);
        let told = wrong(json!({ "text": body }), &[("mcp-param-text", &encode(&other))]);
        prop_assert_eq!(told.is_none(), body == other);
    }

    #[test]
    fn integers_pass_if_and_only_if_they_are_equal(body: i64, other: i64) {
        let told = wrong(json!({ "count": body }), &[("mcp-param-count", &other.to_string())]);
        prop_assert_eq!(told.is_none(), body == other);
    }

    #[test]
    fn no_header_makes_it_fail(value in proptest::collection::vec(any::<u8>(), 0..40)) {
        if let Ok(value) = HeaderValue::from_bytes(&value) {
            let mut headers = headers(&[("mcp-method", "tools/call")]);
            headers.insert("mcp-name", value.clone());
            headers.insert("mcp-param-text", value.clone());
            headers.insert("mcp-param-count", value);
            let call = json!({ "name": "mirror", "arguments": { "text": "t", "count": 1 } });
            drop(check(&headers, &asked("tools/call", call), &catalog()));
        }
    }
}
