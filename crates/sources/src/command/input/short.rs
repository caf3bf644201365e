//! The short form of `input`, turned into a JSON Schema.

use serde_json::{Map, Value};

use super::nearest;
use crate::command::definition::{DefinitionError, Location};
use crate::command::template::{NAME_CHARACTERS, is_argument_name};

/// An error at an argument, or at a key of its table.
fn error(name: &str, key: Option<&str>, message: impl Into<String>) -> DefinitionError {
    let location = Location::Argument(name.to_owned(), key.map(str::to_owned));
    DefinitionError::new(location, message)
}

/// The schema of an object with exactly these arguments.
pub(super) fn schema(short: &Map<String, Value>) -> Result<Map<String, Value>, DefinitionError> {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for (name, form) in short {
        if !is_argument_name(name) {
            return Err(error(name, None, format!("invalid argument name ({NAME_CHARACTERS})")));
        }
        let (property, optional) = match form {
            Value::String(kind) => {
                let kind = Type::parse(name, kind)?;
                (kind.schema(Map::new()), kind.optional)
            }
            Value::Array(choices) => {
                let kind = Type::parse(name, "string")?;
                check_choices(name, &kind, choices)?;
                (kind.schema(Map::from_iter([("enum".into(), form.clone())])), false)
            }
            Value::Object(table) => from_table(name, table)?,
            _ => {
                let expected = "must be a type like \"string?\", a list of choices, or a table";
                return Err(error(name, None, expected));
            }
        };
        properties.insert(name.clone(), property);
        if !optional {
            required.push(name.clone());
        }
    }
    let mut schema = Map::new();
    schema.insert("type".into(), "object".into());
    schema.insert("properties".into(), properties.into());
    if !required.is_empty() {
        schema.insert("required".into(), required.into());
    }
    schema.insert("additionalProperties".into(), false.into());
    Ok(schema)
}

/// A type of the short form: `string`, `number[]?`, …
struct Type {
    name: &'static str,
    list: bool,
    optional: bool,
}

const TYPES: [&str; 6] = ["string", "number", "integer", "boolean", "object", "file"];
const ALL_TYPES: &str = "the types are string, number, integer, boolean, object and file, with [] \
                         for lists and ? for optional";

impl Type {
    fn parse(name: &str, written: &str) -> Result<Self, DefinitionError> {
        let (rest, optional) = strip(written, "?");
        let (rest, list) = strip(rest, "[]");
        let Some(kind) = TYPES.into_iter().find(|kind| *kind == rest) else {
            let suffix =
                [("[]", list), ("?", optional)].map(|(text, on)| if on { text } else { "" });
            let near = nearest(rest, TYPES.into_iter()).map(|near| near + &suffix.concat());
            let unknown = error(name, None, format!("unknown type `{written}`")).hint(ALL_TYPES);
            return Err(unknown.did_you_mean(near));
        };
        if kind == "file" && list {
            return Err(error(name, None, "a list of files is not supported"));
        }
        Ok(Self { name: kind, list, optional })
    }

    /// The schema of such an argument. For a list, keywords about values go to its items.
    fn schema(&self, keywords: Map<String, Value>) -> Value {
        let mut value = Map::from_iter([("type".into(), self.name.into())]);
        if self.name == "file" {
            value.insert("type".into(), "string".into());
            value.insert("contentEncoding".into(), "base64".into());
            value.insert("description".into(), "A file: Base64, or a data: URI".into());
        }
        if !self.list {
            value.extend(keywords);
            return value.into();
        }
        let mut list = Map::from_iter([("type".into(), "array".into())]);
        for (key, keyword) in keywords {
            if ITEM_KEYWORDS.contains(&&*key) {
                value.insert(key, keyword);
            } else {
                list.insert(key, keyword);
            }
        }
        list.insert("items".into(), value.into());
        list.into()
    }

    /// Whether one value (not a list) is of this type.
    fn admits(&self, value: &Value) -> bool {
        match self.name {
            "string" | "file" => value.is_string(),
            "number" => value.is_number(),
            "integer" => value.is_i64() || value.is_u64(),
            "boolean" => value.is_boolean(),
            _ => value.is_object(),
        }
    }
}

fn strip<'t>(text: &'t str, end: &str) -> (&'t str, bool) {
    match text.strip_suffix(end) {
        Some(rest) => (rest, true),
        None => (text, false),
    }
}

/// The keys of a table, besides `type` and `optional`, that are copied to the schema.
const TEXTS: [&str; 4] = ["title", "description", "pattern", "format"];
const NUMBERS: [&str; 5] =
    ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"];
const COUNTS: [&str; 4] = ["minLength", "maxLength", "minItems", "maxItems"];

/// The keys that apply to every item if the argument is a list.
const ITEM_KEYWORDS: [&str; 10] = [
    "enum",
    "pattern",
    "format",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
];

/// The schema of an argument, and whether it is optional.
fn from_table(name: &str, table: &Map<String, Value>) -> Result<(Value, bool), DefinitionError> {
    let bad = |key: &str, expected: &str| error(name, Some(key), format!("must be {expected}"));
    let kind = match (table.get("type"), table.get("enum")) {
        (Some(Value::String(kind)), _) => Type::parse(name, kind)?,
        (Some(_), _) => return Err(bad("type", "a type like \"string?\"")),
        (None, Some(_)) => Type::parse(name, "string")?,
        (None, None) => return Err(error(name, None, "needs a `type` or an `enum`")),
    };
    let mut keywords = Map::new();
    for (key, value) in table {
        let expected = match &**key {
            "type" | "optional" => continue,
            "enum" => (!value.is_array()).then_some("a list of choices"),
            "default" => value.is_null().then_some("a value"),
            "uniqueItems" => (!value.is_boolean()).then_some("true or false"),
            text if TEXTS.contains(&text) => (!value.is_string()).then_some("text"),
            number if NUMBERS.contains(&number) => (!value.is_number()).then_some("a number"),
            count if COUNTS.contains(&count) => (!value.is_u64()).then_some("a whole number"),
            _ => {
                let keys = TEXTS.into_iter().chain(NUMBERS).chain(COUNTS);
                let keys = keys.chain(["type", "optional", "enum", "default", "uniqueItems"]);
                let unknown = error(name, Some(key), "unknown key");
                let unknown = unknown.hint("use `input_schema` for all of JSON Schema");
                return Err(unknown.did_you_mean(nearest(key, keys)));
            }
        };
        if let Some(expected) = expected {
            return Err(bad(key, expected));
        }
        keywords.insert(key.clone(), value.clone());
    }
    if let Some(Value::Array(choices)) = keywords.get("enum") {
        check_choices(name, &kind, choices)?;
    }
    if let Some(default) = keywords.get("default") {
        check_default(name, &kind, default, keywords.get("enum"))?;
    }
    let has_default = keywords.contains_key("default");
    let optional = match table.get("optional") {
        None => kind.optional || has_default,
        Some(Value::Bool(true)) => true,
        Some(Value::Bool(false)) if kind.optional || has_default => {
            return Err(error(name, None, "cannot be both optional and required"));
        }
        Some(Value::Bool(false)) => false,
        Some(_) => return Err(bad("optional", "true or false")),
    };
    Ok((kind.schema(keywords), optional))
}

fn check_choices(name: &str, kind: &Type, choices: &[Value]) -> Result<(), DefinitionError> {
    check_types(name, kind, choices)?;
    let twice = choices.iter().enumerate().any(|(at, choice)| choices[..at].contains(choice));
    if twice || choices.is_empty() {
        return Err(error(name, None, "the choices must be different, and at least one"));
    }
    Ok(())
}

fn check_default(
    name: &str,
    kind: &Type,
    default: &Value,
    choices: Option<&Value>,
) -> Result<(), DefinitionError> {
    let values = match default {
        Value::Array(items) if kind.list => &items[..],
        _ if kind.list => {
            return Err(error(name, None, format!("{default} is not a list")));
        }
        one => std::slice::from_ref(one),
    };
    check_types(name, kind, values)?;
    let choices = choices.and_then(Value::as_array);
    match values.iter().find(|value| choices.is_some_and(|choices| !choices.contains(value))) {
        Some(value) => {
            Err(error(name, None, format!("the default {value} is not one of the choices")))
        }
        None => Ok(()),
    }
}

fn check_types(name: &str, kind: &Type, values: &[Value]) -> Result<(), DefinitionError> {
    match values.iter().find(|value| !kind.admits(value)) {
        Some(value) => Err(error(name, None, format!("{value} is not of type {}", kind.name))),
        None => Ok(()),
    }
}
