//! Messages between the engines of several nodes, over the bus of the cluster.

use sabir_cluster::{Cluster, MAX_FOR_ALL, To};
use sabir_engine::{Changes, PeerNews, Peers, Telling};
use serde::{Deserialize, Serialize};

use super::forward;

/// Sends messages to the other nodes of a cluster.
#[derive(Clone, Debug)]
pub struct ClusterPeers(Cluster);

/// News, and the node that sends them.
#[derive(Serialize, Deserialize)]
struct Message<N> {
    from: String,
    news: N,
}

/// The name under which these messages are sealed. Notices about sessions have another.
const PEERS: &str = "peers";

impl ClusterPeers {
    /// The nodes that `cluster` reaches by its bus.
    pub fn new(cluster: Cluster) -> Self {
        Self(cluster)
    }
}

impl Peers for ClusterPeers {
    fn tell<'a>(&'a self, node: Option<&'a str>, news: &'a PeerNews) -> Telling<'a> {
        Box::pin(async move {
            let Cluster { bus: Some(bus), seal, node: own, .. } = &self.0 else { return Ok(false) };
            let write = |news: &PeerNews| {
                let message = Message { from: own.to_string(), news };
                serde_json::to_vec(&message).map_err(|error| error.to_string())
            };
            let mut text = write(news)?;
            let to = node.map_or(To::All, To::Node);
            if to == To::All && text.len() > MAX_FOR_ALL / 2 {
                // Too long for a list of changes: everything may have changed.
                let everything = Changes { everything: true, ..Changes::default() };
                text = write(&PeerNews::Changed(everything))?;
            }
            bus.send(to, &seal.seal(PEERS, &text)).await.map_err(|away| away.to_string())
        })
    }

    fn route(&self) -> Option<String> {
        forward::route(&self.0)
    }
}

/// Opens a message of another node; `None` if it is not such a message, has an unknown format, or
/// is from this node.
pub(crate) fn open(cluster: &Cluster, sealed: &[u8]) -> Option<PeerNews> {
    let text = cluster.seal.open(PEERS, sealed).ok()?;
    let Message::<PeerNews> { from, news } = serde_json::from_slice(&text).ok()?;
    cluster.members.heard(&from);
    (*from != *cluster.node).then_some(news)
}
