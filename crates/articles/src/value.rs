//! The values of a frontmatter.
//!
//! `title: 1.10` is the text `1.10` as a title, but a number in JSON. So scalars keep their text, and
//! their type is determined on conversion to JSON.

use serde_json::{Map, Number};

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// Quoted text.
    Text(String),
    /// An unquoted scalar: text, a number, a boolean or null.
    Bare(String),
    List(Vec<Value>),
    /// A map in the order of the file.
    Map(Vec<(String, Value)>),
}

/// A top-level field, and its line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Field {
    pub(crate) key: String,
    pub(crate) line: usize,
    pub(crate) value: Value,
}

impl Value {
    /// The text of a scalar that is not null or empty.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text.trim()).filter(|text| !text.is_empty()),
            Self::Bare(text) => Some(text.trim()).filter(|text| !is_null(text)),
            Self::List(_) | Self::Map(_) => None,
        }
    }

    /// All texts in the value, without the keys of maps. Nested lists are flattened.
    pub(crate) fn texts(&self) -> Vec<&str> {
        match self {
            Self::Text(_) | Self::Bare(_) => self.text().into_iter().collect(),
            Self::List(items) => items.iter().flat_map(Self::texts).collect(),
            Self::Map(entries) => entries.iter().flat_map(|(_, value)| value.texts()).collect(),
        }
    }

    /// The boolean, in any of the words that authors use.
    pub(crate) fn truth(&self) -> Option<bool> {
        let text = self.text()?.to_ascii_lowercase();
        match text.as_str() {
            "true" | "yes" | "on" => Some(true),
            "false" | "no" | "off" => Some(false),
            _ => None,
        }
    }

    /// Converts to JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        match self {
            Self::Text(text) => text.as_str().into(),
            Self::Bare(text) => bare_json(text.trim()),
            Self::List(items) => items.iter().map(Self::json).collect(),
            Self::Map(entries) => {
                let entries = entries.iter().map(|(key, value)| (key.clone(), value.json()));
                serde_json::Value::Object(entries.collect::<Map<_, _>>())
            }
        }
    }
}

fn is_null(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}

/// The core schema of YAML, without octal and hexadecimal numbers: `0x10` in a frontmatter is usually
/// a name.
fn bare_json(text: &str) -> serde_json::Value {
    match text {
        _ if is_null(text) => serde_json::Value::Null,
        "true" | "True" | "TRUE" => true.into(),
        "false" | "False" | "FALSE" => false.into(),
        _ => number(text).map_or_else(|| text.into(), serde_json::Value::Number),
    }
}

/// A number as in JSON: `007` is a name. An integer that does not fit 64 bits stays text.
fn number(text: &str) -> Option<Number> {
    let number: Number = text.strip_prefix('+').unwrap_or(text).parse().ok()?;
    (!number.is_f64() || text.contains(['.', 'e', 'E'])).then_some(number)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn bare(text: &str) -> Value {
        Value::Bare(text.into())
    }

    #[test]
    fn an_unquoted_scalar_has_a_type_in_json_and_keeps_its_text() {
        for (text, wanted) in [
            ("1.10", json!(1.1)),
            ("42", json!(42)),
            ("-7", json!(-7)),
            ("18446744073709551615", json!(18_446_744_073_709_551_615_u64)),
            ("99999999999999999999", json!("99999999999999999999")),
            ("007", json!("007")),
            ("1e400", json!("1e400")),
            ("2025-01-31", json!("2025-01-31")),
            ("0x10", json!("0x10")),
            ("true", json!(true)),
            ("yes", json!("yes")),
            ("~", json!(null)),
            ("inf", json!("inf")),
            (".5", json!(".5")),
        ] {
            assert_eq!(bare(text).json(), wanted, "{text}");
        }
        assert_eq!(bare("1.10").text(), Some("1.10"));
        assert_eq!(bare("null").text(), None);
        assert_eq!(Value::Text("null".into()).text(), Some("null"));
        assert_eq!(Value::Text("42".into()).json(), json!("42"));
    }

    #[test]
    fn nested_lists_are_flattened_and_empty_items_are_left_out() {
        let value = Value::List(vec![
            bare("a"),
            bare("~"),
            Value::List(vec![bare("b")]),
            Value::Text(" c ".into()),
        ]);
        assert_eq!(value.texts(), ["a", "b", "c"]);
        let map = Value::Map(vec![("x".into(), bare("d"))]);
        assert_eq!(map.texts(), ["d"]);
    }

    #[test]
    fn booleans_have_many_names() {
        assert_eq!(bare("Yes").truth(), Some(true));
        assert_eq!(Value::Text("false".into()).truth(), Some(false));
        assert_eq!(bare("maybe").truth(), None);
        assert_eq!(Value::List(vec![]).truth(), None);
    }
}
