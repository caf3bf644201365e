//! A change on one node is announced to listeners on all nodes.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use sabir_cluster::Hub;
use serde_json::json;

use super::{nodes, stop};
use crate::client::{Client, Request};
use crate::legacy::{get, session};
use crate::server::{Running, in_time};

/// A modern listener to everything.
async fn listener(node: &Running) -> Client {
    let mut client = node.connect().await;
    let wish = json!({ "notifications": { "toolsListChanged": true, "promptsListChanged": true,
        "resourcesListChanged": true, "resourceSubscriptions": ["test://note"] } });
    assert_eq!(client.open(&Request::modern(1, "subscriptions/listen", wish)).await.status, 200);
    client
}

/// Reads until a message of this method.
async fn hears(client: &mut Client, pending: &mut Vec<u8>, method: &str) {
    loop {
        let event = in_time(client.event(pending)).await.expect("the stream ended");
        let is_message = event.data.as_deref().is_some_and(|data| !data.is_empty());
        if !event.is_comment && is_message && event.method() == method {
            return;
        }
    }
}

const TOOLS: &str = "notifications/tools/list_changed";
const PROMPTS: &str = "notifications/prompts/list_changed";
const UPDATED: &str = "notifications/resources/updated";

#[tokio::test]
async fn listeners_of_both_eras_hear_what_changes_on_another_node() {
    let hub = Arc::new(Hub::default());
    let nodes = nodes(&hub).await;
    let mut modern = listener(&nodes[1]).await;
    let (mut legacy, id) = session(&nodes[1], "2025-11-25").await;
    assert_eq!(legacy.open(&get(&id)).await.status, 200);
    let (mut first, mut second) = (Vec::new(), Vec::new());
    hears(&mut modern, &mut first, "notifications/subscriptions/acknowledged").await;
    nodes[0].signals.has_extra.store(true, Ordering::SeqCst);
    nodes[0].signals.announce();
    hears(&mut modern, &mut first, TOOLS).await;
    hears(&mut legacy, &mut second, TOOLS).await;
    nodes[0].signals.handle.lock().unwrap().as_ref().unwrap().updated("test://note");
    hears(&mut modern, &mut first, UPDATED).await;
    drop((modern, legacy));
    stop(nodes).await;
}

#[tokio::test]
async fn after_a_gap_everybody_hears_that_everything_may_have_changed() {
    let hub = Arc::new(Hub::default());
    let nodes = nodes(&hub).await;
    let mut modern = listener(&nodes[1]).await;
    let (mut legacy, id) = session(&nodes[0], "2025-06-18").await;
    assert_eq!(legacy.open(&get(&id)).await.status, 200);
    let (mut first, mut second) = (Vec::new(), Vec::new());
    hears(&mut modern, &mut first, "notifications/subscriptions/acknowledged").await;
    hub.interrupt().await;
    for method in [TOOLS, PROMPTS, "notifications/resources/list_changed", UPDATED] {
        hears(&mut modern, &mut first, method).await;
    }
    hears(&mut legacy, &mut second, TOOLS).await;
    drop((modern, legacy));
    stop(nodes).await;
}

#[tokio::test]
async fn changes_while_the_bus_is_away_are_told_later() {
    let hub = Arc::new(Hub::default());
    let nodes = nodes(&hub).await;
    let mut modern = listener(&nodes[1]).await;
    let mut pending = Vec::new();
    hears(&mut modern, &mut pending, "notifications/subscriptions/acknowledged").await;
    hub.set_away(true);
    nodes[0].signals.has_extra.store(true, Ordering::SeqCst);
    nodes[0].signals.announce();
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    hub.set_away(false);
    hears(&mut modern, &mut pending, TOOLS).await;
    drop(modern);
    stop(nodes).await;
}
