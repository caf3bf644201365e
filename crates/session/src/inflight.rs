//! Calls that have not ended: start, finish, cancel, expire.

use std::time::Duration;

use sabir_wire::types::{ClientCapabilities, Level};
use sabir_wire::{Caller, Id, Method, ProgressToken, Raw, Revision};
use serde::{Deserialize, Serialize};

use crate::io::{CallKey, StreamId};

/// A call that has not ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Inflight {
    pub(crate) key: CallKey,
    pub(crate) id: Id,
    pub(crate) stream: StreamId,
    /// The batch that it came in, if any.
    pub(crate) batch: Option<u64>,
    pub(crate) revision: Revision,
    pub(crate) capabilities: ClientCapabilities,
    pub(crate) log_level: Option<Level>,
    /// In the session's own time.
    pub(crate) deadline: Option<Duration>,
    pub(crate) progress_token: Option<ProgressToken>,
    /// The last progress that was reported; it must grow. `None` before the first.
    #[serde(with = "exact")]
    pub(crate) progress: Option<f64>,
    pub(crate) effect: Effect,
    /// It is a call of a tool, whose result can report a failure.
    pub(crate) is_tool: bool,
    /// The request, to be started again once the client has answered. Only a legacy client's call
    /// that may ask has one.
    pub(crate) restart: Option<Restart>,
}

/// A request as it arrived. Parsing it again is rare, and cheaper than keeping the parsed form.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Restart {
    pub(crate) caller: Caller,
    pub(crate) method: Method,
    pub(crate) params: Option<Raw>,
}

/// The change in the session when a call succeeds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Effect {
    None,
    /// The handshake took effect when it began; it cannot be cancelled.
    Initialize,
    Subscribe(Box<str>),
    Unsubscribe(Box<str>),
    SetLevel(Level),
    /// Its filter is taken from the outcome, and may have become smaller; until then it counts as
    /// requested.
    Listen {
        weight: usize,
        bytes: usize,
    },
}

/// The deadline of a time limit that begins now; `None` without a limit.
pub(crate) fn deadline(now: Duration, time: Option<Duration>) -> Option<Duration> {
    now.checked_add(time?)
}

/// All calls of a session. Few at a time, so a list is faster than a map.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
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

    /// Removes a call.
    pub(crate) fn take(&mut self, key: CallKey) -> Option<Inflight> {
        let at = self.calls.iter().position(|call| call.key == key)?;
        Some(self.calls.swap_remove(at))
    }

    pub(crate) fn key_of(&self, id: &Id) -> Option<CallKey> {
        self.calls.iter().find(|call| call.id == *id).map(|call| call.key)
    }

    pub(crate) fn id_of(&self, key: CallKey) -> Option<&Id> {
        self.calls.iter().find(|call| call.key == key).map(|call| &call.id)
    }

    pub(crate) fn find(&mut self, key: CallKey) -> Option<&mut Inflight> {
        self.calls.iter_mut().find(|call| call.key == key)
    }

    pub(crate) fn expired(&self, now: Duration) -> Option<CallKey> {
        let mut late = self.calls.iter().filter(|call| call.deadline.is_some_and(|at| at <= now));
        late.next().map(|call| call.key)
    }

    pub(crate) fn next_deadline(&self) -> Option<Duration> {
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

    /// Whether no call was ever started.
    pub(crate) fn is_unused(&self) -> bool {
        self.last_key == 0
    }

    /// The calls that use this stream.
    pub(crate) fn of(&self, stream: StreamId) -> Vec<CallKey> {
        self.calls.iter().filter(|call| call.stream == stream).map(|call| call.key).collect()
    }

    /// The subscriptions that requests in flight will add: their number, and the bytes of their
    /// URIs.
    pub(crate) fn subscribing(&self) -> (usize, usize) {
        let coming = self.calls.iter().filter_map(|call| match &call.effect {
            Effect::Subscribe(uri) => Some((1, uri.len())),
            Effect::Listen { weight, bytes } => Some((*weight, *bytes)),
            _ => None,
        });
        coming.fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1))
    }
}

/// A float as its bits: JSON numbers may lose the last digit.
mod exact {
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    #[expect(clippy::ref_option, reason = "serde calls it with a reference")]
    pub(super) fn serialize<S: Serializer>(value: &Option<f64>, to: S) -> Result<S::Ok, S::Error> {
        value.map(f64::to_bits).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
        Ok(Option::deserialize(from)?.map(f64::from_bits))
    }
}
