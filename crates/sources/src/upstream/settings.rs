//! How an upstream is used.

use std::sync::Arc;
use std::time::Duration;

use sabir_registry::TaskPolicy;
use sabir_wire::Taps;

use super::mapping::Naming;
use super::memory::Memory;

/// How an upstream is used.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// The name of the upstream, for operators and in rewritten URIs.
    pub name: String,
    /// How its names appear to our clients.
    pub naming: Naming,
    /// Where its catalog is remembered.
    pub memory: Option<Memory>,
    /// It is started with the server and again whenever it has ended, instead of with the first
    /// call.
    pub eager: bool,
    /// Who shares an instance of it.
    pub scope: Scope,
    /// How long the upstream may be idle before it is stopped. `None`: forever.
    pub idle_stop: Option<Duration>,
    /// The limit of concurrent calls. Further calls wait.
    pub concurrency: usize,
    /// How long a call may go on without progress. `None`: as long as its client waits.
    pub timeout: Option<Duration>,
    /// How long a call waits for the answers of its client. Then it ends, and is cancelled at the
    /// upstream.
    pub question_time: Duration,
    /// Whether calls become tasks of ours. `None`: when they are tasks of the upstream.
    pub task: Option<TaskPolicy>,
    /// Sees every message to and from the upstream.
    pub tap: Option<Arc<Taps>>,
}

impl Settings {
    /// The default number of concurrent calls.
    const CONCURRENCY: usize = 1024;

    /// An upstream with the defaults.
    pub fn new(name: String, naming: Naming) -> Self {
        Self {
            name,
            naming,
            memory: None,
            eager: false,
            scope: Scope::Shared,
            idle_stop: None,
            concurrency: Self::CONCURRENCY,
            timeout: None,
            question_time: Duration::from_secs(600),
            task: None,
            tap: None,
        }
    }

    /// How long an instance may be idle. That of a single session always has a limit: no other
    /// session can use it.
    pub(super) fn idle_time(&self) -> Option<Duration> {
        self.idle_stop.or((self.scope == Scope::Session).then_some(SESSION_IDLE))
    }
}

/// How long an instance of one user or session may be idle.
pub(super) const SESSION_IDLE: Duration = Duration::from_secs(300);

/// Who shares an instance of an upstream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// All callers.
    #[default]
    Shared,
    /// The calls of one session of the legacy era, or of one caller in the modern era.
    Session,
}
