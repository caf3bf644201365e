//! YAML as JSON.
//!
//! Plain scalars are read by the core schema of YAML 1.2, so `no`, `on` and dates are text. Keys are
//! text as written (`200:` is the key `200`). Of two equal keys the last counts. `<<` merges maps.
//! Aliases are copied up to a limit.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Number, Value};

/// The limit of values in one document, aliases included. More is an attack.
const MAX_VALUES: usize = 4_000_000;

/// The deepest nesting of lists and maps: as in `serde_json`.
const MAX_DEPTH: usize = 128;

/// Parses the first document of a text. The error has the line.
pub fn parse(text: &str) -> Result<Value, String> {
    let mut builder = Builder::default();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| error.to_string())?;
        if matches!(event, Event::DocumentEnd) {
            break;
        }
        builder.handle(event).map_err(|what| format!("{what} in line {}", span.start.line()))?;
    }
    Ok(builder.root.unwrap_or(Value::Null))
}

#[derive(Default)]
struct Builder {
    open: Vec<Open>,
    anchors: HashMap<usize, (Value, usize)>,
    root: Option<Value>,
    values: usize,
}

/// A list or a map that is not complete yet.
struct Open {
    anchor: usize,
    /// The number of values before it.
    before: usize,
    kind: Kind,
}

enum Kind {
    List(Vec<Value>),
    Map { members: Map<String, Value>, merged: Vec<Value>, key: Option<String> },
}

impl Builder {
    fn handle(&mut self, event: Event<'_>) -> Result<(), String> {
        match event {
            Event::Scalar(text, style, anchor, _) => {
                let wants_key = matches!(
                    self.open.last(),
                    Some(Open { kind: Kind::Map { key: None, .. }, .. })
                );
                let value = if wants_key { text.into_owned().into() } else { scalar(&text, style) };
                self.count(1)?;
                self.complete(value, anchor, 1);
            }
            Event::SequenceStart(anchor, _) => self.start(anchor, Kind::List(Vec::new()))?,
            Event::MappingStart(anchor, _) => {
                let map = Kind::Map { members: Map::new(), merged: Vec::new(), key: None };
                self.start(anchor, map)?;
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(Open { anchor, before, kind }) = self.open.pop() else { return Ok(()) };
                let value = match kind {
                    Kind::List(items) => items.into(),
                    Kind::Map { members, merged, .. } => merge(members, merged).into(),
                };
                self.complete(value, anchor, self.values - before);
            }
            Event::Alias(anchor) => {
                let Some((value, size)) = self.anchors.get(&anchor) else {
                    return Err("unknown anchor".to_owned());
                };
                let (value, size) = (value.clone(), *size);
                self.count(size)?;
                self.complete(value, 0, size);
            }
            _ => {}
        }
        Ok(())
    }

    fn count(&mut self, values: usize) -> Result<(), String> {
        self.values += values;
        if self.values > MAX_VALUES {
            return Err(format!("too many values (limit {MAX_VALUES}, aliases included)"));
        }
        Ok(())
    }

    fn start(&mut self, anchor: usize, kind: Kind) -> Result<(), String> {
        self.count(1)?;
        if self.open.len() >= MAX_DEPTH {
            return Err(format!("nested deeper than {MAX_DEPTH} levels"));
        }
        self.open.push(Open { anchor, before: self.values - 1, kind });
        Ok(())
    }

    fn complete(&mut self, value: Value, anchor: usize, size: usize) {
        if anchor > 0 {
            self.anchors.insert(anchor, (value.clone(), size));
        }
        match self.open.last_mut().map(|open| &mut open.kind) {
            None => self.root = Some(value),
            Some(Kind::List(items)) => items.push(value),
            Some(Kind::Map { members, merged, key }) => match key.take() {
                // A key that is a list or a map is written as JSON.
                None => *key = Some(value.as_str().map_or_else(|| value.to_string(), Into::into)),
                Some(key) if key == "<<" && !value.is_string() => merged.push(value),
                Some(key) => {
                    members.insert(key, value);
                }
            },
        }
    }
}

/// Adds the members of merged maps that are absent.
fn merge(mut members: Map<String, Value>, merged: Vec<Value>) -> Map<String, Value> {
    let maps = merged.into_iter().flat_map(|value| match value {
        Value::Array(maps) => maps,
        one => vec![one],
    });
    for map in maps {
        let Value::Object(map) = map else { continue };
        for (key, value) in map {
            members.entry(key).or_insert(value);
        }
    }
    members
}

/// A plain scalar by the core schema; any other is text.
fn scalar(text: &str, style: ScalarStyle) -> Value {
    if style != ScalarStyle::Plain {
        return text.into();
    }
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => true.into(),
        "false" | "False" | "FALSE" => false.into(),
        _ => number(text).unwrap_or_else(|| text.into()),
    }
}

fn number(text: &str) -> Option<Value> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if let Some(hex) = text.strip_prefix("0x") {
        return i64::from_str_radix(hex, 16).ok().map(Into::into);
    }
    if let Some(octal) = text.strip_prefix("0o") {
        return i64::from_str_radix(octal, 8).ok().map(Into::into);
    }
    if !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        || !digits.chars().all(|c| c.is_ascii_digit() || ".eE+-".contains(c))
    {
        return None;
    }
    let whole = text.strip_prefix('+').unwrap_or(text);
    let integer =
        whole.parse::<i64>().map(Value::from).or_else(|_| whole.parse::<u64>().map(Value::from));
    integer.ok().or_else(|| whole.parse::<f64>().ok().and_then(Number::from_f64).map(Value::from))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn scalars_follow_the_core_schema_and_keys_are_text() {
        let text = "200: no\non: 2020-01-02\na: [1, -2, 1.5, 1e3, 0x10, ~, true, 'true', 1.2.3, 99999999999999999999]\nb: \"x\"\nc: |\n  y\n";
        assert_eq!(
            parse(text).unwrap(),
            json!({
                "200": "no", "on": "2020-01-02",
                "a": [1, -2, 1.5, 1000.0, 16, null, true, "true", "1.2.3", 1e20],
                "b": "x", "c": "y\n",
            })
        );
    }

    #[test]
    fn aliases_and_merged_maps_are_copied_and_the_last_of_equal_keys_counts() {
        let text =
            "base: &b {x: 1, y: 2}\nuse: {<<: *b, y: 3}\nlist: {<<: [*b, {z: 4}]}\nk: 1\nk: 2\n";
        assert_eq!(
            parse(text).unwrap(),
            json!({
                "base": { "x": 1, "y": 2 }, "use": { "y": 3, "x": 1 },
                "list": { "x": 1, "y": 2, "z": 4 }, "k": 2,
            })
        );
    }

    #[test]
    fn an_alias_bomb_and_deep_nesting_are_stopped() {
        let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for level in 1..10 {
            let items = vec![format!("*a{}", level - 1); 10].join(", ");
            bomb += &format!("a{level}: &a{level} [{items}]\n");
        }
        assert!(parse(&bomb).unwrap_err().starts_with("too many values (limit 4000000"));
        assert!(parse(&"[".repeat(MAX_DEPTH + 1)).unwrap_err().starts_with("nested deeper"));
        let deep = format!("{}{}", "[".repeat(MAX_DEPTH), "]".repeat(MAX_DEPTH));
        assert!(parse(&deep).is_ok());
    }

    #[test]
    fn a_mistake_is_named_with_its_line() {
        assert!(parse("a: 1\nb: [1\nc: 2\n").unwrap_err().contains("line"));
    }
}
