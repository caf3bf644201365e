//! Keys that occur twice in one JSON object.
//!
//! Parsers disagree about which of them counts. The arguments of a call are checked by one parser
//! and handed on byte for byte to a program with another, so such arguments are refused.

use std::borrow::Cow;
use std::collections::HashSet;

/// The first key that occurs twice in an object of `json`, at any depth.
///
/// `json` must be valid JSON. It is read without recursion, so that its depth does not matter.
pub(super) fn duplicate_key(json: &str) -> Option<String> {
    // One set of keys for every open object; `None` for a list.
    let mut open: Vec<Option<HashSet<Cow<'_, str>>>> = Vec::new();
    let mut rest = json;
    while let Some(at) = rest.find(['{', '}', '[', ']', '"']) {
        let after = &rest[at + 1..];
        match rest.as_bytes()[at] {
            b'{' => open.push(Some(HashSet::new())),
            b'[' => open.push(None),
            b'"' => {
                let end = string_end(after)?;
                let is_key = after[end + 1..].trim_start().starts_with(':');
                if let (true, Some(Some(keys))) = (is_key, open.last_mut()) {
                    let key = decoded(&rest[at..at + end + 2]);
                    if !keys.insert(key.clone()) {
                        return Some(key.into_owned());
                    }
                }
                rest = &after[end + 1..];
                continue;
            }
            _ => _ = open.pop(),
        }
        rest = after;
    }
    None
}

/// The offset of the quote that ends a string.
fn string_end(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 0;
    loop {
        at += bytes.get(at..)?.iter().position(|byte| matches!(byte, b'"' | b'\\'))?;
        if bytes[at] == b'"' {
            return Some(at);
        }
        at += 2;
    }
}

/// A key without its escapes. A key that is not text (an unpaired surrogate) is compared as written.
fn decoded(quoted: &str) -> Cow<'_, str> {
    if !quoted.contains('\\') {
        return Cow::Borrowed(&quoted[1..quoted.len() - 1]);
    }
    serde_json::from_str(quoted).map_or(Cow::Borrowed(quoted), Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_occurs_twice_in_one_object_is_found_at_any_depth() {
        for (json, key) in [
            (r#"{"a":1,"a":2}"#, "a"),
            (r#"{"a" : 1 , "\u0061" : 2}"#, "a"),
            (r#"{"x":[{"y":{"k":"{","k":1}}]}"#, "k"),
            (r#"{"x":{},"y":[],"x":0}"#, "x"),
            (r#"{"":1,"":2}"#, ""),
            (r#"{"\"":1,"\\":0,"\"":2}"#, "\""),
            (r#"{"\ud800":1,"\ud800":2}"#, r#""\ud800""#),
        ] {
            assert_eq!(duplicate_key(json).as_deref(), Some(key), "{json}");
        }
        let deep = format!("{}{}{}", "[".repeat(100_000), r#"{"a":1,"a":1}"#, "]".repeat(100_000));
        assert_eq!(duplicate_key(&deep).as_deref(), Some("a"));
    }

    #[test]
    fn equal_keys_of_different_objects_and_equal_values_are_allowed() {
        for json in [
            r#"{"a":{"a":{"a":"a"}},"b":["a","a",{"a":1},{"a":1}],"c":"a\":1,\"a\":"}"#,
            "{}",
            r#"["a","a"]"#,
            r#""a""#,
            "7",
        ] {
            assert_eq!(duplicate_key(json), None, "{json}");
        }
    }
}
