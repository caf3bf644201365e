//! Messages between nodes.

use std::net::IpAddr;

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::store::{Away, Pending};

/// The receiver of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To<'a> {
    /// One node.
    Node(&'a str),
    /// All nodes, the sender among them.
    All,
}

/// A received message, or a gap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// A message.
    Message(Bytes),
    /// Messages to all nodes may have been lost before the next one.
    Gap,
}

/// Carries messages between nodes, in the order in which each sender sends them.
pub trait Bus: std::fmt::Debug + Send + Sync {
    /// Sends a message. `false` if the node is gone: it has stopped, or was killed. An error if
    /// that is not known.
    fn send<'a>(&'a self, to: To<'a>, message: &'a [u8]) -> Pending<'a, bool>;

    /// Begins to receive, inside the runtime. A receiver that is slow makes the bus wait. To be
    /// called once; dropping the receiver ends it.
    fn listen(&self) -> mpsc::Receiver<Received>;

    /// The address of this machine towards the other nodes; `None` if it is unknown.
    fn own_address(&self) -> Pending<'_, Option<IpAddr>> {
        Box::pin(async { Ok(None) })
    }
}

/// Bytes of a message to all nodes. A longer one is refused: it is kept for a long time.
pub const MAX_FOR_ALL: usize = 64 << 10;

/// Refuses a message that is too long.
pub(crate) fn check_length(to: To<'_>, message: &[u8]) -> Result<(), Away> {
    match to == To::All && message.len() > MAX_FOR_ALL {
        true => Err(Away::new(format!("the message is too long (limit {MAX_FOR_ALL} bytes)"))),
        false => Ok(()),
    }
}

/// Messages that wait for their receiver; more wait on the bus.
pub(crate) const WAITING: usize = 256;
