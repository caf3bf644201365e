//! The one task that looks after all connections and sessions.

use std::sync::Weak;
use std::time::Duration;

use super::activity::millis;
use super::state::ServerState;
use super::{replay, shared};

/// The number of sessions that are checked in one batch, and the pause after it. Yielding is not
/// enough: where two threads share a core, the system lets each of them run for milliseconds.
const BATCH: usize = 128;
const REST: Duration = Duration::from_millis(1);

/// The number of sessions whose records are renewed in one sweep, after the store could not be
/// reached.
const MAX_DEBTS: usize = 1024;

/// Enforces the time limits of connections and sessions, as long as the server exists.
pub(crate) async fn sweep(state: Weak<ServerState>) {
    let Some(period) = state.upgrade().map(|state| period(&state)) else { return };
    let mut ticks = tokio::time::interval(period);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let Some(state) = state.upgrade() else { return };
        let now = state.clock.tick();
        for activity in state.activities() {
            activity.check(now, &state.settings.limits);
        }
        while state.table.expire(now, BATCH) {
            tokio::time::sleep(REST).await;
        }
        look_after(&state, now).await;
    }
}

async fn look_after(state: &ServerState, now: u64) {
    let replay_time = millis(state.settings.limits.replay_time);
    let grace = millis(state.engine.settings().limits.grace);
    let mut debts = MAX_DEBTS;
    for (nth, stored) in state.table.unattended().into_iter().enumerate() {
        if nth % BATCH == BATCH - 1 {
            tokio::time::sleep(REST).await;
        }
        let Some(stored) = stored.upgrade() else { continue };
        let more = stored.with(|streams| streams.look_after(now, replay_time, grace));
        let mut is_owed = false;
        if let Some(sharing) = &state.sharing {
            replay::log_unread(state, &stored).await;
            // Limited, as connections are not checked meanwhile.
            is_owed = debts == 0 || !shared::repay(state, sharing, &stored).await;
            debts = if is_owed { 0 } else { debts - 1 };
        }
        if more == Some(true) || is_owed {
            state.table.look_after(&stored);
        }
    }
}

/// The period of sweeps: a quarter of the shortest limit.
fn period(state: &ServerState) -> Duration {
    let limits = &state.settings.limits;
    let shortest =
        [limits.idle, limits.body_time, limits.stall, limits.session_idle, limits.handshake_time];
    let shortest = shortest.into_iter().chain([limits.replay_time]).min().unwrap_or_default();
    (shortest / 4).clamp(Duration::from_millis(5), Duration::from_secs(1))
}
