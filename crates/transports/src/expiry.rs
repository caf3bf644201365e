//! When credentials expire, in seconds since 1970.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Whether they have expired.
pub(crate) fn is_over(expires: Option<u64>) -> bool {
    expires.is_some_and(|end| left(end).is_zero())
}

/// Completes when they expire, never if they do not.
pub(crate) async fn over(expires: Option<u64>) {
    let Some(end) = expires else { return std::future::pending().await };
    // The clock of the system may be set, and a timer cannot be as long as a certificate is valid.
    while !left(end).is_zero() {
        tokio::time::sleep(left(end).min(LOOK)).await;
    }
}

/// How often the clock is looked at.
const LOOK: Duration = Duration::from_secs(60);

fn left(end: u64) -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Duration::from_secs(end).saturating_sub(now)
}
