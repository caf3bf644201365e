//! Files in TOML: Codex.
//!
//! An entry is a table of its own at the end of the file. Its place comes from the parser, so that
//! the rest is copied byte for byte.

use std::ops::Range;

use serde_json::Value;
use toml::de::{DeTable, DeValue};

use super::edit::{EditError, line_end};

pub(super) fn parsed(text: &str) -> Result<Value, EditError> {
    let value: toml::Table = toml::from_str(text).map_err(|error| invalid(&error))?;
    Ok(serde_json::to_value(value).unwrap_or_default())
}

pub(super) fn with(text: &str, key: &str, name: &str, value: &Value) -> Result<String, EditError> {
    let text = without(text, key, name)?;
    let end = line_end(&text);
    let mut lines = vec![format!("[{key}.{}]", bare_or_quoted(name))];
    for (member, value) in value.as_object().into_iter().flatten() {
        let value = toml::Value::try_from(value).map_err(|error| EditError(error.to_string()))?;
        lines.push(format!("{member} = {value}"));
    }
    let gap = match &text[..] {
        "" => "",
        text if text.ends_with('\n') => end,
        _ => &format!("{end}{end}"),
    };
    let text = format!("{text}{gap}{}{end}", lines.join(end));
    // An inline table cannot be continued.
    DeTable::parse(&text).map_err(|_| {
        EditError(format!("`{key}` is not written as tables (expected `[{key}.NAME]`)"))
    })?;
    Ok(text)
}

pub(super) fn without(text: &str, key: &str, name: &str) -> Result<String, EditError> {
    let whole = DeTable::parse(text).map_err(|error| invalid(&error))?;
    let servers = whole.get_ref().get(key).and_then(|servers| servers.get_ref().as_table());
    let Some(entry) = servers.and_then(|servers| servers.get(name)) else {
        return Ok(text.to_owned());
    };
    let place = extent(entry.span(), entry.get_ref());
    let begin = text[..place.start].rfind('\n').map_or(0, |at| at + 1);
    if !text[begin..].trim_start().starts_with('[') {
        return Err(EditError(format!("`{name}` is not written as a table `[{key}.{name}]`")));
    }
    let end = text[place.end..].find('\n').map_or(text.len(), |at| place.end + at + 1);
    let (mut before, after) = (&text[..begin], &text[end..]);
    // The empty line before the table belongs to it.
    for gap in ["\r\n\r\n", "\n\n"] {
        if before.ends_with(gap) {
            before = &before[..before.len() - gap.len() / 2];
        }
    }
    Ok(format!("{before}{after}"))
}

/// From the header of a table to the end of its last value.
fn extent(place: Range<usize>, value: &DeValue<'_>) -> Range<usize> {
    let inner: Vec<Range<usize>> = match value {
        DeValue::Table(table) => {
            table.values().map(|value| extent(value.span(), value.get_ref())).collect()
        }
        _ => Vec::new(),
    };
    let start = inner.iter().map(|inner| inner.start).fold(place.start, usize::min);
    let end = inner.iter().map(|inner| inner.end).fold(place.end, usize::max);
    start..end
}

fn bare_or_quoted(name: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    match !name.is_empty() && name.chars().all(is_bare) {
        true => name.to_owned(),
        false => toml::Value::from(name).to_string(),
    }
}

fn invalid(error: &toml::de::Error) -> EditError {
    EditError(format!("invalid TOML: {}", error.message().trim()))
}
