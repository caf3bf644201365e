//! A session that several nodes serve: the state that they share, and how changes are merged.
//!
//! The calls of a session run where they began, and so do their questions. Nodes share only the
//! result of the handshake, the log level and the subscriptions.

use std::time::Instant;

use sabir_wire::{Caller, Id};

use super::Session;
use crate::batches::Batches;
use crate::inflight::Calls;
use crate::io::Output;
use crate::phase::Phase;
use crate::questions::PendingQuestions;
use crate::record::{SessionRecord, State};

impl Session {
    /// The state that other nodes need to serve this session; `None` before the handshake and once
    /// it ends.
    pub fn shared(&self, now: Instant) -> Option<SessionRecord> {
        let State { owner, phase, client, subscriptions, .. } = &self.state;
        if !matches!(phase, Phase::Initializing | Phase::Ready) {
            return None;
        }
        let state = State {
            // Scopes and claims are those of one request.
            owner: Caller::new(owner.issuer(), owner.subject()),
            phase: *phase,
            client: client.clone(),
            calls: Calls::default(),
            questions: PendingQuestions::default(),
            subscriptions: subscriptions.clone(),
            batches: Batches::default(),
            has_heard_modern: false,
            drain_until: None,
        };
        Some(SessionRecord { age: self.clock.read(now), kind: self.kind, state })
    }

    /// The number of changes of the shared state, without adopted ones.
    pub fn changes(&self) -> u32 {
        self.changes
    }

    /// Whether a call with this request id runs here.
    pub fn is_running(&self, id: &Id) -> bool {
        self.state.calls.key_of(id).is_some()
    }

    /// Takes over the changes of another node.
    pub fn adopt(&mut self, record: SessionRecord, out: &mut Vec<Output>) {
        let State { phase, client, subscriptions, .. } = record.state;
        self.state.client.log_level = client.log_level;
        self.change_subscriptions(out, |known| *known = subscriptions);
        if self.state.phase == Phase::Initializing && phase == Phase::Ready {
            self.state.phase = Phase::Ready;
            out.push(Output::Ready(self.state.client.name.clone()));
        }
    }
}

impl SessionRecord {
    /// This record with the changes of another node since `base`.
    #[must_use]
    pub fn merged(mut self, base: &Self, theirs: &Self) -> Self {
        let (ours, base, theirs) = (&mut self.state, &base.state, &theirs.state);
        if theirs.phase == Phase::Ready {
            ours.phase = Phase::Ready;
        }
        if ours.client.log_level == base.client.log_level {
            ours.client.log_level = theirs.client.log_level;
        }
        ours.subscriptions.merge(&base.subscriptions, &theirs.subscriptions);
        self
    }

    /// Whether the handshake is complete.
    pub fn is_ready(&self) -> bool {
        self.state.phase == Phase::Ready
    }
}
