//! Compares a value with the expected one, and finds the first difference.

use serde_json::Value;

/// Matches any value, and as a key (`"…":"…"`) any further members.
const ANYTHING: &str = "…";

/// Where `found` differs from `expected`; `None` if it matches.
pub fn difference(expected: &Value, found: &Value) -> Option<String> {
    compare("$", expected, found)
}

fn compare(place: &str, expected: &Value, found: &Value) -> Option<String> {
    match (expected, found) {
        (Value::String(any), _) if any == ANYTHING => None,
        (Value::Object(expected), Value::Object(found)) => {
            let missing = expected.keys().filter(|key| *key != ANYTHING);
            let missing = missing.filter(|key| !found.contains_key(*key));
            let is_open = expected.contains_key(ANYTHING);
            let unknown = found.keys().filter(|key| !is_open && !expected.contains_key(*key));
            let named = missing.map(|key| format!("{place}.{key} is missing"));
            let named = named.chain(unknown.map(|key| format!("{place}.{key} was not expected")));
            let inner = expected.iter().filter_map(|(key, value)| {
                compare(&format!("{place}.{key}"), value, found.get(key)?)
            });
            named.chain(inner).next()
        }
        (Value::Array(expected), Value::Array(found)) => {
            if expected.len() != found.len() {
                return Some(format!(
                    "{place} has {} items, expected were {}",
                    found.len(),
                    expected.len()
                ));
            }
            let pairs = expected.iter().zip(found).enumerate();
            pairs.filter_map(|(nth, (e, f))| compare(&format!("{place}[{nth}]"), e, f)).next()
        }
        _ if expected == found => None,
        _ => Some(format!("{place} is {found}, expected was {expected}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn equal_values_do_not_differ_whatever_the_order_of_their_keys() {
        assert_eq!(difference(&json!({"a":1,"b":[{}]}), &json!({"b":[{}],"a":1})), None);
    }

    #[test]
    fn an_ellipsis_stands_for_anything() {
        assert_eq!(difference(&json!({"a":"…"}), &json!({"a":{"b":1}})), None);
        assert_eq!(difference(&json!({"a":1,"…":"…"}), &json!({"a":1,"b":2})), None);
        assert!(difference(&json!({"a":"…"}), &json!({})).is_some());
    }

    #[test]
    fn the_first_difference_is_named_with_its_place() {
        for (expected, found, place) in [
            (json!({"a":{"b":1}}), json!({"a":{"b":2}}), "$.a.b is 2, expected was 1"),
            (json!({"a":1}), json!({}), "$.a is missing"),
            (json!({}), json!({"a":1}), "$.a was not expected"),
            (json!([1]), json!([1, 2]), "$ has 2 items, expected were 1"),
            (json!([1, "1"]), json!([1, 1]), r#"$[1] is 1, expected was "1""#),
        ] {
            assert_eq!(difference(&expected, &found).as_deref(), Some(place));
        }
    }
}
