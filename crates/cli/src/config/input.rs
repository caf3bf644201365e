//! `input`, `input_schema` and `output_schema`: the arguments and the results of a tool.

use std::ops::Range;

use sabir::Raw;
use sabir_registry::Checker;
use sabir_sources::command::{DefinitionError, Input, Location, Place};
use serde_json::{Map, Value};
use toml::Spanned;

use super::json::{Entries, json};
use super::mistake::{Mistake, Text};

/// The arguments of a command or a prompt, and their places in the file.
pub(super) struct Described {
    pub(super) input: Input,
    keys: Vec<(String, Range<usize>)>,
    whole: Option<Range<usize>>,
}

impl Described {
    /// The place of an argument, or else `otherwise`.
    pub(super) fn place(&self, name: &str, otherwise: Range<usize>) -> Range<usize> {
        let key = self.keys.iter().find(|(key, _)| key == name).map(|(_, place)| place);
        key.or(self.whole.as_ref()).cloned().unwrap_or(otherwise)
    }

    /// Reports the errors that were found in the definition of `owner`. `places` gives the place of
    /// a text with placeholders.
    pub(super) fn report(
        &self,
        found: &[DefinitionError],
        owner: &str,
        text: &Text<'_>,
        places: impl Fn(Option<Place>) -> Range<usize>,
    ) {
        for error in found {
            let place = match &error.location {
                Location::Text(place, _) => places(Some(*place)),
                Location::Argument(name, _) => self.place(name, places(None)),
                Location::Schema | Location::AllowDash => places(None),
            };
            text.report(text.wrong_definition(place, owner, error));
        }
    }
}

/// Settles `input` or `input_schema`. Without both there are no arguments.
pub(super) fn input(
    short: Option<&Entries>,
    schema: Option<&Spanned<toml::Value>>,
    owner: &str,
    text: &Text<'_>,
) -> Result<Described, Mistake> {
    if let Some(schema) = schema {
        if short.is_some() {
            let what = format!("{owner}: `input` and `input_schema` exclude each other");
            return Err(text.mistake(schema.span(), what).hint("remove one of them"));
        }
        let value = read_schema("input_schema", schema, owner, text)?;
        let wrong = |reason: String| {
            text.mistake(schema.span(), format!("{owner}: input_schema: {reason}"))
        };
        let raw = Raw::of(&value).map_err(|error| wrong(error.to_string()))?;
        Checker::for_arguments(&raw).map_err(|reason| wrong(reason.to_string()))?;
        let input = Input::from_schema(value).map_err(|error| wrong(error.message))?;
        return Ok(Described { input, keys: Vec::new(), whole: Some(schema.span()) });
    }
    let mut keys = Vec::new();
    let mut described = Map::new();
    for (name, value) in short.into_iter().flat_map(|entries| &entries.0) {
        let what = || format!("{owner}: input.{}: the number is not valid in JSON", name.get_ref());
        let value = json(value).ok_or_else(|| text.mistake(name.span(), what()))?;
        keys.push((name.get_ref().clone(), name.span()));
        described.insert(name.get_ref().clone(), value);
    }
    match Input::from_short(&described) {
        Ok(input) => Ok(Described { input, keys, whole: None }),
        Err(error) => {
            let is_there =
                |key: &str| matches!(&error.location, Location::Argument(name, _) if name == key);
            let key = keys.iter().find(|(key, _)| is_there(key)).map(|(_, key)| key.clone());
            Err(text.wrong_definition(key.unwrap_or_default(), owner, &error))
        }
    }
}

/// Reads a schema: a table, or the path of a JSON file.
pub(super) fn read_schema(
    key: &str,
    schema: &Spanned<toml::Value>,
    owner: &str,
    text: &Text<'_>,
) -> Result<Value, Mistake> {
    let wrong = |what: String| text.mistake(schema.span(), format!("{owner}: {key}: {what}"));
    match schema.get_ref() {
        toml::Value::String(path) => {
            let path = text.resolve(path);
            let file = std::fs::read_to_string(&path).map_err(|error| {
                wrong(format!("cannot read {}: {error}", path.display()))
                    .hint("expected a table, or the path of a JSON file")
            })?;
            serde_json::from_str(&file)
                .map_err(|error| wrong(format!("invalid JSON in {}: {error}", path.display())))
        }
        table => json(table).ok_or_else(|| wrong("a number is not valid in JSON".to_owned())),
    }
}
