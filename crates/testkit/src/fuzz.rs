//! The functions that both the fuzzers and the property tests run.
//!
//! Each takes arbitrary bytes and panics where a promise is broken. Inputs that once found a bug, and
//! seeds, are in `fuzz/corpus`.

mod operations;
mod schema;
mod session;

use bytes::Bytes;
use sabir_wire::{Incoming, Line, LineSplitter, Malformed, MalformedKind, Message, ParsedRequest};
use sabir_wire::{Raw, decode};
use serde::de::IgnoredAny;
use serde_json::Value;

pub use sabir_transports::http::fuzzing::{header_rules as headers, plain_requests as http_head};
pub use schema::schema;
pub use session::{client_words, session};

/// How deep a message may be nested here.
const DEPTH: usize = 16;

/// Any bytes are a message or a parse error; and messages that must not be answered are recognized.
pub fn envelope(bytes: &[u8]) {
    let decoded = decode(&Bytes::copy_from_slice(bytes), DEPTH);
    let text = std::str::from_utf8(bytes);
    let is_json = text.is_ok_and(|text| serde_json::from_str::<IgnoredAny>(text).is_ok());
    match &decoded {
        Ok(incoming) => {
            assert!(is_json, "what is not JSON was taken for a message");
            match incoming {
                Incoming::One(message) => check_message(message),
                Incoming::Batch(parts) => parts.iter().flatten().for_each(check_message),
            }
        }
        Err(malformed) => {
            let is_syntax = matches!(malformed.kind, MalformedKind::Syntax(_));
            assert_eq!(is_syntax, !is_json, "{malformed:?}");
            if let Ok(value) = serde_json::from_slice(bytes) {
                check_refusal(&value, malformed);
            }
        }
    }
}

/// A request that the reader of plain requests accepts is parsed in the same way by the full parser.
/// The first byte is the limit of the nesting.
pub fn parsed_request(bytes: &[u8]) {
    let [depth, frame @ ..] = bytes else { return };
    let (depth, frame) = (usize::from(depth % 32), Bytes::copy_from_slice(frame));
    let Some(quick) = ParsedRequest::decode(&frame, depth) else { return };
    match decode(&frame, depth) {
        Ok(Incoming::One(Message::Request { id, method, params })) => {
            let careful = ParsedRequest::read(id, method, params);
            assert_eq!(format!("{quick:?}"), format!("{careful:?}"), "the readers disagree");
        }
        other => panic!("the full parser reads {other:?}, the other one {quick:?}"),
    }
}

fn check_message(message: &Message) {
    match message {
        Message::Request { params, .. } | Message::Notification { params, .. } => {
            params.iter().for_each(check_raw);
        }
        Message::Response { result: Ok(result), .. } => check_raw(result),
        Message::Response { result: Err(error), .. } => error.data.iter().for_each(check_raw),
    }
}

fn check_raw(raw: &Raw) {
    assert!(raw.read::<IgnoredAny>().is_ok(), "invalid JSON: {raw:?}");
    assert!(!raw.text().contains(['\n', '\r']), "{raw:?} breaks its line");
}

fn check_refusal(value: &Value, malformed: &Malformed) {
    let has = |key: &str| value.get(key).is_some();
    let is_response = !has("method") && (has("result") || has("error"));
    let is_notification = !has("id") && value["method"].is_string();
    if is_response || is_notification {
        assert!(!malformed.answerable, "{value} would be answered");
    } else {
        assert!(malformed.answerable, "{value} would not be answered");
    }
}

/// The lines of a stream do not depend on how it is split, and none takes more memory than the limit.
///
/// The first byte is the limit, the second how the rest is split.
pub fn lines(bytes: &[u8]) {
    let [limit, cut, stream @ ..] = bytes else { return };
    let (limit, cut) = (usize::from(*limit), usize::from(*cut).max(1));
    let mut splitter = LineSplitter::new(limit);
    let mut found = Vec::new();
    for chunk in stream.chunks(cut) {
        splitter.buffer().extend_from_slice(chunk);
        while let Some(line) = splitter.next_line() {
            found.push(line);
        }
        assert!(splitter.buffer().len() <= limit + 1, "more is kept than a line may have");
    }
    found.extend(splitter.finish());
    assert_eq!(found, plain_lines(stream, limit));
}

/// The same, in the simplest way.
fn plain_lines(stream: &[u8], limit: usize) -> Vec<Line> {
    let lines = stream.split(|byte| *byte == b'\n').map(|line| match line {
        [line @ .., b'\r'] => line,
        line => line,
    });
    let wanted = lines.filter(|line| line.len() > limit || !line.trim_ascii().is_empty());
    wanted
        .map(|line| match line.len() {
            length if length > limit => Line::TooLong,
            _ => Line::Message(Bytes::copy_from_slice(line)),
        })
        .collect()
}
