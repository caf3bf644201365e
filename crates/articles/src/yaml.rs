//! Parses YAML frontmatter into fields with lines.
//!
//! Valid YAML is read as one document. Invalid YAML is read key by key, so that an invalid line
//! (`title: Tools: a guide`, a tab, an open quote) affects that line only; the text after its colon is
//! taken literally.
//!
//! Aliases are resolved up to a limit; tags are ignored.

use saphyr::{AnnotatedMapping, MarkedYaml, ScalarStyle, ScanError, YamlData, YamlLoader};
use saphyr_parser::{Event, Parser, SpannedEventReceiver};

use crate::value::{Field, Value};

/// The limit of values that aliases may produce. More is an attack.
const MOST_VALUES: usize = 10_000;

/// The deepest nesting of lists and maps. Deeper ones are refused.
const DEEPEST: usize = 64;

/// A mistake, and its line, counted from 1.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fault {
    pub(crate) line: usize,
    pub(crate) message: String,
}

/// The fields of a text, and its mistakes.
#[derive(Debug, PartialEq)]
pub(crate) struct ParsedYaml {
    pub(crate) fields: Vec<Field>,
    pub(crate) faults: Vec<Fault>,
}

/// Parses the fields of `text`. `None` if it is not a map, e.g. prose between two thematic breaks.
pub(crate) fn read(text: &str) -> Option<ParsedYaml> {
    let whole = match document(text) {
        Ok(Some(fields)) => return Some(ParsedYaml { fields, faults: Vec::new() }),
        Ok(None) => None,
        Err(fault) => Some(fault),
    };
    let (fields, mut faults) = key_by_key(text);
    // The parser may fail far below the invalid line; the line of a key that failed is more accurate.
    if faults.is_empty() {
        faults.extend(whole);
    }
    if fields.is_empty() { None } else { Some(ParsedYaml { fields, faults }) }
}

/// Parses `text` as one document that is a map or empty.
fn document(text: &str) -> Result<Option<Vec<Field>>, Fault> {
    let mut loader = YamlLoader::<MarkedYaml<'_>>::default();
    loader.early_parse(false);
    loader.alias_limit(MOST_VALUES);
    let mut depth = 0;
    let mut documents = 0;
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| fault(&error))?;
        match event {
            Event::SequenceStart(..) | Event::MappingStart(..) => depth += 1,
            Event::SequenceEnd | Event::MappingEnd => depth -= 1,
            Event::DocumentStart(_) => documents += 1,
            _ => {}
        }
        let line = span.start.line();
        // The top-level map does not count.
        if depth > DEEPEST + 1 {
            return Err(Fault { line, message: format!("nested deeper than {DEEPEST} levels") });
        }
        if documents > 1 {
            return Err(Fault { line, message: "a second document starts here".into() });
        }
        loader.on_event(event, span);
    }
    if let Some(error) = loader.error() {
        return Err(fault(error));
    }
    match loader.into_documents().into_iter().next().map(|root| root.data) {
        Some(YamlData::Mapping(entries)) => Ok(Some(fields(entries))),
        Some(YamlData::Representation(text, ScalarStyle::Plain, _)) if text.is_empty() => {
            Ok(Some(Vec::new()))
        }
        Some(YamlData::BadValue) | None => Ok(Some(Vec::new())),
        Some(_) => Ok(None),
    }
}

/// The entries of the top-level map. A merge key (`<<`) adds the entries of its map.
fn fields(entries: AnnotatedMapping<'_, MarkedYaml<'_>>) -> Vec<Field> {
    let mut fields = Vec::new();
    for (key, node) in entries {
        let line = key.span.start.line();
        match (value(key).text(), value(node)) {
            (Some("<<"), Value::Map(merged)) => {
                let merged = merged.into_iter().map(|(key, value)| Field { key, line, value });
                fields.extend(merged);
            }
            (Some(key), value) => fields.push(Field { key: key.to_owned(), line, value }),
            (None, _) => {}
        }
    }
    fields
}

fn value(node: MarkedYaml<'_>) -> Value {
    match node.data {
        YamlData::Representation(text, ScalarStyle::Plain, _) => Value::Bare(text.into_owned()),
        YamlData::Representation(text, ..) => Value::Text(text.into_owned()),
        YamlData::Sequence(items) => Value::List(items.into_iter().map(value).collect()),
        YamlData::Mapping(entries) => {
            let text = |key| value(key).text().unwrap_or_default().to_owned();
            Value::Map(entries.into_iter().map(|(key, node)| (text(key), value(node))).collect())
        }
        YamlData::Tagged(_, node) => value(*node),
        YamlData::Value(_) | YamlData::Alias(_) | YamlData::BadValue => Value::Bare(String::new()),
    }
}

fn fault(error: &ScanError) -> Fault {
    Fault { line: error.marker().line().max(1), message: error.info().to_owned() }
}

/// Parses every top-level key separately.
fn key_by_key(text: &str) -> (Vec<Field>, Vec<Fault>) {
    let mut fields = Vec::new();
    let mut faults = Vec::new();
    for (line, chunk) in chunks(text) {
        match document(&chunk).or_else(|first| match document(&chunk.replace('\t', "  ")) {
            Ok(Some(read)) if !read.is_empty() => {
                faults.push(Fault { line: line + first.line - 1, message: first.message });
                Ok(Some(read))
            }
            _ => Err(first),
        }) {
            Ok(Some(read)) => {
                fields.extend(
                    read.into_iter().map(|field| Field { line: line + field.line - 1, ..field }),
                );
            }
            Ok(None) => faults.push(Fault { line, message: "expected `key: value`".into() }),
            Err(first) => {
                faults.push(Fault { line: line + first.line - 1, message: first.message });
                fields.extend(literal(&chunk).map(|(key, value)| Field { key, line, value }));
            }
        }
    }
    (fields, faults)
}

/// Splits the text before each line that starts a key.
fn chunks(text: &str) -> Vec<(usize, String)> {
    let mut chunks: Vec<(usize, String)> = Vec::new();
    for (at, line) in text.lines().enumerate() {
        match chunks.last_mut() {
            Some((_, chunk)) if !starts_key(line) => {
                chunk.push('\n');
                chunk.push_str(line);
            }
            _ if line.trim().is_empty() || line.starts_with('#') => {}
            _ => chunks.push((at + 1, line.to_owned())),
        }
    }
    chunks
}

/// Whether a line starts a top-level key: a name at its beginning, followed by a colon.
pub(crate) fn starts_key(line: &str) -> bool {
    let Some((key, rest)) = line.split_once(':') else { return false };
    let named =
        key.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '"' | '\'' | '<'));
    named && key.len() <= 100 && (rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']))
}

/// Takes the text after the colon, or the items of the list below it, literally.
fn literal(chunk: &str) -> Option<(String, Value)> {
    let mut lines = chunk.lines();
    let (key, first) = lines.next()?.split_once(':')?;
    let key = unquoted(key).to_owned();
    let items: Vec<Value> = lines
        .filter_map(|line| line.trim_start().strip_prefix("- "))
        .map(|item| Value::Text(unquoted(item).to_owned()))
        .collect();
    let text = unquoted(first);
    if text.is_empty() && !items.is_empty() {
        return Some((key, Value::List(items)));
    }
    Some((key, Value::Text(text.to_owned())))
}

/// Removes spaces and quotes around a text.
fn unquoted(text: &str) -> &str {
    let text = text.trim();
    let open = text.strip_prefix(['"', '\'']).unwrap_or(text);
    open.strip_suffix(['"', '\'']).unwrap_or(open).trim()
}

#[cfg(test)]
mod tests;
