//! The known nodes.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// A node that is silent for so long is gone. Each node sends a message every few seconds.
const SILENCE: Duration = Duration::from_secs(20);

/// Nodes at once. More are not counted.
const MAX_NODES: usize = 4096;

/// The nodes whose messages have arrived. While none arrive, the bus is interrupted and the last
/// number stays.
#[derive(Debug, Default)]
pub struct Members(Mutex<HashMap<Box<str>, Instant>>);

impl Members {
    /// A message of this node has arrived. The node may be our own.
    pub fn heard(&self, node: &str) {
        let now = Instant::now();
        let mut nodes = self.lock();
        if nodes.len() < MAX_NODES || nodes.contains_key(node) {
            nodes.insert(node.into(), now);
        }
        nodes.retain(|_, at| now.duration_since(*at) < SILENCE);
    }

    /// The number of nodes, at least one.
    pub fn count(&self) -> usize {
        self.lock().len().max(1)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Box<str>, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_node_that_is_silent_is_gone_unless_all_are() {
        let members = Members::default();
        assert_eq!(members.count(), 1);
        ["a", "b", "c", "a"].iter().for_each(|node| members.heard(node));
        assert_eq!(members.count(), 3);
        tokio::time::advance(Duration::from_secs(100)).await;
        assert_eq!(members.count(), 3, "no node was heard: the bus is interrupted");
        members.heard("a");
        assert_eq!(members.count(), 1);
    }

    #[tokio::test]
    async fn the_number_of_nodes_is_bounded() {
        let members = Members::default();
        (0..=MAX_NODES).for_each(|nth| members.heard(&nth.to_string()));
        assert_eq!(members.count(), MAX_NODES);
    }
}
