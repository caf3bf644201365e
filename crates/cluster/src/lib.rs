//! State that outlives a process, and that several processes share. Knows nothing of MCP.
//!
//! A [`Store`] keeps records for a time; a [`Bus`] carries messages between nodes. Both are traits:
//! [`Hub`] keeps everything in this process, [`DiskStore`] in a file of one node, [`Redis`] on a
//! server that many nodes reach. What they keep is sealed before ([`Seal`]).

mod bus; // messages between nodes
mod disk; // a store in a file
mod members; // the nodes that were heard of
mod memory; // a store and a bus in this process
mod redis; // a store and a bus on a Redis server
mod seal; // names and contents that only we can read
mod status; // what nodes say about themselves
mod store; // records that expire

pub use bus::{Bus, Received, To};
pub use disk::{DiskStore, create_private};
pub use members::Members;
pub use memory::{Hub, HubNode};
pub use redis::Redis;
pub use seal::{Seal, Unreadable};
pub use status::{ANNOUNCE, Counted, Counts, NodeStatus};
pub use store::{Append, Away, Bound, Count, Pending, Store, Swap};

use std::sync::{Arc, OnceLock};

/// What a node shares with others, or with itself after a restart.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// Where records are kept.
    pub store: Arc<dyn Store>,
    /// How other nodes are reached; `None` if there are none.
    pub bus: Option<Arc<dyn Bus>>,
    /// How both are kept from the eyes of others.
    pub seal: Arc<Seal>,
    /// The name of this process. Another one has another, also after a restart.
    pub node: Arc<str>,
    /// The nodes that were heard of.
    pub members: Arc<Members>,
    /// What this node has asked and heard.
    pub counts: Arc<Counts>,
    /// Where other nodes reach this one, e.g. `http://10.0.0.5:7331`. Known once it listens.
    pub address: Arc<OnceLock<Box<str>>>,
}

impl Cluster {
    /// One node, whose records survive it. All records are sealed with `secret`.
    pub fn alone(store: Arc<dyn Store>, secret: &[u8; 32]) -> Self {
        let (seal, node) = (Arc::new(Seal::new(secret)), node_name().into());
        let (members, counts, address) = (Arc::default(), Arc::default(), Arc::default());
        Self { store, bus: None, seal, node, members, counts, address }
    }

    /// A node of the name `node` among others that have the same `secret`.
    pub fn among(
        store: Arc<dyn Store>,
        bus: Arc<dyn Bus>,
        node: impl Into<Arc<str>>,
        secret: &[u8; 32],
    ) -> Self {
        let seal = Arc::new(Seal::new(secret));
        let (members, counts, address) = (Arc::default(), Arc::default(), Arc::default());
        Self { store, bus: Some(bus), seal, node: node.into(), members, counts, address }
    }
}

/// A new name for a node: 12 letters and digits, so that it can begin an id.
pub fn node_name() -> String {
    const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let mut bytes = [0; 12];
    seal::fill_random(&mut bytes);
    bytes.iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect()
}
