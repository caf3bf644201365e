use bytes::Bytes;
use sabir_engine::{Connection, Settings, TransportKind};
use sabir_registry::{Figure, Offer, Source, SourceHandle, Starting};
use sabir_session::{SessionKind, StreamId};
use sabir_wire::{Caller, Revision};

use super::series::{MAX_SERIES, OTHER};
use super::*;

fn say(connection: &mut Connection, text: &str) {
    connection.receive(StreamId(0), Caller::local(), &Bytes::copy_from_slice(text.as_bytes()));
}

const HELLO: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;

#[test]
fn requests_and_sessions_are_measured_and_made_up_names_are_not() {
    let metrics = Metrics::new();
    let engine = Engine::observed(Settings::default(), vec![metrics.clone()]);
    metrics.watch(&engine);
    let mut connection = Connection::new(&engine, SessionKind::Stream, Caller::local());
    say(&mut connection, HELLO);
    for nth in 0..10 {
        let name = format!("no-such-tool-{nth}");
        say(
            &mut connection,
            &format!(
                r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"{name}"}}}}"#
            ),
        );
    }
    drop(connection);
    let text = metrics.text();
    assert!(!text.contains("no-such-tool"), "{text}");
    let has = |line: &str| assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
    has("mcp_server_operation_duration_seconds_count{mcp_method_name=\"tools/call\",\
         gen_ai_operation_name=\"execute_tool\",error_type=\"-32602\",\
         mcp_protocol_version=\"2025-11-25\",network_transport=\"pipe\"} 10");
    has("mcp_server_session_duration_seconds_count 1");
    has("sabir_catalog_items{kind=\"tool\"} 0");
    assert_eq!(lock(&metrics.opened).len(), 0);
}

#[test]
fn the_number_of_series_is_bounded() {
    let metrics = Metrics::new();
    let series = |nth: usize, code| Series {
        method: Method::CallTool,
        name: Some(format!("tool-{nth}").into()),
        error: ErrorType::Code(code),
        revision: Revision::NEWEST,
        transport: TransportKind::Http,
    };
    for nth in 0..MAX_SERIES + 100 {
        metrics.operations.add(series(nth, -32602));
        metrics.operations.add(series(nth, -32603));
    }
    let known = metrics.operations.all();
    assert_eq!(known.len(), MAX_SERIES + 1);
    assert!(known.iter().any(|series| series.name.as_deref() == Some(OTHER)));
}

/// A source with numbers, whose connections end.
struct Counted(Mutex<Option<SourceHandle>>);

impl Source for Counted {
    fn offer(&self) -> Offer {
        Offer::default()
    }

    fn name(&self) -> String {
        "counted".to_owned()
    }

    fn start(&self, handle: SourceHandle) -> Starting {
        *lock(&self.0) = Some(handle);
        Box::pin(async { Ok(()) })
    }

    fn figures(&self) -> Vec<Figure> {
        let restarts = Figure::counter("sabir.upstream.restarts", "Opened again.", 3);
        vec![Figure::gauge("sabir.index.articles", "Articles.", 7), restarts]
    }
}

#[test]
fn sources_queues_limits_and_links_are_counted() {
    let metrics = Metrics::new();
    let engine = Engine::observed(Settings::default(), vec![metrics.clone()]);
    metrics.watch(&engine);
    metrics.watch_number("sabir.programs.running", "Programs.", || 4);
    let counted = Arc::new(Counted(Mutex::default()));
    engine.registry().add(counted.clone()).unwrap();
    engine.registry().add(Arc::new(Counted(Mutex::default()))).unwrap();
    drop(engine.registry().start());
    let handle = lock(&counted.0).clone().unwrap();
    let link = |seconds| LinkEnd {
        upstream: "old",
        revision: Revision::NEWEST_LEGACY,
        transport: "pipe",
        duration: std::time::Duration::from_secs(seconds),
    };
    handle.link_ended(&link(3));
    handle.link_ended(&link(400));
    sabir_budget::Limit::Rate.reach("a test");
    let text = metrics.text();
    for line in [
        "sabir_index_articles{source=\"counted\"} 14",
        "sabir_upstream_restarts_total{source=\"counted\"} 6",
        "sabir_programs_running 4",
        "sabir_queue_waiting{queue=\"calls\"} 0",
        "sabir_queue_running{queue=\"computing\"} 0",
        "sabir_limits_reached_total{limit=\"rate\"} 1",
        "sabir_limits_reached_total{limit=\"memory\"} 0",
        "mcp_client_session_duration_seconds_bucket{mcp_protocol_version=\"2025-11-25\",\
         network_transport=\"pipe\",sabir_upstream=\"old\",le=\"5\"} 1",
        "mcp_client_session_duration_seconds_count{mcp_protocol_version=\"2025-11-25\",\
         network_transport=\"pipe\",sabir_upstream=\"old\"} 2",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
    }
}

#[test]
fn the_dashboard_asks_for_metrics_and_labels_that_are_there() {
    let dashboard = include_str!("../../../../docs/grafana.json");
    // Grafana's own schema demands them.
    let parsed: serde_json::Value = serde_json::from_str(dashboard).unwrap();
    assert!(parsed["annotations"]["list"].is_array());
    let metrics = Metrics::new();
    let engine = Engine::observed(Settings::default(), vec![metrics.clone()]);
    metrics.watch(&engine);
    let stats = Stats { connections: 0, requests: 0, streams: 0, sessions: 0 };
    let families = metrics.families().into_iter().chain(http(stats));
    let mut known: Vec<_> = families.map(|family| family.text_name()).collect();
    // The numbers of sources and programs; `./test console` asks a Prometheus for them.
    known.extend(
        [
            "sabir_programs_running",
            "sabir_upstream_up",
            "sabir_upstream_links",
            "sabir_upstream_restarts_total",
            "sabir_index_articles",
            "sabir_index_left",
        ]
        .map(str::to_owned),
    );
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = dashboard.split(|c| !is_word(c));
    let is_metric = |word: &&str| {
        ["mcp_server_", "mcp_client_", "process_", "sabir_"].iter().any(|p| word.starts_with(p))
    };
    // The one label that begins like a metric.
    let asked: Vec<_> = words.filter(is_metric).filter(|word| *word != "sabir_upstream").collect();
    assert!(asked.len() > 20, "{asked:?}");
    for word in asked {
        let name = ["_bucket", "_count"]
            .iter()
            .fold(word, |name, end| name.strip_suffix(end).unwrap_or(name));
        assert!(known.iter().any(|known| known == name), "{word} is not one of {known:?}");
    }
    let parsed: serde_json::Value = serde_json::from_str(dashboard).unwrap();
    assert_eq!(parsed["title"], "Sabir");
}
