//! The store and the bus of `[cluster]`.

use std::sync::Arc;

use sabir_cluster::Cluster;
use sabir_tasks::SharedStore;
use sabir_transports::http::ClusterPeers;

use crate::config::Settings;
use crate::report::Failure;

/// Opens what the file names. The engine learns the name of this node, with which the ids of questions
/// begin, how to tell other nodes, and where tasks are kept. Must be called inside the runtime.
pub(in crate::commands) fn open(settings: &mut Settings) -> Result<Option<Cluster>, Failure> {
    let (Some(store), Some(key)) = (settings.cluster.take(), &settings.engine.seal_key) else {
        return Ok(None);
    };
    let cluster = store.open(key.bytes());
    let cluster = cluster.map_err(|error| Failure::new(format!("cluster: {error}")))?;
    let engine = &mut settings.engine;
    if cluster.bus.is_some() {
        engine.node = Some((*cluster.node).into());
        engine.peers = Some(Arc::new(ClusterPeers::new(cluster.clone())));
    }
    let shared = || Arc::new(SharedStore::new(cluster.clone())) as _;
    engine.tasks.store.get_or_insert_with(shared);
    settings.nodes = cluster.bus.is_some().then(|| cluster.clone());
    Ok(Some(cluster))
}
