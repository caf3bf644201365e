//! Checking of arguments and results against JSON Schema, compiled once per tool.
//!
//! Dialects: 2020-12, which is the default, and draft-07. No reference leaves the schema: nothing
//! is ever fetched. Depth and size are bounded: a schema may come from an untrusted server.

mod plain; // the schemas of most tools, without a tree
mod work; // the work that a schema can cause

use std::sync::OnceLock;

use jsonschema::{Draft, PatternOptions, ValidationError, Validator};
use sabir_wire::Raw;
use serde_json::Value;

use self::plain::Plain;
use self::work::{MAX_NESTED_WORK, MAX_WORK, Work};

/// A compiled schema.
#[derive(Debug)]
pub struct Checker {
    /// The fast check of a plain schema, which accepts most valid values.
    plain: Option<Plain>,
    schema: Raw,
    draft: Draft,
    /// `None` if the schema is plain: then each value is checked once.
    work: Option<Work>,
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
    #[error("it checks the same value more than {MAX_WORK} times")]
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
        let plain = Plain::compile(value);
        let work = match &plain {
            Some(_) => None,
            None => Some(Work::of(value).ok_or(BadSchema::TooMuchWork)?),
        };
        let checker =
            Self { plain, schema: schema.clone(), draft, work, validator: OnceLock::new() };
        if checker.plain.is_none() {
            checker.validator().map_err(|reason| BadSchema::Invalid(reason.to_owned()))?;
        }
        Ok(checker)
    }

    fn validator(&self) -> Result<&Validator, &str> {
        let build = || {
            let schema: Value = self.schema.read().map_err(|error| error.to_string())?;
            let patterns = PatternOptions::fancy_regex().backtrack_limit(MAX_BACKTRACKS);
            let options = jsonschema::options().with_draft(self.draft).with_retriever(Nowhere);
            let options = options.with_pattern_options(patterns);
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
        let is_long = value.text().len() > MAX_EXPLAINED_LENGTH;
        let value: Value = value.read().map_err(|error| error.to_string())?;
        let depth = work::depth(&value);
        let work = self.work.as_ref().map_or(1, |work| work.at(depth));
        if work > MAX_NESTED_WORK {
            return Err(format!("the value is nested too deeply for its schema ({depth} levels)"));
        }
        let validator = self.validator()?;
        if validator.is_valid(&value) {
            return Ok(());
        }
        let reason = |error: ValidationError<'_>| {
            let place = error.instance_path().to_string();
            let place = if place.is_empty() { String::new() } else { format!("`{place}`: ") };
            format!("{place}{}", shortened(&describe(&error)))
        };
        // The validator collects all mistakes of all alternatives before it returns the first.
        Err(match (work > MAX_EXPLAINED_WORK, is_long) {
            (true, _) => "the value does not match the schema".to_owned(),
            (false, true) => validator.validate(&value).err().map(reason).unwrap_or_default(),
            (false, false) => {
                let reasons = validator.iter_errors(&value).take(Self::MAX_REASONS).map(reason);
                reasons.collect::<Vec<_>>().join("; ")
            }
        })
    }

    /// Mistakes in one error.
    const MAX_REASONS: usize = 5;
}

/// Steps of a regular expression for one text. Most need no more than the text is long.
const MAX_BACKTRACKS: usize = 10_000;

/// How often a part of a value may be checked, and how long the value may be, in bytes, for an error
/// that names all mistakes.
const MAX_EXPLAINED_WORK: u64 = 256;
const MAX_EXPLAINED_LENGTH: usize = 32 << 10;

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
