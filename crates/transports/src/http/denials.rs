//! The log of denied requests: enough to see an attack, too little to fill a disk.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use http::StatusCode;

use super::reply::Refusal;

/// How many are logged between two ticks of the clock, which are at most a second apart.
const MOST: u64 = 10;

/// The statuses of denied requests.
const DENIALS: [StatusCode; 3] =
    [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN, StatusCode::TOO_MANY_REQUESTS];

/// Counts denied requests.
#[derive(Debug, Default)]
pub(crate) struct Denials {
    tick: AtomicU64,
    count: AtomicU64,
}

impl Denials {
    /// Logs a denied request, unless there were many since the last tick. Other refusals are
    /// ignored.
    pub(crate) fn log(&self, now: u64, refusal: &Refusal, path: &str, client: Option<IpAddr>) {
        let status = refusal.status;
        if !DENIALS.contains(&status) {
            return;
        }
        if self.tick.swap(now, Ordering::Relaxed) != now {
            let more = self.count.swap(0, Ordering::Relaxed).saturating_sub(MOST);
            if more > 0 {
                tracing::warn!("refused {more} more requests (401, 403 or 429)");
            }
        }
        if self.count.fetch_add(1, Ordering::Relaxed) < MOST {
            let path = &path[..path.floor_char_boundary(100)];
            let client = client.map(|client| format!(" from {client}")).unwrap_or_default();
            tracing::warn!("refused a request to {path:?}{client}: {status}");
        }
    }
}
