//! Counts, for operators.

use std::sync::atomic::Ordering;
use std::time::Duration;

use sabir_cluster::Counted;

use super::state::ServerState;

/// Counts of connections, requests, streams and sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stats {
    /// Open connections.
    pub connections: usize,
    /// Requests in flight, including streams.
    pub requests: usize,
    /// Open streams of events, and WebSockets.
    pub streams: usize,
    /// Legacy sessions.
    pub sessions: usize,
}

/// Counts of a store that other nodes share, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreStats {
    /// Requests that the store has answered.
    pub answered: u64,
    /// Requests that it has not answered, or refused.
    pub failed: u64,
    /// The total time of the answered requests.
    pub time: Duration,
    /// Messages of other nodes.
    pub heard: u64,
    /// Interruptions of the bus.
    pub gaps: u64,
}

/// The current counts of a server.
pub(crate) fn stats(state: &ServerState) -> Stats {
    let activities = state.activities();
    Stats {
        connections: activities.len(),
        requests: activities.iter().map(|activity| activity.in_flight()).sum(),
        streams: state.streams.load(Ordering::Relaxed),
        sessions: state.table.len(),
    }
}

/// The current counts of the store of a server.
pub(crate) fn store_stats(state: &ServerState) -> Option<StoreStats> {
    let counted = state.sharing.as_ref()?.cluster.counts.counted();
    let Counted { answered, failed, time, heard, gaps } = counted;
    Some(StoreStats { answered, failed, time, heard, gaps })
}
