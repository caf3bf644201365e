//! The last calls, with their messages to and from clients and upstreams. Old ones are forgotten.

mod entry; // one call
mod seen; // messages

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use sabir_engine::{Ended, Ending, ObservedCall, Observer};
use sabir_registry::{OutgoingObserver, OutgoingRequest};
use sabir_session::CallNotification;
use sabir_wire::{Caller, Method, Raw, Revision, Tap as _};
use serde_json::{Value, json};
use tokio::sync::Notify;

use self::entry::{Arrived, Entry, Leg, Text};
use self::seen::Seen;
use crate::mask::Masker;

/// The limits of a timeline.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Calls. When full, the oldest is forgotten.
    pub calls: usize,
    /// Bytes of one message. Of a longer one the beginning is kept.
    pub text: usize,
    /// Bytes of all messages, notes and descriptions of requests to upstreams. When full, those of
    /// the oldest calls are forgotten.
    pub bytes: usize,
    /// Progress reports and log messages of one call. Further and forgotten ones are counted.
    pub notes: usize,
    /// Requests to upstreams for one call, and the messages of these. Further ones are counted.
    pub passed: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { calls: 10_000, text: 64 << 10, bytes: 32 << 20, notes: 100, passed: 32 }
    }
}

/// The last calls of an engine.
#[derive(Debug)]
pub struct Timeline {
    bounds: Bounds,
    is_on: AtomicBool,
    calls: Mutex<Calls>,
    seen: Mutex<Seen>,
    /// Knows the secrets of the last calls.
    masker: Masker,
    changed: Notify,
    this: Weak<Self>,
}

#[derive(Debug, Default)]
struct Calls {
    /// By number, without a gap: the first has the number `first`.
    entries: VecDeque<Option<Entry>>,
    first: u64,
    /// Entries before this number have no texts.
    first_text: u64,
    bytes: usize,
    /// Counts changes.
    version: u64,
}

fn now_ms() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_secs_f64() * 1e3
}

impl Observer for Timeline {
    fn began(&self, call: &ObservedCall) {
        if !self.is_on() {
            return;
        }
        let request = self.seen().request(call).unwrap_or_else(|| self.request_of(call));
        let mut call = call.clone();
        // What is secret is decided now: the tool may be changed or removed later.
        call.schema = match (call.has_secrets(), call.schema) {
            (true, Some(schema)) => {
                call.arguments.iter().for_each(|given| self.masker.learn(given, &schema));
                Some(schema.compact())
            }
            (true, None) => None,
            (false, _) => Some(Raw::empty_object()),
        };
        // The arguments are a part of the message and would keep all of it in memory.
        call.arguments = None;
        call.meta = None;
        call.http_trace = None;
        call.client = call.client.as_ref().map(kept_client);
        call.name = call.name.as_deref().map(|name| cut(name).into());
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
            legs: Vec::new(),
            passed: Vec::new(),
            more_passed: 0,
            call,
        };
        calls.bytes += entry.texts();
        calls.add(entry, &self.bounds);
        drop(calls);
        self.changed.notify_waiters();
    }

    fn noted(&self, number: u64, note: &CallNotification) {
        if !self.is_on() {
            return;
        }
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
            let at = now_ms() - entry.began_ms;
            entry.note((at, cut(&text).to_owned()), most)
        });
    }

    fn outgoing(
        &self,
        number: u64,
        request: &OutgoingRequest<'_>,
    ) -> Option<Box<dyn OutgoingObserver>> {
        if !self.is_on() {
            return None;
        }
        let OutgoingRequest { upstream, method, name, transport, .. } = *request;
        let name = name.map(|name| format!(" {}", cut(name))).unwrap_or_default();
        let text = format!("{}{name} by {transport}", method.name());
        let (timeline, upstream) = (self.this.clone(), upstream.to_owned());
        Some(Box::new(RunningLeg { timeline, number, began_ms: now_ms(), upstream, text }))
    }

    fn ended(&self, call: &ObservedCall, ending: &Ending<'_>) {
        let outcome = self.masker.apply_to_text(&ending.outcome.text());
        self.change(call.number, |entry| {
            entry.duration_ms = Some(ending.duration.as_secs_f64() * 1e3);
            entry.outcome = Some(cut(&outcome).to_owned());
            entry.is_error =
                matches!(ending.outcome, Ended::ToolError | Ended::Failed(_) | Ended::Aborted);
            entry.result_bytes = ending.bytes;
            0
        });
    }

    fn answered(&self, number: u64, response: &Bytes) {
        if !self.is_on() {
            return;
        }
        let text = Text::new(response, self.bounds.text);
        self.change(number, |entry| {
            entry.response = text;
            entry.response.kept.len()
        });
    }
}

/// A request to an upstream that has no answer yet.
#[derive(Debug)]
struct RunningLeg {
    timeline: Weak<Timeline>,
    number: u64,
    began_ms: f64,
    upstream: String,
    text: String,
}

impl OutgoingObserver for RunningLeg {
    fn ended(self: Box<Self>, revision: Option<Revision>, error: Option<&str>) {
        let Self { timeline, number, began_ms, upstream, text } = *self;
        let Some(timeline) = timeline.upgrade() else { return };
        let revision = revision.map(|revision| format!(", revision {}", revision.date()));
        let text = format!("{text}{}: {}", revision.unwrap_or_default(), error.unwrap_or("ok"));
        let most = timeline.bounds.passed;
        timeline.change(number, |entry| {
            let (at, took) = (began_ms - entry.began_ms, now_ms() - began_ms);
            entry.leg(Leg { at, took, upstream, text }, most)
        });
    }
}

/// Bytes of a note, a name, an outcome, and about so many of what a client says about itself. Longer
/// ones are cut.
const MAX_TEXT: usize = 1_000;

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_TEXT)]
}

/// A copy of what a client says about itself. Of a long one, the beginning of its name and version.
fn kept_client(client: &Raw) -> Raw {
    if client.text().len() <= MAX_TEXT {
        return client.compact();
    }
    let short = |name: &str| {
        let text: String = client.member(name)?.read().ok()?;
        Some(text[..text.floor_char_boundary(MAX_TEXT / 4)].to_owned())
    };
    json!({ "name": short("name"), "version": short("version") }).into()
}

impl Calls {
    fn add(&mut self, entry: Entry, bounds: &Bounds) {
        let number = entry.call.number;
        if self.entries.is_empty() {
            self.first = number;
        }
        // Two threads may begin their calls in another order than they numbered them.
        let Some(at) = number.checked_sub(self.first) else {
            self.bytes -= entry.texts();
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
                entry.forget_texts();
            }
            self.first_text += 1;
        }
    }

    fn get(&self, number: u64) -> Option<&Entry> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.entries.get(at)?.as_ref()
    }
}

impl Timeline {
    /// A timeline with these limits. It remembers nothing until it is switched on.
    pub fn new(bounds: Bounds) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            bounds,
            is_on: AtomicBool::new(false),
            calls: Mutex::default(),
            seen: Mutex::default(),
            masker: Masker::default(),
            changed: Notify::new(),
            this: this.clone(),
        })
    }

    /// Remembers the calls that begin from now on.
    pub fn switch_on(&self) {
        self.is_on.store(true, Ordering::Relaxed);
    }

    /// The request of a call whose message was not seen.
    fn request_of(&self, call: &ObservedCall) -> Arrived {
        let arguments = call.arguments.as_ref().map_or("null", Raw::text);
        let name = Value::from(call.name.as_deref());
        let text = format!(
            r#"{{"method":"{}","params":{{"name":{name},"arguments":{arguments}}}}}"#,
            call.method.name()
        );
        let length = if call.method == Method::CallTool { text.len() } else { 0 };
        Arrived {
            message: Text::new(&text.as_bytes()[..length], self.bounds.text),
            ..Arrived::default()
        }
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

    /// The details of a call, without its secrets; `None` if it was forgotten.
    pub(crate) fn call(&self, number: u64) -> Option<Value> {
        let seen = self.seen();
        let calls = self.lock();
        let entry = calls.get(number)?;
        Some(entry.details(self.masker.copy(), seen.lines(entry)))
    }

    /// The caller of a call; `None` if the call was forgotten.
    pub(crate) fn caller(&self, number: u64) -> Option<Caller> {
        self.lock().get(number).map(|entry| entry.call.caller.clone())
    }

    /// The last list of tools that the client of a call got: when, and whether `tool` was in it, if
    /// that is still known.
    pub(crate) fn last_list(&self, number: u64, tool: &str) -> Option<Value> {
        let calls = self.lock();
        let client = &calls.get(number)?.call;
        let is_list = |entry: &&Entry| {
            let call = &entry.call;
            call.method == Method::ListTools
                && call.client == client.client
                && call.caller.is_same_as(&client.caller)
        };
        let list = calls.entries.iter().rev().flatten().find(is_list)?;
        Some(json!({ "at": list.began_ms, "had": list.response_names(tool) }))
    }

    /// Completes when something has changed after it was first polled.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Changes a call, and counts the bytes that `change` has added.
    fn change(&self, number: u64, change: impl FnOnce(&mut Entry) -> usize) {
        if !self.is_on() {
            return;
        }
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
