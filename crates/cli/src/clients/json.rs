//! Files in JSON, with comments and trailing commas where the client allows them.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstRootNode};
use serde_json::Value;

use super::edit::EditError;

pub(super) fn parsed(text: &str) -> Result<Value, EditError> {
    Ok(parse(text)?.to_serde_value().unwrap_or_default())
}

pub(super) fn with(text: &str, key: &str, name: &str, value: &Value) -> Result<String, EditError> {
    let root = parse(text)?;
    let wrong = |what: &str| EditError(format!("{what} is not an object"));
    let whole = root.object_value_or_create().ok_or_else(|| wrong("the file"))?;
    let servers = whole.object_value_or_create(key).ok_or_else(|| wrong(&format!("`{key}`")))?;
    match servers.get(name) {
        Some(known) => known.set_value(input(value)),
        None => drop(servers.append(name, input(value))),
    }
    let end = if text.is_empty() { "\n" } else { "" };
    let text = format!("{root}{end}");
    match parsed(&text)?[key][name] == *value {
        true => Ok(text),
        false => Err(twice(key, name)),
    }
}

/// The text without an entry of the table under these keys.
pub(super) fn without(text: &str, keys: &[&str], name: &str) -> Result<String, EditError> {
    let root = parse(text)?;
    let servers = root
        .object_value()
        .and_then(|whole| keys.iter().try_fold(whole, |table, key| table.object_value(key)));
    if let Some(known) = servers.and_then(|servers| servers.get(name)) {
        known.remove();
    }
    let text = root.to_string();
    let whole = parsed(&text)?;
    let servers = keys.iter().fold(&whole, |table, key| &table[*key]);
    match servers.get(name) {
        None => Ok(text),
        Some(_) => Err(twice(keys.last().unwrap_or(&""), name)),
    }
}

/// Of a key that is written twice, programs read the last one, and we change the first.
fn twice(key: &str, name: &str) -> EditError {
    EditError(format!("`{key}` or `{name}` is written twice (expected once)"))
}

fn parse(text: &str) -> Result<CstRootNode, EditError> {
    CstRootNode::parse(text, &ParseOptions::default())
        .map_err(|error| EditError(format!("invalid JSON: {error}")))
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(truth) => CstInputValue::Bool(*truth),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Object(members) => CstInputValue::Object(
            members.iter().map(|(name, value)| (name.clone(), input(value))).collect(),
        ),
    }
}
