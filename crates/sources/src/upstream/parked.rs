//! Calls that are alive at the upstream while their clients are asked.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sabir_wire::{Caller, Raw};
use serde::{Deserialize, Serialize};
use tokio::task::AbortHandle;

use super::calls::LiveCall;
use super::tasks::RemoteTask;

/// The state that a client keeps for us, sealed, while it is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum State {
    /// The call is parked under this name.
    Parked(String),
    /// The upstream ended its call with these questions; it is called again with the answers and
    /// with its own state.
    Repeat { asked: Vec<String>, state: String },
    /// The upstream works on a task of this id.
    Task(Box<str>),
    /// The caller was asked to log in.
    Login,
}

impl State {
    pub(super) fn read(state: &Raw) -> Option<Self> {
        state.read().ok()
    }

    pub(super) fn write(&self) -> Option<Raw> {
        Raw::of(self).ok()
    }
}

/// A call or a task that waits for the answers of its client.
#[derive(Debug)]
pub(super) enum Waiting {
    Call(LiveCall),
    Task(RemoteTask),
}

impl Waiting {
    fn caller(&self) -> &Caller {
        match self {
            Self::Call(live) => live.caller(),
            Self::Task(task) => task.caller(),
        }
    }
}

/// The calls of one upstream that wait for their clients.
#[derive(Debug, Default)]
pub(super) struct Parked(Mutex<HashMap<String, (Waiting, Timer)>>);

/// The task that ends a parked call at its deadline. Aborted when the call is resumed.
#[derive(Debug)]
pub(super) struct Timer(pub(super) AbortHandle);

impl Drop for Timer {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Parked {
    /// The limit of parked calls. A further one is refused.
    pub(super) const MAX: usize = 4096;

    /// Parks a call and returns its name. `timer` starts the task that ends the call of that name
    /// later. If too many are parked, the call ends.
    pub(super) fn insert(
        &self,
        call: Waiting,
        timer: impl FnOnce(String) -> Timer,
    ) -> Option<String> {
        let mut calls = self.lock();
        if calls.len() >= Self::MAX {
            drop(calls);
            return None;
        }
        let name = nanoid::nanoid!();
        calls.insert(name.clone(), (call, timer(name.clone())));
        Some(name)
    }

    /// The call of that name, if it is this caller's. A call is resumed once.
    pub(super) fn take(&self, name: &str, caller: &Caller) -> Option<Waiting> {
        let mut calls = self.lock();
        let is_theirs = calls.get(name).is_some_and(|(call, _)| call.caller().is_same_as(caller));
        if is_theirs { calls.remove(name).map(|(call, _)| call) } else { None }
    }

    /// Ends a call: its questions are refused, and it is cancelled at the upstream. `false` if
    /// there is no such call.
    pub(super) fn end(&self, name: &str) -> bool {
        // Dropped outside of the lock.
        let call = self.lock().remove(name);
        call.is_some()
    }

    pub(super) fn end_all(&self) {
        let calls = std::mem::take(&mut *self.lock());
        drop(calls);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, (Waiting, Timer)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
