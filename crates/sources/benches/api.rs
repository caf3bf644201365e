//! Compares the call of an operation with the same request made directly.
//!
//! They alternate, so that load on the machine affects both alike; the medians are compared.
//! `cargo bench -p sabir-sources --bench api`, with the number of calls as an optional argument.
//! Fails if a call adds more than 60 microseconds.

#![allow(clippy::print_stdout, reason = "a bench reports to people")]

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use sabir_outbound::{Addresses, HttpClient, Limits, PlainHttp, Policy};
use sabir_registry::{Outcome, Registry, ToolCall};
use sabir_sources::http::{
    Api, ApiSource, Choice, Folder, Loader, Location, ReplyLimits, SenderSettings,
};
use sabir_testkit::local_context;
use sabir_wire::Raw;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

const PROMISED: Duration = Duration::from_micros(60);

fn main() -> ExitCode {
    let calls = std::env::args().find_map(|arg| arg.parse().ok()).unwrap_or(5000);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let measured = runtime.block_on(runtime.spawn(measure(calls)));
    let [direct, call] = measured.expect("no panic").map(median);
    let added = call.saturating_sub(direct);
    println!("GET with three arguments and an answer of 1 KB, {calls} times each, medians:");
    for (name, time) in [("the request alone", direct), ("a call", call), ("added", added)] {
        println!("{name:>18}  {:>6.1} µs", time.as_secs_f64() * 1e6);
    }
    ExitCode::from(u8::from(added > PROMISED))
}

async fn measure(calls: usize) -> [Vec<Duration>; 2] {
    let url = serve().await;
    let policy = Policy {
        addresses: Addresses::PublicAndLoopback,
        plain_http: PlainHttp::Loopback,
        ..Policy::default()
    };
    let client = HttpClient::new(policy.clone()).expect("a client");
    let registry = registry(&url, policy).await;
    let mut times = [const { Vec::new() }; 2];
    for _ in 0..calls {
        let start = Instant::now();
        request(&client, &url).await;
        times[0].push(start.elapsed());
        let start = Instant::now();
        call(&registry).await;
        times[1].push(start.elapsed());
    }
    times
}

async fn request(client: &HttpClient, url: &str) {
    let request = http::Request::get(format!("{url}/pets/7?tag=a&tag=b&limit=20"));
    let request = request.header("accept", "application/json").body(Bytes::new());
    let sent = client.send(request.expect("a request"), &Limits::default()).await;
    let body = sent.expect("an answer").into_body().read().await;
    assert_eq!(body.expect("a body").len(), ANSWER.len());
}

async fn call(registry: &Registry) {
    let arguments = json!({ "id": 7, "tag": ["a", "b"], "limit": 20 });
    let arguments = Raw::of(&arguments).expect("JSON");
    let catalog = registry.snapshot();
    let entry = catalog.tool("pet").expect("a tool");
    entry.input.check(&arguments).expect("arguments that fit");
    let call = ToolCall { name: "pet".into(), arguments, context: local_context() };
    match entry.source().call_tool(call).await.expect("an answer") {
        Outcome::Done(reply) => assert!(!reply.is_error),
        Outcome::NeedInput(_) | Outcome::Relayed(_) => unreachable!("not an answer of an API"),
    }
}

/// A registry that serves an API of one operation.
async fn registry(url: &str, policy: Policy) -> Arc<Registry> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("api.json");
    let parameters = json!([
        { "name": "id", "in": "path", "required": true, "schema": { "type": "integer" } },
        { "name": "tag", "in": "query", "schema": { "type": "array", "items": { "type": "string" } } },
        { "name": "limit", "in": "query", "schema": { "type": "integer", "maximum": 100 } },
    ]);
    let description = json!({
        "openapi": "3.0.0",
        "servers": [{ "url": url }],
        "paths": { "/pets/{id}": { "get": { "operationId": "pet", "parameters": parameters } } },
    });
    std::fs::write(&path, description.to_string()).expect("a file");
    let api = Api {
        name: "pets".into(),
        loader: Loader { location: Location::File(path), client: None, cache: None },
        choice: Choice::default(),
        sender: SenderSettings { policy, ..SenderSettings::default() },
        trusts_servers: true,
        base_url: None,
        limits: ReplyLimits::default(),
        folder: Folder::default(),
    };
    let server = Raw::of(&json!({ "name": "pets", "version": "1" })).expect("JSON");
    let registry = Registry::new(server, 100);
    registry.add(Arc::new(ApiSource::new(api))).expect("a source");
    for starting in registry.start() {
        let _ = starting.await;
    }
    registry
}

static ANSWER: [u8; 1024] = {
    let mut text = [b'x'; 1024];
    text[0] = b'"';
    text[1023] = b'"';
    text
};

/// A server that gives the same answer to every request.
async fn serve() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(stream));
        }
    });
    url
}

async fn answer(stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1024\r\n\r\n";
    let answer = [head.as_bytes(), &ANSWER].concat();
    let (mut stream, mut line) = (BufReader::new(stream), String::new());
    loop {
        line.clear();
        match (stream.read_line(&mut line).await?, line.as_str()) {
            (0, _) => return Ok(()),
            (_, "\r\n") => stream.write_all(&answer).await?,
            _ => {}
        }
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}
