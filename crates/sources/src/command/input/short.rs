//! The short form of `input`, turned into a JSON Schema.

use serde_json::{Map, Value};

use super::nearest;

/// What is wrong with `input` or `input_schema`, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InputError {
    /// `input_schema` is not the schema of an object.
    #[error("input_schema: must be a JSON Schema with `type = \"object\"`")]
    NotAnObject,
    /// A name that cannot stand in a placeholder.
    #[error("input: `{0}` is no name of an argument; use letters, digits, `_`, `-` and `.`")]
    BadName(String),
    /// Neither a type, nor a list of choices, nor a table.
    #[error("input.{0}: must be a type like \"string?\", a list of choices, or a table")]
    BadForm(String),
    /// No such type.
    #[error(
        "input.{name}: there is no type `{kind}`; {}",
        hint(
            near,
            "the types are string, number, integer, boolean and object, with [] for lists and ? for optional"
        )
    )]
    UnknownType {
        /// The argument.
        name: String,
        /// The type as written.
        kind: String,
        /// The type that was probably meant.
        near: Option<String>,
    },
    /// A table without `type` and without `enum`.
    #[error("input.{0}: needs a `type` or an `enum`")]
    NoType(String),
    /// No such key in a table.
    #[error(
        "input.{name}.{key}: there is no such key; {}",
        hint(near, "use `input_schema` for all of JSON Schema")
    )]
    UnknownKey {
        /// The argument.
        name: String,
        /// The key as written.
        key: String,
        /// The key that was probably meant.
        near: Option<String>,
    },
    /// A key of a table has a value of the wrong type.
    #[error("input.{name}.{key}: must be {wanted}")]
    BadValue {
        /// The argument.
        name: String,
        /// The key.
        key: String,
        /// What it must be.
        wanted: &'static str,
    },
    /// A choice or a default is not of the argument's type.
    #[error("input.{name}: {value} is not of type {kind}")]
    WrongType {
        /// The argument.
        name: String,
        /// The choice or default, as JSON.
        value: String,
        /// The argument's type.
        kind: &'static str,
    },
    /// The same choice twice, or none.
    #[error("input.{0}: the choices must be different, and at least one")]
    BadChoices(String),
    /// The default is none of the choices.
    #[error("input.{name}: the default {value} is none of the choices")]
    DefaultNotAChoice {
        /// The argument.
        name: String,
        /// The default, as JSON.
        value: String,
    },
    /// `optional = false` for an argument with a default, or after `?`.
    #[error("input.{0}: cannot be both optional and required")]
    OptionalAndRequired(String),
}

fn hint(near: &Option<String>, otherwise: &str) -> String {
    match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => otherwise.to_owned(),
    }
}

/// The schema of an object with these arguments and no others.
pub(super) fn schema(short: &Map<String, Value>) -> Result<Map<String, Value>, InputError> {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for (name, form) in short {
        if name.is_empty() || !name.chars().all(|c| c.is_alphanumeric() || "_-.".contains(c)) {
            return Err(InputError::BadName(name.clone()));
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
            _ => return Err(InputError::BadForm(name.clone())),
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

const TYPES: [&str; 5] = ["string", "number", "integer", "boolean", "object"];

impl Type {
    fn parse(name: &str, written: &str) -> Result<Self, InputError> {
        let (rest, optional) = strip(written, "?");
        let (rest, list) = strip(rest, "[]");
        let Some(kind) = TYPES.into_iter().find(|kind| *kind == rest) else {
            let suffix =
                [("[]", list), ("?", optional)].map(|(text, on)| if on { text } else { "" });
            let near = nearest(rest, TYPES.into_iter()).map(|near| near + &suffix.concat());
            let (name, kind) = (name.to_owned(), written.to_owned());
            return Err(InputError::UnknownType { name, kind, near });
        };
        Ok(Self { name: kind, list, optional })
    }

    /// The schema of such an argument. What is said of its value goes to the items of a list.
    fn schema(&self, said: Map<String, Value>) -> Value {
        let mut value = Map::from_iter([("type".into(), self.name.into())]);
        if !self.list {
            value.extend(said);
            return value.into();
        }
        let mut list = Map::from_iter([("type".into(), "array".into())]);
        for (key, said) in said {
            if OF_ITEMS.contains(&&*key) {
                value.insert(key, said);
            } else {
                list.insert(key, said);
            }
        }
        list.insert("items".into(), value.into());
        list.into()
    }

    /// Whether one value (not a list) is of this type.
    fn admits(&self, value: &Value) -> bool {
        match self.name {
            "string" => value.is_string(),
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

/// What may be said in a table beside `type` and `optional`, and passes into the schema.
const TEXTS: [&str; 4] = ["title", "description", "pattern", "format"];
const NUMBERS: [&str; 5] =
    ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"];
const COUNTS: [&str; 4] = ["minLength", "maxLength", "minItems", "maxItems"];

/// Of those, what is said of every item if the argument is a list.
const OF_ITEMS: [&str; 10] = [
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
fn from_table(name: &str, table: &Map<String, Value>) -> Result<(Value, bool), InputError> {
    let bad = |key: &str, wanted| InputError::BadValue {
        name: name.to_owned(),
        key: key.to_owned(),
        wanted,
    };
    let kind = match (table.get("type"), table.get("enum")) {
        (Some(Value::String(kind)), _) => Type::parse(name, kind)?,
        (Some(_), _) => return Err(bad("type", "a type like \"string?\"")),
        (None, Some(_)) => Type::parse(name, "string")?,
        (None, None) => return Err(InputError::NoType(name.to_owned())),
    };
    let mut said = Map::new();
    for (key, value) in table {
        let wanted = match &**key {
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
                let (near, key) = (nearest(key, keys), key.clone());
                return Err(InputError::UnknownKey { name: name.to_owned(), key, near });
            }
        };
        if let Some(wanted) = wanted {
            return Err(bad(key, wanted));
        }
        said.insert(key.clone(), value.clone());
    }
    if let Some(Value::Array(choices)) = said.get("enum") {
        check_choices(name, &kind, choices)?;
    }
    if let Some(default) = said.get("default") {
        check_default(name, &kind, default, said.get("enum"))?;
    }
    let has_default = said.contains_key("default");
    let optional = match table.get("optional") {
        None => kind.optional || has_default,
        Some(Value::Bool(true)) => true,
        Some(Value::Bool(false)) if kind.optional || has_default => {
            return Err(InputError::OptionalAndRequired(name.to_owned()));
        }
        Some(Value::Bool(false)) => false,
        Some(_) => return Err(bad("optional", "true or false")),
    };
    Ok((kind.schema(said), optional))
}

fn check_choices(name: &str, kind: &Type, choices: &[Value]) -> Result<(), InputError> {
    check_types(name, kind, choices)?;
    let twice = choices.iter().enumerate().any(|(at, choice)| choices[..at].contains(choice));
    if twice || choices.is_empty() {
        return Err(InputError::BadChoices(name.to_owned()));
    }
    Ok(())
}

fn check_default(
    name: &str,
    kind: &Type,
    default: &Value,
    choices: Option<&Value>,
) -> Result<(), InputError> {
    let values = match default {
        Value::Array(items) if kind.list => &items[..],
        _ if kind.list => {
            let (name, value) = (name.to_owned(), default.to_string());
            return Err(InputError::WrongType { name, value, kind: "list" });
        }
        one => std::slice::from_ref(one),
    };
    check_types(name, kind, values)?;
    let choices = choices.and_then(Value::as_array);
    match values.iter().find(|value| choices.is_some_and(|choices| !choices.contains(value))) {
        Some(value) => {
            let (name, value) = (name.to_owned(), value.to_string());
            Err(InputError::DefaultNotAChoice { name, value })
        }
        None => Ok(()),
    }
}

fn check_types(name: &str, kind: &Type, values: &[Value]) -> Result<(), InputError> {
    match values.iter().find(|value| !kind.admits(value)) {
        Some(value) => {
            let (name, value) = (name.to_owned(), value.to_string());
            Err(InputError::WrongType { name, value, kind: kind.name })
        }
        None => Ok(()),
    }
}
