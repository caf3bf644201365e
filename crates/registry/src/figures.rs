//! Numbers about sources, for operators.

use std::time::Duration;

use sabir_wire::Revision;

/// A number about a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figure {
    /// As OpenTelemetry writes names: `sabir.index.articles`.
    pub name: &'static str,
    /// One sentence about it.
    pub help: &'static str,
    /// Whether it only grows.
    pub is_counter: bool,
    /// The number.
    pub value: u64,
}

impl Figure {
    /// A number that rises and falls.
    pub fn gauge(name: &'static str, help: &'static str, value: usize) -> Self {
        Self { name, help, is_counter: false, value: value as u64 }
    }

    /// A number that only grows.
    pub fn counter(name: &'static str, help: &'static str, value: u64) -> Self {
        Self { name, help, is_counter: true, value }
    }
}

/// A connection to another server that has ended.
#[derive(Clone, Copy, Debug)]
pub struct LinkEnd<'a> {
    /// The name of the server.
    pub upstream: &'a str,
    /// The revision that was spoken.
    pub revision: Revision,
    /// `pipe` or `tcp`.
    pub transport: &'static str,
    /// How long it was open.
    pub duration: Duration,
}
