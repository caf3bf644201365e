//! The limits on the number of sessions, and on their time.

use std::time::Duration;

use serde_json::json;

use super::*;

#[tokio::test]
async fn when_there_are_too_many_sessions_the_oldest_unused_goes() {
    let wish = Wish::default().http(|http| {
        http.limits.sessions = 2;
        // The clock ticks as often as the shortest limit needs.
        http.limits.replay_time = Duration::from_millis(40);
    });
    let server = wish.start().await;
    let (mut client, first) = session(&server, "2025-11-25").await;
    let (mut other, second) = session(&server, "2025-11-25").await;
    let ping = |id: &str| in_session(id, Request::legacy(1, "ping", json!({})));
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(client.send(&ping(&first)).await.status, 200);
    let (_third, _) = session(&server, "2025-11-25").await;
    assert_eq!(client.send(&ping(&first)).await.status, 200);
    assert_eq!(other.send(&ping(&second)).await.status, 404);
    server.stop().await;
}

#[tokio::test]
async fn a_session_without_a_handshake_goes_first_and_within_its_time() {
    let limit = Duration::from_millis(200);
    let wish = Wish::default().http(|http| {
        http.limits.sessions = 4;
        http.limits.handshake_time = limit;
    });
    let server = wish.start().await;
    let (mut client, id) = session(&server, "2025-11-25").await;
    for _ in 0..20 {
        // One connection for each, so that no caller exceeds its share.
        hello(&mut server.connect().await, "2025-11-25").await;
    }
    let ping = in_session(&id, Request::legacy(1, "ping", json!({})));
    assert_eq!(client.send(&ping).await.status, 200);
    server.until(|stats| stats.sessions == 1).await;
    assert_eq!(client.send(&ping).await.status, 200);
    server.stop().await;
}

#[tokio::test]
async fn one_caller_has_a_quarter_of_the_sessions() {
    let server = Wish::default().http(|http| http.limits.sessions = 40).start().await;
    let (mut quiet, id) = session(&server, "2025-11-25").await;
    let mut greedy = server.connect().await;
    for _ in 0..100 {
        hello(&mut greedy, "2025-11-25").await;
    }
    server.until(|stats| stats.sessions == 11).await;
    let ping = in_session(&id, Request::legacy(1, "ping", json!({})));
    assert_eq!(quiet.send(&ping).await.status, 200);
    server.stop().await;
}

#[tokio::test]
async fn when_all_sessions_are_in_use_the_next_is_503() {
    let server = Wish::default().http(|http| http.limits.sessions = 2).start().await;
    let (mut client, first) = session(&server, "2025-11-25").await;
    let (_, second) = session(&server, "2025-11-25").await;
    let mut readers = Vec::new();
    for id in [&first, &second] {
        let mut reader = server.connect().await;
        let get = Request::new("GET", "/mcp").header("accept", "text/event-stream");
        reader.write(&in_session(id, get).bytes()).await;
        assert_eq!(reader.head().await.status, 200);
        readers.push(reader);
    }
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {} });
    let one_more = Request::legacy(0, "initialize", params);
    let response = client.send(&one_more).await;
    assert_eq!((response.status, response.code()), (503, -32603));
    assert!(response.header("retry-after").is_some());
    assert_eq!(response.header("mcp-session-id"), None);
    let delete = in_session(&first, Request::new("DELETE", "/mcp"));
    assert_eq!(client.send(&delete).await.status, 204);
    assert_eq!(client.send(&one_more).await.status, 200);
    server.stop().await;
}

#[tokio::test]
async fn a_session_that_is_not_used_ends_and_one_that_is_read_does_not() {
    let wish = Wish::default().http(|http| http.limits.session_idle = Duration::from_millis(60));
    let server = wish.start().await;
    let (_unused, unused) = session(&server, "2025-11-25").await;
    let (mut client, read) = session(&server, "2025-11-25").await;
    let mut stream = server.connect().await;
    stream.open(&get(&read)).await;
    server.until(|stats| stats.sessions == 1).await;
    assert_eq!(client.send(&call(&unused, 1, "echo", json!({}))).await.status, 404);
    assert_eq!(client.send(&call(&read, 1, "echo", json!({}))).await.status, 200);
    drop(stream);
    server.until(|stats| stats.sessions == 0).await;
    assert_eq!(server.engine.ready_clients(), 0);
    server.stop().await;
}

#[tokio::test]
async fn too_much_at_once_in_one_session_is_429() {
    let server = Wish::default().http(|http| http.limits.streams = 2).start().await;
    let (mut client, id) = session(&server, "2025-11-25").await;
    let mut waiting = Vec::new();
    for nth in 1..=2 {
        let mut other = server.connect().await;
        other.write(&call(&id, nth, "wait", json!({})).bytes()).await;
        waiting.push(other);
    }
    server.signals.until(|signals| signals.begun.load(Ordering::SeqCst) == 2).await;
    let response = client.send(&call(&id, 3, "echo", json!({}))).await;
    assert_eq!((response.status, response.code()), (429, -32600));
    assert_eq!(client.send(&get(&id)).await.status, 429);
    server.signals.gate.0.add_permits(2);
    for other in &mut waiting {
        assert_eq!(other.response().await.text(), "waited");
    }
    assert_eq!(client.send(&call(&id, 3, "echo", json!({}))).await.status, 200);
    server.stop().await;
}
