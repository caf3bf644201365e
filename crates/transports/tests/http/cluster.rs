//! Several nodes that share sessions, and one whose sessions survive a restart.

mod changes; // what changes on one node
mod lost; // streams that go on elsewhere, and lost ends
mod parked; // calls that are alive on one node
mod tasks; // calls whose results are fetched elsewhere
mod versions; // nodes of different versions

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use sabir_cluster::{Cluster, Hub, node_name};
use sabir_tasks::SharedStore;
use sabir_transports::http::ClusterPeers;
use serde_json::json;

use crate::client::{Client, Event, Request};
use crate::legacy::{call, get, in_session, session};
use crate::old_sse;
use crate::server::{Running, Wish, token};

const SECRET: [u8; 32] = [7; 32];

/// A node.
async fn node(hub: &Arc<Hub>, wish: Wish) -> Running {
    let name = node_name();
    let cluster = Cluster::among(hub.clone(), Arc::new(hub.node(&name)), &*name, &SECRET);
    let wish = wish.engine(|engine| {
        engine.node = Some(name.into());
        engine.peers = Some(Arc::new(ClusterPeers::new(cluster.clone())));
        engine.tasks.store = Some(Arc::new(SharedStore::new(cluster.clone())));
    });
    wish.http(|http| http.cluster = Some(cluster)).start().await
}

async fn nodes(hub: &Arc<Hub>) -> [Running; 2] {
    [node(hub, Wish::default()).await, node(hub, Wish::default()).await]
}

async fn stop(nodes: [Running; 2]) {
    for node in nodes {
        node.stop().await;
    }
}

async fn echoes(client: &mut Client, session: &str) -> u16 {
    client.send(&call(session, 1, "echo", json!({ "text": "hi" }))).await.status
}

#[tokio::test]
async fn a_session_is_served_by_all_nodes_in_turn_and_ends_everywhere() {
    let hub = Arc::new(Hub::default());
    let nodes = nodes(&hub).await;
    let (mut first, id) = session(&nodes[0], "2025-11-25").await;
    let mut second = nodes[1].connect().await;
    for _ in 0..3 {
        assert_eq!([echoes(&mut second, &id).await, echoes(&mut first, &id).await], [200, 200]);
    }
    assert_eq!(hub.len(), 1);
    let delete = in_session(&id, Request::new("DELETE", "/mcp"));
    assert_eq!(second.send(&delete).await.status, 204);
    assert_eq!([echoes(&mut first, &id).await, echoes(&mut second, &id).await], [404, 404]);
    assert_eq!(first.send(&delete).await.status, 404);
    assert!(hub.is_empty());
    stop(nodes).await;
}

#[tokio::test]
async fn a_handshake_may_be_completed_on_another_node() {
    let hub = Arc::new(Hub::default());
    let nodes = nodes(&hub).await;
    let mut first = nodes[0].connect().await;
    let (id, _) = crate::legacy::hello(&mut first, "2025-06-18").await;
    assert_ne!(first.send(&call(&id, 1, "echo", json!({}))).await.code(), 0, "not ready");
    let mut second = nodes[1].connect().await;
    let ready = in_session(&id, Request::note("notifications/initialized", json!({})));
    assert_eq!(second.send(&ready).await.status, 202);
    let answered = first.send(&call(&id, 2, "echo", json!({ "text": "hi" }))).await;
    assert_eq!(answered.text(), "hi");
    stop(nodes).await;
}

#[tokio::test]
async fn to_other_callers_a_session_does_not_exist_on_any_node() {
    let hub = Arc::new(Hub::default());
    let tokens = || {
        let mut tokens = token("ann-s");
        tokens[0].name = "ann".into();
        tokens.extend(
            token("bob-s")
                .into_iter()
                .map(|bob| sabir_transports::http::NamedToken { name: "bob".into(), ..bob }),
        );
        Wish::default().http(|http| http.tokens = tokens)
    };
    let nodes = [node(&hub, tokens()).await, node(&hub, tokens()).await];
    let ann = |request: Request| request.header("authorization", "Bearer ann-s");
    let bob = |request: Request| request.header("authorization", "Bearer bob-s");
    let mut first = nodes[0].connect().await;
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {} });
    let hello = first.send(&ann(Request::legacy(0, "initialize", params))).await;
    let id = hello.header("mcp-session-id").unwrap().to_owned();
    let ready = in_session(&id, Request::note("notifications/initialized", json!({})));
    assert_eq!(first.send(&ann(ready)).await.status, 202);
    let echo = || call(&id, 1, "echo", json!({ "text": "hi" }));
    let mut second = nodes[1].connect().await;
    assert_eq!(second.send(&bob(echo())).await.status, 404);
    assert_eq!(second.send(&ann(echo())).await.status, 200);
    assert_eq!(second.send(&bob(echo())).await.status, 404, "also where it is in memory");
    stop(nodes).await;
}

#[tokio::test]
async fn an_answer_reaches_the_call_that_asked_whatever_node_gets_it() {
    let hub = Arc::new(Hub::default());
    let nodes = nodes(&hub).await;
    let (mut first, id) = session(&nodes[0], "2025-11-25").await;
    let mut second = nodes[1].connect().await;
    let mut pending = Vec::new();
    first.open(&call(&id, "q", "ask", json!({}))).await;
    first.event(&mut pending).await.unwrap();
    let question = first.event(&mut pending).await.unwrap().json();
    assert_eq!(question["method"], "elicitation/create");
    let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": {
        "action": "accept", "content": { "name": "me" },
    } });
    let answer = in_session(&id, Request::message(&answer));
    assert_eq!(second.send(&answer).await.status, 202);
    let result = first.event(&mut pending).await.unwrap().json();
    assert_eq!(result["id"], "q");
    assert!(result["result"]["content"][0]["text"].as_str().unwrap().contains("me"));
    assert_eq!(first.event(&mut pending).await, None);
    // A second answer does nothing.
    assert_eq!(second.send(&answer).await.status, 202);
    assert_eq!(echoes(&mut first, &id).await, 200);
    stop(nodes).await;
}

#[tokio::test]
async fn a_cancellation_stops_the_work_whatever_node_gets_it() {
    let hub = Arc::new(Hub::default());
    let nodes = nodes(&hub).await;
    let (mut first, id) = session(&nodes[0], "2025-11-25").await;
    let mut second = nodes[1].connect().await;
    first.write(&call(&id, 5, "wait", json!({})).bytes()).await;
    let signals = &nodes[0].signals;
    signals.until(|signals| signals.begun.load(Ordering::SeqCst) == 1).await;
    let cancel = Request::note("notifications/cancelled", json!({ "requestId": 5 }));
    assert_eq!(second.send(&in_session(&id, cancel)).await.status, 202);
    signals.until(|signals| signals.dropped.load(Ordering::SeqCst) == 1).await;
    stop(nodes).await;
}

#[tokio::test]
async fn a_subscription_holds_on_the_node_that_has_the_stream() {
    let hub = Arc::new(Hub::default());
    let nodes = nodes(&hub).await;
    let (mut first, id) = session(&nodes[0], "2025-06-18").await;
    let mut listener = nodes[1].connect().await;
    let mut pending = Vec::new();
    assert_eq!(listener.open(&get(&id)).await.status, 200);
    let updated = |method: &str| {
        let params = json!({ "uri": "test://note" });
        in_session(&id, Request::legacy(method, method, params))
    };
    let subscribed = first.send(&updated("resources/subscribe")).await;
    assert_eq!(subscribed.json()["result"], json!({}));
    // The first events of the stream: it cannot know which changes its client has missed.
    let mut heard = Vec::new();
    let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
    while !heard.contains(&"notifications/resources/updated".to_owned()) {
        nodes[1].signals.handle.lock().unwrap().as_ref().unwrap().updated("test://note");
        let event = listener.event(&mut pending).await.unwrap();
        heard.extend(event.data.as_deref().filter(|data| !data.is_empty()).map(|_| event.method()));
        assert!(tokio::time::Instant::now() < deadline && heard.len() < 1000, "{heard:?}");
    }
    assert!(heard.contains(&"notifications/tools/list_changed".to_owned()), "{heard:?}");
    stop(nodes).await;
}

#[tokio::test]
async fn the_one_stream_of_the_first_revision_hears_what_was_posted_elsewhere() {
    let hub = Arc::new(Hub::default());
    let nodes = nodes(&hub).await;
    let (mut stream, mut pending, path) = old_sse::open(&nodes[0]).await;
    let mut other = nodes[1].connect().await;
    let params = json!({ "protocolVersion": "2024-11-05", "capabilities": {} });
    let hello = old_sse::post(&path, Request::legacy(1, "initialize", params));
    assert_eq!(other.send(&hello).await.status, 202);
    let welcome = stream.event(&mut pending).await.unwrap();
    assert_eq!(welcome.json()["result"]["protocolVersion"], "2024-11-05");
    drop(stream);
    nodes[0].until(|stats| stats.sessions == 0).await;
    let deadline = tokio::time::Instant::now() + Duration::from_secs(15);
    while other.send(&hello).await.status != 404 {
        assert!(tokio::time::Instant::now() < deadline);
    }
    stop(nodes).await;
}

#[tokio::test]
async fn while_the_store_is_away_no_session_is_answered_404() {
    let hub = Arc::new(Hub::default());
    let nodes = nodes(&hub).await;
    let (mut first, id) = session(&nodes[0], "2025-11-25").await;
    let mut second = nodes[1].connect().await;
    hub.set_away(true);
    assert_eq!(echoes(&mut first, &id).await, 200, "it is known here");
    let unknown = second.send(&call(&id, 1, "echo", json!({}))).await;
    assert_eq!((unknown.status, unknown.header("retry-after")), (503, Some("1")));
    assert_eq!(second.send(&get(&id)).await.status, 503);
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {} });
    let hello = second.send(&Request::legacy(0, "initialize", params)).await;
    assert_eq!((hello.status, hello.header("mcp-session-id")), (503, None));
    let delete = in_session(&id, Request::new("DELETE", "/mcp"));
    assert_eq!(first.send(&delete).await.status, 503);
    let modern = second.send(&Request::call(1, "echo", json!({ "text": "hi" }))).await;
    assert_eq!((modern.status, modern.text().as_str()), (200, "hi"));
    hub.set_away(false);
    assert_eq!(echoes(&mut second, &id).await, 200);
    assert_eq!(first.send(&delete).await.status, 204);
    stop(nodes).await;
}

#[tokio::test]
async fn while_the_store_is_away_a_handshake_that_was_completed_elsewhere_is_not_denied() {
    let hub = Arc::new(Hub::default());
    let nodes = nodes(&hub).await;
    let mut first = nodes[0].connect().await;
    let (id, _) = crate::legacy::hello(&mut first, "2025-11-25").await;
    let ready = in_session(&id, Request::note("notifications/initialized", json!({})));
    assert_eq!(nodes[1].connect().await.send(&ready).await.status, 202);
    hub.set_away(true);
    assert_eq!(echoes(&mut first, &id).await, 503);
    hub.set_away(false);
    assert_eq!(echoes(&mut first, &id).await, 200);
    stop(nodes).await;
}

#[tokio::test]
async fn a_change_that_cannot_be_stored_is_refused_and_written_later() {
    let hub = Arc::new(Hub::default());
    let nodes = nodes(&hub).await;
    let (mut first, id) = session(&nodes[0], "2025-11-25").await;
    let mut second = nodes[1].connect().await;
    let level = |level: &str| {
        in_session(&id, Request::legacy(9, "logging/setLevel", json!({ "level": level })))
    };
    hub.set_away(true);
    assert_eq!(first.send(&level("debug")).await.status, 503, "others do not know of it");
    hub.set_away(false);
    assert_eq!(echoes(&mut first, &id).await, 200);
    let events = second.send(&call(&id, 2, "logs", json!({}))).await.events();
    let logs =
        events.iter().filter(|event| event.data.as_deref().is_some_and(|data| !data.is_empty()));
    let logs = logs.filter(|event| event.method() == "notifications/message").count();
    assert_eq!(logs, 2, "at the level `debug`");
    stop(nodes).await;
}

/// The messages of a stream until it ends.
async fn rest(client: &mut Client) -> Vec<Event> {
    let (mut pending, mut messages) = (Vec::new(), Vec::new());
    while let Some(event) = client.event(&mut pending).await {
        messages.extend((!event.is_comment).then_some(event));
    }
    messages
}

#[tokio::test]
async fn a_stream_goes_on_at_another_node_also_with_a_question() {
    let hub = Arc::new(Hub::default());
    let nodes = nodes(&hub).await;
    let (mut first, id) = session(&nodes[0], "2025-11-25").await;
    let mut pending = Vec::new();
    first.open(&call(&id, "q", "ask", json!({ "then_wait": true }))).await;
    let prime = first.event(&mut pending).await.unwrap().id.unwrap();
    drop(first);
    nodes[0].until(|stats| stats.streams == 0).await;
    let mut second = nodes[1].connect().await;
    let head = second.open(&get(&id).header("last-event-id", &prime)).await;
    assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")));
    let mut pending = Vec::new();
    let question = loop {
        let event = second.event(&mut pending).await.unwrap();
        if !event.is_comment {
            break event.json();
        }
    };
    assert_eq!(question["method"], "elicitation/create");
    let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": {
        "action": "accept", "content": {},
    } });
    let mut other = nodes[1].connect().await;
    assert_eq!(other.send(&in_session(&id, Request::message(&answer))).await.status, 202);
    let signals = &nodes[0].signals;
    signals.until(|signals| signals.begun.load(Ordering::SeqCst) == 1).await;
    signals.gate.0.add_permits(1);
    let result = loop {
        let event = second.event(&mut pending).await.unwrap();
        if !event.is_comment {
            break event.json();
        }
    };
    assert_eq!(result["id"], "q");
    assert_eq!(second.event(&mut pending).await, None);
    stop(nodes).await;
}

#[tokio::test]
async fn a_result_is_obtainable_although_its_node_is_gone() {
    let hub = Arc::new(Hub::default());
    let [first, second] = nodes(&hub).await;
    let (mut client, id) = session(&first, "2025-11-25").await;
    let meta = json!({ "progressToken": 1 });
    let arguments = json!({ "steps": 3, "pause": true });
    let params = json!({ "name": "progress", "arguments": arguments, "_meta": meta });
    let request = in_session(&id, Request::legacy(1, "tools/call", params));
    let heard: Vec<_> = client.send(&request).await.events();
    let heard: Vec<_> = heard.into_iter().filter(|event| !event.is_comment).collect();
    assert_eq!(heard.last().unwrap().json()["id"], 1);
    drop(client);
    first.stop().await;
    let mut other = second.connect().await;
    for seen in 0..heard.len() - 1 {
        let last = heard[seen].id.clone().unwrap();
        other.open(&get(&id).header("last-event-id", &last)).await;
        assert_eq!(rest(&mut other).await, heard[seen + 1..], "after {last}");
    }
    let last = heard.last().unwrap().id.clone().unwrap();
    let end = format!("{}-{}", last.split_once('-').unwrap().0, u64::MAX);
    for none in [last.as_str(), "p123-0", &end] {
        let resumed = other.send(&get(&id).header("last-event-id", none)).await;
        assert_eq!(resumed.status, 400, "nothing follows {none}");
    }
    second.stop().await;
}

#[tokio::test]
async fn events_that_could_not_be_stored_are_stored_with_the_next_ones() {
    let hub = Arc::new(Hub::default());
    let [first, second] = nodes(&hub).await;
    let (mut client, id) = session(&first, "2025-11-25").await;
    let arguments = json!({ "steps": 2, "pause": true, "then_wait": true });
    let meta = json!({ "progressToken": 1 });
    let params = json!({ "name": "progress", "arguments": arguments, "_meta": meta });
    hub.set_away(true);
    client.open(&in_session(&id, Request::legacy(1, "tools/call", params))).await;
    let mut pending = Vec::new();
    let prime = client.event(&mut pending).await.unwrap().id.unwrap();
    first.signals.until(|signals| signals.begun.load(Ordering::SeqCst) == 1).await;
    hub.set_away(false);
    first.signals.gate.0.add_permits(1);
    let mut heard = Vec::new();
    while let Some(event) = client.event(&mut pending).await {
        heard.extend((!event.is_comment).then_some(event));
    }
    assert_eq!(heard.len(), 3);
    drop(client);
    first.stop().await;
    let mut other = second.connect().await;
    other.open(&get(&id).header("last-event-id", &prime)).await;
    assert_eq!(rest(&mut other).await, heard);
    second.stop().await;
}

#[tokio::test]
async fn a_stream_whose_node_is_gone_ends() {
    let hub = Arc::new(Hub::default());
    let [first, second] = nodes(&hub).await;
    let (mut client, id) = session(&first, "2025-11-25").await;
    let mut pending = Vec::new();
    client.open(&call(&id, "q", "ask", json!({}))).await;
    let prime = client.event(&mut pending).await.unwrap().id.unwrap();
    client.event(&mut pending).await.unwrap();
    let mut other = second.connect().await;
    other.open(&get(&id).header("last-event-id", &prime)).await;
    drop(client);
    first.stop().await;
    let heard = rest(&mut other).await;
    assert_eq!(heard[0].method(), "elicitation/create");
    second.stop().await;
}

#[tokio::test]
async fn the_store_keeps_the_idle_time_and_a_listener_renews_it() {
    let hub = Arc::new(Hub::default());
    let brief = || {
        Wish::default().http(|http| {
            http.limits.session_idle = Duration::from_secs(4);
            http.keep_alive = Duration::from_millis(100);
        })
    };
    let nodes = [node(&hub, brief()).await, node(&hub, brief()).await];
    let (_, idle) = session(&nodes[0], "2025-11-25").await;
    let (mut listener, listening) = session(&nodes[0], "2025-11-25").await;
    assert_eq!(listener.open(&get(&listening)).await.status, 200);
    let reader = tokio::spawn(async move {
        let mut pending = Vec::new();
        while listener.event(&mut pending).await.is_some() {}
    });
    let mut second = nodes[1].connect().await;
    let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
    while hub.len() > 1 {
        assert!(tokio::time::Instant::now() < deadline, "it never expires");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(echoes(&mut second, &idle).await, 404);
    assert_eq!(echoes(&mut second, &listening).await, 200);
    reader.abort();
    stop(nodes).await;
}
