//! The context of a call that is made without an engine, for tests of sources.

use std::pin::Pin;
use std::sync::Arc;

use sabir_registry::{CallHandle, Context};
use sabir_wire::types::{ClientCapabilities, Level};
use sabir_wire::{Caller, Extra, Raw};

/// A context of the local caller, whose call is never cancelled and drops its reports.
pub fn local_context() -> Context {
    Context {
        caller: Caller::local(),
        conversation: None,
        capabilities: ClientCapabilities::default(),
        client: None,
        meta: None,
        extra: Extra::NONE,
        answers: Vec::new(),
        refusals: Vec::new(),
        state: None,
        call: Arc::new(UncancelledCall),
    }
}

struct UncancelledCall;

impl CallHandle for UncancelledCall {
    fn progress(&self, _: f64, _: Option<f64>, _: Option<String>) {}
    fn log(&self, _: Level, _: Option<String>, _: Raw) {}
    fn is_cancelled(&self) -> bool {
        false
    }
    fn cancelled(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(std::future::pending())
    }
}
