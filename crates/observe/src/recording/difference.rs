//! How two messages differ.

use std::fmt;

use sabir_wire::MASK;
use serde_json::Value;

/// The members that are not compared.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Names of members, or paths such as `result.serverInfo.version`.
    pub ignored: Vec<String>,
}

/// One place in which two messages differ.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Where, such as `result.content[0].text`.
    pub path: String,
    /// The old value; `None` if it is absent.
    pub before: Option<Value>,
    /// The new value; `None` if it is absent.
    pub after: Option<Value>,
}

/// The limit of places that are listed for one message.
const MAX_DIFFERENCES: usize = 20;

/// The places in which `after` differs from `before`. Times and masked values are not compared.
pub fn differences(before: &Value, after: &Value, rules: &Rules) -> Vec<Difference> {
    let mut found = Vec::new();
    compare(String::new(), before, after, rules, &mut found);
    found.truncate(MAX_DIFFERENCES);
    found
}

fn compare(
    path: String,
    before: &Value,
    after: &Value,
    rules: &Rules,
    found: &mut Vec<Difference>,
) {
    if found.len() >= MAX_DIFFERENCES || before == after || rules.ignores(&path) {
        return;
    }
    let missing = |path, before: Option<&Value>, after: Option<&Value>| Difference {
        path,
        before: before.cloned(),
        after: after.cloned(),
    };
    match (before, after) {
        (Value::Object(old), Value::Object(new)) => {
            let added = new.keys().filter(|name| !old.contains_key(*name));
            for name in old.keys().chain(added) {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                match (old.get(name), new.get(name)) {
                    (Some(before), Some(after)) => compare(path, before, after, rules, found),
                    (before, after) if !rules.ignores(&path) => {
                        found.push(missing(path, before, after));
                    }
                    _ => {}
                }
            }
        }
        (Value::Array(old), Value::Array(new)) => {
            let length = old.len().max(new.len()).min(old.len().min(new.len()) + MAX_DIFFERENCES);
            for nth in 0..length {
                let path = format!("{path}[{nth}]");
                match (old.get(nth), new.get(nth)) {
                    (Some(before), Some(after)) => compare(path, before, after, rules, found),
                    (before, after) => found.push(missing(path, before, after)),
                }
            }
        }
        (Value::String(old), Value::String(new)) if are_alike(old, new, rules) => {}
        _ => found.push(missing(path, Some(before), Some(after))),
    }
}

/// Whether two different texts count as the same.
fn are_alike(old: &str, new: &str, rules: &Rules) -> bool {
    let is_time = |text: &str| text.parse::<jiff::Timestamp>().is_ok();
    if old.contains(MASK) || (is_time(old) && is_time(new)) {
        return true;
    }
    // The same JSON as text, which many tools give beside their structured results.
    let parsed = |text: &str| {
        let is_compound = text.starts_with(['{', '[']);
        is_compound.then(|| serde_json::from_str::<Value>(text).ok()).flatten()
    };
    match (parsed(old), parsed(new)) {
        (Some(old), Some(new)) => differences(&old, &new, rules).is_empty(),
        _ => false,
    }
}

impl Rules {
    fn ignores(&self, path: &str) -> bool {
        if self.ignored.is_empty() || path.is_empty() {
            return false;
        }
        // The places of lists do not matter: `content.text` is the text of every item.
        let mut plain = String::with_capacity(path.len());
        let mut is_place = false;
        for c in path.chars() {
            match c {
                '[' => is_place = true,
                ']' => is_place = false,
                c if !is_place => plain.push(c),
                _ => {}
            }
        }
        self.ignored.iter().any(|ignored| {
            let before = plain.strip_suffix(ignored.as_str());
            before.is_some_and(|before| before.is_empty() || before.ends_with('.'))
        })
    }
}

/// The longest value that is shown, in bytes.
const MAX_SHOWN: usize = 120;

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |value: &Option<Value>| match value {
            None => "(absent)".to_owned(),
            Some(value) => cut(&value.to_string()),
        };
        let path = if self.path.is_empty() { "message" } else { &self.path };
        write!(f, "{path}: {} -> {}", show(&self.before), show(&self.after))
    }
}

pub(super) fn cut(text: &str) -> String {
    match text.len() > MAX_SHOWN {
        true => format!("{}…", &text[..text.floor_char_boundary(MAX_SHOWN)]),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(before: Value, after: Value, ignored: &[&str]) -> Vec<String> {
        let rules = Rules { ignored: ignored.iter().map(|name| (*name).to_owned()).collect() };
        differences(&before, &after, &rules).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn each_place_is_named() {
        let before = json!({ "a": { "b": [1, { "c": "x" }] }, "gone": true });
        let after = json!({ "a": { "b": [1, { "c": "y" }, 3] }, "new": null });
        let expected = [
            "a.b[1].c: \"x\" -> \"y\"",
            "a.b[2]: (absent) -> 3",
            "gone: true -> (absent)",
            "new: (absent) -> null",
        ];
        assert_eq!(shown(before, after, &[]), expected);
    }

    #[test]
    fn times_masked_values_and_what_is_ignored_are_not_compared() {
        let before = json!({ "at": "2026-01-01T00:00:00Z", "key": MASK, "list": [{ "id": 1 }], "n": 1,
            "text": "{\"at\":\"2026-01-01T00:00:00Z\"}" });
        let after = json!({ "at": "2026-01-02T00:00:00Z", "key": "x", "list": [{ "id": 2 }], "n": 2,
            "text": "{\"at\":\"2026-01-03T00:00:00Z\"}" });
        assert_eq!(shown(before.clone(), after.clone(), &["list.id"]), ["n: 1 -> 2"]);
        assert_eq!(shown(before, after, &["id", "n"]), [""; 0]);
    }

    #[test]
    fn the_list_is_bounded() {
        let all = |from: usize| (from..from + 100).map(Value::from).collect::<Value>();
        assert_eq!(shown(all(0), all(1000), &[]).len(), MAX_DIFFERENCES);
    }
}
