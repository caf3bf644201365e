//! Legacy clients: sessions. Each test is a rule of the specification.

mod crowding; // how many sessions there may be

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};

use crate::client::{Client, Request};
use crate::server::{Running, Wish, start};

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

/// A call in a session.
pub(crate) fn call(session: &str, id: impl Into<Value>, tool: &str, arguments: Value) -> Request {
    let params = json!({ "name": tool, "arguments": arguments });
    Request::legacy(id, "tools/call", params).header("mcp-session-id", session)
}

/// A call that asks for progress.
fn call_with_progress(session: &str, id: i64, arguments: Value) -> Request {
    let meta = json!({ "progressToken": id });
    let params = json!({ "name": "progress", "arguments": arguments, "_meta": meta });
    Request::legacy(id, "tools/call", params).header("mcp-session-id", session)
}

pub(crate) fn get(session: &str) -> Request {
    Request::new("GET", "/mcp")
        .header("accept", "text/event-stream")
        .header("mcp-session-id", session)
}

pub(crate) fn in_session(session: &str, request: Request) -> Request {
    request.header("mcp-session-id", session)
}

#[tokio::test]
async fn a_handshake_opens_a_session_and_delete_ends_it() {
    let server = start().await;
    let (mut client, id) = session(&server, "2025-11-25").await;
    assert_eq!(id.len(), 32);
    assert!(id.bytes().all(|byte| (0x21..=0x7e).contains(&byte)));
    let echo = call(&id, 1, "echo", json!({ "text": "hi" }));
    let response = client.send(&echo).await;
    assert_eq!((response.status, response.text().as_str()), (200, "hi"));
    assert_eq!(response.header("content-type"), Some("application/json"));
    let delete = in_session(&id, Request::new("DELETE", "/mcp"));
    assert_eq!(client.send(&delete).await.status, 204);
    assert_eq!(client.send(&echo).await.status, 404);
    assert_eq!(client.send(&delete).await.status, 404);
    server.stop().await;
}

#[tokio::test]
async fn r1_the_revision_asked_for_is_spoken_if_it_is_known() {
    let server = start().await;
    let mut client = server.connect().await;
    for (asked, answered) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
    ] {
        let (_, hello) = hello(&mut client, asked).await;
        assert_eq!(hello["result"]["protocolVersion"], answered, "{asked}");
    }
    // An older revision does not get members that it does not have.
    let (mut old, id) = session(&server, "2024-11-05").await;
    let list = in_session(&id, Request::legacy(1, "tools/list", json!({})));
    let tools = old.send(&list).await.json()["result"].clone();
    assert!(tools.get("ttlMs").is_none() && tools.get("resultType").is_none());
    server.stop().await;
}

#[tokio::test]
async fn r2_the_handshake_comes_first_and_only_once() {
    let server = start().await;
    let mut client = server.connect().await;
    let (id, _) = hello(&mut client, "2025-11-25").await;
    let list = in_session(&id, Request::legacy(1, "tools/list", json!({})));
    assert_eq!(client.send(&list).await.code(), -32600);
    let ping = in_session(&id, Request::legacy(2, "ping", json!({})));
    assert_eq!(client.send(&ping).await.json()["result"], json!({}));
    let again = in_session(&id, Request::legacy(3, "initialize", json!({})));
    assert_eq!(client.send(&again).await.code(), -32600);
    let ready = in_session(&id, Request::note("notifications/initialized", json!({})));
    assert_eq!(client.send(&ready).await.status, 202);
    assert_eq!(client.send(&list).await.status, 200);
    server.stop().await;
}

#[tokio::test]
async fn r3_an_unsupported_version_header_is_400_and_a_missing_one_is_served() {
    let server = start().await;
    let (mut client, id) = session(&server, "2025-11-25").await;
    let ping = in_session(&id, Request::legacy(1, "ping", json!({})));
    for (version, status) in [
        ("2025-11-25", 200),
        ("2025-03-26", 200),
        ("1999-01-01", 400),
        ("", 400),
        ("2025-11-25, 2025-06-18", 400),
    ] {
        let request = ping.clone().header("mcp-protocol-version", version);
        assert_eq!(client.send(&request).await.status, status, "{version}");
    }
    assert_eq!(client.send(&ping).await.status, 200);
    for request in [get(&id), in_session(&id, Request::new("DELETE", "/mcp"))] {
        let request = request.header("mcp-protocol-version", "1999-01-01");
        assert_eq!(client.send(&request).await.status, 400);
    }
    server.stop().await;
}

#[tokio::test]
async fn r4_no_session_is_400_and_an_unknown_one_404() {
    let server = start().await;
    let (mut client, id) = session(&server, "2025-11-25").await;
    let requests = [
        Request::legacy(1, "tools/list", json!({})),
        Request::note("notifications/initialized", json!({})),
        Request::message(&json!({ "jsonrpc": "2.0", "id": 1, "result": {} })),
        Request::new("GET", "/mcp").header("accept", "text/event-stream"),
        Request::new("DELETE", "/mcp"),
    ];
    let unknown = "x".repeat(32);
    for request in requests {
        let without = client.send(&request).await;
        assert_eq!((without.status, without.code()), (400, -32600), "{request:?}");
        for name in [unknown.as_str(), "short", &id.to_lowercase()] {
            let response = client.send(&in_session(name, request.clone())).await;
            assert_eq!((response.status, response.code()), (404, -32600), "{request:?}");
        }
    }
    server.stop().await;
}

#[tokio::test]
async fn r5_notifications_and_responses_are_202_without_a_body() {
    let server = start().await;
    let (mut client, id) = session(&server, "2025-11-25").await;
    for message in [
        json!({ "jsonrpc": "2.0", "method": "notifications/roots/list_changed" }),
        json!({ "jsonrpc": "2.0", "method": "notifications/no/such" }),
        json!({ "jsonrpc": "2.0", "id": 77, "result": {} }),
        json!({ "jsonrpc": "2.0", "id": 78, "error": { "code": -1, "message": "no" } }),
    ] {
        let response = client.send(&in_session(&id, Request::message(&message))).await;
        assert_eq!((response.status, response.body.len()), (202, 0), "{message}");
    }
    for bad in [r#"{"jsonrpc":"2.0","method":7}"#, r#"{"jsonrpc":"1.0","method":"x"}"#, "{", "[]"] {
        let response = client.send(&in_session(&id, Request::post(bad))).await;
        assert_eq!(response.status, 400, "{bad}");
        response.json();
    }
    server.stop().await;
}

#[tokio::test]
async fn r6_a_get_stream_hears_what_belongs_to_no_request() {
    let server = start().await;
    let (mut client, id) = session(&server, "2025-11-25").await;
    let html = get(&id).with("accept", "text/html");
    assert_eq!(client.send(&html).await.status, 406);
    let head = client.open(&get(&id)).await;
    assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")));
    assert_eq!(head.header("x-accel-buffering"), Some("no"));
    let mut pending = Vec::new();
    let prime = client.event(&mut pending).await.unwrap();
    assert_eq!((prime.data.as_deref(), prime.retry), (Some(""), Some(1000)));
    assert!(prime.id.is_some());
    // A response is never sent on this stream.
    let mut other = server.connect().await;
    assert_eq!(other.send(&call(&id, 1, "echo", json!({}))).await.status, 200);
    server.signals.has_extra.store(true, Ordering::SeqCst);
    server.signals.announce();
    let event = client.event(&mut pending).await.unwrap();
    assert_eq!(event.method(), "notifications/tools/list_changed");
    let delete = in_session(&id, Request::new("DELETE", "/mcp"));
    assert_eq!(other.send(&delete).await.status, 204);
    assert_eq!(client.event(&mut pending).await, None, "the stream ends with its session");
    server.stop().await;
}

#[tokio::test]
async fn r6_each_message_is_said_on_exactly_one_stream() {
    let server = start().await;
    let (mut first, id) = session(&server, "2025-11-25").await;
    let mut second = server.connect().await;
    let (mut unread_first, mut unread_second) = (Vec::new(), Vec::new());
    first.open(&get(&id)).await;
    first.event(&mut unread_first).await.unwrap();
    second.open(&get(&id)).await;
    second.event(&mut unread_second).await.unwrap();
    // Three calls at once, each with a stream of its own.
    let mut calls = Vec::new();
    for token in 1..=3 {
        let mut client = server.connect().await;
        let request = call_with_progress(&id, token, json!({ "steps": 4, "pause": true }));
        client.write(&request.bytes()).await;
        calls.push(client);
    }
    for (token, client) in (1..).zip(&mut calls) {
        let events = client.response().await.events();
        let messages: Vec<_> = events.iter().filter(|e| e.data.as_deref() != Some("")).collect();
        assert_eq!(messages.len(), 5);
        for note in &messages[..4] {
            assert_eq!(note.json()["params"]["progressToken"], token);
        }
        assert_eq!(messages[4].json()["id"], token);
    }
    server.signals.handle.lock().unwrap().as_ref().unwrap().updated("test://note");
    server.signals.has_extra.store(true, Ordering::SeqCst);
    server.signals.announce();
    // The client did not subscribe to the resource, so only the changed tools are announced, and
    // only on the newest stream.
    let event = second.event(&mut unread_second).await.unwrap();
    assert_eq!(event.method(), "notifications/tools/list_changed");
    let delete = in_session(&id, Request::new("DELETE", "/mcp"));
    assert_eq!(calls[0].send(&delete).await.status, 204);
    assert_eq!(first.event(&mut unread_first).await, None);
    assert_eq!(second.event(&mut unread_second).await, None);
    server.stop().await;
}

#[tokio::test]
async fn r8_cancelling_stops_the_work_and_gets_no_response() {
    let server = start().await;
    let (mut client, id) = session(&server, "2025-11-25").await;
    let mut other = server.connect().await;
    client.write(&call(&id, 5, "wait", json!({})).bytes()).await;
    server.signals.until(|signals| signals.begun.load(Ordering::SeqCst) == 1).await;
    let unknown = Request::note("notifications/cancelled", json!({ "requestId": 99 }));
    assert_eq!(other.send(&in_session(&id, unknown)).await.status, 202);
    let cancel = Request::note("notifications/cancelled", json!({ "requestId": 5 }));
    assert_eq!(other.send(&in_session(&id, cancel.clone())).await.status, 202);
    server.signals.until(|signals| signals.dropped.load(Ordering::SeqCst) == 1).await;
    let response = client.response().await;
    assert_eq!((response.status, response.body.len()), (200, 0));
    // Cancelling a finished call is not an error, and the id can be used again.
    assert_eq!(other.send(&in_session(&id, cancel)).await.status, 202);
    assert_eq!(client.send(&call(&id, 5, "echo", json!({}))).await.status, 200);
    server.stop().await;
}

#[tokio::test]
async fn r10_a_question_is_asked_on_the_stream_of_its_call() {
    let server = start().await;
    let (mut client, id) = session(&server, "2025-11-25").await;
    let mut other = server.connect().await;
    let mut pending = Vec::new();
    let head = client.open(&call(&id, "q", "ask", json!({}))).await;
    assert_eq!(head.header("content-type"), Some("text/event-stream"));
    let prime = client.event(&mut pending).await.unwrap();
    assert_eq!(prime.data.as_deref(), Some(""));
    let question = client.event(&mut pending).await.unwrap().json();
    assert_eq!(question["method"], "elicitation/create");
    let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": {
        "action": "accept", "content": { "name": "me" },
    } });
    let accepted = other.send(&in_session(&id, Request::message(&answer))).await;
    assert_eq!((accepted.status, accepted.body.len()), (202, 0));
    let result = client.event(&mut pending).await.unwrap().json();
    assert_eq!(result["id"], "q");
    assert!(result["result"]["content"][0]["text"].as_str().unwrap().contains("me"));
    assert_eq!(client.event(&mut pending).await, None);
    server.stop().await;
}

#[tokio::test]
async fn a_call_that_goes_on_after_its_question_is_heard_at_once() {
    let server = start().await;
    let (mut client, id) = session(&server, "2025-11-25").await;
    let mut other = server.connect().await;
    let mut pending = Vec::new();
    client.open(&call(&id, "q", "ask", json!({ "then_wait": true }))).await;
    client.event(&mut pending).await.unwrap();
    let question = client.event(&mut pending).await.unwrap().json();
    let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": {
        "action": "accept", "content": {},
    } });
    other.send(&in_session(&id, Request::message(&answer))).await;
    server.signals.until(|signals| signals.begun.load(Ordering::SeqCst) == 1).await;
    server.signals.gate.0.add_permits(1);
    // Only the end of the call can wake the reader before a comment is due.
    let result = tokio::time::timeout(Duration::from_secs(5), client.event(&mut pending));
    assert_eq!(result.await.unwrap().unwrap().json()["id"], "q");
    server.stop().await;
}

#[tokio::test]
async fn r10_a_client_that_cannot_answer_is_not_asked() {
    let server = start().await;
    let mut client = server.connect().await;
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {} });
    let response = client.send(&Request::legacy(0, "initialize", params)).await;
    let id = response.header("mcp-session-id").unwrap().to_owned();
    client.send(&in_session(&id, Request::note("notifications/initialized", json!({})))).await;
    let response = client.send(&call(&id, 1, "ask", json!({}))).await;
    assert_eq!((response.status, response.code()), (200, -32600));
    server.stop().await;
}

#[tokio::test]
async fn r14_logs_are_filtered_by_the_level_that_was_set() {
    let server = start().await;
    let (mut client, id) = session(&server, "2025-11-25").await;
    let bad = in_session(&id, Request::legacy(1, "logging/setLevel", json!({ "level": "loud" })));
    assert_eq!(client.send(&bad).await.code(), -32602);
    for (level, logs) in [("debug", 2), ("warning", 1)] {
        let set = Request::legacy(1, "logging/setLevel", json!({ "level": level }));
        assert_eq!(client.send(&in_session(&id, set)).await.json()["result"], json!({}));
        let events = client.send(&call(&id, 2, "logs", json!({}))).await.events();
        let said = events.iter().filter(|e| e.data.as_deref() != Some(""));
        let logged = said.filter(|event| event.method() == "notifications/message").count();
        assert_eq!(logged, logs, "{level}");
    }
    server.stop().await;
}

#[tokio::test]
async fn r15_resource_updates_reach_those_who_subscribed() {
    let server = start().await;
    let (mut client, id) = session(&server, "2025-06-18").await;
    let mut stream = server.connect().await;
    let mut pending = Vec::new();
    stream.open(&get(&id)).await;
    let first = stream.event(&mut pending).await.unwrap();
    assert!(first.is_comment, "an older client is not primed: {first:?}");
    let uri = json!({ "uri": "test://note" });
    let subscribe = in_session(&id, Request::legacy(1, "resources/subscribe", uri.clone()));
    assert_eq!(client.send(&subscribe).await.json()["result"], json!({}));
    let update = |uri: &str| {
        server.signals.handle.lock().unwrap().as_ref().unwrap().updated(uri);
    };
    update("test://notes/other");
    update("test://note");
    let event = stream.event(&mut pending).await.unwrap();
    assert_eq!(event.method(), "notifications/resources/updated");
    assert_eq!(event.json()["params"]["uri"], "test://note");
    let unsubscribe = in_session(&id, Request::legacy(2, "resources/unsubscribe", uri));
    assert_eq!(client.send(&unsubscribe).await.status, 200);
    update("test://note");
    server.signals.has_extra.store(true, Ordering::SeqCst);
    server.signals.announce();
    let event = stream.event(&mut pending).await.unwrap();
    assert_eq!(event.method(), "notifications/tools/list_changed");
    let read = Request::legacy(3, "resources/read", json!({ "uri": "test://missing" }));
    assert_eq!(client.send(&in_session(&id, read)).await.code(), -32002);
    server.stop().await;
}

#[tokio::test]
async fn batches_are_received_by_the_one_revision_that_has_them() {
    let server = start().await;
    let (mut client, id) = session(&server, "2025-03-26").await;
    let batch = json!([
        { "jsonrpc": "2.0", "id": 1, "method": "ping" },
        { "jsonrpc": "2.0", "method": "notifications/roots/list_changed" },
        { "jsonrpc": "2.0", "id": 2, "method": "tools/call",
          "params": { "name": "echo", "arguments": { "text": "two" } } },
        { "jsonrpc": "2.0", "id": 3, "method": "no/such" },
        7,
    ]);
    let response = client.send(&in_session(&id, Request::message(&batch))).await;
    assert_eq!((response.status, response.header("content-type")), (200, Some("application/json")));
    let answers = response.json();
    assert_eq!(answers.as_array().unwrap().len(), 4);
    let of = |id: i64| answers.as_array().unwrap().iter().find(|a| a["id"] == id).unwrap().clone();
    assert_eq!(of(1)["result"], json!({}));
    assert_eq!(of(2)["result"]["content"][0]["text"], "two");
    assert_eq!(of(3)["error"]["code"], -32601);
    let quiet = json!([
        { "jsonrpc": "2.0", "method": "notifications/roots/list_changed" },
        { "jsonrpc": "2.0", "id": 9, "result": {} },
    ]);
    let response = client.send(&in_session(&id, Request::message(&quiet))).await;
    assert_eq!((response.status, response.body.len()), (202, 0));
    let (mut newer, id) = session(&server, "2025-06-18").await;
    let response = newer.send(&in_session(&id, Request::message(&batch))).await;
    assert_eq!((response.status, response.code()), (400, -32600));
    server.stop().await;
}

#[tokio::test]
async fn a_batch_that_waits_is_answered_together() {
    let server = start().await;
    let (mut client, id) = session(&server, "2025-03-26").await;
    let wait = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "wait" } });
    let echo = json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" });
    let batch = in_session(&id, Request::message(&json!([wait, echo])));
    client.write(&batch.bytes()).await;
    server.signals.until(|signals| signals.begun.load(Ordering::SeqCst) == 1).await;
    server.signals.gate.0.add_permits(1);
    let response = client.response().await;
    assert_eq!(response.json().as_array().unwrap().len(), 2);
    server.stop().await;
}
