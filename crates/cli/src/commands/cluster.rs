//! `sabir cluster status`: the nodes that share the sessions of a sabir.toml.

use std::path::Path;

use comfy_table::{Table, presets};
use sabir_cluster::NodeStatus;

use super::serve::cluster::open;
use crate::config::{self, ClusterStore};
use crate::escape::escaped;
use crate::report::{Failure, print_text};

/// Prints the last status of each node.
pub(crate) fn status(path: Option<&Path>, json: bool) -> Result<(), Failure> {
    let mut settings = config::read(path, false)?;
    if !matches!(settings.cluster, Some(ClusterStore::Redis(..))) {
        return Err(Failure::new("there are no other nodes (expected `url` in [cluster])"));
    }
    super::block_on(async {
        let failed = |error: sabir_cluster::Away| Failure::new(format!("cluster: {error}"));
        let cluster = open(&mut settings)?.ok_or_else(|| {
            Failure::new("no key for the records of the nodes (expected `key_env` in [seal])")
        })?;
        let nodes = cluster.nodes().await.map_err(failed)?;
        let text = match json {
            true => {
                serde_json::to_string(&nodes).map_err(|error| Failure::new(error.to_string()))?
            }
            false if nodes.is_empty() => "no node runs".to_owned(),
            false => table(&nodes),
        };
        print_text(&format!("{text}\n"));
        Ok(())
    })
}

fn table(nodes: &[NodeStatus]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["node", "address", "version", "up", "sessions", "calls", "streams", "store"]);
    table.add_rows(nodes.iter().map(|status| {
        let NodeStatus { node, address, version, uptime, sessions, calls, streams, lag } = status;
        [
            escaped(node).into_owned(),
            escaped(address).into_owned(),
            escaped(version).into_owned(),
            format!("{uptime} s"),
            sessions.to_string(),
            calls.to_string(),
            streams.to_string(),
            format!("{lag} ms"),
        ]
    }));
    table.trim_fmt()
}
