//! The cost of observing a server: a call over HTTP with nothing on, with each part (metrics, a line in
//! the log, the console, traces), with all of them, and with a recording as well.
//!
//! Servers take turns, so that load on the machine affects all alike; the medians are compared.
//! `cargo bench -p sabir-observe --bench cost`, with the number of calls as an optional argument.
//! Fails if metrics add more than 3 %, or everything more than 25 %.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a bench reports to people")]

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sabir_engine::{Engine, Observer, Settings};
use sabir_observe::{Bounds, Metrics, OtlpSettings, Recorder, Timeline, Tracer};
use sabir_registry::{Offer, Outcome, Pending, Source, ToolCall};
use sabir_transports::http::{Server, Settings as HttpSettings};
use sabir_wire::types::{Tool, ToolReply};
use sabir_wire::{Raw, Tap, Taps};
use tempfile::TempDir;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt as _;

/// The parts that can be on.
const METRICS: u8 = 1;
const LOG: u8 = 2;
const CONSOLE: u8 = 4;
const TRACES: u8 = 8;
const RECORDING: u8 = 16;
const EVERYTHING: u8 = METRICS | LOG | CONSOLE | TRACES;

/// What is on, and the limit that it may add, in percent. The cost of a recording depends on the disk.
const LEVELS: [(&str, u8, Option<f64>); 7] = [
    ("nothing", 0, None),
    ("metrics", METRICS, Some(3.0)),
    ("log", LOG, None),
    ("console", CONSOLE, None),
    ("traces", TRACES, None),
    ("everything", EVERYTHING, Some(25.0)),
    ("recording", EVERYTHING | RECORDING, None),
];

/// How many calls one server answers before it is the turn of the next.
const TURN: usize = 50;

const BODY: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"fifty bytes are about as long as this line is, yes"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}"#;

fn main() -> ExitCode {
    let calls = std::env::args().find_map(|arg| arg.parse().ok()).unwrap_or(20_000);
    let folder = TempDir::new().expect("a folder");
    let servers = LEVELS.map(|(_, parts, _)| serve(parts, &folder));
    let mut links = servers.map(|port| TcpStream::connect(("127.0.0.1", port)).expect("a server"));
    links.iter().for_each(|link| link.set_nodelay(true).expect("a socket"));
    let mut times = [const { Vec::new() }; LEVELS.len()];
    for round in 0..=calls / TURN {
        for (link, times) in links.iter_mut().zip(&mut times) {
            for _ in 0..TURN {
                let began = Instant::now();
                call(link);
                // The first round warms up.
                times.extend((round > 0).then(|| began.elapsed()));
            }
        }
    }
    let times = times.map(|times| median(times).as_secs_f64() * 1e6);
    println!("a call of a tool over HTTP, {calls} times each, medians:");
    let mut is_kept = true;
    for (time, (name, _, most)) in times.into_iter().zip(LEVELS) {
        let added = (time / times[0] - 1.0) * 100.0;
        let bound = most.map(|most| format!(" (at most {most} %)")).unwrap_or_default();
        println!("{name:>12}  {time:>6.1} µs  {added:+.1} %{bound}");
        is_kept &= most.is_none_or(|most| added <= most);
    }
    ExitCode::from(u8::from(!is_kept))
}

/// A server with a thread of its own.
fn serve(parts: u8, folder: &TempDir) -> u16 {
    let path = folder.path().join("recording.jsonl");
    let (sender, port) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let line = fmt::layer().with_writer(std::io::sink);
        let log = tracing_subscriber::registry().with(line);
        let _log = (parts & LOG != 0).then(|| tracing::subscriber::set_default(log));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let engine = engine(parts, &path);
            engine.registry().add(Arc::new(Echo)).expect("a source");
            let mut settings = HttpSettings::default();
            settings.address.set_port(0);
            let server = Server::bind(engine, settings).await.expect("an address");
            sender.send(server.address().port()).expect("a receiver");
            server.run(std::future::pending()).await;
        });
    });
    port.recv().expect("a port")
}

fn engine(parts: u8, path: &std::path::Path) -> Arc<Engine> {
    let has = |part: u8| parts & part != 0;
    let mut settings = Settings::default();
    let mut observers: Vec<Arc<dyn Observer>> = Vec::new();
    let metrics = has(METRICS).then(Metrics::new);
    observers.extend(metrics.clone().map(|metrics| metrics as Arc<dyn Observer>));
    if has(CONSOLE) {
        let timeline = Timeline::new(Bounds::default());
        timeline.switch_on();
        // With the console there always is a recorder, which is switched on or off.
        let recorder = Recorder::new("bench", false, 1 << 30);
        if has(RECORDING) {
            recorder.begin(path).expect("a file");
        }
        let taps: Vec<Arc<dyn Tap>> = vec![recorder.clone(), timeline.clone()];
        settings.tap = Some(Taps::new(taps));
        observers.push(timeline);
        observers.push(recorder);
    }
    if has(TRACES) {
        let endpoint = |name: &str| match name {
            "OTEL_EXPORTER_OTLP_ENDPOINT" => Some("http://127.0.0.1:9".to_owned()),
            _ => None,
        };
        let otlp = OtlpSettings::read(endpoint, "bench").expect("settings").expect("an endpoint");
        observers.push(Tracer::new(&otlp).expect("a tracer"));
    }
    let engine = Engine::observed(settings, observers);
    if let Some(metrics) = metrics {
        metrics.watch(&engine);
    }
    engine
}

struct Echo;

impl Source for Echo {
    fn offer(&self) -> Offer {
        let schema = r#"{"type":"object","properties":{"text":{"type":"string"}}}"#;
        let schema = Raw::parse(schema).expect("JSON");
        Offer { tools: vec![Tool::new("echo", "Say it again", schema)], ..Offer::default() }
    }

    fn call_tool(&self, call: ToolCall) -> Pending<ToolReply> {
        let reply = ToolReply::text(call.arguments.text());
        Box::pin(async move { Ok(Outcome::Done(reply)) })
    }
}

fn call(link: &mut TcpStream) {
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nAccept: \
         application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: \
         tools/call\r\nMcp-Name: echo\r\nContent-Length: {}\r\n\r\n",
        BODY.len()
    );
    link.write_all((head + BODY).as_bytes()).expect("a connection");
    let mut answer = Vec::new();
    let mut part = [0; 4096];
    loop {
        let read = link.read(&mut part).expect("an answer");
        assert!(read > 0, "the connection ended");
        answer.extend_from_slice(&part[..read]);
        let text = String::from_utf8_lossy(&answer);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        assert!(head.starts_with("HTTP/1.1 200"), "{text}");
        let head = head.to_ascii_lowercase();
        let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
        if length.and_then(|text| text.parse().ok()) == Some(body.len()) {
            return;
        }
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
