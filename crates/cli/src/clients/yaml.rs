//! Files in YAML: Goose. Entries are blocks of lines below a key in the first column.

use saphyr::{LoadableYamlNode as _, Scalar, Yaml};
use serde_json::Value;

use super::edit::{EditError, line_end};

pub(super) fn parsed(text: &str) -> Result<Value, EditError> {
    let documents =
        Yaml::load_from_str(text).map_err(|error| EditError(format!("invalid YAML: {error}")))?;
    Ok(documents.first().map(json).unwrap_or_default())
}

pub(super) fn with(text: &str, key: &str, name: &str, value: &Value) -> Result<String, EditError> {
    parsed(text)?;
    let text = without(text, key, name)?;
    let end = line_end(&text);
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let at = lines.iter().position(|line| header(line, key).is_some());
    let indent = at.and_then(|at| child_indent(&lines[at + 1..])).unwrap_or(2);
    let mut block = format!("{}{}:{end}", " ".repeat(indent), quoted(name));
    write(&mut block, value, indent + 2, end);
    let text = match at {
        None if text.is_empty() || text.ends_with('\n') => format!("{text}{key}:{end}{block}"),
        None => format!("{text}{end}{key}:{end}{block}"),
        Some(at) => {
            let first = match header(lines[at], key) {
                Some("" | "{}" | "~" | "null") => format!("{key}:{end}"),
                Some(rest) if rest.starts_with('#') => lines[at].to_owned(),
                _ => return Err(EditError(format!("`{key}` is not written as a block of lines"))),
            };
            [&lines[..at].concat(), &first, &block, &lines[at + 1..].concat()]
                .map(String::as_str)
                .concat()
        }
    };
    match parsed(&text)?[key].get(name).is_some() {
        true => Ok(text),
        false => Err(EditError(format!("`{key}` is not written as a block of lines"))),
    }
}

pub(super) fn without(text: &str, key: &str, name: &str) -> Result<String, EditError> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let Some(at) = lines.iter().position(|line| header(line, key).is_some()) else {
        return Ok(text.to_owned());
    };
    let is_entry = |line: &str| {
        let found = line.trim_start();
        indent_of(line) > 0
            && [name.to_owned(), quoted(name), format!("'{name}'")]
                .iter()
                .any(|name| header(found, name).is_some())
    };
    let section = lines[at + 1..].iter().take_while(|line| is_within(line, 0)).count();
    let section = &lines[at + 1..at + 1 + section];
    let level = child_indent(section);
    let entry = section.iter().position(|line| is_entry(line) && Some(indent_of(line)) == level);
    let Some(entry) = entry.map(|entry| at + 1 + entry) else { return Ok(text.to_owned()) };
    let rest = &lines[entry + 1..];
    let length = rest.iter().take_while(|line| indent_of(line) > indent_of(lines[entry])).count();
    Ok([&lines[..entry], &rest[length..]].concat().concat())
}

/// The text after `key:` in this line.
fn header<'l>(line: &'l str, key: &str) -> Option<&'l str> {
    line.strip_prefix(key)?.strip_prefix(':').map(str::trim)
}

/// The indentation of the first line below a key.
fn child_indent(lines: &[&str]) -> Option<usize> {
    let first = lines.iter().find(|line| !is_empty(line))?;
    Some(indent_of(first)).filter(|indent| *indent > 0)
}

fn is_within(line: &str, indent: usize) -> bool {
    is_empty(line) || indent_of(line) > indent
}

fn is_empty(line: &str) -> bool {
    line.trim().is_empty() || line.trim_start().starts_with('#')
}

/// The number of spaces before the text of a line; 0 for an empty line.
fn indent_of(line: &str) -> usize {
    if line.trim().is_empty() { 0 } else { line.len() - line.trim_start_matches(' ').len() }
}

fn quoted(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    let is_word = name.starts_with(|c: char| c.is_ascii_alphabetic());
    if is_word && name.chars().all(is_plain) {
        name.to_owned()
    } else {
        Value::from(name).to_string()
    }
}

/// Writes the members of an object, one per line. JSON is YAML in one line.
fn write(text: &mut String, value: &Value, indent: usize, end: &str) {
    for (member, value) in value.as_object().into_iter().flatten() {
        *text += &format!("{}{member}: {value}{end}", " ".repeat(indent));
    }
}

fn json(yaml: &Yaml<'_>) -> Value {
    match yaml {
        Yaml::Mapping(members) => {
            let members = members.iter().map(|(name, value)| {
                (name.as_str().map_or_else(|| json(name).to_string(), str::to_owned), json(value))
            });
            Value::Object(members.collect())
        }
        Yaml::Sequence(items) => items.iter().map(json).collect(),
        Yaml::Value(Scalar::String(text)) => text.as_ref().into(),
        Yaml::Value(Scalar::Boolean(truth)) => (*truth).into(),
        Yaml::Value(Scalar::Integer(number)) => (*number).into(),
        Yaml::Value(Scalar::FloatingPoint(number)) => number.into_inner().into(),
        _ => Value::Null,
    }
}
