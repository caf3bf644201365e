//! Credentials that expire while a stream is open.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};

use sabir_transports::http::{Authenticate, Authenticating, Denied};
use sabir_wire::Caller;
use serde_json::json;

use crate::client::{Client, Request};
use crate::frames::Socket;
use crate::legacy::{call, get};
use crate::server::{Running, Wish, in_time};

/// Accepts every token that is a number, which is its expiry in seconds since 1970, even in the
/// past: so no test depends on the speed of a request.
struct Dated;

impl Authenticate for Dated {
    fn known(&self, authorization: Option<&[u8]>) -> Option<Result<Caller, Denied>> {
        let text = authorization.and_then(|value| std::str::from_utf8(value).ok());
        let end = text.and_then(|text| text.strip_prefix("Bearer ")?.parse().ok());
        Some(match end {
            Some(end) => Ok(Caller::new("https://i", "ann").until(end)),
            None => Err(Denied::Missing),
        })
    }

    fn authenticate(&self, _: Option<&[u8]>) -> Authenticating {
        Box::pin(async { Err(Denied::Missing) })
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// A request with a token that is valid for so many seconds.
fn dated(request: Request, seconds: u64) -> Request {
    request.header("authorization", &format!("Bearer {}", now() + seconds))
}

async fn start() -> Running {
    Wish::default().http(|http| http.authenticate = Some(Arc::new(Dated))).start().await
}

/// Reads events until the stream ends.
async fn ends(client: &mut Client) {
    let mut pending = Vec::new();
    while in_time(client.event(&mut pending)).await.is_some() {}
}

#[tokio::test]
async fn streams_that_are_listened_to_end_with_the_token() {
    let server = start().await;
    let listen = json!({ "notifications": { "toolsListChanged": true } });
    let listen = Request::modern(1, "subscriptions/listen", listen);
    let mut modern = server.connect().await;
    assert_eq!(modern.open(&dated(listen.clone(), 1)).await.status, 200);
    let mut lasting = server.connect().await;
    assert_eq!(lasting.open(&dated(listen, 600)).await.status, 200);

    let mut old = server.connect().await;
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {} });
    let opened = old.send(&dated(Request::legacy(0, "initialize", hello), 600)).await;
    let id = opened.header("mcp-session-id").unwrap().to_owned();
    let note = Request::note("notifications/initialized", json!({}));
    let note = dated(note.header("mcp-session-id", &id), 600);
    assert_eq!(old.send(&note).await.status, 202);
    assert_eq!(old.open(&dated(get(&id), 1)).await.status, 200);

    let mut oldest = server.connect().await;
    let sse = Request::new("GET", "/sse").header("accept", "text/event-stream");
    assert_eq!(oldest.open(&dated(sse, 1)).await.status, 200);

    for client in [&mut modern, &mut old, &mut oldest] {
        ends(client).await;
    }
    server.until(|stats| stats.streams == 1).await;
    // The session can be used with a new token.
    let echo = dated(call(&id, 1, "echo", json!({ "text": "x" })), 600);
    assert_eq!(old.send(&echo).await.text(), "x");
    drop((modern, lasting, old, oldest));
    server.stop().await;
}

#[tokio::test]
async fn a_call_may_take_longer_than_its_token_is_valid() {
    let server = start().await;
    let mut client = server.connect().await;
    client.write(&dated(Request::call(1, "wait", json!({})), 0).bytes()).await;
    server.signals.until(|signals| signals.begun.load(Ordering::SeqCst) == 1).await;
    server.signals.gate.0.add_permits(1);
    assert_eq!(client.response().await.text(), "waited");
    drop(client);
    server.stop().await;
}

#[tokio::test]
async fn a_websocket_is_closed_when_its_token_expires_even_if_nothing_is_sent() {
    let server = start().await;
    let token = format!("Bearer {}", now() + 1);
    let changes = [("authorization", Some(token.as_str()))];
    let mut socket = Socket::try_open(server.address, "/mcp", &changes).await.unwrap();
    assert_eq!(socket.close_code().await, Some(1008));
    drop(socket);
    server.stop().await;
}
