//! The context of a call: its data for the source, and the handle for reports.

use std::pin::Pin;
use std::sync::Arc;

use sabir_wire::types::{ClientCapabilities, Level};
use sabir_wire::{Caller, ErrorObject, Extra, Raw, TraceContext};

use crate::outgoing::{Outgoing, OutgoingRequest};

/// The handle of a running call: reports to its client, and signals that it was cancelled.
pub trait CallHandle: Send + Sync {
    /// Reports progress. Sent only if the client asked for it and the number has grown.
    fn progress(&self, progress: f64, total: Option<f64>, message: Option<String>);

    /// Writes to the client's log, if the client asked for this level.
    fn log(&self, level: Level, logger: Option<String>, data: Raw);

    /// Sends a notification of an unknown method, such as one of another server.
    fn notify(&self, _method: &str, _params: Option<Raw>) {}

    /// The lowest level of the log messages that the client wants; `None` if it wants none.
    fn log_level(&self) -> Option<Level> {
        None
    }

    /// Whether the client wants progress notifications.
    fn wants_progress(&self) -> bool {
        false
    }

    /// The number of the call for observers; 0 without observers.
    fn number(&self) -> u64 {
        0
    }

    /// A request to another server begins, which is made for this call.
    fn outgoing(&self, _request: &OutgoingRequest<'_>) -> Outgoing {
        Outgoing::default()
    }

    /// The call takes long: if its client can take a task, it becomes one now. With a state, its
    /// work is done elsewhere and outlives this process: the next process calls the source again,
    /// with the state as [`Context::state`].
    fn takes_long(&self, _state: Option<Raw>) {}

    /// Whether the call is left to the next process.
    fn is_left(&self) -> bool {
        false
    }

    /// Whether the call was cancelled.
    fn is_cancelled(&self) -> bool;

    /// Completes when the call is cancelled.
    fn cancelled(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

/// Names a session of the legacy era to sources. It is dropped when the session and its calls have
/// ended: a source that keeps something for a session holds a `Weak` to it.
#[derive(Debug, PartialEq, Eq)]
pub struct Conversation {
    /// No two sessions of a process have the same number.
    pub number: u64,
}

/// Everything that a source knows about a call besides its arguments.
#[derive(Clone)]
pub struct Context {
    /// The caller, as the transport has established it.
    pub caller: Caller,
    /// The conversation that the call belongs to: the same for all calls of one session of the
    /// legacy era. A request of the modern era belongs to none.
    pub conversation: Option<Arc<Conversation>>,
    /// The client's declared capabilities.
    pub capabilities: ClientCapabilities,
    /// The client's own name for itself. For display only: it is not verified.
    pub client: Option<Raw>,
    /// The request's metadata.
    pub meta: Option<Raw>,
    /// The unknown members of the request's params.
    pub extra: Extra,
    /// The client's answers so far, by the keys of the questions.
    pub answers: Vec<(String, Raw)>,
    /// The errors that a legacy client answered the last questions with, by their keys, if the source
    /// asked for them.
    pub refusals: Vec<(String, ErrorObject)>,
    /// The state that the source saved when it last asked.
    pub state: Option<Raw>,
    /// Reports to the client while the call runs.
    pub call: Arc<dyn CallHandle>,
}

impl Context {
    /// The answer to the question `key`, if it was asked and answered.
    pub fn answer(&self, key: &str) -> Option<&Raw> {
        self.answers.iter().find(|(asked, _)| asked == key).map(|(_, answer)| answer)
    }

    /// The request's position in a distributed trace.
    pub fn trace(&self) -> TraceContext {
        self.meta.as_ref().and_then(|meta| meta.read().ok()).unwrap_or_default()
    }
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context")
            .field("caller", &self.caller)
            .field("client", &self.client)
            .field("answers", &self.answers)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}
