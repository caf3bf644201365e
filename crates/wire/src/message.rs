//! The JSON-RPC 2.0 envelope.
//!
//! Decoding has two steps. [`decode`] reads the envelope and leaves `params` as raw JSON;
//! [`crate::Request::parse`] reads the params once the method is known. So an unknown method and
//! a bad argument are never the same error.
//!
//! Nothing here knows about sessions, time or sockets.

use std::borrow::Cow;

use bytes::Bytes;
use bytestring::ByteString;
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::error::ErrorObject;
use crate::id::Id;
use crate::method::Method;
use crate::raw::{Raw, has_line_break, on_one_line};
use crate::scan;

/// One JSON-RPC message. Its members decide its kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// A message with `method` and `id`.
    Request {
        /// The id that the response repeats. [`Id::NULL`] only if the peer wrote `null`.
        id: Id,
        /// The requested method.
        method: Method,
        /// The params, not yet read.
        params: Option<Raw>,
    },
    /// A message with `method` and without `id`. It is never answered.
    Notification {
        /// The method that names the event.
        method: Method,
        /// The params, not yet read.
        params: Option<Raw>,
    },
    /// A message with `result` or `error`. It is never answered.
    Response {
        /// The id of our request; `None` if the peer could not read it.
        id: Option<Id>,
        /// The result, not yet read, or the error.
        result: Result<Raw, ErrorObject>,
    },
}

/// The content of one frame.
#[derive(Clone, Debug, PartialEq)]
pub enum Incoming {
    /// A single message.
    One(Message),
    /// An array of messages, each read on its own; possibly empty.
    Batch(Vec<Result<Message, Malformed>>),
}

/// A message that could not be read.
#[derive(Clone, Debug, PartialEq)]
pub struct Malformed {
    /// The id for the error response, if one could be read.
    pub id: Option<Id>,
    /// The mistake.
    pub kind: MalformedKind,
    /// Whether an error response may be sent. Responses and notifications are never answered.
    pub answerable: bool,
}

/// A mistake in a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MalformedKind {
    /// Not JSON.
    Syntax(Box<str>),
    /// Longer than the limit.
    TooLong,
    /// Nested deeper than the limit.
    TooDeep,
    /// A batch of more messages than the limit.
    TooMany,
    /// Neither an object nor an array.
    NotAnObject,
    /// `jsonrpc` is not `"2.0"`.
    Version,
    /// `id` is neither a string nor an integer.
    Id,
    /// `method` is missing.
    NoMethod,
    /// `method` is not a string, a member appears twice, or it is both a request and a response.
    Shape(&'static str),
}

/// Reads one frame, in which containers may be nested `max_depth` deep.
pub fn decode(frame: &Bytes, max_depth: usize) -> Result<Incoming, Malformed> {
    let frame = ByteString::try_from(frame.clone())
        .map_err(|_| Malformed::answered(MalformedKind::Syntax("not UTF-8".into())))?;
    let (text, bytes) = (&*frame, frame.as_bytes());
    if has_line_break(bytes) {
        // Only transports without line framing allow line breaks. The check comes first, because a
        // line break inside a string is a mistake that must not be repaired.
        serde_json::from_str::<IgnoredAny>(text).map_err(Malformed::syntax)?;
        return decode(on_one_line(frame).as_bytes(), max_depth);
    }
    let is_deep = is_deeper_than(bytes, max_depth);
    match text.trim_ascii_start().as_bytes().first() {
        Some(b'{') => read_one(&frame, text, is_deep).map(Incoming::One),
        Some(b'[') => {
            let Parts(parts) = serde_json::from_str(text).map_err(Malformed::syntax)?;
            if parts.len() > MAX_BATCH {
                return Err(Malformed::answered(MalformedKind::TooMany));
            }
            let is_deep =
                |part: &str| is_deep && is_deeper_than(part.as_bytes(), max_depth.max(1) - 1);
            let parts = parts.into_iter().map(|part| match part.get() {
                part if part.starts_with('{') => read_one(&frame, part, is_deep(part)),
                _ => Err(Malformed::answered(MalformedKind::NotAnObject)),
            });
            Ok(Incoming::Batch(parts.collect()))
        }
        _ => {
            serde_json::from_str::<IgnoredAny>(text).map_err(Malformed::syntax)?;
            Err(Malformed::answered(MalformedKind::NotAnObject))
        }
    }
}

/// Greatest number of messages in a batch. A longer batch is refused as a whole: each message may be
/// as short as `{}`, and its error response is fifty times as long.
pub const MAX_BATCH: usize = 100;

/// The messages of a batch; at most one more than the limit.
struct Parts<'a>(Vec<&'a RawValue>);

impl<'de: 'a, 'a> Deserialize<'de> for Parts<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Vec<&'de RawValue>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an array")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut parts = Vec::new();
                while parts.len() <= MAX_BATCH {
                    match seq.next_element()? {
                        Some(part) => parts.push(part),
                        None => return Ok(parts),
                    }
                }
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(parts)
            }
        }
        deserializer.deserialize_seq(Collect).map(Parts)
    }
}

/// The members of an envelope as raw JSON. `Some` means present, even if `null`.
#[derive(Default)]
struct Fields<'a> {
    jsonrpc: Option<&'a RawValue>,
    id: Option<&'a RawValue>,
    method: Option<&'a RawValue>,
    params: Option<&'a RawValue>,
    result: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
    /// A member appears twice. Its value is ambiguous, but the kind of the message is not.
    is_ambiguous: bool,
    /// The ambiguous member is the id.
    has_two_ids: bool,
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum Field {
    Jsonrpc,
    Id,
    Method,
    Params,
    Result,
    Error,
    #[serde(other)]
    Other,
}

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
                let mut fields = Fields::default();
                while let Some(field) = map.next_key()? {
                    let is_id = matches!(field, Field::Id);
                    let slot = match field {
                        Field::Jsonrpc => &mut fields.jsonrpc,
                        Field::Id => &mut fields.id,
                        Field::Method => &mut fields.method,
                        Field::Params => &mut fields.params,
                        Field::Result => &mut fields.result,
                        Field::Error => &mut fields.error,
                        Field::Other => {
                            map.next_value::<IgnoredAny>()?;
                            continue;
                        }
                    };
                    let is_taken = slot.replace(map.next_value()?).is_some();
                    fields.is_ambiguous |= is_taken;
                    fields.has_two_ids |= is_taken && is_id;
                }
                Ok(fields)
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

fn read_one(frame: &ByteString, text: &str, is_deep: bool) -> Result<Message, Malformed> {
    let fields: Fields<'_> = serde_json::from_str(text).map_err(Malformed::syntax)?;
    let id = fields.id.map(|id| Id::parse(id.get()));
    let is_response =
        fields.method.is_none() && (fields.result.is_some() || fields.error.is_some());
    let method = fields.method.map(|method| string_of(method.get()));
    let refuse = |kind| {
        let is_notification = id.is_none() && matches!(method, Some(Some(_)));
        Err(Malformed {
            id: id.clone().flatten().filter(|id| !id.is_null() && !fields.has_two_ids),
            kind,
            answerable: !is_response && !is_notification,
        })
    };
    if is_deep {
        return refuse(MalformedKind::TooDeep);
    }
    if fields.is_ambiguous {
        return refuse(MalformedKind::Shape("a member appears twice"));
    }
    if fields.method.is_none() && !is_response {
        return refuse(MalformedKind::NoMethod);
    }
    if fields.jsonrpc.map(RawValue::get) != Some(r#""2.0""#) {
        return refuse(MalformedKind::Version);
    }
    if id == Some(None) {
        return refuse(MalformedKind::Id);
    }
    let id = id.clone().flatten();
    let params = || match fields.params {
        // Seen in the wild, and harmless.
        Some(params) if params.get() == "null" => None,
        other => other.map(|params| Raw::part(frame, params.get())),
    };
    match (&method, id, fields.result, fields.error) {
        (Some(Some(method)), Some(id), None, None) => {
            Ok(Message::Request { id, method: Method::named(method), params: params() })
        }
        (Some(Some(method)), None, None, None) => {
            Ok(Message::Notification { method: Method::named(method), params: params() })
        }
        // A response may carry a null id; refusing it would make two peers answer each other's
        // errors for ever.
        (None, id, Some(result), None) => {
            Ok(Message::Response { id, result: Ok(Raw::part(frame, result.get())) })
        }
        (None, id, None, Some(error)) => match serde_json::from_str(error.get()) {
            Ok(error) => Ok(Message::Response { id, result: Err(error) }),
            Err(_) => {
                refuse(MalformedKind::Shape("invalid `error` (expected a code and a message)"))
            }
        },
        (Some(None), ..) => refuse(MalformedKind::Shape("`method` must be a string")),
        _ => refuse(MalformedKind::Shape("neither a request nor a response")),
    }
}

/// The string that `json` is; `None` for any other value.
fn string_of(json: &str) -> Option<Cow<'_, str>> {
    match scan::plain_string(json) {
        Some(text) => Some(Cow::Borrowed(text)),
        None => serde_json::from_str(json).ok().map(Cow::Owned),
    }
}

/// Whether containers are nested more than `limit` deep. Brackets inside strings do not count.
fn is_deeper_than(json: &[u8], limit: usize) -> bool {
    let mut depth = 0usize;
    let mut at = 0;
    while at < json.len() {
        match json[at] {
            b'"' => at = end_of_string(json, at + 1),
            b'{' | b'[' => {
                depth += 1;
                if depth > limit {
                    return true;
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    false
}

/// The position of the quote that closes the string whose content begins at `at`.
fn end_of_string(json: &[u8], mut at: usize) -> usize {
    while let Some(found) = memchr::memchr2(b'"', b'\\', &json[at.min(json.len())..]) {
        at += found;
        if json[at] == b'"' {
            return at;
        }
        at += 2;
    }
    json.len()
}

impl Malformed {
    /// A frame that was dropped because it is longer than the limit.
    pub const TOO_LONG: Self = Self { id: None, kind: MalformedKind::TooLong, answerable: true };

    fn answered(kind: MalformedKind) -> Self {
        Self { id: None, kind, answerable: true }
    }

    fn syntax(error: serde_json::Error) -> Self {
        Self::answered(MalformedKind::Syntax(error.to_string().into()))
    }
}

/// Writes a response; `result` is JSON.
pub fn write_result(id: &Id, result: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(result.len() + 64);
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    id.write(&mut out);
    out.extend_from_slice(br#","result":"#);
    out.extend_from_slice(result);
    out.push(b'}');
    out.into()
}

/// Writes an error response; without an id if none could be read.
pub fn write_error(id: Option<&Id>, error: &ErrorObject) -> Bytes {
    let mut out = Vec::with_capacity(160);
    out.extend_from_slice(br#"{"jsonrpc":"2.0""#);
    if let Some(id) = id {
        out.extend_from_slice(br#","id":"#);
        id.write(&mut out);
    }
    out.extend_from_slice(br#","error":"#);
    // Writing plain fields into memory cannot fail.
    let _ = serde_json::to_writer(&mut out, error);
    out.push(b'}');
    out.into()
}

/// Writes a request.
pub fn write_request(id: &Id, method: &str, params: Option<&Raw>) -> Bytes {
    write_call(Some(id), method, params)
}

/// Writes a notification.
pub fn write_notification(method: &str, params: Option<&Raw>) -> Bytes {
    write_call(None, method, params)
}

fn write_call(id: Option<&Id>, method: &str, params: Option<&Raw>) -> Bytes {
    let mut out = Vec::with_capacity(params.map_or(0, |raw| raw.as_bytes().len()) + 96);
    begin_call(id, method, &mut out);
    if let Some(params) = params {
        out.extend_from_slice(br#","params":"#);
        out.extend_from_slice(params.as_bytes());
    }
    out.push(b'}');
    out.into()
}

/// Writes a request or a notification up to its params, without its end.
pub(crate) fn begin_call(id: Option<&Id>, method: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(br#"{"jsonrpc":"2.0""#);
    if let Some(id) = id {
        out.extend_from_slice(br#","id":"#);
        id.write(out);
    }
    out.extend_from_slice(br#","method":"#);
    crate::id::write_json_string(method, out);
}

/// Writes the responses to a batch.
pub fn write_batch(answers: &[&[u8]]) -> Bytes {
    let mut out =
        Vec::with_capacity(answers.iter().map(|answer| answer.len() + 1).sum::<usize>() + 1);
    for (nth, answer) in answers.iter().enumerate() {
        out.push(if nth == 0 { b'[' } else { b',' });
        out.extend_from_slice(answer);
    }
    out.push(b']');
    out.into()
}

#[cfg(test)]
mod tests;
