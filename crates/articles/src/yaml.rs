//! YAML frontmatter to fields, with lines.
//!
//! A file that is right is read as one document. A file that is wrong is read key by key, so one
//! bad line (`title: Tools: a guide`, a tab, an open quote) costs that line alone, and the text
//! after its colon is still taken as it stands.
//!
//! Anchors are followed, within a bound; tags are ignored.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError};

use crate::value::{Field, Value};

/// Values in one frontmatter, aliases counted each time. More is an attack: what follows is dropped.
const MOST_VALUES: usize = 10_000;

/// Nesting of lists and maps. Deeper ones are refused.
const DEEPEST: usize = 64;

/// What is wrong, and the line of the text (from 1).
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fault {
    pub(crate) line: usize,
    pub(crate) message: String,
}

/// What a text says, and what is wrong with it.
#[derive(Debug, PartialEq)]
pub(crate) struct Reading {
    pub(crate) fields: Vec<Field>,
    pub(crate) faults: Vec<Fault>,
}

/// Reads the fields of `text`. `None` if it is YAML but no map: prose between two rules.
pub(crate) fn read(text: &str) -> Option<Reading> {
    let whole = match document(text) {
        Ok(Some(fields)) => return Some(Reading { fields, faults: Vec::new() }),
        Ok(None) => None,
        Err(fault) => Some(fault),
    };
    let (fields, mut faults) = key_by_key(text);
    // The parser may give up far below the line that is wrong; a line that failed by itself is the
    // better place to point at.
    if faults.is_empty() {
        faults.extend(whole);
    }
    if fields.is_empty() { None } else { Some(Reading { fields, faults }) }
}

/// Reads `text` as one document that is a map (or nothing).
fn document(text: &str) -> Result<Option<Vec<Field>>, Fault> {
    let mut builder = Builder::new(text);
    loop {
        match builder.next()? {
            (Event::StreamStart | Event::DocumentStart(_), _) => {}
            (Event::MappingStart(..), _) => return builder.fields().map(Some),
            (Event::StreamEnd | Event::DocumentEnd, _) => return Ok(Some(Vec::new())),
            (Event::Scalar(text, ScalarStyle::Plain, ..), _) if text.is_empty() => {}
            _ => return Ok(None),
        }
    }
}

struct Builder<'a> {
    parser: Parser<'a, saphyr_parser::StrInput<'a>>,
    anchors: HashMap<usize, Value>,
    values: usize,
}

impl<'a> Builder<'a> {
    fn new(text: &'a str) -> Self {
        Self { parser: Parser::new_from_str(text), anchors: HashMap::new(), values: 0 }
    }

    fn next(&mut self) -> Result<(Event<'a>, usize), Fault> {
        match self.parser.next_event() {
            Some(Ok((event, span))) => Ok((event, span.start.line())),
            Some(Err(error)) => Err(fault(&error)),
            None => Ok((Event::StreamEnd, 0)),
        }
    }

    /// The entries of the top-level map, whose start has been read.
    fn fields(&mut self) -> Result<Vec<Field>, Fault> {
        let mut fields = Vec::new();
        loop {
            let (event, line) = self.next()?;
            if matches!(event, Event::MappingEnd) {
                break;
            }
            let key = self.value(event, line, 0)?;
            let (event, value_line) = self.next()?;
            let value = self.value(event, value_line, 0)?;
            match (key.text(), value) {
                (Some("<<"), Value::Map(merged)) => {
                    fields.extend(merged.into_iter().map(|(key, value)| Field {
                        key,
                        line,
                        value,
                    }));
                }
                (Some(key), value) => fields.push(Field { key: key.to_owned(), line, value }),
                (None, _) => {}
            }
        }
        // A second document below the first belongs to nobody, but must be read to find its errors.
        loop {
            match self.next()? {
                (Event::StreamEnd, _) => return Ok(fields),
                (Event::DocumentStart(_), line) => {
                    return Err(Fault { line, message: "a second document starts here".into() });
                }
                _ => {}
            }
        }
    }

    fn value(&mut self, event: Event<'a>, line: usize, depth: usize) -> Result<Value, Fault> {
        self.count(1, line)?;
        if depth > DEEPEST {
            return Err(Fault { line, message: format!("nested deeper than {DEEPEST} levels") });
        }
        let (value, anchor) = match event {
            Event::Scalar(text, ScalarStyle::Plain, anchor, _) => {
                (Value::Bare(text.into_owned()), anchor)
            }
            Event::Scalar(text, _, anchor, _) => (Value::Text(text.into_owned()), anchor),
            Event::SequenceStart(anchor, _) => (self.list(depth)?, anchor),
            Event::MappingStart(anchor, _) => (self.map(depth)?, anchor),
            Event::Alias(anchor) => {
                let value =
                    self.anchors.get(&anchor).cloned().unwrap_or(Value::Bare(String::new()));
                self.count(size(&value), line)?;
                (value, 0)
            }
            _ => return Err(Fault { line, message: "a value is missing".into() }),
        };
        if anchor > 0 {
            self.anchors.insert(anchor, value.clone());
        }
        Ok(value)
    }

    fn list(&mut self, depth: usize) -> Result<Value, Fault> {
        let mut items = Vec::new();
        loop {
            let (event, line) = self.next()?;
            if matches!(event, Event::SequenceEnd) {
                return Ok(Value::List(items));
            }
            items.push(self.value(event, line, depth + 1)?);
        }
    }

    fn map(&mut self, depth: usize) -> Result<Value, Fault> {
        let mut entries = Vec::new();
        loop {
            let (event, line) = self.next()?;
            if matches!(event, Event::MappingEnd) {
                return Ok(Value::Map(entries));
            }
            let key = self.value(event, line, depth + 1)?;
            let (event, line) = self.next()?;
            let value = self.value(event, line, depth + 1)?;
            entries.push((key.text().unwrap_or_default().to_owned(), value));
        }
    }

    fn count(&mut self, more: usize, line: usize) -> Result<(), Fault> {
        self.values += more;
        if self.values > MOST_VALUES {
            return Err(Fault { line, message: format!("more than {MOST_VALUES} values") });
        }
        Ok(())
    }
}

fn size(value: &Value) -> usize {
    match value {
        Value::Text(_) | Value::Bare(_) => 1,
        Value::List(items) => 1 + items.iter().map(size).sum::<usize>(),
        Value::Map(entries) => 1 + entries.iter().map(|(_, value)| size(value)).sum::<usize>(),
    }
}

fn fault(error: &ScanError) -> Fault {
    Fault { line: error.marker().line().max(1), message: error.info().to_owned() }
}

/// Reads every top-level key by itself.
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
            Ok(None) => faults.push(Fault { line, message: "this is not `key: value`".into() }),
            Err(first) => {
                faults.push(Fault { line: line + first.line - 1, message: first.message });
                fields.extend(as_it_stands(&chunk).map(|(key, value)| Field { key, line, value }));
            }
        }
    }
    (fields, faults)
}

/// The text cut before each line that starts a key.
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

/// Whether a line begins a new top-level key: not indented, no list item, and a colon after a name.
pub(crate) fn starts_key(line: &str) -> bool {
    let Some((key, rest)) = line.split_once(':') else { return false };
    let named =
        key.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '"' | '\'' | '<'));
    named && key.len() <= 100 && (rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']))
}

/// The text after the colon, or the items of the list below it, unread.
fn as_it_stands(chunk: &str) -> Option<(String, Value)> {
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

/// Without the spaces and quotes around it, be they closed or not.
fn unquoted(text: &str) -> &str {
    let text = text.trim();
    let open = text.strip_prefix(['"', '\'']).unwrap_or(text);
    open.strip_suffix(['"', '\'']).unwrap_or(open).trim()
}

#[cfg(test)]
mod tests;
