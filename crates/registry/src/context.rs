//! What a source may know of who asks, and what it may say while it works.

use std::pin::Pin;
use std::sync::Arc;

use sabir_wire::types::{ClientCapabilities, Level};
use sabir_wire::{Raw, TraceContext};

/// A call's way back to its client, while it runs.
pub trait Line: Send + Sync {
    /// Tells how far the call has come. Told only if the client wants to know, and if it grew.
    fn progress(&self, progress: f64, total: Option<f64>, message: Option<String>);

    /// Says something for the client's log, if it wants to know.
    fn log(&self, level: Level, logger: Option<String>, data: Raw);

    /// Whether anybody still wants the result.
    fn is_cancelled(&self) -> bool;

    /// Comes back when nobody wants the result any more.
    fn cancelled(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

/// What a source may know of a call beside its arguments.
#[derive(Clone)]
pub struct Context {
    /// What the client can be asked.
    pub capabilities: ClientCapabilities,
    /// Who the client says it is. For display only: nobody has checked it.
    pub client: Option<Raw>,
    /// What the request says about itself.
    pub meta: Option<Raw>,
    /// What the client has answered so far, by the keys of the questions.
    pub answers: Vec<(String, Raw)>,
    /// What the source gave to be kept when it last asked.
    pub state: Option<Raw>,
    /// The way back.
    pub line: Arc<dyn Line>,
}

impl Context {
    /// The answer to the question `key`, if it was asked and answered.
    pub fn answer(&self, key: &str) -> Option<&Raw> {
        self.answers.iter().find(|(asked, _)| asked == key).map(|(_, answer)| answer)
    }

    /// Where the request stands in a distributed trace.
    pub fn trace(&self) -> TraceContext {
        self.meta.as_ref().and_then(|meta| meta.read().ok()).unwrap_or_default()
    }
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context")
            .field("client", &self.client)
            .field("answers", &self.answers)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}
