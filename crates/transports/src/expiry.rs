//! When credentials expire, in seconds since 1970.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Whether credentials have expired.
pub(crate) fn is_over(expires: Option<u64>) -> bool {
    expires.is_some_and(|end| left(end).is_zero())
}

/// Completes when credentials expire; never without an expiry.
pub(crate) async fn over(expires: Option<u64>) {
    let Some(end) = expires else { return std::future::pending().await };
    // The system clock may be set, and a certificate may be valid longer than a timer can run.
    while !left(end).is_zero() {
        tokio::time::sleep(left(end).min(LOOK)).await;
    }
}

/// The longest time between two looks at the clock.
const LOOK: Duration = Duration::from_secs(60);

fn left(end: u64) -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Duration::from_secs(end).saturating_sub(now)
}
