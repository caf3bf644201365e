//! State that outlives a process, and that several processes share. Knows nothing of MCP.
//!
//! A [`Store`] keeps records for a time; a [`Bus`] carries messages between nodes. Both are traits:
//! [`Hub`] keeps everything in this process, [`DiskStore`] in a file of one node, [`Redis`] on a
//! server that many nodes reach. Records are sealed before they are stored ([`Seal`]).

mod bus; // messages between nodes
mod disk; // a store in a file
mod members; // the known nodes
mod memory; // a store and a bus in this process
mod redis; // a store and a bus on a Redis server
mod seal; // keyed names and encrypted contents
mod status; // the status of nodes
mod store; // records that expire

pub use bus::{Bus, MAX_FOR_ALL, Received, To};
pub use disk::{DiskStore, create_private};
pub use members::Members;
pub use memory::{Hub, HubNode};
pub use redis::Redis;
pub use seal::{Seal, Unreadable};
pub use status::{ANNOUNCE, Counted, Counts, NodeStatus};
pub use store::{Append, Away, Bound, Count, Pending, Store, Swap};

use std::sync::{Arc, OnceLock};

/// The state that a node shares with others, or keeps over a restart.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// The store of records.
    pub store: Arc<dyn Store>,
    /// How other nodes are reached; `None` if there are none.
    pub bus: Option<Arc<dyn Bus>>,
    /// Seals records and messages.
    pub seal: Arc<Seal>,
    /// The name of this process. Each process has its own, also after a restart.
    pub node: Arc<str>,
    /// The known nodes.
    pub members: Arc<Members>,
    /// The counts of requests and messages of this node.
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
