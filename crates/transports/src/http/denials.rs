//! The log of requests that were not let in: enough to see an attack, too little to fill a disk.

use std::sync::atomic::{AtomicU64, Ordering};

use http::StatusCode;

/// How many are logged between two ticks of the clock, which are at most a second apart.
const MOST: u64 = 10;

/// Counts requests that were not let in.
#[derive(Debug, Default)]
pub(crate) struct Denials {
    tick: AtomicU64,
    count: AtomicU64,
}

impl Denials {
    /// Logs one, unless there were many since the last tick.
    pub(crate) fn log(&self, now: u64, status: StatusCode, path: &str) {
        if self.tick.swap(now, Ordering::Relaxed) != now {
            let more = self.count.swap(0, Ordering::Relaxed).saturating_sub(MOST);
            if more > 0 {
                tracing::warn!("refused {more} more requests (401 or 403)");
            }
        }
        if self.count.fetch_add(1, Ordering::Relaxed) < MOST {
            let path = &path[..path.floor_char_boundary(100)];
            tracing::warn!("refused a request to {path:?}: {status}");
        }
    }
}
