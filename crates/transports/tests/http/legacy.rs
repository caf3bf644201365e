//! Legacy clients: sessions.

use serde_json::{Value, json};

use crate::client::{Client, Request};
use crate::server::{Running, start};

pub(crate) async fn hello(client: &mut Client, revision: &str) -> (String, Value) {
    let params = json!({
        "protocolVersion": revision,
        "capabilities": { "sampling": {}, "elicitation": {} },
        "clientInfo": { "name": "test", "version": "1" },
    });
    let response = client.send(&Request::legacy(0, "initialize", params)).await;
    assert_eq!(response.status, 200, "{:?}", response.json());
    let id = response.header("mcp-session-id").expect("no session").to_owned();
    (id, response.json())
}

/// A session whose handshake is complete.
pub(crate) async fn session(server: &Running, revision: &str) -> (Client, String) {
    let mut client = server.connect().await;
    let (id, _) = hello(&mut client, revision).await;
    let ready = Request::note("notifications/initialized", json!({}));
    let response = client.send(&ready.header("mcp-session-id", &id)).await;
    assert_eq!((response.status, response.body.len()), (202, 0));
    (client, id)
}

#[tokio::test]
async fn a_handshake_opens_a_session_and_delete_ends_it() {
    let server = start().await;
    let (mut client, id) = session(&server, "2025-11-25").await;
    assert_eq!(id.len(), 32);
    let call =
        Request::legacy(1, "tools/call", json!({ "name": "echo", "arguments": { "text": "hi" } }))
            .header("mcp-session-id", &id);
    let response = client.send(&call).await;
    assert_eq!((response.status, response.text().as_str()), (200, "hi"));
    assert_eq!(response.header("content-type"), Some("application/json"));
    let delete = Request::new("DELETE", "/mcp").header("mcp-session-id", &id);
    assert_eq!(client.send(&delete).await.status, 204);
    assert_eq!(client.send(&call).await.status, 404);
    assert_eq!(client.send(&delete).await.status, 404);
    server.stop().await;
}

#[tokio::test]
async fn a_get_stream_hears_what_belongs_to_no_request() {
    let server = start().await;
    let (mut client, id) = session(&server, "2025-11-25").await;
    let get = Request::new("GET", "/mcp")
        .header("accept", "text/event-stream")
        .header("mcp-session-id", &id);
    let response = client.open(&get).await;
    assert_eq!(response.status, 200);
    assert_eq!(response.header("content-type"), Some("text/event-stream"));
    let mut pending = Vec::new();
    let prime = client.event(&mut pending).await.unwrap();
    assert_eq!((prime.data.as_deref(), prime.id.is_some()), (Some(""), true));
    server.signals.has_extra.store(true, std::sync::atomic::Ordering::SeqCst);
    server.signals.announce();
    let event = client.event(&mut pending).await.unwrap();
    assert_eq!(event.method(), "notifications/tools/list_changed");
    server.stop().await;
}
