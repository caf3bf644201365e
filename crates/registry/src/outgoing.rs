//! A request to another server on behalf of a call, reported to the observers of the call.

use sabir_wire::{Method, Revision};

/// A request to another server.
#[derive(Clone, Copy, Debug)]
pub struct OutgoingRequest<'a> {
    /// The name of the server.
    pub upstream: &'a str,
    /// The method.
    pub method: &'a Method,
    /// The tool or the prompt, or the URI of the resource, as the server knows it.
    pub name: Option<&'a str>,
    /// `pipe` or `tcp`.
    pub transport: &'static str,
}

/// Observes one request to another server.
pub trait OutgoingObserver: std::fmt::Debug + Send + Sync {
    /// The position in a trace for the server.
    fn traceparent(&self) -> Option<String> {
        None
    }

    /// It has ended. The error is a code of JSON-RPC, `tool_error`, or another word.
    fn ended(self: Box<Self>, revision: Option<Revision>, error: Option<&str>);
}

/// A request to another server that has begun. Dropped without an end, it was cancelled.
#[derive(Debug, Default)]
pub struct Outgoing(Vec<Box<dyn OutgoingObserver>>);

impl Outgoing {
    /// A request with these observers.
    pub fn new(observers: Vec<Box<dyn OutgoingObserver>>) -> Self {
        Self(observers)
    }

    /// The position in a trace for the server; `None` if the call is not traced.
    pub fn traceparent(&self) -> Option<String> {
        self.0.iter().find_map(|observer| observer.traceparent())
    }

    /// It has ended.
    pub fn end(&mut self, revision: Option<Revision>, error: Option<&str>) {
        self.0.drain(..).for_each(|observer| observer.ended(revision, error));
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        self.end(None, Some("cancelled"));
    }
}
