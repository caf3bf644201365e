//! Streams that go on elsewhere, and sessions whose end or record was lost.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use sabir_cluster::{Bus as _, Hub, Received, Seal, Store as _};
use sabir_transports::http::Limits;
use sabir_wire::Caller;
use serde_json::json;

use super::{SECRET, node, nodes, rest, stop};
use crate::client::{Client, Event, Request};
use crate::legacy::{call, get, in_session, session};
use crate::old_sse;
use crate::server::{Running, Wish, in_time};

/// The name of a record about a session.
fn name(kind: &str, id: &str) -> String {
    let caller = Caller::anonymous();
    let parts = [kind, caller.issuer(), caller.subject(), id];
    Seal::new(&SECRET).name(&parts.map(str::as_bytes))
}

/// Two nodes whose sessions end after four idle seconds.
async fn brief(hub: &Arc<Hub>) -> [Running; 2] {
    let wish = || {
        Wish::default().http(|http| {
            http.limits.session_idle = Duration::from_secs(4);
            http.limits.replay_time = Duration::from_secs(3);
            http.keep_alive = Duration::from_millis(100);
        })
    };
    [node(hub, wish()).await, node(hub, wish()).await]
}

/// A call that sends `steps` events and its result.
fn progress(id: &str, steps: u32) -> Request {
    let params = json!({
        "name": "progress", "arguments": { "steps": steps, "pause": true },
        "_meta": { "progressToken": 1 },
    });
    in_session(id, Request::legacy(1, "tools/call", params))
}

/// The events of such a call, on the first node, which is gone then.
async fn events(first: Running, client: &mut Client, request: &Request) -> Vec<Event> {
    let heard = client.send(request).await.events();
    first.stop().await;
    heard.into_iter().filter(|event| !event.is_comment).collect()
}

#[tokio::test]
async fn a_call_goes_on_while_its_client_follows_it_on_another_node() {
    let hub = Arc::new(Hub::default());
    let nodes = brief(&hub).await;
    let (mut first, id) = session(&nodes[0], "2025-11-25").await;
    let mut pending = Vec::new();
    first.open(&call(&id, "w", "wait", json!({}))).await;
    let prime = first.event(&mut pending).await.unwrap().id.unwrap();
    drop(first);
    nodes[0].until(|stats| stats.streams == 0).await;
    let mut second = nodes[1].connect().await;
    assert_eq!(second.open(&get(&id).header("last-event-id", &prime)).await.status, 200);
    let reader = tokio::spawn(async move { rest(&mut second).await });
    // Longer than the time after which the stream, or the session, would be forgotten.
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_eq!(nodes[0].signals.dropped.load(Ordering::SeqCst), 0, "the call was stopped");
    nodes[0].signals.gate.0.add_permits(1);
    let heard = reader.await.unwrap();
    assert_eq!(heard.last().map(|event| event.json()["id"].clone()), Some(json!("w")));
    stop(nodes).await;
}

#[tokio::test]
async fn a_stream_with_a_gap_is_not_resumed() {
    resumed_late_only(10, |limits| limits.replay = 4).await;
}

#[tokio::test]
async fn the_stored_events_of_a_stream_are_bounded_in_bytes() {
    resumed_late_only(60, |limits| limits.replay_bytes = 4000).await;
}

/// Another node resumes a stream of so many events after one of the last, and not after an early one,
/// whose successor is no longer stored.
async fn resumed_late_only(count: u32, limit: fn(&mut Limits)) {
    let hub = Arc::new(Hub::default());
    let wish = || Wish::default().http(|http| limit(&mut http.limits));
    let [first, second] = [node(&hub, wish()).await, node(&hub, wish()).await];
    let (mut client, id) = session(&first, "2025-11-25").await;
    let heard = events(first, &mut client, &progress(&id, count)).await;
    let mut other = second.connect().await;
    let early = heard[1].id.clone().unwrap();
    assert_eq!(other.send(&get(&id).header("last-event-id", &early)).await.status, 400);
    let late = heard[heard.len() - 3].id.clone().unwrap();
    other.open(&get(&id).header("last-event-id", &late)).await;
    assert_eq!(rest(&mut other).await, heard[heard.len() - 2..]);
    second.stop().await;
}

#[tokio::test]
async fn other_nodes_are_told_the_id_of_a_cancelled_request_and_no_more() {
    let hub = Arc::new(Hub::default());
    let nodes = nodes(&hub).await;
    let (mut first, id) = session(&nodes[0], "2025-11-25").await;
    let spy = hub.node("spy");
    let mut heard = spy.listen();
    let params = json!({ "requestId": 5, "reason": "x".repeat(100_000) });
    let cancel = in_session(&id, Request::note("notifications/cancelled", params));
    assert_eq!(first.send(&cancel).await.status, 202);
    let Some(Received::Message(message)) = heard.recv().await else { panic!("nothing was sent") };
    assert!(message.len() < 1000, "{} bytes", message.len());
    stop(nodes).await;
}

#[tokio::test]
async fn a_stream_ends_when_the_record_of_its_session_is_gone() {
    let hub = Arc::new(Hub::default());
    let nodes = brief(&hub).await;
    let (mut listener, id) = session(&nodes[0], "2025-11-25").await;
    assert_eq!(listener.open(&get(&id)).await.status, 200);
    // The session was ended on another node, and the notice of it was lost.
    hub.remove(&name("session", &id)).await.unwrap();
    in_time(rest(&mut listener)).await;
    stop(nodes).await;
}

#[tokio::test]
async fn after_a_gap_the_sessions_in_use_are_looked_up_again() {
    let hub = Arc::new(Hub::default());
    let nodes = nodes(&hub).await;
    let (mut listener, id) = session(&nodes[0], "2025-11-25").await;
    assert_eq!(listener.open(&get(&id)).await.status, 200);
    let (mut other, kept) = session(&nodes[0], "2025-11-25").await;
    assert_eq!(other.open(&get(&kept)).await.status, 200);
    hub.remove(&name("session", &id)).await.unwrap();
    hub.interrupt().await;
    in_time(rest(&mut listener)).await;
    assert_eq!(nodes[0].watcher.stats().sessions, 1, "the other one goes on");
    stop(nodes).await;
}

#[tokio::test]
async fn the_one_stream_of_the_first_revision_is_not_opened_where_others_cannot_find_it() {
    let hub = Arc::new(Hub::default());
    let nodes = brief(&hub).await;
    hub.set_away(true);
    let open = Request::new("GET", "/sse").header("accept", "text/event-stream");
    let head = nodes[0].connect().await.open(&open).await;
    assert_eq!((head.status, head.header("retry-after")), (503, Some("1")));
    nodes[0].until(|stats| stats.sessions == 0).await;
    hub.set_away(false);
    let (mut stream, mut pending, path) = old_sse::open(&nodes[0]).await;
    let (_, id) = path.split_once('=').unwrap();
    hub.remove(&name("old session", id)).await.unwrap();
    // The record is written again with the next comment.
    while !stream.event(&mut pending).await.unwrap().is_comment {}
    let params = json!({ "protocolVersion": "2024-11-05", "capabilities": {} });
    let hello = old_sse::post(&path, Request::legacy(1, "initialize", params));
    assert_eq!(nodes[1].connect().await.send(&hello).await.status, 202);
    stop(nodes).await;
}
