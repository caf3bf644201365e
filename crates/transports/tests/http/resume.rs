//! Legacy clients that lose their connection, or whose stream is closed, and resume.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::json;

use crate::client::Request;
use crate::legacy::{call, get, session};
use crate::server::{Wish, start};

/// A call that reports progress, waits, and then answers.
fn noisy(session: &str, id: i64) -> Request {
    let meta = json!({ "progressToken": id });
    let arguments = json!({ "steps": 2, "pause": true, "then_wait": true });
    let params = json!({ "name": "progress", "arguments": arguments, "_meta": meta });
    Request::legacy(id, "tools/call", params).header("mcp-session-id", session)
}

#[tokio::test]
async fn r7_a_lost_connection_does_not_cancel_and_the_rest_is_resumed() {
    let server = start().await;
    let (mut client, id) = session(&server, "2025-11-25").await;
    let mut pending = Vec::new();
    client.open(&noisy(&id, 1)).await;
    let prime = client.event(&mut pending).await.unwrap();
    assert_eq!(prime.data.as_deref(), Some(""));
    let first = client.event(&mut pending).await.unwrap();
    assert_eq!(first.json()["params"]["progress"], 1);
    drop(client);
    server.until(|stats| stats.streams == 0).await;
    assert_eq!(server.signals.dropped.load(Ordering::SeqCst), 0, "the call goes on");
    server.signals.until(|signals| signals.begun.load(Ordering::SeqCst) == 1).await;
    server.signals.gate.0.add_permits(1);
    let mut back = server.connect().await;
    let head = back.open(&get(&id).header("last-event-id", &first.id.clone().unwrap())).await;
    assert_eq!(head.header("content-type"), Some("text/event-stream"));
    let mut pending = Vec::new();
    let mut messages = Vec::new();
    while let Some(event) = back.event(&mut pending).await {
        if !event.is_comment {
            messages.push(event);
        }
    }
    assert_eq!(messages.len(), 2);
    assert_eq!(messages[0].json()["params"]["progress"], 2);
    assert_eq!(messages[1].json()["id"], 1);
    // The whole stream can be replayed, with the same ids.
    let again = back.send(&get(&id).header("last-event-id", &prime.id.unwrap())).await;
    let again: Vec<_> = again.events().into_iter().filter(|event| !event.is_comment).collect();
    assert_eq!(again[0], first);
    assert_eq!(again[1..], messages);
    server.stop().await;
}

#[tokio::test]
async fn r7_ids_are_unique_within_a_session_and_lead_to_their_own_stream_only() {
    let server = start().await;
    let (_, id) = session(&server, "2025-06-18").await;
    let mut streams = Vec::new();
    for token in 1..=3 {
        let mut client = server.connect().await;
        client.open(&noisy(&id, token)).await;
        let mut pending = Vec::new();
        let mut events = Vec::new();
        while events.len() < 2 {
            let event = client.event(&mut pending).await.unwrap();
            events.extend((!event.is_comment).then_some(event));
        }
        streams.push((token, events));
    }
    server.until(|stats| stats.streams == 0).await;
    let ids = streams.iter().flat_map(|(_, events)| events).map(|event| event.id.clone().unwrap());
    assert_eq!(ids.collect::<HashSet<_>>().len(), 6);
    server.signals.until(|signals| signals.begun.load(Ordering::SeqCst) == 3).await;
    server.signals.gate.0.add_permits(3);
    for (token, events) in streams {
        let mut back = server.connect().await;
        let place = events[0].id.clone().unwrap();
        let response = back.send(&get(&id).header("last-event-id", &place)).await;
        let rest: Vec<_> = response.events().into_iter().filter(|e| !e.is_comment).collect();
        assert_eq!(rest[0], events[1]);
        assert_eq!(rest[1].json()["id"], token);
        assert_eq!(rest.len(), 2);
    }
    server.stop().await;
}

#[tokio::test]
async fn a_place_that_was_never_given_is_400() {
    let server = start().await;
    let (mut client, id) = session(&server, "2025-11-25").await;
    for place in ["nonsense", "p999-0", "p1-99", "p1-18446744073709551615", ""] {
        let response = client.send(&get(&id).header("last-event-id", place)).await;
        assert_eq!((response.status, response.code()), (400, -32600), "{place}");
    }
    // A new stream takes the place of a GET stream that is no longer kept.
    let head = client.open(&get(&id).header("last-event-id", "g999-3")).await;
    assert_eq!(head.status, 200);
    server.stop().await;
}

#[tokio::test]
async fn a_session_belongs_to_its_streams() {
    let server = start().await;
    let (mut client, one) = session(&server, "2025-11-25").await;
    let (_, other) = session(&server, "2025-11-25").await;
    let mut pending = Vec::new();
    client.open(&noisy(&one, 1)).await;
    let place = client.event(&mut pending).await.unwrap().id.unwrap();
    let mut thief = server.connect().await;
    let stolen = thief.send(&get(&other).header("last-event-id", &place)).await;
    assert_eq!(stolen.status, 400);
    server.stop().await;
}

#[tokio::test]
async fn a_client_that_resumes_replaces_its_dead_connection() {
    let server = start().await;
    let (mut stale, id) = session(&server, "2025-11-25").await;
    let (mut unread_stale, mut unread) = (Vec::new(), Vec::new());
    stale.open(&get(&id)).await;
    let place = stale.event(&mut unread_stale).await.unwrap().id.unwrap();
    let mut fresh = server.connect().await;
    fresh.open(&get(&id).header("last-event-id", &place)).await;
    assert_eq!(stale.event(&mut unread_stale).await, None);
    server.signals.has_extra.store(true, Ordering::SeqCst);
    server.signals.announce();
    let event = loop {
        let event = fresh.event(&mut unread).await.unwrap();
        if !event.is_comment {
            break event;
        }
    };
    assert_eq!(event.method(), "notifications/tools/list_changed");
    server.stop().await;
}

#[tokio::test]
async fn events_kept_for_resumption_are_forgotten_in_time() {
    let wish = Wish::default().http(|http| http.limits.replay_time = Duration::from_millis(50));
    let server = wish.start().await;
    let (mut client, id) = session(&server, "2025-11-25").await;
    let mut pending = Vec::new();
    client.open(&noisy(&id, 1)).await;
    let place = client.event(&mut pending).await.unwrap().id.unwrap();
    server.signals.until(|signals| signals.begun.load(Ordering::SeqCst) == 1).await;
    drop(client);
    server.signals.gate.0.add_permits(1);
    let mut back = server.connect().await;
    let gone = loop {
        let response = back.open(&get(&id).header("last-event-id", &place)).await;
        if response.status != 200 {
            break response;
        }
        drop(back);
        tokio::time::sleep(Duration::from_millis(70)).await;
        back = server.connect().await;
    };
    assert_eq!(gone.status, 400);
    server.stop().await;
}

#[tokio::test]
async fn a_call_that_takes_long_sends_its_client_away_to_come_back() {
    let wish = Wish::default().http(|http| {
        http.poll_after = Some(Duration::from_millis(30));
        http.retry = Duration::from_millis(10);
    });
    let server = wish.start().await;
    let (mut client, id) = session(&server, "2025-11-25").await;
    let response = client.send(&call(&id, 1, "wait", json!({}))).await;
    assert_eq!(response.header("content-type"), Some("text/event-stream"));
    let events = response.events();
    assert_eq!((events[0].data.as_deref(), events[0].retry), (Some(""), Some(10)));
    assert!(events.iter().all(|event| event.data.as_deref().unwrap_or("").is_empty()));
    let place = events[0].id.clone().unwrap();
    // Still no event: the stream is closed again.
    let response = client.send(&get(&id).header("last-event-id", &place)).await;
    assert!(response.events().iter().all(|event| event.data.is_none()));
    server.signals.gate.0.add_permits(1);
    let result = loop {
        let response = client.send(&get(&id).header("last-event-id", &place)).await;
        let said = response.events().into_iter().find(|event| event.data.is_some());
        if let Some(result) = said {
            break result;
        }
    };
    assert_eq!(result.json()["result"]["content"][0]["text"], "waited");
    // The stream of a revision that cannot resume stays open.
    let (mut older, id) = session(&server, "2025-06-18").await;
    older.write(&call(&id, 1, "wait", json!({})).bytes()).await;
    server.signals.until(|signals| signals.begun.load(Ordering::SeqCst) == 2).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    server.signals.gate.0.add_permits(1);
    assert_eq!(older.response().await.text(), "waited");
    server.stop().await;
}

#[tokio::test]
async fn a_client_that_vanishes_before_a_word_was_said_leaves_nothing_behind() {
    let wish = Wish::default().http(|http| http.limits.session_idle = Duration::from_millis(80));
    let server = wish.start().await;
    let (mut client, id) = session(&server, "2025-11-25").await;
    client.write(&call(&id, 1, "wait", json!({})).bytes()).await;
    server.signals.until(|signals| signals.begun.load(Ordering::SeqCst) == 1).await;
    drop(client);
    server.until(|stats| stats.requests == 0 && stats.connections == 0).await;
    // A running call keeps its session; after its end, the session times out.
    assert_eq!(server.watcher.stats().sessions, 1);
    server.signals.gate.0.add_permits(1);
    server.until(|stats| stats.sessions == 0).await;
    assert_eq!(server.signals.dropped.load(Ordering::SeqCst), 0);
    server.stop().await;
}
