//! Arguments that HTTP clients repeat in headers, so that proxies can see them: `x-mcp-header`.
//!
//! Spec: basic/transports/streamable-http, "Custom Headers from Tool Parameters". A client drops a
//! tool whose annotations break the rules; a server refuses to register it.

use std::borrow::Cow;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value};

use crate::raw::Raw;

/// An argument that is repeated in a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MirroredArgument {
    /// The header's name, in lower case: `mcp-param-region`.
    pub header: String,
    /// The path of the argument: the names of properties from the root.
    pub path: Vec<String>,
    /// Its type, which decides how it is written.
    pub r#type: MirrorType,
}

/// The types that can be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MirrorType {
    /// Written unchanged.
    String,
    /// Decimal; compared as a number.
    Integer,
    /// `true` or `false`.
    Boolean,
}

/// Why an annotation is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadAnnotation {
    /// It is not a string, or not a valid part of a header name.
    #[error("`x-mcp-header` must be a header token, not {0}")]
    Token(String),
    /// Two arguments have the same header.
    #[error("`x-mcp-header` \"{0}\" is used twice")]
    Twice(String),
    /// The argument is not a string, integer or boolean.
    #[error("`x-mcp-header` \"{0}\" is on an argument that is not a string, integer or boolean")]
    Type(String),
    /// The path of the argument does not follow from the schema alone.
    #[error("`x-mcp-header` is allowed only on properties that are reached by `properties` alone")]
    Place,
}

impl MirroredArgument {
    /// The argument, unless it is absent or `null`.
    pub fn find(&self, arguments: &Raw) -> Option<Raw> {
        value_at(arguments, &self.path).filter(|value| !value.is_null())
    }

    /// The value of the header for these arguments, encoded; `None` if the argument is absent.
    pub fn header_value(&self, arguments: &Raw) -> Option<String> {
        let value = self.find(arguments)?;
        let text = match self.r#type {
            MirrorType::String => value.read::<Cow<'_, str>>().ok()?,
            MirrorType::Integer | MirrorType::Boolean => Cow::Borrowed(value.text()),
        };
        Some(encode_value(&text).into_owned())
    }
}

/// The value at a path of property names. If a name appears twice, the last one counts, as in most
/// JSON parsers.
pub fn value_at(object: &Raw, path: &[String]) -> Option<Raw> {
    path.iter().try_fold(object.clone(), |object, name| {
        let mut members = object.named_members()?.into_iter().rev();
        members.find(|(member, _)| &**member == name.as_str()).map(|(_, value)| value)
    })
}

/// The value of a header that encodes `text`: the text itself, or Base64 if a header cannot hold
/// it. Spec: "Value Encoding".
pub fn encode_value(text: &str) -> Cow<'_, str> {
    let is_visible = text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\t'));
    let is_trimmed = text.trim_ascii() == text;
    let is_encoded = text.starts_with("=?base64?") && text.ends_with("?=");
    if is_visible && is_trimmed && !is_encoded {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("=?base64?{}?=", BASE64_STANDARD.encode(text)))
}

/// Finds the annotations of an input schema.
pub fn mirrored_arguments(schema: &Value) -> Result<Vec<MirroredArgument>, BadAnnotation> {
    let mut found = Vec::new();
    walk(schema, &mut Vec::new(), &mut found)?;
    if count(schema) > found.len() {
        return Err(BadAnnotation::Place);
    }
    Ok(found)
}

const KEY: &str = "x-mcp-header";

fn walk(
    schema: &Value,
    path: &mut Vec<String>,
    found: &mut Vec<MirroredArgument>,
) -> Result<(), BadAnnotation> {
    let Some(Value::Object(properties)) = schema.get("properties") else { return Ok(()) };
    for (name, property) in properties {
        path.push(name.clone());
        if let Some(annotation) = property.get(KEY) {
            let argument = read(annotation, property, path)?;
            if found.iter().any(|other| other.header == argument.header) {
                return Err(BadAnnotation::Twice(annotation.to_string()));
            }
            found.push(argument);
        }
        walk(property, path, found)?;
        path.pop();
    }
    Ok(())
}

fn read(
    annotation: &Value,
    property: &Value,
    path: &[String],
) -> Result<MirroredArgument, BadAnnotation> {
    let is_token = |text: &&str| !text.is_empty() && text.bytes().all(is_token_byte);
    let Some(name) = annotation.as_str().filter(is_token) else {
        return Err(BadAnnotation::Token(annotation.to_string()));
    };
    let r#type = match property.get("type").and_then(Value::as_str) {
        Some("string") => MirrorType::String,
        Some("integer") => MirrorType::Integer,
        Some("boolean") => MirrorType::Boolean,
        _ => return Err(BadAnnotation::Type(name.to_owned())),
    };
    let header = format!("mcp-param-{}", name.to_ascii_lowercase());
    Ok(MirroredArgument { header, path: path.to_vec(), r#type })
}

/// The characters of RFC 9110's `token`.
fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// All annotations at any depth of the schema. Data inside the schema is skipped.
fn count(schema: &Value) -> usize {
    let all = |values: &mut dyn Iterator<Item = &Value>| values.map(count).sum::<usize>();
    match schema {
        Value::Array(items) => all(&mut items.iter()),
        Value::Object(members) => usize::from(members.contains_key(KEY)) + inner(members),
        _ => 0,
    }
}

fn inner(members: &Map<String, Value>) -> usize {
    let schemas = members.iter().filter(|(key, _)| {
        !matches!(key.as_str(), "const" | "enum" | "default" | "examples" | "example")
    });
    schemas
        .map(|(key, value)| match (key.as_str(), value) {
            // These keys are property names, not keywords.
            (
                "properties" | "patternProperties" | "$defs" | "definitions",
                Value::Object(named),
            ) => named.values().map(count).sum(),
            (_, value) => count(value),
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn one(property: Value) -> Result<Vec<MirroredArgument>, BadAnnotation> {
        mirrored_arguments(&json!({ "type": "object", "properties": { "a": property } }))
    }

    #[test]
    fn annotations_are_found_in_nested_properties() {
        let found = mirrored_arguments(&json!({
            "type": "object",
            "properties": {
                "region": { "type": "string", "x-mcp-header": "Region" },
                "where": { "type": "object", "properties": {
                    "zone": { "type": "integer", "x-mcp-header": "Zone" },
                } },
                "x-mcp-header": { "type": "string" },
            },
        }));
        let headers: Vec<_> =
            found.unwrap().into_iter().map(|m| (m.header, m.path.join("."))).collect();
        assert_eq!(
            headers,
            [
                ("mcp-param-region".into(), "region".into()),
                ("mcp-param-zone".into(), "where.zone".into())
            ]
        );
    }

    #[test]
    fn values_are_encoded_where_a_header_cannot_hold_them() {
        for (text, value) in [
            ("us-west1", "us-west1"),
            ("", ""),
            ("a b\tc", "a b\tc"),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
            ("Hello, \u{4e16}\u{754c}", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        ] {
            assert_eq!(encode_value(text), value);
        }
    }

    #[test]
    fn arguments_are_found_by_their_path() {
        let found = mirrored_arguments(&json!({ "properties": {
            "n": { "type": "integer", "x-mcp-header": "N" },
            "in": { "properties": { "b": { "type": "boolean", "x-mcp-header": "B" } } },
        } }));
        let found = found.unwrap();
        let values = |arguments: Value| -> Vec<_> {
            let arguments = Raw::from(arguments);
            found.iter().map(|argument| argument.header_value(&arguments)).collect()
        };
        let both = values(json!({ "n": -7, "in": { "b": true } }));
        assert_eq!(both, [Some("-7".into()), Some("true".into())]);
        assert_eq!(values(json!({ "n": null, "in": [] })), [None, None]);
    }

    #[test]
    fn annotations_that_clients_refuse_are_refused() {
        for annotation in
            [json!(""), json!("a b"), json!("a:b"), json!("é"), json!("a\n"), json!(7), json!(null)]
        {
            let result = one(json!({ "type": "string", "x-mcp-header": annotation }));
            assert!(matches!(result, Err(BadAnnotation::Token(_))), "{annotation}");
        }
        let number = one(json!({ "type": "number", "x-mcp-header": "N" }));
        assert_eq!(number, Err(BadAnnotation::Type("N".into())));
        let twice = mirrored_arguments(&json!({ "properties": {
            "a": { "type": "string", "x-mcp-header": "Same" },
            "b": { "type": "string", "x-mcp-header": "sAME" },
        } }));
        assert!(matches!(twice, Err(BadAnnotation::Twice(_))));
        for place in [
            json!({ "type": "array", "items": { "type": "string", "x-mcp-header": "A" } }),
            json!({ "anyOf": [{ "type": "string", "x-mcp-header": "A" }] }),
        ] {
            assert_eq!(one(place), Err(BadAnnotation::Place));
        }
    }
}
