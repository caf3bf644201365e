//! The phases of a session and their legal transitions.

use serde::{Deserialize, Serialize};

/// The phase of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Phase {
    /// Nothing has been agreed. A modern client stays here for ever.
    Fresh,
    /// `initialize` was answered; `notifications/initialized` is awaited.
    Initializing,
    /// The handshake is complete.
    Ready,
    /// The client sends nothing more; running calls may finish.
    Draining,
    /// Terminal.
    Closed,
}

impl Phase {
    /// The whole state diagram.
    pub(crate) fn may_become(self, next: Self) -> bool {
        use Phase::{Closed, Draining, Fresh, Initializing, Ready};
        matches!(
            (self, next),
            (Fresh, Initializing)
                | (Initializing, Ready)
                | (Fresh | Initializing | Ready, Draining)
                | (Draining, Closed)
        )
    }
}

/// The state of the handshake of a legacy client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionState {
    /// `initialize` is awaited.
    Waiting,
    /// `initialize` was answered.
    Initializing,
    /// `notifications/initialized` has arrived.
    Ready,
    /// The session is over.
    Closed,
}

impl From<Phase> for SessionState {
    fn from(phase: Phase) -> Self {
        match phase {
            Phase::Fresh => Self::Waiting,
            Phase::Initializing => Self::Initializing,
            Phase::Ready => Self::Ready,
            Phase::Draining | Phase::Closed => Self::Closed,
        }
    }
}
