//! All nodes see the same tasks.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use sabir_cluster::Hub;
use serde_json::{Value, json};

use super::{nodes, stop};
use crate::client::{Client, Request};
use crate::legacy::{in_session, session};
use crate::server::{Running, in_time};

/// Nodes whose calls become tasks at once.
async fn with_tasks(hub: &Arc<Hub>) -> [Running; 2] {
    let nodes = nodes(hub).await;
    for node in &nodes {
        node.signals.has_tasks.store(true, Ordering::SeqCst);
        node.signals.announce();
    }
    nodes
}

fn modern(method: &str, params: Value) -> Request {
    let extensions = json!({ "io.modelcontextprotocol/tasks": {} });
    let capabilities = json!({ "elicitation": {}, "extensions": extensions });
    let id = params["taskId"].as_str().map(str::to_owned);
    let request = Request::modern_with(1, method, params, capabilities);
    match id {
        Some(id) => request.header("mcp-name", &id),
        None => request,
    }
}

async fn ask(client: &mut Client, method: &str, params: Value) -> Value {
    in_time(client.send(&modern(method, params))).await.json()
}

async fn task(client: &mut Client, tool: &str) -> String {
    let created = ask(client, "tools/call", json!({ "name": tool, "arguments": {} })).await;
    assert_eq!(created["result"]["resultType"], "task", "{created}");
    created["result"]["taskId"].as_str().unwrap().to_owned()
}

async fn get(client: &mut Client, id: &str) -> Value {
    ask(client, "tasks/get", json!({ "taskId": id })).await
}

/// Polls until the task is in this state.
async fn until(client: &mut Client, id: &str, status: &str) -> Value {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
    loop {
        let got = get(client, id).await;
        if got["result"]["status"] == status {
            return got["result"].clone();
        }
        assert!(tokio::time::Instant::now() < deadline, "{got}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_result_is_fetched_and_a_task_cancelled_on_any_node() {
    let hub = Arc::new(Hub::default());
    let nodes = with_tasks(&hub).await;
    let (mut first, mut second) = (nodes[0].connect().await, nodes[1].connect().await);
    let done = task(&mut first, "wait").await;
    assert_eq!(get(&mut second, &done).await["result"]["status"], "working");
    nodes[0].signals.gate.0.add_permits(1);
    let result = until(&mut second, &done, "completed").await;
    assert_eq!(result["result"]["content"][0]["text"], "waited");
    assert_eq!(get(&mut first, &done).await["result"], result);
    let stopped = task(&mut first, "wait").await;
    let signals = &nodes[0].signals;
    signals.until(|signals| signals.begun.load(Ordering::SeqCst) == 2).await;
    let cancel = ask(&mut second, "tasks/cancel", json!({ "taskId": stopped })).await;
    assert!(cancel["result"].is_object(), "{cancel}");
    assert_eq!(get(&mut second, &stopped).await["result"]["status"], "cancelled");
    until(&mut first, &stopped, "cancelled").await;
    signals.until(|signals| signals.dropped.load(Ordering::SeqCst) == 1).await;
    for unknown in [format!("{stopped}x"), "no-such".to_owned()] {
        assert_eq!(get(&mut second, &unknown).await["error"]["code"], -32602);
    }
    stop(nodes).await;
}

#[tokio::test]
async fn answers_reach_a_task_from_any_node() {
    let hub = Arc::new(Hub::default());
    let nodes = with_tasks(&hub).await;
    let (mut first, mut second) = (nodes[0].connect().await, nodes[1].connect().await);
    let id = task(&mut first, "ask").await;
    let asked = until(&mut second, &id, "input_required").await;
    assert_eq!(asked["inputRequests"]["q"]["method"], "elicitation/create", "{asked}");
    let answers = json!({ "q": { "action": "accept", "content": { "name": "me" } } });
    let update = json!({ "taskId": id, "inputResponses": answers });
    for _ in 0..2 {
        let updated = ask(&mut second, "tasks/update", update.clone()).await;
        assert!(updated["result"].is_object(), "{updated}");
        let seen = get(&mut second, &id).await["result"]["status"].clone();
        assert_ne!(seen, "input_required", "answered questions are not open");
    }
    let result = until(&mut second, &id, "completed").await;
    let text = result["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("me"), "{text}");
    stop(nodes).await;
}

#[tokio::test]
async fn a_task_whose_node_is_gone_has_failed_for_good() {
    let hub = Arc::new(Hub::default());
    let nodes = with_tasks(&hub).await;
    let (mut first, mut second) = (nodes[0].connect().await, nodes[1].connect().await);
    let [done, lost] = [task(&mut first, "echo").await, task(&mut first, "wait").await];
    until(&mut first, &done, "completed").await;
    hub.lose(lost.split_once('-').unwrap().0);
    let failed = get(&mut second, &lost).await["result"].clone();
    assert_eq!(failed["status"], "failed");
    assert!(failed["error"]["message"].as_str().unwrap().contains("interrupted"), "{failed}");
    assert_eq!(get(&mut second, &done).await["result"]["status"], "completed");
    // The node was only suspended, and continues: the stored outcome stays.
    nodes[0].signals.gate.0.add_permits(1);
    until(&mut first, &lost, "failed").await;
    assert_eq!(get(&mut second, &lost).await["result"], failed);
    stop(nodes).await;
}

#[tokio::test]
async fn while_the_store_is_away_tasks_of_other_nodes_are_not_denied() {
    let hub = Arc::new(Hub::default());
    let nodes = with_tasks(&hub).await;
    let (mut first, mut second) = (nodes[0].connect().await, nodes[1].connect().await);
    let id = task(&mut first, "wait").await;
    hub.set_away(true);
    assert_eq!(get(&mut second, &id).await["error"]["code"], -32603);
    assert_eq!(get(&mut first, &id).await["result"]["status"], "working");
    nodes[0].signals.gate.0.add_permits(1);
    let refused = ask(&mut first, "tasks/cancel", json!({ "taskId": id })).await;
    assert_eq!(refused["error"]["code"], -32603, "others would not know of it: {refused}");
    hub.set_away(false);
    until(&mut second, &id, "completed").await;
    until(&mut first, &id, "completed").await;
    stop(nodes).await;
}

#[tokio::test]
async fn a_listener_hears_of_a_task_on_another_node() {
    let hub = Arc::new(Hub::default());
    let nodes = with_tasks(&hub).await;
    let (mut first, mut listener) = (nodes[0].connect().await, nodes[1].connect().await);
    let id = task(&mut first, "wait").await;
    let filter = json!({ "notifications": { "taskIds": [id] } });
    let mut listen = modern("subscriptions/listen", filter);
    listen.headers.retain(|(name, _)| name != "mcp-name");
    assert_eq!(listener.open(&listen).await.status, 200);
    let mut pending = Vec::new();
    let mut states = Vec::new();
    while states.last().is_none_or(|state| state != "completed") {
        let event = in_time(listener.event(&mut pending)).await.unwrap();
        if event.is_comment || event.data.as_deref().is_none_or(str::is_empty) {
            continue;
        }
        let message = event.json();
        if message["method"] == "notifications/tasks" {
            assert_eq!(message["params"]["taskId"], *id);
            states.push(message["params"]["status"].as_str().unwrap().to_owned());
            nodes[0].signals.gate.0.add_permits(1);
        }
    }
    assert_eq!(states[0], "working", "{states:?}");
    drop(listener);
    stop(nodes).await;
}

#[tokio::test]
async fn a_client_of_the_older_form_waits_for_a_result_on_another_node_and_is_asked_there() {
    let hub = Arc::new(Hub::default());
    let nodes = with_tasks(&hub).await;
    let (mut first, id) = session(&nodes[0], "2025-11-25").await;
    let params = json!({ "name": "ask", "arguments": {}, "task": {} });
    let call = in_session(&id, Request::legacy(1, "tools/call", params));
    let created = first.send(&call).await.json();
    let task = created["result"]["task"]["taskId"].as_str().expect("a task").to_owned();
    let mut second = nodes[1].connect().await;
    let result = in_session(&id, Request::legacy(2, "tasks/result", json!({ "taskId": task })));
    second.open(&result).await;
    let mut pending = Vec::new();
    let mut next = async || loop {
        let event = in_time(second.event(&mut pending)).await.unwrap();
        if !event.is_comment && event.data.as_deref().is_some_and(|data| !data.is_empty()) {
            break event.json();
        }
    };
    let question = next().await;
    assert_eq!(question["method"], "elicitation/create", "{question}");
    let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": {
        "action": "accept", "content": { "name": "me" },
    } });
    assert_eq!(first.send(&in_session(&id, Request::message(&answer))).await.status, 202);
    let answered = next().await;
    assert_eq!(answered["id"], 2, "it is asked once: {answered}");
    assert!(answered["result"]["content"][0]["text"].as_str().unwrap().contains("me"));
    stop(nodes).await;
}
