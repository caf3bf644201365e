//! A session that several nodes serve: what they all know of it, and how they learn of changes.
//!
//! The calls of a session run where they began, and so do their questions. All that nodes share is
//! what the handshake agreed on and what the client has asked for since.

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
    /// What other nodes need to serve this session; `None` before the handshake and once it ends.
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

    /// Counts the changes of what nodes share, apart from those that were adopted.
    pub fn changes(&self) -> u32 {
        self.changes
    }

    /// Whether a call that the client has given this id runs here.
    pub fn is_running(&self, id: &Id) -> bool {
        self.state.calls.key_of(id).is_some()
    }

    /// Takes over what another node has changed.
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
    /// This record with what another node has changed since `base`.
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
