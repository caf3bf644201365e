//! A session that can be saved: its record, and the clock that lets deadlines survive.
//!
//! Everything that a session remembers is one serializable [`State`]. Deadlines are kept in the
//! session's own time, which starts at zero and goes on where it stopped when a session is resumed.

use std::time::{Duration, Instant};

use sabir_wire::Caller;
use serde::{Deserialize, Serialize};

use crate::batches::Batches;
use crate::config::SessionKind;
use crate::handshake::Client;
use crate::inflight::Calls;
use crate::phase::Phase;
use crate::questions::PendingQuestions;
use crate::subscriptions::Subscriptions;

/// Everything that a session remembers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct State {
    /// The caller who opened the session. No other caller may use it.
    pub(crate) owner: Caller,
    pub(crate) phase: Phase,
    pub(crate) client: Client,
    #[serde(default, skip_serializing_if = "Calls::is_unused")]
    pub(crate) calls: Calls,
    #[serde(default, skip_serializing_if = "PendingQuestions::is_unused")]
    pub(crate) questions: PendingQuestions,
    #[serde(default, skip_serializing_if = "Subscriptions::is_unused")]
    pub(crate) subscriptions: Subscriptions,
    #[serde(default, skip_serializing_if = "Batches::is_unused")]
    pub(crate) batches: Batches,
    #[serde(default)]
    pub(crate) has_heard_modern: bool,
    #[serde(default)]
    pub(crate) drain_until: Option<Duration>,
}

/// A session at rest, to be kept outside of the process. Serializes with serde.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SessionRecord {
    /// The age of the session when it was recorded.
    pub(crate) age: Duration,
    pub(crate) kind: SessionKind,
    pub(crate) state: State,
}

impl SessionRecord {
    /// The caller who opened the session. No other caller may use it.
    pub fn owner(&self) -> &Caller {
        &self.state.owner
    }
}

/// The session's own time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clock {
    /// The session's age at `since`.
    age: Duration,
    /// `None` until the first input.
    since: Option<Instant>,
}

impl Clock {
    /// A clock that showed `age` at `now`.
    pub(crate) fn resumed(age: Duration, now: Instant) -> Self {
        Self { age, since: Some(now) }
    }

    /// The session's time at `now`. It starts with the first call.
    pub(crate) fn start(&mut self, now: Instant) -> Duration {
        self.since.get_or_insert(now);
        self.read(now)
    }

    /// The session's time at `now`.
    pub(crate) fn read(&self, now: Instant) -> Duration {
        let since = self.since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
        self.age.saturating_add(since)
    }

    /// When the clock will show `time`.
    pub(crate) fn when(&self, time: Duration) -> Option<Instant> {
        self.since?.checked_add(time.saturating_sub(self.age))
    }
}
