//! A fast check for plain schemas, such as most tools have, without building a tree.
//!
//! It accepts only values that the general validator accepts; everything else, in the schema or in
//! the value, is left to the validator, which also explains a refusal. A plain schema follows the
//! rules of its dialect, so that the validator need not be compiled before it is used.

use sabir_wire::scan;
use serde_json::{Map, Value};

/// The constraints of a plain schema.
#[derive(Debug)]
pub(super) struct Plain {
    types: Types,
    /// The allowed strings, if they are limited.
    texts: Option<Vec<Box<str>>>,
    least: Option<i64>,
    most: Option<i64>,
    object: Option<Members>,
    items: Option<Box<Plain>>,
}

#[derive(Debug)]
struct Members {
    known: Vec<(Box<str>, Plain)>,
    /// The required members, as bits.
    required: u64,
    /// Whether other members are allowed.
    open: bool,
}

/// A set of types, as bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Types(u8);

impl Types {
    const STRING: u8 = 1;
    const INTEGER: u8 = 2;
    const NUMBER: u8 = 4;
    const BOOLEAN: u8 = 8;
    const NULL: u8 = 16;
    const OBJECT: u8 = 32;
    const ARRAY: u8 = 64;

    fn read(value: Option<&Value>) -> Option<Self> {
        let bit = |name: &Value| {
            Some(match name.as_str()? {
                "string" => Self::STRING,
                "integer" => Self::INTEGER,
                // Every integer is a number.
                "number" => Self::NUMBER | Self::INTEGER,
                "boolean" => Self::BOOLEAN,
                "null" => Self::NULL,
                "object" => Self::OBJECT,
                "array" => Self::ARRAY,
                _ => return None,
            })
        };
        match value {
            None => Some(Self(u8::MAX)),
            Some(Value::Array(names)) if !names.is_empty() && all_differ(names) => {
                names.iter().try_fold(0, |all, name| Some(all | bit(name)?)).map(Self)
            }
            Some(name) => bit(name).map(Self),
        }
    }

    fn has(self, bit: u8) -> Option<()> {
        (self.0 & bit != 0).then_some(())
    }
}

impl Plain {
    /// `None` if the schema has any keyword that is not handled here.
    pub(super) fn compile(schema: &Value) -> Option<Self> {
        let schema = schema.as_object()?;
        let types = Types::read(schema.get("type"))?;
        for (keyword, value) in schema {
            let is_understood = match keyword.as_str() {
                "type" | "properties" | "required" | "items" | "enum" | "minimum" | "maximum" => {
                    true
                }
                "additionalProperties" => value.is_boolean(),
                // Annotations only.
                "$schema" | "$comment" | "title" | "description" => value.is_string(),
                "deprecated" | "readOnly" | "writeOnly" => value.is_boolean(),
                "examples" => value.is_array(),
                "default" => true,
                // A dialect may check the formats of texts, but has none for numbers.
                "format" => types.0 & Types::STRING == 0 && value.is_string(),
                other => other.starts_with("x-"),
            };
            if !is_understood {
                return None;
            }
        }
        Some(Self {
            types,
            texts: texts(schema.get("enum"))?,
            least: bound(schema.get("minimum"))?,
            most: bound(schema.get("maximum"))?,
            object: Members::compile(schema)?,
            items: match schema.get("items") {
                None => None,
                Some(items) => Some(Box::new(Self::compile_part(items)?)),
            },
        })
    }

    /// The same for a subschema, which could declare another dialect.
    fn compile_part(schema: &Value) -> Option<Self> {
        if schema.get("$schema").is_some() { None } else { Self::compile(schema) }
    }

    /// `Some` if the value is valid; `None` if the validator must decide.
    pub(super) fn accepts(&self, json: &str) -> Option<()> {
        match *json.as_bytes().first()? {
            b'"' => {
                self.types.has(Types::STRING)?;
                match &self.texts {
                    None => is_sound(json),
                    Some(texts) => {
                        let text = scan::plain_string(json)?;
                        texts.iter().any(|known| **known == *text).then_some(())
                    }
                }
            }
            // The enumerated values are strings.
            _ if self.texts.is_some() => None,
            b'{' => {
                self.types.has(Types::OBJECT)?;
                self.object.as_ref()?.accept(json)
            }
            b'[' => {
                self.types.has(Types::ARRAY)?;
                let items = self.items.as_ref()?;
                scan::items(json, |item| items.accepts(item))
            }
            b't' | b'f' => self.types.has(Types::BOOLEAN),
            b'n' => self.types.has(Types::NULL),
            _ => self.accept_number(json),
        }
    }

    fn accept_number(&self, json: &str) -> Option<()> {
        // Longer integers lose precision when they are parsed.
        let is_short = json.len() <= 15 && !json.contains(['e', 'E']);
        if !is_short {
            return None;
        }
        match json.parse::<i64>() {
            Ok(number) => {
                self.types.has(Types::INTEGER)?;
                let fits = self.least.is_none_or(|least| number >= least)
                    && self.most.is_none_or(|most| number <= most);
                fits.then_some(())
            }
            Err(_) if self.least.is_none() && self.most.is_none() => self.types.has(Types::NUMBER),
            Err(_) => None,
        }
    }
}

impl Members {
    /// `None` where the schema does not constrain members.
    fn compile(schema: &Map<String, Value>) -> Option<Option<Self>> {
        let is_open = schema.get("additionalProperties") != Some(&Value::Bool(false));
        let Some(properties) = schema.get("properties") else {
            let is_silent = is_open && !schema.contains_key("required");
            return is_silent.then_some(None);
        };
        let properties = properties.as_object()?;
        // More would not fit into the bits.
        if properties.len() > 64 {
            return None;
        }
        let known = properties
            .iter()
            .map(|(name, schema)| Some((name.as_str().into(), Plain::compile_part(schema)?)));
        let known: Vec<(Box<str>, Plain)> = known.collect::<Option<_>>()?;
        let mut required = 0;
        if let Some(names) = schema.get("required") {
            for name in names.as_array()? {
                let name = name.as_str()?;
                let bit = 1 << known.iter().position(|(known, _)| **known == *name)?;
                if required & bit != 0 {
                    return None;
                }
                required |= bit;
            }
        }
        Some(Some(Self { known, required, open: is_open }))
    }

    fn accept(&self, json: &str) -> Option<()> {
        let mut seen: u64 = 0;
        scan::members(json, |name, value| {
            match self.known.iter().position(|(known, _)| **known == *name) {
                Some(at) => {
                    let bit = 1 << at;
                    // Of duplicate members the last one counts; the first need not be valid.
                    if seen & bit != 0 {
                        return None;
                    }
                    seen |= bit;
                    self.known[at].1.accepts(value)
                }
                None if self.open => is_sound(value),
                None => None,
            }
        })?;
        (seen & self.required == self.required).then_some(())
    }
}

/// Whether a value can be parsed: an escape may be half of a surrogate pair.
fn is_sound(json: &str) -> Option<()> {
    match json.as_bytes().first()? {
        b'"' => {
            let mut escapes = memchr::memchr_iter(b'\\', json.as_bytes());
            let is_code = |at: usize| json.as_bytes().get(at + 1) == Some(&b'u');
            (!escapes.any(is_code)).then_some(())
        }
        b't' | b'f' | b'n' => Some(()),
        _ => None,
    }
}

fn all_differ(values: &[Value]) -> bool {
    values.iter().enumerate().all(|(at, value)| !values[..at].contains(value))
}

/// The texts of an `enum`; `Some(None)` without an `enum`.
fn texts(listed: Option<&Value>) -> Option<Option<Vec<Box<str>>>> {
    let Some(listed) = listed else { return Some(None) };
    let texts = listed.as_array()?.iter().map(|text| text.as_str().map(Into::into));
    texts.collect::<Option<_>>().map(Some)
}

fn bound(value: Option<&Value>) -> Option<Option<i64>> {
    let Some(value) = value else { return Some(None) };
    // Larger numbers lose precision.
    value.as_i64().filter(|bound| bound.unsigned_abs() < 1 << 53).map(Some)
}

#[cfg(test)]
mod tests;
