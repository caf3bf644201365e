//! Calls that have not ended: start, finish, cancel, expire.

use std::time::{Duration, Instant};

use sabir_wire::types::{ClientCapabilities, Level};
use sabir_wire::{Id, Method, ProgressToken, Raw, Revision};

use crate::io::{CallKey, StreamId};

/// A call that has not ended.
#[derive(Debug)]
pub(crate) struct Inflight {
    pub(crate) key: CallKey,
    pub(crate) id: Id,
    pub(crate) stream: StreamId,
    /// The batch that it came in, if any.
    pub(crate) batch: Option<u64>,
    pub(crate) revision: Revision,
    pub(crate) capabilities: ClientCapabilities,
    pub(crate) log_level: Option<Level>,
    pub(crate) deadline: Option<Instant>,
    pub(crate) progress_token: Option<ProgressToken>,
    /// The last progress that was told; it must grow.
    pub(crate) progress: f64,
    pub(crate) effect: Effect,
    /// It calls a tool, whose result can say that it failed.
    pub(crate) is_tool: bool,
    /// What to start again once the client has answered. SavedState only where that can happen.
    pub(crate) restart: Option<Restart>,
}

/// A request as it came: to read it again is rare, and less than to keep all that was read of it.
#[derive(Debug)]
pub(crate) struct Restart {
    pub(crate) method: Method,
    pub(crate) params: Option<Raw>,
}

/// What the success of a call changes in the session.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    None,
    /// The handshake has taken effect when it began, so that it cannot be cancelled.
    Initialize,
    Subscribe(Box<str>),
    Unsubscribe(Box<str>),
    SetLevel(Level),
}

/// When a time that begins now is over. One that goes beyond the clock never is.
pub(crate) fn deadline(now: Instant, time: Option<Duration>) -> Option<Instant> {
    now.checked_add(time?)
}

/// All calls of a session. Few at a time: a list is faster than a map, and takes no memory when
/// idle.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    calls: Vec<Inflight>,
    last_key: u64,
}

impl Calls {
    pub(crate) fn next_key(&mut self) -> CallKey {
        self.last_key += 1;
        CallKey(self.last_key)
    }

    pub(crate) fn push(&mut self, call: Inflight) {
        self.calls.push(call);
    }

    /// Forgets a call, and gives it.
    pub(crate) fn take(&mut self, key: CallKey) -> Option<Inflight> {
        let at = self.calls.iter().position(|call| call.key == key)?;
        let call = self.calls.swap_remove(at);
        if self.calls.is_empty() {
            // An idle session keeps nothing of what it once needed.
            self.calls = Vec::new();
        }
        Some(call)
    }

    pub(crate) fn key_of(&self, id: &Id) -> Option<CallKey> {
        self.calls.iter().find(|call| call.id == *id).map(|call| call.key)
    }

    pub(crate) fn find(&mut self, key: CallKey) -> Option<&mut Inflight> {
        self.calls.iter_mut().find(|call| call.key == key)
    }

    pub(crate) fn expired(&self, now: Instant) -> Option<CallKey> {
        let mut late = self.calls.iter().filter(|call| call.deadline.is_some_and(|at| at <= now));
        late.next().map(|call| call.key)
    }

    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.calls.iter().filter_map(|call| call.deadline).min()
    }

    pub(crate) fn keys(&self) -> Vec<CallKey> {
        self.calls.iter().map(|call| call.key).collect()
    }

    pub(crate) fn uses(&self, stream: StreamId) -> bool {
        self.calls.iter().any(|call| call.stream == stream)
    }

    pub(crate) fn len(&self) -> usize {
        self.calls.len()
    }

    /// How many of them will be subscriptions once they have succeeded.
    pub(crate) fn subscribing(&self) -> usize {
        self.calls.iter().filter(|call| matches!(call.effect, Effect::Subscribe(_))).count()
    }
}
