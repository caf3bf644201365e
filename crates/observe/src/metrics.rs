//! Counts and durations, with the names and attributes of the OpenTelemetry conventions for MCP in
//! the form of Prometheus, and what only Sabir knows.

mod exposition; // the text format
mod histogram; // durations

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, Weak};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use rustc_hash::FxHashMap;
use sabir_budget::memory;
use sabir_engine::{
    ClientEvent, ClientEventKind, Ended, Ending, Engine, ObservedCall, Observer, TransportKind,
};
use sabir_registry::SourceState;
use sabir_transports::http::{Stats, Watcher};
use sabir_wire::{ByteString, Method, Revision};

use self::exposition::Exposition;
pub(crate) use self::exposition::MEDIA_TYPE;
use self::histogram::Histogram;

/// How many series of durations there are before tools and error codes are counted together. A
/// series has about 150 bytes, and 17 lines of text.
const MAX_SERIES: usize = 4_000;

/// The label of all names that have no series of their own.
const OTHER: &str = "_other";

/// The metrics of an engine.
#[derive(Debug)]
pub struct Metrics {
    operations: RwLock<FxHashMap<Series, Arc<Histogram>>>,
    sessions: Histogram,
    /// When the handshakes of the legacy clients that are there began, by connection.
    opened: Mutex<FxHashMap<u64, Instant>>,
    engine: OnceLock<Weak<Engine>>,
    servers: Mutex<Vec<Watcher>>,
    started: SystemTime,
}

/// The attributes of an operation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Series {
    method: Method,
    /// Only of what is offered, else clients could make names up.
    name: Option<ByteString>,
    error: ErrorType,
    revision: Revision,
    transport: TransportKind,
}

/// The attribute `error.type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum ErrorType {
    None,
    ToolError,
    Cancelled,
    /// A code of JSON-RPC or of MCP.
    Code(i64),
    /// A code that a source made up.
    Other,
}

impl ErrorType {
    fn of(outcome: &Ended<'_>) -> Self {
        match outcome {
            Ended::Ok | Ended::InputRequired | Ended::Listening => Self::None,
            Ended::ToolError => Self::ToolError,
            Ended::Aborted => Self::Cancelled,
            Ended::Failed(problem) => match problem.to_error().code {
                code @ (-32700 | -32603..=-32600 | -32099..=-32000) => Self::Code(code),
                _ => Self::Other,
            },
        }
    }

    fn label(self) -> String {
        match self {
            Self::None => String::new(),
            Self::ToolError => "tool_error".into(),
            Self::Cancelled => "cancelled".into(),
            Self::Code(code) => code.to_string(),
            Self::Other => "_OTHER".into(),
        }
    }
}

impl Observer for Metrics {
    fn ended(&self, call: &ObservedCall, ending: &Ending<'_>) {
        let series = Series {
            method: call.method.clone(),
            name: call.name.clone().filter(|_| call.is_offered),
            error: ErrorType::of(&ending.outcome),
            revision: call.revision,
            transport: call.transport,
        };
        let known = self.operations.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(histogram) = known.get(&series) {
            histogram.observe(ending.duration);
            return;
        }
        drop(known);
        self.add(series).observe(ending.duration);
    }

    fn client(&self, event: ClientEvent) {
        match event.kind {
            ClientEventKind::Initializing => {
                lock(&self.opened).insert(event.connection, Instant::now());
            }
            ClientEventKind::Left => {
                if let Some(opened) = lock(&self.opened).remove(&event.connection) {
                    self.sessions.observe(opened.elapsed());
                }
            }
            _ => {}
        }
    }
}

impl Metrics {
    /// Metrics of the engine that is [named](Metrics::watch) later.
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            operations: RwLock::default(),
            sessions: Histogram::default(),
            opened: Mutex::default(),
            engine: OnceLock::new(),
            servers: Mutex::default(),
            started: SystemTime::now(),
        })
    }

    /// Names the engine, whose sources and catalog are counted too.
    pub fn watch(&self, engine: &Arc<Engine>) {
        // The first one stays.
        let _ = self.engine.set(Arc::downgrade(engine));
    }

    /// Adds a server, whose connections are counted.
    pub fn watch_server(&self, server: Watcher) {
        lock(&self.servers).push(server);
    }

    /// Adds a series, in memory of its own. When there are too many, names are counted together.
    fn add(&self, mut series: Series) -> Arc<Histogram> {
        let mut known = self.operations.write().unwrap_or_else(PoisonError::into_inner);
        let is_full = known.len() >= MAX_SERIES;
        series.name = series.name.map(|name| match is_full {
            true => ByteString::from_static(OTHER),
            false => ByteString::from(&*name),
        });
        if is_full && matches!(series.error, ErrorType::Code(_)) {
            series.error = ErrorType::Other;
        }
        known.entry(series).or_default().clone()
    }

    /// All metrics, in the text format of Prometheus.
    pub fn text(&self) -> String {
        let mut out = Exposition::default();
        self.write_operations(&mut out);
        const SESSION: &str = "mcp_server_session_duration_seconds";
        out.metric(SESSION, "histogram", "How long legacy clients stayed.");
        self.sessions.write(SESSION, &[], &mut out);
        self.write_process(&mut out);
        self.write_servers(&mut out);
        if let Some(engine) = self.engine.get().and_then(Weak::upgrade) {
            write_engine(&engine, &mut out);
        }
        out.text()
    }

    fn write_operations(&self, out: &mut Exposition) {
        const NAME: &str = "mcp_server_operation_duration_seconds";
        let known = self.operations.read().unwrap_or_else(PoisonError::into_inner);
        let mut series: Vec<_> =
            known.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        drop(known);
        if series.is_empty() {
            return;
        }
        series.sort_by(|(a, _), (b, _)| {
            let key = |s: &Series| (s.method.name().to_owned(), s.name.clone(), s.error.label());
            key(a).cmp(&key(b)).then(a.revision.cmp(&b.revision))
        });
        out.metric(NAME, "histogram", "How long requests of clients took.");
        for (series, histogram) in series {
            let name = series.name.as_deref().unwrap_or_default();
            let of = |method: Method| if series.method == method { name } else { "" };
            let (transport, protocol) = match series.transport {
                TransportKind::Pipe => ("pipe", ""),
                TransportKind::WebSocket => ("tcp", "websocket"),
                _ => ("tcp", "http"),
            };
            let is_tool = series.method == Method::CallTool;
            let labels = [
                ("mcp_method_name", series.method.name()),
                ("gen_ai_operation_name", if is_tool { "execute_tool" } else { "" }),
                ("gen_ai_tool_name", of(Method::CallTool)),
                ("gen_ai_prompt_name", of(Method::GetPrompt)),
                ("error_type", &series.error.label()),
                ("mcp_protocol_version", series.revision.date()),
                ("network_transport", transport),
                ("network_protocol_name", protocol),
            ];
            histogram.write(NAME, &labels, out);
        }
    }

    fn write_process(&self, out: &mut Exposition) {
        const BUILD: &str = "sabir_build_info";
        out.metric(BUILD, "gauge", "The version of Sabir.");
        out.sample(BUILD, &[("version", env!("CARGO_PKG_VERSION"))], 1);
        let started = self.started.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        out.gauge("process_start_time_seconds", "When the process started.", started);
        let help = "The memory of requests, results and sessions.";
        out.gauge("sabir_memory_used_bytes", help, memory().used());
        out.gauge("sabir_memory_limit_bytes", "The limit of that memory.", memory().limit());
    }

    fn write_servers(&self, out: &mut Exposition) {
        let Some(Stats { connections, requests, streams, sessions }) = self.http_counts() else {
            return;
        };
        out.gauge("sabir_http_connections", "Open connections.", connections);
        out.gauge("sabir_http_requests", "Requests in flight.", requests);
        out.gauge("sabir_http_streams", "Open event streams and WebSockets.", streams);
        out.gauge("sabir_http_sessions", "Legacy sessions over HTTP.", sessions);
    }

    /// The counts of all servers; `None` without a server.
    pub(crate) fn http_counts(&self) -> Option<Stats> {
        let stats: Vec<_> = lock(&self.servers).iter().map(Watcher::stats).collect();
        stats.into_iter().reduce(|all, one| Stats {
            connections: all.connections + one.connections,
            requests: all.requests + one.requests,
            streams: all.streams + one.streams,
            sessions: all.sessions + one.sessions,
        })
    }
}

fn write_engine(engine: &Engine, out: &mut Exposition) {
    let help = "Legacy clients whose handshake is complete.";
    out.gauge("sabir_clients_ready", help, engine.ready_clients());
    let catalog = engine.registry().snapshot();
    const ITEMS: &str = "sabir_catalog_items";
    out.metric(ITEMS, "gauge", "What is offered.");
    for (kind, count) in [
        ("tool", catalog.tools().len()),
        ("prompt", catalog.prompts().len()),
        ("resource", catalog.resources().len()),
        ("template", catalog.templates().len()),
    ] {
        out.sample(ITEMS, &[("kind", kind)], count);
    }
    // Sources of one name are counted together: a series must not be there twice.
    let mut sources = BTreeMap::<String, (bool, usize)>::new();
    for source in engine.registry().status() {
        let (is_ready, problems) = sources.entry(source.name).or_insert((true, 0));
        *is_ready &= source.state == SourceState::Ready;
        *problems += source.problems.len();
    }
    if sources.is_empty() {
        return;
    }
    const READY: &str = "sabir_source_ready";
    out.metric(READY, "gauge", "Whether a source is ready.");
    for (name, (is_ready, _)) in &sources {
        out.sample(READY, &[("source", name)], u8::from(*is_ready));
    }
    const PROBLEMS: &str = "sabir_source_problems";
    out.metric(PROBLEMS, "gauge", "Problems of a source that do not stop it.");
    for (name, (_, problems)) in &sources {
        out.sample(PROBLEMS, &[("source", name)], problems);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
