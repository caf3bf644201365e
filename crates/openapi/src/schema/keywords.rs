//! Single keywords of a schema, corrected or left out.

use serde_json::{Map, Number, Value, json};

use crate::description::Node;

/// The longest pattern in bytes. A longer one is left out.
const MAX_PATTERN: usize = 300;

/// The limit of repetitions in a pattern. A larger count becomes unlimited.
const MAX_COUNT: u32 = 100;

/// The longest default in bytes. A longer one is left out.
const MAX_DEFAULT: usize = 200;

/// Keywords that contain schemas.
const NESTING: [&str; 7] =
    ["properties", "items", "allOf", "anyOf", "oneOf", "additionalProperties", "prefixItems"];

/// Whether a schema contains no others.
pub(super) fn is_leaf(node: Node<'_>) -> bool {
    NESTING.iter().all(|keyword| node.get(keyword).is_none())
}

/// The type of a schema, without any detail.
pub(super) fn stub(node: Node<'_>) -> Value {
    let mut out = Map::new();
    types(node, &mut out);
    if out.get("type").is_some_and(|kind| kind == "array") {
        out.insert("items".into(), json!({}));
    }
    Value::Object(out)
}

pub(super) fn is_nullable(node: Node<'_>) -> bool {
    ["nullable", "x-nullable"].iter().any(|key| node.flag(key) == Some(true))
}

/// `type`, with `null` for nullable schemas.
pub(super) fn types(node: Node<'_>, out: &mut Map<String, Value>) {
    let written = node.get("type");
    let mut kinds: Vec<&str> = match written.map(|kind| kind.value) {
        Some(Value::String(kind)) => known(kind).into_iter().collect(),
        Some(Value::Array(kinds)) => kinds.iter().filter_map(|k| known(k.as_str()?)).collect(),
        _ => Vec::new(),
    };
    let has = |keyword: &str| node.get(keyword).is_some();
    if kinds.is_empty() && !["allOf", "anyOf", "oneOf"].iter().any(|keyword| has(keyword)) {
        if has("properties") || has("additionalProperties") {
            kinds.push("object");
        } else if has("items") {
            kinds.push("array");
        }
    }
    if !kinds.is_empty() && is_nullable(node) {
        kinds.push("null");
    }
    let mut different: Vec<&str> = Vec::new();
    for kind in kinds {
        if !different.contains(&kind) {
            different.push(kind);
        }
    }
    let kind = match &different[..] {
        [] => return,
        [one] => json!(one),
        several => json!(several),
    };
    out.insert("type".into(), kind);
}

/// A type of JSON Schema, also by names that descriptions use for it.
fn known(kind: &str) -> Option<&'static str> {
    Some(match kind.to_ascii_lowercase().as_str() {
        "string" | "file" | "date" | "date-time" | "datetime" | "uuid" | "binary" | "byte"
        | "password" | "str" | "text" => "string",
        "integer" | "int" | "int32" | "int64" | "long" | "short" => "integer",
        "number" | "float" | "double" | "decimal" => "number",
        "boolean" | "bool" => "boolean",
        "array" | "list" => "array",
        "object" | "dict" | "map" => "object",
        "null" => "null",
        _ => return None,
    })
}

/// `enum`, `const`, `default` and `format`.
pub(super) fn choices(node: Node<'_>, limit: usize, out: &mut Map<String, Value>) {
    let kinds: Vec<&str> = match out.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let fits = |value: &Value| {
        let kind = match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(number) if number.is_f64() => "number",
            Value::Number(_) => "integer",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        kinds.is_empty()
            || kinds.contains(&kind)
            || (kind == "integer" && kinds.contains(&"number"))
    };
    // YAML reads `enum: [1, 2]` as numbers, even if the type is `string`.
    let as_text = |value: &Value| match value {
        Value::Number(_) | Value::Bool(_) if !fits(value) => value.to_string().into(),
        value => value.clone(),
    };
    let mut found: Vec<Value> = Vec::new();
    let mut bytes = 0;
    for choice in node.get("enum").into_iter().flat_map(Node::items) {
        let choice = as_text(choice.value);
        bytes += choice.as_str().map_or(8, str::len) + 3;
        if bytes > limit {
            found.clear();
            break;
        }
        if !found.contains(&choice) {
            found.push(choice);
        }
    }
    if !found.is_empty() && is_nullable(node) && !found.contains(&Value::Null) {
        found.push(Value::Null);
    }
    let default = node.get("default").map(|default| as_text(default.value));
    let default = default.filter(|default| !default.is_null() && fits(default));
    let default = default.filter(|default| default.to_string().len() <= MAX_DEFAULT);
    let constant = node.get("const").map(|constant| constant.value.clone()).filter(fits);
    let fitting = !found.is_empty() && found.iter().all(fits);
    if fitting {
        out.insert("enum".into(), found.into());
    }
    if let Some(constant) = constant {
        out.insert("const".into(), constant);
    }
    if let Some(default) = default {
        out.insert("default".into(), default);
    }
    if let Some(format) =
        node.text("format").filter(|format| format.len() <= 30 && !format.is_empty())
    {
        out.insert("format".into(), format.into());
    }
}

/// Bounds of numbers, texts, lists and objects.
pub(super) fn bounds(node: Node<'_>, out: &mut Map<String, Value>) {
    for (bound, exclusive) in [("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")] {
        let number = node.get(bound).and_then(number);
        match node.get(exclusive) {
            Some(flag) if flag.value.is_boolean() => {
                let keyword = if flag.value == &Value::Bool(true) { exclusive } else { bound };
                out.extend(number.map(|number| (keyword.to_owned(), number.into())));
            }
            other => {
                out.extend(number.map(|number| (bound.to_owned(), number.into())));
                let other = other.filter(|other| other.value.is_number());
                out.extend(other.map(|other| (exclusive.to_owned(), other.value.clone())));
            }
        }
    }
    if let Some(step) = node.get("multipleOf").and_then(number).filter(is_positive) {
        out.insert("multipleOf".into(), step.into());
    }
    for keyword in
        ["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"]
    {
        let count = node.get(keyword).and_then(number).and_then(|count| whole(&count));
        // The minimum of zero says nothing.
        if let Some(count) = count.filter(|count| *count > 0 || keyword.starts_with("max")) {
            out.insert(keyword.into(), count.into());
        }
    }
    if node.flag("uniqueItems") == Some(true) {
        out.insert("uniqueItems".into(), true.into());
    }
    let pattern = node.text("pattern").and_then(loosened);
    if let Some(pattern) = pattern.filter(|pattern| is_pattern(pattern)) {
        out.insert("pattern".into(), pattern.into());
    }
}

/// Patterns are ECMAScript's; those that Rust reads differently or not at all are left out.
fn is_pattern(pattern: &str) -> bool {
    // Written with its delimiters, a pattern would match nothing.
    let is_delimited = pattern.len() > 1 && pattern.starts_with('/') && pattern.ends_with('/');
    !is_delimited
        && (1..=MAX_PATTERN).contains(&pattern.len())
        && fancy_regex::Regex::new(pattern).is_ok()
}

/// The pattern without large counts, which take long to compile: `.{0,1024}` becomes `.{0,}`;
/// braces that are not counts are escaped. `None` if the result would allow less.
fn loosened(pattern: &str) -> Option<String> {
    // Braces after these are neither counts nor characters.
    if ["\\p{", "\\P{", "\\u{", "\\x{"].iter().any(|escape| pattern.contains(escape)) {
        return None;
    }
    let mut out = String::with_capacity(pattern.len());
    let (mut is_escaped, mut is_class, mut is_changed) = (false, false, false);
    let mut rest = pattern;
    while let Some(c) = rest.chars().next() {
        let is_plain = !is_escaped && !is_class;
        if let Some((least, most, length)) = count(rest).filter(|_| is_plain) {
            if least.max(most) > MAX_COUNT {
                out.push_str(&format!("{{{},}}", least.min(MAX_COUNT)));
                is_changed = true;
            } else {
                out.push_str(&rest[..length]);
            }
            rest = &rest[length..];
            continue;
        }
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '[' => is_class = true,
            ']' => is_class = false,
            '{' | '}' if is_plain => out.push('\\'),
            _ => {}
        }
        out.push(c);
        rest = &rest[c.len_utf8()..];
    }
    // Where a part must not match, allowing more of it would allow less.
    let is_inverted = ["(?!", "(?<!"].iter().any(|not| pattern.contains(not));
    (!is_changed || !is_inverted).then_some(out)
}

/// The numbers and the length of a count such as `{1,200}` at the beginning of a text.
fn count(text: &str) -> Option<(u32, u32, usize)> {
    let count = text.strip_prefix('{')?.split_once('}')?.0;
    let (least, most) = count.split_once(',').unwrap_or((count, count));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    let number = |text: &str| digits(text).then(|| text.parse().unwrap_or(u32::MAX));
    let least = number(least)?;
    let most = if most.is_empty() { least } else { number(most)? };
    Some((least, most, count.len() + 2))
}

/// A number, also one that is written as text.
fn number(node: Node<'_>) -> Option<Number> {
    match node.value {
        Value::Number(number) => Some(number.clone()),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

fn is_positive(number: &Number) -> bool {
    number.as_f64().is_some_and(|number| number > 0.0)
}

fn whole(number: &Number) -> Option<u64> {
    let float = || number.as_f64().filter(|float| float.fract() == 0.0 && *float >= 0.0);
    // A count beyond 2^53 is dropped.
    number.as_u64().or_else(|| float().filter(|float| *float < 9e15).map(|float| float as u64))
}
