//! Secrets in messages, by the schemas of the tools that they are for, and in headers by their names.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use sabir_wire::{MASK, Method, Raw};
use serde_json::{Map, Value};

/// Secrets that are remembered, so that they are masked wherever they occur again. When full, the
/// oldest is forgotten.
const MAX_SECRETS: usize = 1_000;

/// The bytes of all remembered secrets. When full, the oldest are forgotten. A single secret with
/// more bytes is not remembered: it is masked in its own place only.
const MAX_BYTES: usize = 1 << 20;

/// The shortest secret in bytes that is masked outside of its own place: a shorter one would be
/// found in unrelated texts.
const LEAST_LENGTH: usize = 6;

/// Questions that are remembered. When full, the oldest is forgotten.
const MAX_QUESTIONS: usize = 256;

/// The longest schema of a question that is remembered, in bytes. All answers to a question with a
/// longer one are masked.
const MAX_SCHEMA: usize = 16 << 10;

/// How deep a schema is followed.
const MAX_DEPTH: usize = 32;

/// Masks secrets.
#[derive(Debug, Default)]
pub(crate) struct Masker(Mutex<Memory>);

#[derive(Clone, Debug, Default)]
struct Memory {
    secrets: VecDeque<String>,
    /// Questions whose answers may have secrets, and their schemas; `None` for one that is too long.
    questions: VecDeque<(Question, Option<Value>)>,
}

/// The link and the id of a question, or 0 and its key in `inputRequests`.
type Question = (u64, String);

/// A message without its secrets.
pub(crate) struct Masked {
    /// `None` if it is not JSON.
    pub(crate) json: Option<String>,
    /// How many values were replaced.
    pub(crate) count: usize,
}

impl Masker {
    /// A masker that knows the same secrets.
    pub(crate) fn copy(&self) -> Self {
        Self(Mutex::new(self.lock().clone()))
    }

    /// Remembers the secrets of arguments.
    pub(crate) fn learn(&self, arguments: &Raw, schema: &Raw) {
        if let (Ok(mut arguments), Ok(schema)) = (arguments.read(), schema.read()) {
            let mut found = Vec::new();
            Walk { root: &schema, found: &mut found }.mask(&mut arguments, &schema, 0);
            self.remember(found);
        }
    }

    fn remember(&self, found: Vec<String>) {
        let mut memory = self.lock();
        let secrets = &mut memory.secrets;
        let is_kept = |secret: &String| (LEAST_LENGTH..=MAX_BYTES).contains(&secret.len());
        for form in found.into_iter().filter(is_kept).flat_map(forms) {
            if !secrets.contains(&form) {
                secrets.push_back(form);
            }
        }
        let mut bytes: usize = secrets.iter().map(String::len).sum();
        while secrets.len() > MAX_SECRETS || bytes > MAX_BYTES {
            bytes -= secrets.pop_front().map_or(0, |secret| secret.len());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Memory> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers the questions in a message whose answers may have secrets.
    fn note_questions(&self, link: u64, message: &Value) {
        let is_question = message["method"] == Method::Elicit.name();
        let own = is_question.then(|| ((link, message["id"].to_string()), message));
        let inputs = ["/result/inputRequests", "/params/inputRequests"];
        let inputs = inputs.iter().filter_map(|at| message.pointer(at)?.as_object()).flatten();
        let inputs = inputs.map(|(key, question)| ((0, key.clone()), question));
        for (question, asked) in own.into_iter().chain(inputs) {
            let schema = &asked["params"]["requestedSchema"];
            let text = schema.to_string();
            if text.contains("\"writeOnly\"") || text.contains("\"password\"") {
                let questions = &mut self.lock().questions;
                let kept = (text.len() <= MAX_SCHEMA).then(|| schema.clone());
                questions.push_back((question, kept));
                if questions.len() > MAX_QUESTIONS {
                    questions.pop_front();
                }
            }
        }
    }

    /// Masks the answers to questions that are remembered. Returns the number of masked values.
    fn mask_answers(&self, link: u64, message: &mut Value, found: &mut Vec<String>) -> usize {
        let id = (link, message["id"].to_string());
        let mut answers = Vec::new();
        if message.get("method").is_none() {
            answers.extend(message.get_mut("result").map(|result| (id, result)));
        } else if let Some(Value::Object(given)) = message.pointer_mut("/params/inputResponses") {
            answers.extend(given.iter_mut().map(|(key, result)| ((0, key.clone()), result)));
        }
        let mut count = 0;
        for (question, answer) in answers {
            let Some(content) = answer.get_mut("content").filter(|one| one.is_object()) else {
                continue;
            };
            for (_, schema) in self.lock().questions.iter().filter(|(one, _)| *one == question) {
                count += match schema {
                    Some(schema) => Walk { root: schema, found }.mask(content, schema, 0),
                    None => mask_all(content),
                };
            }
        }
        count
    }

    /// Masks a message of a link. `schema` gives the schema of the arguments of a tool; all arguments of a tool
    /// without one are masked.
    pub(crate) fn apply(
        &self,
        link: u64,
        message: &Bytes,
        schema: impl Fn(&str) -> Option<Value>,
    ) -> Masked {
        let read = serde_json::from_slice::<Value>(message);
        let Ok(mut value) = read.or_else(|_| serde_json::from_slice(&readable(message))) else {
            return Masked { json: None, count: 0 };
        };
        let mut found = Vec::new();
        let mut count = 0;
        let messages = match &mut value {
            Value::Array(batch) => batch.as_mut_slice(),
            one => std::slice::from_mut(one),
        };
        for message in messages {
            self.note_questions(link, message);
            count += self.mask_answers(link, message, &mut found);
            if message["method"] != Method::CallTool.name() {
                continue;
            }
            let schema = message["params"]["name"].as_str().and_then(&schema);
            let Some(arguments) = message.pointer_mut("/params/arguments") else { continue };
            count += match schema {
                Some(schema) => {
                    Walk { root: &schema, found: &mut found }.mask(arguments, &schema, 0)
                }
                None => mask_all(arguments),
            };
        }
        self.remember(found);
        count += replace(&mut value, &self.lock().secrets);
        // A message without secrets is kept as it was written, on one line.
        let json = match count {
            0 => String::from_utf8_lossy(message).trim().replace(['\n', '\r'], " "),
            _ => value.to_string(),
        };
        Masked { json: Some(json), count }
    }

    /// Masks a text that is not JSON.
    pub(crate) fn apply_to_text(&self, text: &str) -> String {
        self.lock().secrets.iter().fold(text.to_owned(), |text, secret| text.replace(secret, MASK))
    }

    /// Masks headers. Some repeat arguments, which are secret if any argument is.
    pub(crate) fn apply_to_headers(&self, headers: &mut Map<String, Value>, has_secrets: bool) {
        const SECRET: &[&str] = &[
            "assertion",
            "auth",
            "cookie",
            "credential",
            "jwt",
            "key",
            "oidc",
            "passw",
            "secret",
            "session",
            "token",
        ];
        for (name, value) in headers {
            let is_argument = has_secrets && name.starts_with("mcp-param-");
            if is_argument || SECRET.iter().any(|word| name.contains(word)) {
                *value = MASK.into();
            }
        }
    }
}

/// The same JSON without parts that `Value` cannot represent: numbers that are too large, and
/// unpaired surrogates, which occur in texts that were cut.
fn readable(json: &[u8]) -> Vec<u8> {
    let code = |at: usize| {
        let digits = json.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u16::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()
    };
    let is_of_number = |byte: &u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
    let (mut out, mut at, mut is_text) = (Vec::with_capacity(json.len()), 0, false);
    while let Some(byte) = json.get(at) {
        let rest = &json[at..];
        let is_half = is_text && matches!(code(at), Some(0xd800..=0xdfff));
        let is_pair =
            matches!((code(at), code(at + 6)), (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)));
        let length = match byte {
            b'\\' if is_half && is_pair => 12,
            b'\\' if is_half => 6,
            b'\\' => 2.min(rest.len()),
            byte if !is_text && is_of_number(byte) => {
                rest.iter().take_while(|byte| is_of_number(byte)).count()
            }
            _ => 1,
        };
        is_text ^= *byte == b'"';
        let part = &rest[..length];
        let number = str::from_utf8(part).ok().filter(|_| !is_text && is_of_number(byte));
        let is_large = number.is_some_and(|text| text.parse().is_ok_and(f64::is_infinite));
        out.extend_from_slice(match part {
            _ if is_half && !is_pair => b"?",
            _ if is_large => b"0",
            part => part,
        });
        at += length;
    }
    out
}

/// A secret as it is, and as it is written in JSON that is part of a text: some programs escape all
/// characters that are not ASCII.
fn forms(secret: String) -> [String; 3] {
    let json = Value::from(&*secret).to_string();
    let json = json[1..json.len() - 1].to_owned();
    let mut ascii = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            '\0'..='\x7f' => ascii.push(character),
            _ => {
                let mut units = [0; 2];
                let units = character.encode_utf16(&mut units).iter();
                ascii.extend(units.map(|unit| format!("\\u{unit:04x}")));
            }
        }
    }
    [secret, json, ascii]
}

/// Masks all arguments. Returns their number.
fn mask_all(arguments: &mut Value) -> usize {
    match arguments {
        Value::Object(members) => {
            members.values_mut().for_each(|member| *member = MASK.into());
            members.len()
        }
        other => {
            *other = MASK.into();
            1
        }
    }
}

/// Replaces every text with a secret in it.
fn replace(value: &mut Value, secrets: &VecDeque<String>) -> usize {
    match value {
        Value::String(text) if secrets.iter().any(|secret| text.contains(secret)) => {
            for secret in secrets {
                *text = text.replace(secret, MASK);
            }
            1
        }
        Value::Array(items) => items.iter_mut().map(|item| replace(item, secrets)).sum(),
        Value::Object(members) => members.values_mut().map(|one| replace(one, secrets)).sum(),
        _ => 0,
    }
}

/// Follows a schema through a value.
struct Walk<'a> {
    root: &'a Value,
    found: &'a mut Vec<String>,
}

impl Walk<'_> {
    /// Masks the values that the schema marks as secret. Returns their number.
    fn mask(&mut self, value: &mut Value, schema: &Value, depth: usize) -> usize {
        if depth > MAX_DEPTH || *value == MASK {
            return 0;
        }
        if schema["writeOnly"] == true || schema["format"] == "password" {
            self.take_texts(std::mem::replace(value, MASK.into()));
            return 1;
        }
        let root = self.root;
        let target = schema["$ref"].as_str().and_then(|target| target.strip_prefix('#'));
        let target = target.and_then(|target| root.pointer(target));
        let parts = ["allOf", "anyOf", "oneOf"].iter().filter_map(|name| schema[name].as_array());
        let branches = ["if", "then", "else"].iter().filter_map(|name| schema.get(name));
        let named = ["dependentSchemas", "dependencies"];
        let named = named.iter().filter_map(|name| schema[name].as_object()).flat_map(Map::values);
        let mut count = 0;
        for part in target.into_iter().chain(parts.flatten()).chain(branches).chain(named) {
            count += self.mask(value, part, depth + 1);
        }
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    let own = schema["properties"].get(name);
                    let others = schema["patternProperties"].as_object();
                    let others = others.into_iter().flat_map(Map::values);
                    let rest = ["additionalProperties", "unevaluatedProperties"];
                    let rest = rest.iter().filter_map(|name| schema.get(name));
                    let rest = rest.filter(|_| own.is_none());
                    for part in own.into_iter().chain(others).chain(rest) {
                        count += self.mask(member, part, depth + 1);
                    }
                }
            }
            Value::Array(items) => {
                // In draft-07, `items` may be a list.
                let first = schema["prefixItems"].as_array().or(schema["items"].as_array());
                let first = first.map_or(&[][..], Vec::as_slice);
                let rest = ["items", "additionalItems", "unevaluatedItems", "contains"];
                for (nth, item) in items.iter_mut().enumerate() {
                    let rest = rest.iter().filter_map(|name| schema.get(name));
                    let rest = rest.filter(|_| nth >= first.len());
                    for part in first.get(nth).into_iter().chain(rest) {
                        count += self.mask(item, part, depth + 1);
                    }
                }
            }
            _ => {}
        }
        count
    }

    /// Remembers all texts in a secret.
    fn take_texts(&mut self, secret: Value) {
        match secret {
            Value::String(text) => self.found.push(text),
            Value::Array(items) => items.into_iter().for_each(|item| self.take_texts(item)),
            Value::Object(members) => members.into_iter().for_each(|(_, one)| self.take_texts(one)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
