//! The transport of the first revision: `/sse` and `/messages`.

use std::sync::atomic::Ordering;
use std::time::Duration;

use sabir_session::RequireReady;
use serde_json::json;

use crate::client::{Client, Request};
use crate::server::{Running, Wish, start};

/// Opens the stream; the path to post to.
pub(crate) async fn open(server: &Running) -> (Client, Vec<u8>, String) {
    let mut stream = server.connect().await;
    let request = Request::new("GET", "/sse").header("accept", "text/event-stream");
    let head = stream.open(&request).await;
    assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")));
    let mut pending = Vec::new();
    let endpoint = stream.event(&mut pending).await.unwrap();
    assert_eq!(endpoint.kind.as_deref(), Some("endpoint"));
    (stream, pending, endpoint.data.unwrap())
}

pub(crate) fn post(path: &str, request: Request) -> Request {
    Request { path: path.to_owned(), ..request }
}

#[tokio::test]
async fn everything_is_said_on_the_one_stream() {
    let server = start().await;
    let (mut stream, mut pending, path) = open(&server).await;
    let mut client = server.connect().await;
    let params = json!({ "protocolVersion": "2024-11-05", "capabilities": { "sampling": {} } });
    let hello = post(&path, Request::legacy(1, "initialize", params).without("accept"));
    let response = client.send(&hello).await;
    assert_eq!((response.status, response.body.len()), (202, 0));
    let welcome = stream.event(&mut pending).await.unwrap();
    assert_eq!(welcome.kind.as_deref(), Some("message"));
    assert_eq!(welcome.json()["result"]["protocolVersion"], "2024-11-05");
    client.send(&post(&path, Request::note("notifications/initialized", json!({})))).await;
    let slow = Request::legacy(2, "tools/call", json!({ "name": "wait" }));
    assert_eq!(client.send(&post(&path, slow)).await.status, 202);
    let ask = Request::legacy(3, "tools/call", json!({ "name": "sample" }));
    assert_eq!(client.send(&post(&path, ask)).await.status, 202);
    let question = stream.event(&mut pending).await.unwrap().json();
    assert_eq!(question["method"], "sampling/createMessage");
    let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": {
        "role": "assistant", "model": "m", "content": { "type": "text", "text": "hm" },
    } });
    client.send(&post(&path, Request::message(&answer))).await;
    assert_eq!(stream.event(&mut pending).await.unwrap().json()["id"], 3);
    server.signals.gate.0.add_permits(1);
    assert_eq!(stream.event(&mut pending).await.unwrap().json()["id"], 2);
    server.signals.has_extra.store(true, Ordering::SeqCst);
    server.signals.announce();
    let changed = stream.event(&mut pending).await.unwrap();
    assert_eq!(changed.method(), "notifications/tools/list_changed");
    server.stop().await;
}

#[tokio::test]
async fn a_call_that_takes_its_time_is_heard_at_once() {
    let server = Wish::default()
        .engine(|engine| engine.dialect.require_ready = Some(RequireReady::None))
        .start()
        .await;
    let (mut stream, mut pending, path) = open(&server).await;
    let mut client = server.connect().await;
    let slow = Request::legacy(2, "tools/call", json!({ "name": "wait" }));
    assert_eq!(client.send(&post(&path, slow)).await.status, 202);
    server.signals.until(|signals| signals.begun.load(Ordering::SeqCst) == 1).await;
    server.signals.gate.0.add_permits(1);
    // Only the end of the call can wake the reader before a comment is due.
    let result = tokio::time::timeout(Duration::from_secs(5), stream.event(&mut pending));
    assert_eq!(result.await.unwrap().unwrap().json()["id"], 2);
    server.stop().await;
}

#[tokio::test]
async fn the_stream_is_the_session() {
    let server = start().await;
    let (stream, _, path) = open(&server).await;
    let mut client = server.connect().await;
    let ping = post(&path, Request::legacy(1, "ping", json!({})));
    assert_eq!(client.send(&ping).await.status, 202);
    let id = path.split_once("sessionId=").unwrap().1;
    let elsewhere = Request::legacy(1, "ping", json!({})).header("mcp-session-id", id);
    assert_eq!(client.send(&elsewhere).await.status, 404, "the session of another transport");
    drop(stream);
    server.until(|stats| stats.sessions == 0 && stats.streams == 0).await;
    assert_eq!(client.send(&ping).await.status, 404);
    server.stop().await;
}

#[tokio::test]
async fn wrong_posts_are_told_so() {
    let server = start().await;
    let (mut stream, mut pending, path) = open(&server).await;
    let mut client = server.connect().await;
    let ping = Request::legacy(1, "ping", json!({}));
    assert_eq!(client.send(&post("/messages", ping.clone())).await.status, 400);
    assert_eq!(client.send(&post("/messages?sessionId=x", ping.clone())).await.status, 404);
    assert_eq!(client.send(&post(&path, Request::post("{"))).await.code(), -32700);
    let form = post(&path, ping.clone().with("content-type", "text/plain"));
    assert_eq!(client.send(&form).await.status, 415);
    assert_eq!(client.send(&Request::new("POST", "/sse")).await.status, 405);
    assert_eq!(client.send(&Request::new("GET", "/messages")).await.status, 405);
    // None of this was sent on the stream.
    assert_eq!(client.send(&post(&path, ping)).await.status, 202);
    assert_eq!(stream.event(&mut pending).await.unwrap().json()["id"], 1);
    server.stop().await;
}

#[tokio::test]
async fn it_can_be_switched_off() {
    let server = Wish::default().http(|http| http.old_sse = false).start().await;
    let mut client = server.connect().await;
    assert_eq!(client.send(&Request::new("GET", "/sse")).await.status, 404);
    assert_eq!(client.send(&Request::new("POST", "/messages")).await.status, 404);
    server.stop().await;
}
