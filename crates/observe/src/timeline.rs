//! The last calls, with what was asked and answered. Old ones are forgotten.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use sabir_engine::{Ended, Ending, ObservedCall, Observer, TransportKind};
use sabir_session::CallNotification;
use sabir_wire::{Era, Method, Raw};
use serde_json::{Value, json};
use tokio::sync::Notify;

/// How much is remembered.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Calls. For one more the oldest is forgotten.
    pub calls: usize,
    /// Bytes of one request, and of one response. Of a longer one the beginning is kept.
    pub text: usize,
    /// Bytes of all requests and responses. For more, those of the oldest calls are forgotten.
    pub bytes: usize,
    /// Progress reports and log messages of one call. Further ones are counted.
    pub notes: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { calls: 10_000, text: 64 << 10, bytes: 32 << 20, notes: 100 }
    }
}

/// The last calls of an engine.
#[derive(Debug)]
pub struct Timeline {
    bounds: Bounds,
    calls: Mutex<Calls>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Calls {
    /// By number, without a gap: the first has the number `first`.
    entries: VecDeque<Option<Entry>>,
    first: u64,
    /// Entries from here on may have texts.
    first_text: u64,
    bytes: usize,
    /// Counts changes.
    version: u64,
}

#[derive(Debug)]
struct Entry {
    call: ObservedCall,
    /// The version of the last change.
    version: u64,
    began_ms: f64,
    duration_ms: Option<f64>,
    outcome: Option<String>,
    is_error: bool,
    result_bytes: usize,
    request: Text,
    response: Text,
    notes: Vec<(f64, String)>,
    more_notes: usize,
}

/// The beginning of a text.
#[derive(Debug, Default)]
struct Text {
    kept: Bytes,
    length: usize,
}

impl Text {
    fn new(text: &[u8], limit: usize) -> Self {
        // A copy: the text may be a small part of a large buffer.
        Self { kept: Bytes::copy_from_slice(&text[..text.len().min(limit)]), length: text.len() }
    }

    /// The text as JSON, or as text if it was cut or is none.
    fn value(&self) -> Value {
        if self.length == 0 {
            return Value::Null;
        }
        match serde_json::from_slice(&self.kept) {
            Ok(value) if self.kept.len() == self.length => value,
            _ => json!({
                "cut": String::from_utf8_lossy(&self.kept),
                "length": self.length,
            }),
        }
    }
}

fn now_ms() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_secs_f64() * 1e3
}

impl Observer for Timeline {
    fn began(&self, call: &ObservedCall) {
        let arguments = call.arguments.as_ref().map_or(&b""[..], Raw::as_bytes);
        let request = Text::new(arguments, self.bounds.text);
        let mut call = call.clone();
        // What is kept must not keep the message that it is a part of.
        call.arguments = None;
        call.client = call.client.as_ref().map(Raw::compact);
        call.name = call.name.as_deref().map(Into::into);
        let mut calls = self.lock();
        calls.version += 1;
        let entry = Entry {
            version: calls.version,
            began_ms: now_ms(),
            duration_ms: None,
            outcome: None,
            is_error: false,
            result_bytes: 0,
            request,
            response: Text::default(),
            notes: Vec::new(),
            more_notes: 0,
            call,
        };
        calls.bytes += entry.request.kept.len();
        calls.add(entry, &self.bounds);
        drop(calls);
        self.changed.notify_waiters();
    }

    fn noted(&self, number: u64, note: &CallNotification) {
        let text = match note {
            CallNotification::Progress { progress, total, message } => {
                let total = total.map(|total| format!(" of {total}")).unwrap_or_default();
                let message = message.as_deref().map(|m| format!(": {m}")).unwrap_or_default();
                format!("progress {progress}{total}{message}")
            }
            CallNotification::Log { level, data, .. } => format!("{level:?}: {}", data.text()),
            CallNotification::Other { method, .. } => method.to_string(),
        };
        let most = self.bounds.notes;
        self.change(number, |entry| {
            if entry.notes.len() < most {
                let text = text[..text.floor_char_boundary(MAX_NOTE)].to_owned();
                entry.notes.push((now_ms() - entry.began_ms, text));
            } else {
                entry.more_notes += 1;
            }
            0
        });
    }

    fn ended(&self, call: &ObservedCall, ending: &Ending<'_>) {
        self.change(call.number, |entry| {
            entry.duration_ms = Some(ending.duration.as_secs_f64() * 1e3);
            entry.outcome = Some(ending.outcome.text().into_owned());
            entry.is_error =
                matches!(ending.outcome, Ended::ToolError | Ended::Failed(_) | Ended::Aborted);
            entry.result_bytes = ending.bytes;
            0
        });
    }

    fn answered(&self, number: u64, response: &Bytes) {
        let text = Text::new(response, self.bounds.text);
        self.change(number, |entry| {
            entry.response = text;
            entry.response.kept.len()
        });
    }
}

/// The longest note that is kept.
const MAX_NOTE: usize = 1_000;

impl Calls {
    fn add(&mut self, entry: Entry, bounds: &Bounds) {
        let number = entry.call.number;
        if self.entries.is_empty() {
            self.first = number;
        }
        // Two threads may begin their calls in another order than they numbered them.
        let Some(at) = number.checked_sub(self.first) else {
            self.bytes -= entry.request.kept.len();
            return;
        };
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        while self.entries.len() <= at {
            self.entries.push_back(None);
        }
        self.entries[at] = Some(entry);
        while self.entries.len() > bounds.calls.max(1) {
            let forgotten = self.entries.pop_front().flatten();
            self.bytes -= forgotten.map_or(0, |entry| entry.texts());
            self.first += 1;
        }
        self.forget_texts(bounds);
    }

    /// Forgets texts, the oldest first, until they fit.
    fn forget_texts(&mut self, bounds: &Bounds) {
        self.first_text = self.first_text.max(self.first);
        while self.bytes > bounds.bytes {
            let at = usize::try_from(self.first_text - self.first).unwrap_or(usize::MAX);
            let Some(entry) = self.entries.get_mut(at) else { break };
            if let Some(entry) = entry {
                self.bytes -= entry.texts();
                entry.request.kept = Bytes::new();
                entry.response.kept = Bytes::new();
            }
            self.first_text += 1;
        }
    }

    fn get(&self, number: u64) -> Option<&Entry> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.entries.get(at)?.as_ref()
    }
}

impl Entry {
    fn texts(&self) -> usize {
        self.request.kept.len() + self.response.kept.len()
    }

    /// What the list of calls shows.
    fn summary(&self) -> Value {
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
        })
    }

    fn details(&self) -> Value {
        let mut details = self.summary();
        let is_tool = self.call.method == Method::CallTool;
        details["request"] = if is_tool { self.request.value() } else { Value::Null };
        details["response"] = self.response.value();
        details["notes"] =
            self.notes.iter().map(|(at, text)| json!({ "at": at, "text": text })).collect();
        details["moreNotes"] = self.more_notes.into();
        details
    }
}

impl Timeline {
    /// A timeline that remembers so much.
    pub fn new(bounds: Bounds) -> Arc<Self> {
        Arc::new(Self { bounds, calls: Mutex::default(), changed: Notify::new() })
    }

    /// The calls that have changed after `version`, oldest first and at most `most`, and the version
    /// to ask with next.
    pub(crate) fn since(&self, version: u64, most: usize) -> (Vec<Value>, u64) {
        let calls = self.lock();
        let is_new = |entry: &&Entry| entry.version > version;
        let mut changed: Vec<_> = calls.entries.iter().flatten().filter(is_new).collect();
        changed.sort_by_key(|entry| entry.version);
        changed.truncate(most);
        let last = changed.last().map_or(version, |entry| entry.version);
        (changed.into_iter().map(Entry::summary).collect(), last)
    }

    /// All that is known of a call; `None` if it was forgotten.
    pub(crate) fn call(&self, number: u64) -> Option<Value> {
        self.lock().get(number).map(Entry::details)
    }

    /// Completes when something has changed after it was first polled.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Changes a call, and counts the bytes that `change` has added.
    fn change(&self, number: u64, change: impl FnOnce(&mut Entry) -> usize) {
        let mut guard = self.lock();
        let calls = &mut *guard;
        let at = number.checked_sub(calls.first).and_then(|at| usize::try_from(at).ok());
        let Some(at) = at else { return };
        let Some(Some(entry)) = calls.entries.get_mut(at) else { return };
        calls.version += 1;
        entry.version = calls.version;
        let added = change(entry);
        calls.bytes += added;
        if added > 0 {
            // An old call may get its response late.
            calls.first_text = calls.first_text.min(number);
        }
        calls.forget_texts(&self.bounds);
        drop(guard);
        self.changed.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
