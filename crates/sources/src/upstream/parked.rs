//! Calls that are alive at the upstream while their clients are asked.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sabir_wire::{Caller, Raw};
use serde::{Deserialize, Serialize};
use tokio::task::AbortHandle;

use super::calls::LiveCall;
use super::tasks::RemoteTask;

/// What a client keeps for us, sealed, while it is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum State {
    /// The call is alive, under this name.
    Parked(String),
    /// The upstream ended its call with questions; it is called again with the answers to these,
    /// and with its own state.
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

/// What waits for the answers of its client.
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

/// The task that ends a call when its time is over. It is not needed when the call goes on.
#[derive(Debug)]
pub(super) struct Timer(pub(super) AbortHandle);

impl Drop for Timer {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Parked {
    /// One more is refused.
    pub(super) const MAX: usize = 4096;

    /// Keeps a call; gives the name to ask for it. If there are too many, the call ends. `timer` ends
    /// the call of a name later.
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

    fn lock(&self) -> MutexGuard<'_, HashMap<String, (Waiting, Timer)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
