//! Checking of arguments and results against JSON Schema, compiled once per tool.
//!
//! Dialects: 2020-12, which is the default, and draft-07. No reference leaves the schema: nothing
//! is ever fetched. Depth and size are bounded: a schema may come from an untrusted server.

mod plain; // the schemas of most tools, without a tree
mod work; // the work that a schema can cause

use std::fmt::Write as _;
use std::sync::OnceLock;

use jsonschema::{Draft, ValidationError, Validator};
use sabir_wire::Raw;
use serde_json::Value;

use self::plain::Plain;

/// A compiled schema.
#[derive(Debug)]
pub struct Checker {
    /// The fast check of a plain schema, which accepts most valid values.
    plain: Option<Plain>,
    schema: Raw,
    draft: Draft,
    /// Compiled on first use, or at once if only compiling shows whether the schema is valid.
    validator: OnceLock<Result<Validator, String>>,
}

/// Why a schema is invalid.
#[derive(Clone, Debug, thiserror::Error)]
pub enum BadSchema {
    /// It is not an object, or not of type `object` where it must be.
    #[error("it must be a JSON Schema object{0}")]
    NotAnObject(&'static str),
    /// It is written in a dialect that is not supported.
    #[error("unsupported dialect `{0}` (expected 2020-12 or draft-07)")]
    Dialect(String),
    /// It is nested deeper than [`Checker::MAX_DEPTH`].
    #[error("it is nested more than {} deep", Checker::MAX_DEPTH)]
    TooDeep,
    /// It has more than [`Checker::MAX_NODES`] values.
    #[error("it has more than {} values", Checker::MAX_NODES)]
    TooLarge,
    /// It checks the same value too often.
    #[error("it checks the same value more than {} times", work::MAX_WORK)]
    TooMuchWork,
    /// It breaks the rules of its dialect, or refers to something outside.
    #[error("{0}")]
    Invalid(String),
}

/// A retriever that refuses: a network address in a schema is never followed.
struct Nowhere;

impl jsonschema::Retrieve for Nowhere {
    fn retrieve(
        &self,
        uri: &jsonschema::Uri<String>,
    ) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        Err(format!("`{uri}` is outside the schema, and nothing is fetched").into())
    }
}

impl Checker {
    /// How deep a schema may be nested.
    pub const MAX_DEPTH: usize = 64;
    /// How many values a schema may consist of.
    pub const MAX_NODES: usize = 20_000;

    /// Compiles the schema of arguments, which must describe an object.
    pub fn for_arguments(schema: &Raw) -> Result<Self, BadSchema> {
        Self::read_arguments(schema).map(|(checker, _)| checker)
    }

    /// The same, and returns the parsed schema.
    pub(crate) fn read_arguments(schema: &Raw) -> Result<(Self, Value), BadSchema> {
        let value = Self::read(schema)?;
        if value.get("type").and_then(Value::as_str) != Some("object") {
            return Err(BadSchema::NotAnObject(" with `\"type\": \"object\"`"));
        }
        Ok((Self::compile(schema, &value)?, value))
    }

    /// Compiles the schema of a result, which may describe anything.
    pub fn for_results(schema: &Raw) -> Result<Self, BadSchema> {
        Self::compile(schema, &Self::read(schema)?)
    }

    fn read(schema: &Raw) -> Result<Value, BadSchema> {
        if !schema.is_object() {
            return Err(BadSchema::NotAnObject(""));
        }
        let value: Value = schema.read().map_err(|_| BadSchema::TooDeep)?;
        let mut nodes = 0;
        measure(&value, Self::MAX_DEPTH, &mut nodes)?;
        Ok(value)
    }

    fn compile(schema: &Raw, value: &Value) -> Result<Self, BadSchema> {
        let draft = match value.get("$schema").and_then(Value::as_str) {
            None => Draft::Draft202012,
            Some(uri) => match uri.trim_end_matches('#') {
                "https://json-schema.org/draft/2020-12/schema" => Draft::Draft202012,
                "http://json-schema.org/draft-07/schema" => Draft::Draft7,
                _ => return Err(BadSchema::Dialect(uri.to_owned())),
            },
        };
        let checker = Self {
            plain: Plain::compile(value),
            schema: schema.clone(),
            draft,
            validator: OnceLock::new(),
        };
        // A plain schema checks each value once.
        if checker.plain.is_none() {
            if work::is_too_much(value) {
                return Err(BadSchema::TooMuchWork);
            }
            checker.validator().map_err(|reason| BadSchema::Invalid(reason.to_owned()))?;
        }
        Ok(checker)
    }

    fn validator(&self) -> Result<&Validator, &str> {
        let build = || {
            let schema: Value = self.schema.read().map_err(|error| error.to_string())?;
            let options = jsonschema::options().with_draft(self.draft).with_retriever(Nowhere);
            options.build(&schema).map_err(|error| error.to_string())
        };
        self.validator.get_or_init(build).as_ref().map_err(String::as_str)
    }

    /// Checks a value. The error names each mistake with its place, and quotes invalid values.
    pub fn check(&self, value: &Raw) -> Result<(), String> {
        self.check_with(value, |error| error.to_string())
    }

    /// Checks a value. The error names each mistake with its place, without any value: it is for the
    /// log.
    pub fn check_unquoted(&self, value: &Raw) -> Result<(), String> {
        self.check_with(value, |error| error.masked().to_string())
    }

    fn check_with(
        &self,
        value: &Raw,
        describe: impl Fn(&ValidationError<'_>) -> String,
    ) -> Result<(), String> {
        if self.plain.as_ref().and_then(|plain| plain.accepts(value.text())).is_some() {
            return Ok(());
        }
        let value: Value = value.read().map_err(|error| error.to_string())?;
        let validator = self.validator()?;
        if validator.is_valid(&value) {
            return Ok(());
        }
        let mut reasons = String::new();
        for error in validator.iter_errors(&value).take(Self::MAX_REASONS) {
            let place = error.instance_path().to_string();
            let separator = if reasons.is_empty() { "" } else { "; " };
            let place = if place.is_empty() { String::new() } else { format!("`{place}`: ") };
            // Writing into a string cannot fail.
            let _ = write!(reasons, "{separator}{place}{}", shortened(&describe(&error)));
        }
        Err(reasons)
    }

    /// Mistakes in one error.
    const MAX_REASONS: usize = 5;
}

/// A reason quotes the invalid value, which may be long.
fn shortened(reason: &str) -> String {
    const MAX: usize = 300;
    if reason.len() <= MAX {
        return reason.to_owned();
    }
    let (mut head, mut tail) = (MAX / 2, reason.len() - MAX / 2);
    while !reason.is_char_boundary(head) {
        head -= 1;
    }
    while !reason.is_char_boundary(tail) {
        tail += 1;
    }
    format!("{} … {}", &reason[..head], &reason[tail..])
}

fn measure(value: &Value, depth_left: usize, nodes: &mut usize) -> Result<(), BadSchema> {
    *nodes += 1;
    if *nodes > Checker::MAX_NODES {
        return Err(BadSchema::TooLarge);
    }
    let mut inner: Box<dyn Iterator<Item = &Value>> = match value {
        Value::Array(items) => Box::new(items.iter()),
        Value::Object(members) => Box::new(members.values()),
        _ => return Ok(()),
    };
    let depth_left = depth_left.checked_sub(1).ok_or(BadSchema::TooDeep)?;
    inner.try_for_each(|value| measure(value, depth_left, nodes))
}

#[cfg(test)]
mod tests;
