//! The status of nodes, for operators.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Cluster;
use crate::bus::To;
use crate::store::{Append, Away};

/// How often a node announces its status.
pub const ANNOUNCE: Duration = Duration::from_secs(5);

/// How many announcements of all nodes are kept, and how long after the last.
const KEPT: usize = 512;
const LIFE: Duration = Duration::from_secs(60);

/// The status of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeStatus {
    /// Its name, another one after each start.
    pub node: String,
    /// Where it listens.
    pub address: String,
    /// The version of the program.
    pub version: String,
    /// For how many seconds it runs.
    pub uptime: u64,
    /// The legacy sessions that it has in memory. A session may be on several nodes.
    pub sessions: usize,
    /// Its requests in flight, without streams.
    pub calls: usize,
    /// Its open streams.
    pub streams: usize,
    /// How long the store took to answer it the last time, in milliseconds.
    pub lag: u64,
}

impl Cluster {
    fn status_name(&self) -> String {
        self.seal.name(&[b"nodes"])
    }

    /// Announces the status of this node.
    pub async fn announce(&self, status: &NodeStatus) -> Result<(), Away> {
        let name = self.status_name();
        let text = serde_json::to_vec(status).map_err(Away::new)?;
        let items = [self.seal.seal(&name, &text)];
        self.store.append(&name, Append { items: &items, most: KEPT, life: LIFE }).await
    }

    /// The last status of each node that can be reached over the bus.
    pub async fn nodes(&self) -> Result<Vec<NodeStatus>, Away> {
        let Some(bus) = &self.bus else { return Ok(Vec::new()) };
        let name = self.status_name();
        let mut nodes = BTreeMap::new();
        for item in self.store.items(&name).await? {
            // Nodes of another version may announce another form.
            let Ok(text) = self.seal.open(&name, &item) else { continue };
            if let Ok(status) = serde_json::from_slice::<NodeStatus>(&text) {
                nodes.insert(status.node.clone(), status);
            }
        }
        let mut alive = Vec::new();
        for (node, status) in nodes {
            // An empty message. A node that is gone has no inbox.
            if bus.send(To::Node(&node), b"").await? {
                alive.push(status);
            }
        }
        Ok(alive)
    }
}

/// Counts of a node's requests to its store and of messages from other nodes, since its start.
#[derive(Debug, Default)]
pub struct Counts {
    answered: AtomicU64,
    failed: AtomicU64,
    micros: AtomicU64,
    heard: AtomicU64,
    gaps: AtomicU64,
}

/// The state of [`Counts`] at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Requests that the store has answered.
    pub answered: u64,
    /// Requests that have failed or were refused.
    pub failed: u64,
    /// The total time of the answered requests.
    pub time: Duration,
    /// Messages of other nodes.
    pub heard: u64,
    /// Interruptions of the bus.
    pub gaps: u64,
}

impl Counts {
    /// A request to the store has ended.
    pub(crate) fn asked(&self, is_answered: bool, time: Duration) {
        let count = if is_answered { &self.answered } else { &self.failed };
        count.fetch_add(1, Ordering::Relaxed);
        if is_answered {
            let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
            self.micros.fetch_add(micros, Ordering::Relaxed);
        }
    }

    pub(crate) fn heard(&self) {
        self.heard.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn gap(&self) {
        self.gaps.fetch_add(1, Ordering::Relaxed);
    }

    /// The counts now.
    pub fn counted(&self) -> Counted {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Counted {
            answered: read(&self.answered),
            failed: read(&self.failed),
            time: Duration::from_micros(read(&self.micros)),
            heard: read(&self.heard),
            gaps: read(&self.gaps),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::Hub;
    use crate::bus::Bus as _;

    #[tokio::test]
    async fn the_last_status_of_each_node_that_lives_is_known() {
        let hub = Arc::new(Hub::default());
        let [a, b] = ["a", "b"].map(|name| Arc::new(hub.node(name)));
        let (_heard_a, heard_b) = (a.listen(), b.listen());
        let among = |bus, name| Cluster::among(hub.clone(), bus, name, &[7; 32]);
        let nodes = [among(a, "a"), among(b.clone(), "b")];
        assert!(nodes[0].nodes().await.unwrap().is_empty());
        let status = |node: &Cluster, calls| NodeStatus {
            node: (*node.node).into(),
            address: "127.0.0.1:1".into(),
            version: "1".into(),
            uptime: 5,
            sessions: 2,
            calls,
            streams: 0,
            lag: 1,
        };
        for calls in 0..2 * KEPT {
            let node = &nodes[calls % 2];
            node.announce(&status(node, calls)).await.unwrap();
        }
        let name = nodes[0].status_name();
        let items = [nodes[0].seal.seal(&name, br#"{"of":"a newer node"}"#), vec![9]];
        nodes[0]
            .store
            .append(&name, Append { items: &items, most: KEPT, life: LIFE })
            .await
            .unwrap();
        assert_eq!(nodes[0].store.items(&name).await.unwrap().len(), KEPT);
        let last = |node: usize| status(&nodes[node], 2 * KEPT - 2 + node);
        assert_eq!(nodes[0].nodes().await.unwrap(), [last(0), last(1)]);
        drop(heard_b);
        assert_eq!(nodes[0].nodes().await.unwrap(), [last(0)], "the other one is gone");
    }
}
