//! The messages that a timeline sees: those of clients before their calls begin, those to and from
//! upstreams, and the standard error of the programs of upstreams.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use bytes::Bytes;
use rustc_hash::FxHashMap;
use sabir_engine::ObservedCall;
use sabir_wire::{HttpExchange, Id, Peer, Raw, Tap};
use serde_json::{Value, json};

use super::entry::{Arrived, Entry, Passed, Text, What};
use super::{Timeline, now_ms};

/// Requests of clients whose calls may not have begun, and their bytes. When full, the oldest are
/// forgotten: their calls are shown without their headers.
const MAX_ARRIVED: usize = 256;
const MAX_ARRIVED_BYTES: usize = 2 << 20;

/// Lines of standard error of all upstreams. When full, the oldest is forgotten.
const MAX_LINES: usize = 2_000;

/// The longest line that is kept. A longer one is cut.
const MAX_LINE: usize = 1_000;

/// How long after the end of a call a line still counts as its own: the program writes the line
/// before its answer, but to another pipe.
const LATE_MS: f64 = 50.0;

/// The messages that were seen.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// The names of upstreams, by link.
    upstreams: FxHashMap<u64, Arc<str>>,
    /// Requests of clients, by link and id.
    arrived: VecDeque<(u64, Id, Arrived)>,
    arrived_bytes: usize,
    lines: VecDeque<Line>,
}

#[derive(Debug)]
struct Line {
    at_ms: f64,
    upstream: Arc<str>,
    text: String,
}

impl Seen {
    fn arrive(&mut self, link: u64, id: Id, arrived: Arrived) {
        self.arrived_bytes += arrived.size();
        self.arrived.push_back((link, id, arrived));
        while self.arrived.len() > MAX_ARRIVED || self.arrived_bytes > MAX_ARRIVED_BYTES {
            let Some((_, _, forgotten)) = self.arrived.pop_front() else { break };
            self.arrived_bytes -= forgotten.size();
        }
    }

    #[cfg(test)]
    pub(super) fn arrived(&self) -> usize {
        self.arrived.len()
    }

    /// The request that begins a call: the last of its link with its id.
    pub(super) fn request(&self, call: &ObservedCall) -> Option<Arrived> {
        let begins = |(link, id, _): &&(u64, Id, Arrived)| {
            *link == call.link && call.id.as_ref() == Some(id)
        };
        let found = self.arrived.iter().rev().find(begins);
        found.map(|(_, _, arrived)| arrived.clone())
    }

    /// The lines that the upstreams of a call have written while it ran.
    pub(super) fn lines(&self, entry: &Entry) -> Vec<Value> {
        let end = entry.duration_ms.map_or(f64::MAX, |took| entry.began_ms + took + LATE_MS);
        let is_of = |line: &&Line| {
            let is_asked = || entry.has_asked(&line.upstream);
            (entry.began_ms..=end).contains(&line.at_ms) && is_asked()
        };
        let shown = |line: &Line| {
            json!({
                "at": line.at_ms - entry.began_ms,
                "upstream": line.upstream,
                "text": line.text,
            })
        };
        self.lines.iter().filter(is_of).map(shown).collect()
    }
}

/// The requests in a message, which may be a batch.
fn requests(message: &Bytes) -> Vec<(Id, Raw)> {
    let Ok(message) = Raw::parse(message.clone()) else { return Vec::new() };
    let messages = match message.text().starts_with('[') {
        true => message.read().unwrap_or_default(),
        false => vec![message],
    };
    let id = |message: &Raw| {
        message.member("method")?;
        Id::parse(message.member("id")?.text())
    };
    messages.into_iter().filter_map(|message| Some((id(&message)?, message))).collect()
}

impl Timeline {
    pub(super) fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers questions for secrets and the answers to them. Most messages have neither.
    fn learn(&self, link: u64, message: &Bytes) {
        const WORDS: [&str; 3] = ["\"requestedSchema\"", "\"inputResponses\"", "\"action\""];
        let text = str::from_utf8(message).unwrap_or_default();
        if self.is_on() && WORDS.iter().any(|word| text.contains(word)) {
            self.masker.apply(link, message, |_| None);
        }
    }

    /// Adds a message or an exchange between us and an upstream to a call.
    fn pass(&self, link: u64, call: u64, what: impl FnOnce() -> What) {
        if call == 0 || !self.is_on() {
            return;
        }
        let Some(upstream) = self.seen().upstreams.get(&link).cloned() else { return };
        let (what, most) = (what(), self.bounds.passed);
        self.change(call, |entry| {
            let at = now_ms() - entry.began_ms;
            entry.pass(Passed { at, upstream, what }, most)
        });
    }
}

impl Tap for Timeline {
    fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    fn opened(&self, link: u64, peer: &Peer<'_>) {
        if let Peer::Upstream { name, .. } = peer {
            self.seen().upstreams.insert(link, (*name).into());
        }
    }

    fn received(&self, link: u64, call: u64, message: &Bytes, headers: &[(String, String)]) {
        if !self.is_on() {
            return;
        }
        self.learn(link, message);
        let limit = self.bounds.text;
        if self.seen().upstreams.contains_key(&link) {
            return self.pass(link, call, || What::Received(Text::new(message, limit)));
        }
        let headers: Arc<[_]> = headers.into();
        for (id, request) in requests(message) {
            let message = Text::new(request.as_bytes(), limit);
            self.seen().arrive(link, id, Arrived { message, headers: headers.clone() });
        }
    }

    fn sent(&self, link: u64, call: u64, message: &Bytes) {
        self.learn(link, message);
        self.pass(link, call, || What::Sent(Text::new(message, self.bounds.text)));
    }

    fn exchanged(&self, link: u64, call: u64, exchange: &HttpExchange) {
        self.pass(link, call, || What::Exchanged(exchange.clone()));
    }

    fn wrote(&self, link: u64, line: &str) {
        let line = self.masker.apply_to_text(line);
        let mut seen = self.seen();
        let Some(upstream) = seen.upstreams.get(&link).cloned() else { return };
        if seen.lines.len() >= MAX_LINES {
            seen.lines.pop_front();
        }
        let text = line[..line.floor_char_boundary(MAX_LINE)].to_owned();
        seen.lines.push_back(Line { at_ms: now_ms(), upstream, text });
    }

    fn closed(&self, link: u64) {
        self.seen().upstreams.remove(&link);
    }
}
