//! The shop over HTTP: its own route, and MCP clients of both eras.

#![allow(clippy::unwrap_used, reason = "these are tests")]

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use sabir::Revision;
use sabir_example_axum::pool::{Pool, QUERY_TIME, Usage};
use sabir_example_axum::{Shop, shop};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

struct Running {
    address: SocketAddr,
    pool: Pool,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

async fn start(connections: usize) -> Running {
    let pool = Pool::open(connections, [("tea", 100)]);
    let Shop { router, mcp, handle } = shop(pool.clone()).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel();
    let shutdown = async move {
        let _ = stopped.await;
        mcp.stop();
    };
    let serving = tokio::spawn(async move {
        axum::serve(listener, router).with_graceful_shutdown(shutdown).await.unwrap();
        handle.close().await;
    });
    Running { address, pool, stop, serving }
}

/// Makes one request on a connection of its own; returns the head and the body.
async fn http(address: SocketAddr, first: &str, headers: &str, body: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!(
        "{first} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).await.unwrap();
    let (head, body) = reply.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

const JSON: &str =
    "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";

/// The message in a body that is JSON, or one event.
fn message(body: &str) -> Value {
    let data = body.lines().find_map(|line| line.strip_prefix("data: ")).unwrap_or(body);
    serde_json::from_str(data).unwrap_or_else(|error| panic!("{error}: {body}"))
}

fn request(id: u32, method: &str, params: Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

async fn call_modern(address: SocketAddr, tool: &str, arguments: Value) -> Value {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": Revision::NEWEST,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
    });
    let params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
    let headers = format!(
        "{JSON}MCP-Protocol-Version: {}\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\n",
        Revision::NEWEST.date()
    );
    let (_, body) = http(address, "POST /mcp", &headers, &request(1, "tools/call", params)).await;
    message(&body)["result"].take()
}

/// Opens a legacy session; returns its headers.
async fn initialize(address: SocketAddr) -> String {
    let revision = Revision::NEWEST_LEGACY;
    let params = json!({
        "protocolVersion": revision, "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" },
    });
    let (head, _) = http(address, "POST /mcp", JSON, &request(1, "initialize", params)).await;
    let session = head.lines().find(|line| line.to_ascii_lowercase().starts_with("mcp-session-id"));
    let version = revision.date();
    let headers = format!("{JSON}{}\r\nMCP-Protocol-Version: {version}\r\n", session.unwrap());
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string();
    http(address, "POST /mcp", &headers, &ready).await;
    headers
}

#[tokio::test]
async fn the_route_and_both_eras_see_the_same_stock() {
    let Running { address, stop, serving, .. } = start(2).await;
    let (head, body) = http(address, "GET /stock/tea", "", "").await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert_eq!(body, "100\n");

    let result = call_modern(address, "order", json!({ "article": "tea", "count": 60 })).await;
    assert_eq!(result["content"][0]["text"], "ordered; 40 left");

    let headers = initialize(address).await;
    let order = json!({ "name": "order", "arguments": { "article": "tea", "count": 60 } });
    let (_, body) = http(address, "POST /mcp", &headers, &request(2, "tools/call", order)).await;
    let result = message(&body)["result"].take();
    assert_eq!(result["isError"], true);
    assert_eq!(result["content"][0]["text"], "there are not 60 of `tea` in stock");
    let stock = json!({ "name": "stock", "arguments": { "article": "salt" } });
    let (_, body) = http(address, "POST /mcp", &headers, &request(3, "tools/call", stock)).await;
    assert_eq!(message(&body)["result"]["content"][0]["text"], "`salt` is not sold here");

    let (_, body) = http(address, "GET /stock/tea", "", "").await;
    assert_eq!(body, "40\n");
    let (head, _) = http(address, "GET /elsewhere", "", "").await;
    assert!(head.starts_with("HTTP/1.1 404"), "{head}");
    stop.send(()).unwrap();
    serving.await.unwrap();
}

#[tokio::test]
async fn calls_wait_for_one_of_the_connections() {
    let Running { address, pool, stop, serving } = start(2).await;
    let began = Instant::now();
    let calls: Vec<_> = (0..8)
        .map(|_| tokio::spawn(call_modern(address, "stock", json!({ "article": "tea" }))))
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap()["content"][0]["text"], "100 in stock");
    }
    // Eight queries over two connections are four in a row.
    assert!(began.elapsed() >= 4 * QUERY_TIME, "{:?}", began.elapsed());
    assert_eq!(pool.usage(), Usage { now: 0, peak: 2 });
    stop.send(()).unwrap();
    serving.await.unwrap();
}

#[tokio::test]
async fn an_open_event_stream_does_not_delay_the_shutdown() {
    let Running { address, stop, serving, .. } = start(1).await;
    let headers = initialize(address).await;
    let listening = tokio::spawn(async move { http(address, "GET /mcp", &headers, "").await });
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!listening.is_finished());
    stop.send(()).unwrap();
    tokio::time::timeout(Duration::from_secs(3), serving).await.unwrap().unwrap();
    let (head, _) = listening.await.unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
}
