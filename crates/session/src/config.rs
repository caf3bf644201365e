//! The configuration of all sessions of a server, and the kinds of sessions.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sabir_wire::{Id, Raw, Revision};
use serde::{Deserialize, Serialize};

use crate::dialect::Dialect;

/// The configuration that all sessions of a server share.
#[derive(Debug)]
pub struct SessionConfig {
    /// The deviations of this deployment.
    pub dialect: Dialect,
    /// The limits of one client.
    pub limits: Limits,
    /// The identity of the server, as JSON.
    pub server: Raw,
    /// Names for the pages that users are asked to visit.
    pub elicitation_ids: ElicitationIds,
}

/// Names for the pages that users are asked to visit. They must be unique within a server, so all
/// its sessions take them from here. Where several nodes serve the same sessions, the ids of
/// questions are taken from here, too.
#[derive(Debug)]
pub struct ElicitationIds {
    server: Box<str>,
    is_node: bool,
    last: AtomicU64,
}

impl ElicitationIds {
    /// `server` distinguishes this server from others with the same clients.
    pub fn new(server: impl Into<Box<str>>) -> Self {
        Self { server: server.into(), is_node: false, last: AtomicU64::new(0) }
    }

    /// The same for one of several nodes that serve the same sessions: the id of a question begins
    /// with the name of its node and a hyphen, so that any node can pass the answer on to it.
    pub fn of_node(node: impl Into<Box<str>>) -> Self {
        Self { is_node: true, ..Self::new(node) }
    }

    /// The id of a question; `None` if each session counts its own.
    pub(crate) fn question(&self) -> Option<Id> {
        self.is_node.then(|| Id::from(&*self.next()))
    }

    pub(crate) fn next(&self) -> String {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        format!("{}-{number}", self.server)
    }
}

/// The limits of one client.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// Calls at once. One more is refused.
    pub calls: usize,
    /// The time limit of a call. At the limit it is aborted and answered with an error.
    pub call_time: Option<Duration>,
    /// The time limit of an answer to a question. At the limit the call is aborted.
    pub question_time: Option<Duration>,
    /// Resources and listeners at once. One more is refused.
    pub subscriptions: usize,
    /// Bytes of their URIs. More are refused.
    pub subscription_bytes: usize,
    /// Bytes of the answers to one batch. An answer that does not fit is replaced by an error.
    pub batch_bytes: usize,
    /// The time that running calls get after the client has left.
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            calls: 256,
            call_time: Some(Duration::from_secs(300)),
            question_time: Some(Duration::from_secs(900)),
            subscriptions: 1024,
            subscription_bytes: 64 << 10,
            batch_bytes: 4 << 20,
            grace: Duration::from_secs(5),
        }
    }
}

/// The kind of a session, which the transport knows before the first message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SessionKind {
    /// A pipe or the like, which serves both eras, request by request.
    Stream,
    /// A legacy client over HTTP, with its revision until the handshake.
    LegacyHttp(Revision),
    /// One HTTP request whose header names a modern revision.
    ModernHttp,
}
