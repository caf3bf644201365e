//! One call, and how it is shown.

use std::sync::Arc;

use bytes::Bytes;
use sabir_engine::{ObservedCall, TransportKind};
use sabir_wire::{Era, HttpExchange, MASK};
use serde_json::{Map, Value, json};

use crate::mask::Masker;

/// A call that is remembered.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) call: ObservedCall,
    /// The version of the last change.
    pub(super) version: u64,
    pub(super) began_ms: f64,
    pub(super) duration_ms: Option<f64>,
    pub(super) outcome: Option<String>,
    pub(super) is_error: bool,
    pub(super) result_bytes: usize,
    pub(super) request: Arrived,
    pub(super) response: Text,
    pub(super) notes: Vec<(f64, String)>,
    pub(super) more_notes: usize,
    pub(super) legs: Vec<Leg>,
    pub(super) passed: Vec<Passed>,
    pub(super) more_passed: usize,
}

/// The beginning of a text.
#[derive(Clone, Debug, Default)]
pub(super) struct Text {
    pub(super) kept: Bytes,
    pub(super) length: usize,
}

/// A message of a client.
#[derive(Clone, Debug, Default)]
pub(super) struct Arrived {
    pub(super) message: Text,
    pub(super) headers: Arc<[(String, String)]>,
}

/// A request to an upstream that was made for a call.
#[derive(Debug)]
pub(super) struct Leg {
    /// Milliseconds since the call began.
    pub(super) at: f64,
    pub(super) took: f64,
    pub(super) upstream: String,
    /// A description for people.
    pub(super) text: String,
}

/// A message or an HTTP exchange between us and an upstream for a call.
#[derive(Debug)]
pub(super) struct Passed {
    /// Milliseconds since the call began.
    pub(super) at: f64,
    pub(super) upstream: Arc<str>,
    pub(super) what: What,
}

#[derive(Debug)]
pub(super) enum What {
    Sent(Text),
    Received(Text),
    Exchanged(HttpExchange),
}

impl Text {
    pub(super) fn new(text: &[u8], limit: usize) -> Self {
        // A copy: the text may be a small part of a large buffer.
        Self { kept: Bytes::copy_from_slice(&text[..text.len().min(limit)]), length: text.len() }
    }

    fn is_whole(&self) -> bool {
        self.kept.len() == self.length
    }
}

impl Arrived {
    /// About how many bytes it takes.
    pub(super) fn size(&self) -> usize {
        self.message.kept.len() + size(&self.headers)
    }
}

impl What {
    fn size(&self) -> usize {
        match self {
            Self::Sent(text) | Self::Received(text) => text.kept.len(),
            Self::Exchanged(exchange) => size(&exchange.request) + size(&exchange.response),
        }
    }
}

fn size(headers: &[(String, String)]) -> usize {
    headers.iter().map(|(name, value)| name.len() + value.len()).sum()
}

/// About how many bytes a note takes. Most are so short that the text is the smaller part.
fn note_size(note: &(f64, String)) -> usize {
    size_of_val(note) + note.1.len()
}

impl Entry {
    /// The bytes of its messages, its notes, the descriptions of its legs and its schema.
    pub(super) fn texts(&self) -> usize {
        let passed: usize = self.passed.iter().map(|passed| passed.what.size()).sum();
        let notes: usize = self.notes.iter().map(note_size).sum();
        let legs: usize = self.legs.iter().map(|leg| leg.text.len()).sum();
        let schema = self.call.schema.as_ref().filter(|_| self.call.has_secrets());
        let schema = schema.map_or(0, |schema| schema.text().len());
        self.request.size() + self.response.kept.len() + passed + notes + legs + schema
    }

    /// Forgets its messages, its notes, the descriptions of its legs and its schema.
    pub(super) fn forget_texts(&mut self) {
        if self.call.has_secrets() {
            self.call.schema = None;
        }
        self.request.message.kept = Bytes::new();
        self.request.headers = Arc::default();
        self.response.kept = Bytes::new();
        self.more_passed += self.passed.len();
        self.passed = Vec::new();
        self.more_notes += self.notes.len();
        self.notes = Vec::new();
        self.legs.iter_mut().for_each(|leg| leg.text = String::new());
    }

    /// Adds a note. Returns the bytes that it takes.
    pub(super) fn note(&mut self, note: (f64, String), most: usize) -> usize {
        if self.notes.len() >= most {
            self.more_notes += 1;
            return 0;
        }
        let size = note_size(&note);
        self.notes.push(note);
        size
    }

    /// Adds a leg. Returns the bytes that its description takes.
    pub(super) fn leg(&mut self, leg: Leg, most: usize) -> usize {
        if self.legs.len() >= most {
            return 0;
        }
        let size = leg.text.len();
        self.legs.push(leg);
        size
    }

    /// Whether a request was sent to this upstream for it.
    pub(super) fn has_asked(&self, upstream: &str) -> bool {
        self.legs.iter().any(|leg| leg.upstream == upstream)
            || self.passed.iter().any(|passed| *passed.upstream == *upstream)
    }

    /// Adds a message or an exchange. Returns the bytes that it takes.
    pub(super) fn pass(&mut self, passed: Passed, most: usize) -> usize {
        if self.passed.len() >= most {
            self.more_passed += 1;
            return 0;
        }
        let size = passed.what.size();
        self.passed.push(passed);
        size
    }

    /// Whether its response names a tool; `None` if that is not known any more.
    pub(super) fn response_names(&self, tool: &str) -> Option<bool> {
        let named = format!("\"name\":{}", Value::from(tool));
        let is_named = String::from_utf8_lossy(&self.response.kept).contains(&named);
        (is_named || (self.response.is_whole() && self.response.length > 0)).then_some(is_named)
    }

    /// The row of the list of calls.
    pub(super) fn summary(&self) -> Value {
        let call = &self.call;
        let client = call.client.as_ref().and_then(|client| client.read::<Value>().ok());
        let transport = match call.transport {
            TransportKind::Pipe => "stdio",
            TransportKind::Http => "http",
            _ => "websocket",
        };
        json!({
            "number": call.number,
            "method": call.method.name(),
            "name": call.name.as_deref(),
            "caller": call.caller.to_string(),
            "client": client.as_ref().and_then(|client| client["name"].as_str()),
            "clientVersion": client.as_ref().and_then(|client| client["version"].as_str()),
            "revision": call.revision.date(),
            "era": if call.revision.era() == Era::Modern { "modern" } else { "legacy" },
            "transport": transport,
            "began": self.began_ms,
            "duration": self.duration_ms,
            "outcome": self.outcome,
            "isError": self.is_error,
            "bytes": self.result_bytes,
            "notes": self.notes.iter().map(|(at, _)| at).collect::<Vec<_>>(),
            "legs": self.legs.iter().map(|leg| (leg.at, leg.took)).collect::<Vec<_>>(),
        })
    }

    /// The details of the call, without its secrets. `masker` knows those of other calls, `stderr`
    /// has the lines that programs wrote meanwhile.
    pub(super) fn details(&self, masker: Masker, mut stderr: Vec<Value>) -> Value {
        let schema = self.call.schema.as_ref().and_then(|schema| schema.read().ok());
        let is_secret = self.call.has_secrets();
        let shown = Shown { masker, schema, is_secret };
        let mut details = self.summary();
        // First the request: its secrets are masked wherever they occur again.
        details["request"] = shown.text(&self.request.message);
        details["headers"] = shown.headers(&self.request.headers);
        details["response"] = shown.text(&self.response);
        // Without the whole request its secrets are not known.
        let is_hidden = is_secret && !self.request.message.is_whole();
        let mask = |text: &str| match is_hidden {
            true => Value::from(MASK),
            false => Value::from(shown.masker.apply_to_text(text)),
        };
        let at = |(at, text): &(f64, String)| json!({ "at": at, "text": mask(text) });
        details["notes"] = self.notes.iter().map(at).collect();
        details["moreNotes"] = self.more_notes.into();
        let leg = |leg: &Leg| json!({ "at": leg.at, "took": leg.took, "upstream": leg.upstream, "text": leg.text });
        details["legs"] = self.legs.iter().map(leg).collect();
        details["passed"] = self.passed.iter().map(|passed| shown.passed(passed)).collect();
        details["morePassed"] = self.more_passed.into();
        for line in &mut stderr {
            line["text"] = mask(line["text"].as_str().unwrap_or_default());
        }
        details["stderr"] = stderr.into();
        details
    }
}

/// Shows the messages of one call without its secrets.
struct Shown {
    masker: Masker,
    /// The schema of its arguments.
    schema: Option<Value>,
    /// Whether an argument of its tool is secret.
    is_secret: bool,
}

impl Shown {
    /// The text as JSON, or as text if it was cut or is not JSON.
    fn text(&self, text: &Text) -> Value {
        if text.length == 0 {
            return Value::Null;
        }
        // Every call in its messages is itself: an upstream may know the tool by another name.
        let masked =
            text.is_whole().then(|| self.masker.apply(0, &text.kept, |_| self.schema.clone()).json);
        let json = masked.flatten().and_then(|json| serde_json::from_str(&json).ok());
        json.unwrap_or_else(|| {
            let kept = match self.is_secret {
                // The text was not parsed, so it may contain a secret.
                true => MASK.into(),
                false => String::from_utf8_lossy(&text.kept),
            };
            json!({ "cut": kept, "length": text.length })
        })
    }

    fn headers(&self, headers: &[(String, String)]) -> Value {
        let texts = headers.iter().map(|(name, value)| (name.clone(), value.as_str().into()));
        let mut shown: Map<_, _> = texts.collect();
        self.masker.apply_to_headers(&mut shown, self.is_secret);
        if shown.is_empty() { Value::Null } else { Value::Object(shown) }
    }

    fn passed(&self, Passed { at, upstream, what }: &Passed) -> Value {
        let (way, message) = match what {
            What::Sent(text) => ("to", self.text(text)),
            What::Received(text) => ("from", self.text(text)),
            What::Exchanged(HttpExchange { request, status, response }) => {
                let (request, response) = (self.headers(request), self.headers(response));
                let heads = json!({ "request": request, "status": status, "response": response });
                ("headers", heads)
            }
        };
        json!({ "at": at, "way": way, "upstream": upstream, "message": message })
    }
}
