//! Streams that go on elsewhere, and sessions whose end or record was lost.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use sabir_cluster::Hub;
use serde_json::json;

use super::{node, rest, stop};
use crate::legacy::{call, get, session};
use crate::server::{Running, Wish};

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
