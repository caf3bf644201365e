//! Durations by their attributes, of requests of clients and of requests to upstreams.

use std::hash::Hash;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;
use sabir_engine::{Ended, TransportKind};
use sabir_registry::OutgoingObserver;
use sabir_wire::{ByteString, Method, Revision};

use super::exposition::{Family, Labels, Sample};
use super::histogram::Histogram;

/// How many series of durations a table has before tools and error codes are counted together. A
/// series has about 150 bytes, and 17 lines of text.
pub(super) const MAX_SERIES: usize = 4_000;

/// The label of all names that have no series of their own.
pub(super) const OTHER: &str = "_other";

/// Durations by their attributes.
#[derive(Debug)]
pub(super) struct Table<S>(RwLock<FxHashMap<S, Arc<Histogram>>>);

impl<S> Default for Table<S> {
    fn default() -> Self {
        Self(RwLock::default())
    }
}

/// The attributes of a duration.
pub(super) trait Attributes: Clone + Eq + Hash {
    /// Takes the name into memory of its own. When there are too many series, names and codes are
    /// counted together.
    fn bound(&mut self, is_full: bool);

    /// As OpenTelemetry names them, in the order in which they are listed.
    fn labels(&self) -> Labels;
}

impl<S: Attributes> Table<S> {
    pub(super) fn observe(&self, series: S, duration: Duration) {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(histogram) = known.get(&series) {
            histogram.observe(duration);
            return;
        }
        drop(known);
        self.add(series).observe(duration);
    }

    /// Adds a series, in memory of its own. When there are too many, names are counted together.
    pub(super) fn add(&self, mut series: S) -> Arc<Histogram> {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        series.bound(known.len() >= MAX_SERIES);
        known.entry(series).or_default().clone()
    }

    /// All series, in a stable order.
    pub(super) fn family(&self, name: &'static str, help: &'static str) -> Family {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let series = known
            .iter()
            .map(|(series, histogram)| (series.labels(), Sample::Histogram(histogram.buckets())));
        let mut family = Family::durations(name, help);
        family.samples.extend(series);
        drop(known);
        family.samples.sort_by(|(a, _), (b, _)| a.cmp(b));
        family
    }

    #[cfg(test)]
    pub(super) fn all(&self) -> Vec<S> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }
}

fn bound(name: &mut Option<ByteString>, error: &mut ErrorType, is_full: bool) {
    *name = name.take().map(|name| match is_full {
        true => ByteString::from_static(OTHER),
        false => ByteString::from(&*name),
    });
    if is_full && matches!(error, ErrorType::Code(_)) {
        *error = ErrorType::Other;
    }
}

/// The attributes of a request of a client.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Series {
    pub(super) method: Method,
    /// Only names that are offered: clients could invent others.
    pub(super) name: Option<ByteString>,
    pub(super) error: ErrorType,
    pub(super) revision: Revision,
    pub(super) transport: TransportKind,
}

impl Attributes for Series {
    fn bound(&mut self, is_full: bool) {
        bound(&mut self.name, &mut self.error, is_full);
    }

    fn labels(&self) -> Labels {
        let (transport, protocol) = network(self.transport);
        let mut labels = operation(&self.method, self.name.as_deref(), self.error);
        labels.push(("mcp.protocol.version", self.revision.date().to_owned()));
        labels.push(("network.transport", transport.to_owned()));
        labels.push(("network.protocol.name", protocol.to_owned()));
        labels
    }
}

/// The attributes of a request to an upstream.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct OutgoingSeries {
    pub(super) upstream: ByteString,
    pub(super) method: Method,
    pub(super) name: Option<ByteString>,
    pub(super) error: ErrorType,
    pub(super) revision: Option<Revision>,
    pub(super) transport: &'static str,
}

impl Attributes for OutgoingSeries {
    fn bound(&mut self, is_full: bool) {
        bound(&mut self.name, &mut self.error, is_full);
    }

    fn labels(&self) -> Labels {
        let mut labels = operation(&self.method, self.name.as_deref(), self.error);
        let revision = self.revision.map(Revision::date).unwrap_or_default();
        labels.push(("mcp.protocol.version", revision.to_owned()));
        labels.push(("network.transport", self.transport.to_owned()));
        labels.push(("sabir.upstream", self.upstream.to_string()));
        labels
    }
}

/// The attributes of a connection to an upstream.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct LinkSeries {
    pub(super) upstream: ByteString,
    pub(super) revision: Revision,
    pub(super) transport: &'static str,
}

impl Attributes for LinkSeries {
    /// Bounded by the upstreams in the configuration and the revisions.
    fn bound(&mut self, _is_full: bool) {}

    fn labels(&self) -> Labels {
        vec![
            ("mcp.protocol.version", self.revision.date().to_owned()),
            ("network.transport", self.transport.to_owned()),
            ("sabir.upstream", self.upstream.to_string()),
        ]
    }
}

/// The attributes `network.transport` and `network.protocol.name`.
pub(crate) fn network(kind: TransportKind) -> (&'static str, &'static str) {
    match kind {
        TransportKind::Pipe => ("pipe", ""),
        TransportKind::WebSocket => ("tcp", "websocket"),
        _ => ("tcp", "http"),
    }
}

fn operation(method: &Method, name: Option<&str>, error: ErrorType) -> Labels {
    let name = name.unwrap_or_default();
    let of = |other: Method| if *method == other { name.to_owned() } else { String::new() };
    let operation = if *method == Method::CallTool { "execute_tool" } else { "" };
    vec![
        ("mcp.method.name", method.name().to_owned()),
        ("gen_ai.operation.name", operation.to_owned()),
        ("gen_ai.tool.name", of(Method::CallTool)),
        ("gen_ai.prompt.name", of(Method::GetPrompt)),
        ("error.type", error.label()),
    ]
}

/// A request to an upstream that is being measured.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) series: OutgoingSeries,
    pub(super) began: Instant,
    pub(super) table: Arc<Table<OutgoingSeries>>,
}

impl OutgoingObserver for Measured {
    fn ended(self: Box<Self>, revision: Option<Revision>, error: Option<&str>) {
        let Self { mut series, began, table } = *self;
        series.revision = revision;
        series.error = ErrorType::named(error);
        table.observe(series, began.elapsed());
    }
}

/// The attribute `error.type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ErrorType {
    None,
    ToolError,
    Cancelled,
    /// A request that took too long, or did not get through.
    Word(&'static str),
    /// A code of JSON-RPC or of MCP.
    Code(i64),
    /// A code of a source's own.
    Other,
}

impl ErrorType {
    pub(crate) fn of(outcome: &Ended<'_>) -> Self {
        match outcome {
            Ended::Ok | Ended::InputRequired | Ended::Listening => Self::None,
            Ended::ToolError => Self::ToolError,
            Ended::Aborted => Self::Cancelled,
            Ended::Failed(problem) => Self::code(problem.to_error().code),
        }
    }

    /// The error of a request to an upstream.
    fn named(error: Option<&str>) -> Self {
        match error {
            None => Self::None,
            Some("tool_error") => Self::ToolError,
            Some("cancelled") => Self::Cancelled,
            Some("timeout") => Self::Word("timeout"),
            Some("lost") => Self::Word("lost"),
            Some("unreachable") => Self::Word("unreachable"),
            Some(other) => other.parse().map_or(Self::Other, Self::code),
        }
    }

    fn code(code: i64) -> Self {
        match code {
            code @ (-32700 | -32603..=-32600 | -32099..=-32000) => Self::Code(code),
            _ => Self::Other,
        }
    }

    pub(crate) fn label(self) -> String {
        match self {
            Self::None => String::new(),
            Self::ToolError => "tool_error".into(),
            Self::Cancelled => "cancelled".into(),
            Self::Word(word) => word.into(),
            Self::Code(code) => code.to_string(),
            Self::Other => "_OTHER".into(),
        }
    }
}
