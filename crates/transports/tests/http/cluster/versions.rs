//! Nodes of different versions side by side, as in a rolling upgrade.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use sabir_cluster::{Hub, Seal, Store as _, Swap};
use sabir_wire::Caller;
use serde_json::{Value, json};

use super::{SECRET, echoes, node, nodes, stop};
use crate::legacy::{call, session};
use crate::server::Wish;

/// The record of a session, as the nodes keep it.
struct Record {
    hub: Arc<Hub>,
    seal: Seal,
    name: String,
}

impl Record {
    fn of(hub: &Arc<Hub>, id: &str) -> Self {
        let (seal, caller) = (Seal::new(&SECRET), Caller::anonymous());
        let (issuer, subject) = (caller.issuer().as_bytes(), caller.subject().as_bytes());
        let name = seal.name(&[b"session", issuer, subject, id.as_bytes()]);
        Self { hub: hub.clone(), seal, name }
    }

    async fn get(&self) -> Bytes {
        self.hub.get(&self.name, None).await.unwrap().expect("a record")
    }

    /// Changes it, as another node does.
    async fn replace(&self, new: &[u8]) {
        let old = self.get().await;
        let swap = Swap { old: Some(&old), new, life: Duration::from_secs(60) };
        assert!(self.hub.swap(&self.name, swap).await.unwrap());
    }
}

#[tokio::test]
async fn what_a_newer_version_adds_to_a_record_is_ignored() {
    let hub = Arc::new(Hub::default());
    let nodes = nodes(&hub).await;
    let (mut first, id) = session(&nodes[0], "2025-11-25").await;
    let record = Record::of(&hub, &id);
    let text = record.seal.open(&record.name, &record.get().await).unwrap();
    let mut newer: Value = serde_json::from_slice(&text).unwrap();
    newer["invented"] = json!({ "later": true });
    record.replace(&record.seal.seal(&record.name, newer.to_string().as_bytes())).await;
    let mut second = nodes[1].connect().await;
    assert_eq!([echoes(&mut second, &id).await, echoes(&mut first, &id).await], [200, 200]);
    stop(nodes).await;
}

#[tokio::test]
async fn a_record_in_a_newer_form_is_left_to_newer_nodes() {
    let hub = Arc::new(Hub::default());
    let [first, second] = nodes(&hub).await;
    let (mut known, id) = session(&first, "2025-11-25").await;
    let record = Record::of(&hub, &id);
    let mut newer = record.get().await.to_vec();
    newer[0] += 1;
    record.replace(&newer).await;
    // A balancer asks another node, which may be a newer one. 404 would end the session.
    let mut unknown = second.connect().await;
    let refused = unknown.send(&call(&id, 1, "echo", json!({ "text": "hi" }))).await;
    assert_eq!(refused.status, 503);
    assert!(refused.header("retry-after").is_some());
    assert_eq!(echoes(&mut known, &id).await, 200, "what is known here still holds");
    assert_eq!(record.get().await, newer, "and nothing is written over it");
    let third = node(&hub, Wish::default()).await;
    assert_eq!(echoes(&mut third.connect().await, &id).await, 503);
    third.stop().await;
    stop([first, second]).await;
}
