//! Calls that are alive at the upstream while their clients are asked.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sabir_wire::{Caller, Raw};
use serde::{Deserialize, Serialize};

use super::calls::LiveCall;

/// What a client keeps for us, sealed, while it is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum State {
    /// The call is alive, under this name.
    Parked(String),
    /// The upstream ended its call with questions; it is called again with the answers to these,
    /// and with its own state.
    Repeat { asked: Vec<String>, state: String },
}

impl State {
    pub(super) fn read(state: &Raw) -> Option<Self> {
        state.read().ok()
    }

    pub(super) fn write(&self) -> Option<Raw> {
        Raw::of(self).ok()
    }
}

/// The calls of one upstream that wait for their clients.
#[derive(Debug, Default)]
pub(super) struct Parked(Mutex<HashMap<String, LiveCall>>);

impl Parked {
    /// One more is refused.
    pub(super) const MAX: usize = 4096;

    /// Keeps a call; gives the name to ask for it, or the call back if there are too many.
    pub(super) fn insert(&self, call: LiveCall) -> Result<String, LiveCall> {
        let mut calls = self.lock();
        if calls.len() >= Self::MAX {
            return Err(call);
        }
        let name = nanoid::nanoid!();
        calls.insert(name.clone(), call);
        Ok(name)
    }

    /// The call of that name, if it is this caller's. A call is resumed once.
    pub(super) fn take(&self, name: &str, caller: &Caller) -> Option<LiveCall> {
        let mut calls = self.lock();
        let is_theirs = calls.get(name).is_some_and(|call| call.caller().is_same_as(caller));
        if is_theirs { calls.remove(name) } else { None }
    }

    /// Ends a call: its questions are refused, and the upstream is told. `false` if it is not there.
    pub(super) fn end(&self, name: &str) -> bool {
        // Dropped outside of the lock.
        let call = self.lock().remove(name);
        call.is_some()
    }

    pub(super) fn end_all(&self) {
        let calls = std::mem::take(&mut *self.lock());
        drop(calls);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, LiveCall>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
