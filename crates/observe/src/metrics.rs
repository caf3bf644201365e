//! Counts and durations, with the names and attributes of the OpenTelemetry conventions for MCP in
//! the form of Prometheus, and metrics of Sabir's own.

mod exposition; // the text format
mod histogram; // durations
mod process; // queues and limits of the process
mod series; // durations by their attributes

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use rustc_hash::FxHashMap;
use sabir_budget::memory;
use sabir_engine::{ClientEvent, ClientEventKind, Ending, Engine, ObservedCall, Observer};
use sabir_registry::{LinkEnd, OutgoingObserver, OutgoingRequest, SourceState};
use sabir_transports::http::{Stats, StoreStats, Watcher};
use sabir_wire::Method;

pub(crate) use self::exposition::{Family, Kind, MEDIA_TYPE, Sample};
use self::histogram::Histogram;
pub(crate) use self::series::{ErrorType, network};
use self::series::{LinkSeries, Measured, OutgoingSeries, Series, Table};

/// A number that is measured on demand.
struct Measure(Box<dyn Fn() -> usize + Send + Sync>);

impl std::fmt::Debug for Measure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Measure")
    }
}

/// The metrics of an engine.
#[derive(Debug)]
pub struct Metrics {
    operations: Table<Series>,
    outgoing: Arc<Table<OutgoingSeries>>,
    sessions: Histogram,
    links: Table<LinkSeries>,
    gauges: Mutex<Vec<(Family, Measure)>>,
    /// When the connected legacy clients began their handshakes, by connection.
    opened: Mutex<FxHashMap<u64, Instant>>,
    engine: OnceLock<Weak<Engine>>,
    servers: Mutex<Vec<Watcher>>,
    started: SystemTime,
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
        self.operations.observe(series, ending.duration);
    }

    fn outgoing(&self, _: u64, request: &OutgoingRequest<'_>) -> Option<Box<dyn OutgoingObserver>> {
        let OutgoingRequest { upstream, method, name, transport } = *request;
        let is_named = matches!(method, Method::CallTool | Method::GetPrompt);
        let series = OutgoingSeries {
            upstream: upstream.into(),
            method: method.clone(),
            name: name.filter(|_| is_named).map(Into::into),
            error: ErrorType::None,
            revision: None,
            transport,
        };
        let (began, table) = (Instant::now(), self.outgoing.clone());
        Some(Box::new(Measured { series, began, table }))
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

    fn link_ended(&self, end: &LinkEnd<'_>) {
        let LinkEnd { upstream, revision, transport, duration } = *end;
        self.links.observe(LinkSeries { upstream: upstream.into(), revision, transport }, duration);
    }
}

impl Metrics {
    /// Metrics of the engine that is [named](Metrics::watch) later.
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            operations: Table::default(),
            outgoing: Arc::default(),
            sessions: Histogram::default(),
            links: Table::default(),
            gauges: Mutex::default(),
            opened: Mutex::default(),
            engine: OnceLock::new(),
            servers: Mutex::default(),
            started: SystemTime::now(),
        })
    }

    /// Names the engine, whose sources and catalog are counted too.
    pub fn watch(&self, engine: &Arc<Engine>) {
        // Only the first call counts.
        let _ = self.engine.set(Arc::downgrade(engine));
    }

    /// Adds a server, whose connections are counted.
    pub fn watch_server(&self, server: Watcher) {
        lock(&self.servers).push(server);
    }

    /// Adds a number that another component measures.
    pub fn watch_number(
        &self,
        name: &'static str,
        help: &'static str,
        measure: impl Fn() -> usize + Send + Sync + 'static,
    ) {
        lock(&self.gauges).push((Family::gauge(name, "", help), Measure(Box::new(measure))));
    }

    /// All metrics, in the text format of Prometheus.
    pub fn text(&self) -> String {
        let mut out = String::new();
        self.families().iter().for_each(|family| family.write(&mut out));
        out
    }

    /// All metrics.
    pub(crate) fn families(&self) -> Vec<Family> {
        let sessions =
            Family::durations("mcp.server.session.duration", "How long legacy clients stayed.")
                .with_labels(Vec::new(), Sample::Histogram(self.sessions.buckets()));
        let help = "How long requests to upstreams took.";
        let outgoing = self.outgoing.family("mcp.client.operation.duration", help);
        let help = "How long connections to upstreams were open.";
        let links = self.links.family("mcp.client.session.duration", help);
        let help = "How long requests of clients took.";
        let operations = self.operations.family("mcp.server.operation.duration", help);
        let mut all = vec![operations, sessions, outgoing, links];
        all.extend(self.process());
        all.extend(process::families());
        let gauges = lock(&self.gauges);
        all.extend(gauges.iter().map(|(family, measure)| family.clone().with((measure.0)())));
        drop(gauges);
        all.extend(self.http_counts().map(http).into_iter().flatten());
        all.extend(self.store_counts().map(store).into_iter().flatten());
        if let Some(engine) = self.engine.get().and_then(Weak::upgrade) {
            all.extend(engine_families(&engine));
        }
        all
    }

    /// The time at which counting began.
    pub(crate) fn started(&self) -> SystemTime {
        self.started
    }

    #[expect(clippy::cast_precision_loss, reason = "no machine has so much memory")]
    fn process(&self) -> [Family; 4] {
        let build = vec![("version", env!("CARGO_PKG_VERSION").to_owned())];
        let started = self.started.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        let number = |family: Family, value| family.with_labels(Vec::new(), Sample::Number(value));
        let used = Family::gauge(
            "sabir.memory.used",
            "By",
            "The memory of requests, results and sessions.",
        );
        let limit = Family::gauge("sabir.memory.limit", "By", "The limit of that memory.");
        let start = Family::gauge("process.start_time", "s", "When the process started.");
        [
            Family::gauge("sabir.build.info", "", "The version of Sabir.")
                .with_labels(build, Sample::Number(1.0)),
            number(start, started),
            number(used, memory().used() as f64),
            number(limit, memory().limit() as f64),
        ]
    }

    /// The counts of the store that the nodes share; `None` without one. Only one server has it.
    fn store_counts(&self) -> Option<StoreStats> {
        lock(&self.servers).iter().find_map(Watcher::store)
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

fn http(stats: Stats) -> [Family; 4] {
    let Stats { connections, requests, streams, sessions } = stats;
    [
        Family::gauge("sabir.http.connections", "", "Open connections.").with(connections),
        Family::gauge("sabir.http.requests", "", "Requests in flight.").with(requests),
        Family::gauge("sabir.http.streams", "", "Open event streams and WebSockets.").with(streams),
        Family::gauge("sabir.http.sessions", "", "Legacy sessions over HTTP.").with(sessions),
    ]
}

#[expect(clippy::cast_precision_loss, reason = "a count of requests stays below 2^52")]
fn store(stats: StoreStats) -> [Family; 4] {
    let StoreStats { answered, failed, time, heard, gaps } = stats;
    let number = |count: u64| Sample::Number(count as f64);
    let labelled = |outcome: &str| vec![("outcome", outcome.to_owned())];
    let requests = Family::counter("sabir.cluster.requests", "", "Requests to the shared store.");
    let help = "How long the shared store took to answer, in all.";
    let time_taken = Family::counter("sabir.cluster.time", "s", help);
    let help = "Messages of other nodes.";
    let messages = Family::counter("sabir.cluster.messages", "", help);
    let help = "Interruptions of the messages of other nodes.";
    let interruptions = Family::counter("sabir.cluster.interruptions", "", help);
    [
        requests
            .with_labels(labelled("answered"), number(answered))
            .with_labels(labelled("failed"), number(failed)),
        time_taken.with_labels(Vec::new(), Sample::Number(time.as_secs_f64())),
        messages.with_labels(Vec::new(), number(heard)),
        interruptions.with_labels(Vec::new(), number(gaps)),
    ]
}

fn engine_families(engine: &Engine) -> Vec<Family> {
    let ready = engine.ready_clients();
    let ready =
        Family::gauge("sabir.clients.ready", "", "Legacy clients whose handshake is complete.")
            .with(ready);
    let catalog = engine.registry().snapshot();
    let items = [
        ("tool", catalog.tools().len()),
        ("prompt", catalog.prompts().len()),
        ("resource", catalog.resources().len()),
        ("template", catalog.templates().len()),
    ];
    let number = |number: usize| Sample::Number(u32::try_from(number).unwrap_or(u32::MAX).into());
    let items = items.into_iter().fold(
        Family::gauge("sabir.catalog.items", "", "What is offered."),
        |family, (kind, count)| family.with_labels(vec![("kind", kind.to_owned())], number(count)),
    );
    // Sources of one name are counted together: a series must not appear twice.
    let mut sources = BTreeMap::<String, (bool, usize)>::new();
    let status = engine.registry().status();
    let figures = process::figures(&status);
    for source in status {
        let (is_ready, problems) = sources.entry(source.name).or_insert((true, 0));
        *is_ready &= source.state == SourceState::Ready;
        *problems += source.problems.len();
    }
    let mut are_ready = Family::gauge("sabir.source.ready", "", "Whether a source is ready.");
    let help = "Problems of a source that do not stop it.";
    let mut problems = Family::gauge("sabir.source.problems", "", help);
    for (name, (is_ready, count)) in sources {
        let labels = vec![("source", name)];
        are_ready = are_ready.with_labels(labels.clone(), number(is_ready.into()));
        problems = problems.with_labels(labels, number(count));
    }
    let mut all = vec![ready, items, are_ready, problems];
    all.extend(figures);
    all
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
