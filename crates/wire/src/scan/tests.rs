use proptest::prelude::*;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::*;

fn scan(text: &str, depth: usize) -> Option<Vec<(String, String)>> {
    let mut all = Vec::new();
    let mut scanner = Scanner::new(text, depth)?;
    scanner.object(|scanner, key| {
        all.push((key.to_owned(), scanner.value()?.to_owned()));
        Some(())
    })?;
    scanner.end()?;
    Some(all)
}

#[test]
fn members_are_found_where_they_stand() {
    let text = r#" {"a" : [1, {"b":"}\""}] ,"c":-0.5e+7,"":null} "#;
    let found = scan(text, 3).unwrap();
    let expected = [("a", r#"[1, {"b":"}\""}]"#), ("c", "-0.5e+7"), ("", "null")];
    assert_eq!(found, expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
    assert_eq!(scan(text, 2), None, "one deeper than allowed");
    assert_eq!(scan("{}", 1), Some(vec![]));
    assert_eq!(scan("{}", 0), None);
}

#[test]
fn what_is_not_plain_is_left_to_others() {
    for text in [
        "",
        "{",
        "[]",
        "{}x",
        "{} {}",
        "{,}",
        r#"{"a"}"#,
        r#"{"a":}"#,
        r#"{"a":1,}"#,
        r#"{"a":01}"#,
        r#"{"a":1.}"#,
        r#"{"a":.5}"#,
        r#"{"a":-}"#,
        r#"{"a":1e}"#,
        r#"{"a":nul}"#,
        r#"{"a":"\x"}"#,
        r#"{"a":"\u12g4"}"#,
        r#"{"a":"\u12"}"#,
        r#"{"a":"b}"#,
        r#"{"\u0061":1}"#,
        "{\n}",
        "{\t}",
        "{}\u{c}",
        "{\"a\":\"\t\"}",
        "{\"a\":[1,\r2]}",
        r#"{"a":[1 2]}"#,
        r#"{'a':1}"#,
        r#"{"a":+1}"#,
        r#"{"a":[}"#,
        "{\"a\":\u{a0}1}",
    ] {
        assert_eq!(scan(text, 9), None, "{text:?}");
    }
}

#[test]
fn a_special_byte_is_found_at_every_place() {
    for length in 0..200 {
        for special in [b'"', b'\\', 0, 0x1f, b'\n'] {
            let mut bytes = vec![b'x'; length];
            assert_eq!(plain_length(&bytes), length);
            for at in 0..length {
                bytes[at] = special;
                assert_eq!(plain_length(&bytes), at, "{special} in {length}");
                bytes[at] = [b' ', b'!', b'#', b'[', b']', 0x7f, 0x80, 0xff][at % 8];
            }
        }
    }
}

/// Text that is JSON, or nearly.
fn nearly_json() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "\"",
        "\\",
        " ",
        "\"a\"",
        "\"b\":",
        "1",
        "-",
        "0",
        ".5",
        "e3",
        "true",
        "null",
        "\"\\u00e9\"",
        "\"\\\"",
        "\n",
        "é",
        "\u{1}",
        "{\"a\":1}",
        "u",
    ]);
    let random = prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat());
    prop_oneof![random.clone(), random.prop_map(|inner| format!("{{\"k\":{inner}}}"))]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn what_is_taken_is_taken_by_the_authority_too(text in nearly_json()) {
        if let Some(found) = scan(&text, 128) {
            let read: Map<String, Value> = serde_json::from_str(&text).unwrap();
            prop_assert!(found.iter().all(|(key, _)| read.contains_key(key)));
            for (_, value) in found {
                let raw: &RawValue = serde_json::from_str(&value).unwrap();
                prop_assert_eq!(raw.get(), &value);
            }
        }
    }
}
