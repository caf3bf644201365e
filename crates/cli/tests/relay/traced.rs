//! Traces and metrics as a collector of OpenTelemetry gets them, through a relay in both eras.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use sabir_client::{CallOptions, HttpTarget};
use sabir_wire::Revision;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Relay, connect, fixture, listed, raw, text, until};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const HTTP_PARENT: &str = "00-11111111111111111111111111111111-2222222222222222-01";

/// Prints its position in a trace.
const WHERE: &str = "[[command]]\nname = \"where\"\nrun = [\"printenv\", \"TRACEPARENT\"]\n";

/// A collector: keeps all that it is sent, by path.
#[derive(Clone, Default)]
struct Collector(Arc<Mutex<Vec<(String, Value)>>>);

impl Collector {
    fn start() -> (Self, String) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let collector = Self::default();
        let kept = collector.clone();
        std::thread::spawn(move || {
            // A broken connection is ignored.
            listener.incoming().flatten().for_each(|stream| drop(kept.take(&stream)));
        });
        (collector, url)
    }

    fn take(&self, mut stream: &TcpStream) -> std::io::Result<()> {
        let mut lines = BufReader::new(stream);
        let (mut first, mut length) = (String::new(), 0);
        lines.read_line(&mut first)?;
        loop {
            let mut line = String::new();
            lines.read_line(&mut line)?;
            let line = line.trim().to_ascii_lowercase();
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if line.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        lines.read_exact(&mut body)?;
        let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
        self.0.lock().unwrap().push((path, serde_json::from_slice(&body).unwrap()));
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2";
        stream.write_all(format!("{head}\r\nConnection: close\r\n\r\n{{}}").as_bytes())
    }

    fn spans(&self) -> Vec<Value> {
        let all = self.0.lock().unwrap();
        let sent = all.iter().filter(|(path, _)| path == "/v1/traces");
        let spans = sent.flat_map(|(_, sent)| {
            sent["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone()
        });
        spans.collect()
    }

    /// The span of that id, once it has arrived.
    async fn span(&self, id: &str) -> Value {
        let find = || self.spans().into_iter().find(|span| span["spanId"] == id);
        until(&format!("the span {id}"), async || find().is_some()).await;
        find().unwrap()
    }

    fn metrics(&self) -> Vec<Value> {
        let all = self.0.lock().unwrap();
        let mut sent = all.iter().rev().filter(|(path, _)| path == "/v1/metrics");
        let last = sent.next().map(|(_, sent)| &sent["resourceMetrics"][0]["scopeMetrics"][0]);
        last.and_then(|last| last["metrics"].as_array().cloned()).unwrap_or_default()
    }
}

fn attribute<'a>(of: &'a Value, name: &str) -> &'a str {
    let all = of["attributes"].as_array().unwrap();
    let found = all.iter().find(|attribute| attribute["key"] == name);
    found.map_or("", |found| found["value"]["stringValue"].as_str().unwrap())
}

/// The id of the trace and that of the span.
fn ids(traceparent: &str) -> (&str, &str) {
    let parts: Vec<_> = traceparent.trim().split('-').collect();
    assert_eq!(parts.len(), 4, "{traceparent}");
    (parts[1], parts[2])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trace_goes_through_the_relay_in_both_eras() {
    let (collector, url) = Collector::start();
    let (old, new) = (Revision::NEWEST_LEGACY, Revision::NEWEST);
    let configuration = format!("{WHERE}{}{}", fixture("old", old), fixture("new", new));
    let relay = Relay::start_with(TempDir::new().unwrap(), &configuration, |command| {
        command.env("OTEL_EXPORTER_OTLP_ENDPOINT", &url);
        command.env("OTEL_SERVICE_NAME", "relay");
        command.env("OTEL_BSP_SCHEDULE_DELAY", "100").env("OTEL_METRIC_EXPORT_INTERVAL", "100");
    });
    for near in [old, new] {
        let target = HttpTarget::new(&*relay.url).unwrap();
        let target = target.with_header("traceparent", HTTP_PARENT).unwrap();
        let (client, _) = connect(target, near).await;
        let options = || CallOptions {
            meta: Some(raw(json!({ "traceparent": PARENT }))),
            ..CallOptions::default()
        };
        for far in [old, new] {
            let upstream = if far == old { "old" } else { "new" };
            let tool = format!("{upstream}_meta");
            listed(&client, &tool).await;
            let reply = client.call_tool_with(&tool, raw(json!({})), options()).await.unwrap();
            let seen: Value = serde_json::from_str(&text(&reply)).unwrap();
            // The upstream's parent span is our request to it, whose parent is the client's request.
            let (trace, sent) = ids(seen["traceparent"].as_str().unwrap());
            assert_eq!(trace, TRACE);
            let outgoing = collector.span(sent).await;
            assert_eq!(
                (&outgoing["name"], &outgoing["kind"]),
                (&json!("tools/call meta"), &json!(3))
            );
            assert_eq!(attribute(&outgoing, "sabir.upstream"), upstream);
            assert_eq!(attribute(&outgoing, "mcp.protocol.version"), far.date());
            let own = collector.span(outgoing["parentSpanId"].as_str().unwrap()).await;
            assert_eq!(
                (&own["name"], &own["kind"]),
                (&json!(format!("tools/call {tool}")), &json!(2))
            );
            assert_eq!(own["parentSpanId"], ids(PARENT).1);
            assert_eq!(own["links"][0]["spanId"], ids(HTTP_PARENT).1);
            for (name, value) in [
                ("mcp.method.name", "tools/call"),
                ("gen_ai.operation.name", "execute_tool"),
                ("gen_ai.tool.name", &*tool),
                ("mcp.protocol.version", near.date()),
                ("network.transport", "tcp"),
                ("network.protocol.name", "http"),
                ("error.type", ""),
            ] {
                assert_eq!(attribute(&own, name), value, "{name} of {own}");
            }
        }
        let reply = client.call_tool_with("where", raw(json!({})), options()).await.unwrap();
        let (trace, span) = (ids(&text(&reply)).0.to_owned(), ids(&text(&reply)).1.to_owned());
        assert_eq!(trace, TRACE);
        assert_eq!(collector.span(&span).await["name"], "tools/call where");
        let failed = client.call_tool_with("old_fail", raw(json!({})), options()).await.unwrap();
        assert!(failed.is_error);
    }
    let failed =
        || collector.spans().into_iter().find(|span| span["name"] == "tools/call old_fail");
    until("the failed call", async || failed().is_some()).await;
    let failed = failed().unwrap();
    assert_eq!(attribute(&failed, "error.type"), "tool_error");
    assert_eq!(failed["status"]["code"], 2);
    check_metrics(&collector).await;
}

/// The metrics have both sides of the relay.
async fn check_metrics(collector: &Collector) {
    for (name, label, value) in [
        ("mcp.server.operation.duration", "gen_ai.tool.name", "new_meta"),
        ("mcp.client.operation.duration", "sabir.upstream", "new"),
        ("sabir.source.ready", "source", "upstream `old`"),
    ] {
        let is_there = || {
            let metrics = collector.metrics();
            let metric = metrics.iter().find(|metric| metric["name"] == name)?;
            let data = metric.get("histogram").or(metric.get("gauge"))?;
            let points = data["dataPoints"].as_array()?;
            points.iter().find(|point| attribute(point, label) == value).cloned()
        };
        until(name, async || is_there().is_some()).await;
        if let Some(bounds) = is_there().unwrap().get("explicitBounds") {
            assert_eq!((bounds[0].as_f64(), bounds[13].as_f64()), (Some(0.01), Some(300.0)));
        }
    }
}
