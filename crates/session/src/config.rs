//! What holds for all sessions of a server, and what a transport knows of one client.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sabir_wire::{Raw, Revision};
use serde::{Deserialize, Serialize};

use crate::dialect::Dialect;

/// What all sessions of a server share.
#[derive(Debug)]
pub struct SessionConfig {
    /// How this deployment deviates.
    pub dialect: Dialect,
    /// How much a client may have.
    pub limits: Limits,
    /// Who answers, as JSON.
    pub server: Raw,
    /// Names for the pages that users are asked to visit.
    pub elicitation_ids: ElicitationIds,
}

/// Names for the pages that users are asked to visit. The specification wants them unique within a
/// server: all its sessions take them from here.
#[derive(Debug)]
pub struct ElicitationIds {
    server: Box<str>,
    last: AtomicU64,
}

impl ElicitationIds {
    /// `server` tells this server from others that speak with the same clients.
    pub fn new(server: impl Into<Box<str>>) -> Self {
        Self { server: server.into(), last: AtomicU64::new(0) }
    }

    pub(crate) fn next(&self) -> String {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        format!("{}-{number}", self.server)
    }
}

/// How much one client may have.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// Calls at once. One more is refused.
    pub calls: usize,
    /// How long a call may take. Then it is aborted and answered with an error.
    pub call_time: Option<Duration>,
    /// How long a client may take to answer a question. Then the call is aborted.
    pub question_time: Option<Duration>,
    /// Resources and listeners at once. One more is refused.
    pub subscriptions: usize,
    /// Bytes of the URIs of these. More are refused.
    pub subscription_bytes: usize,
    /// Bytes of the answers to one batch. An answer that does not fit is replaced by an error.
    pub batch_bytes: usize,
    /// How long running calls may go on after the client has left.
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

/// What the transport knows of a client before it has said anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SessionKind {
    /// A pipe or the like, which serves both eras, request by request.
    Stream,
    /// A legacy client over HTTP, and what it speaks until a handshake says otherwise.
    LegacyHttp(Revision),
    /// One HTTP request whose header names a modern revision.
    ModernHttp,
}
