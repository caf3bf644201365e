//! Limits that were reached: counted for operators, and logged without filling the log.

use std::fmt::Display;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A limit of the process or of a server that refuses or delays what exceeds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The memory budget.
    Memory,
    /// Work that waits for a computing thread.
    Computing,
    /// The time that one piece of work may compute.
    ComputeTime,
    /// Calls that wait for a program or a server.
    Calls,
    /// The rates and quotas of callers.
    Rate,
    /// Requests of one address.
    Address,
    /// Open connections.
    Connections,
}

/// How long a limit is not logged again.
const QUIET: Duration = Duration::from_secs(60);

/// The state of a limit.
struct Reached {
    count: AtomicU64,
    /// When it was logged last, and how often it had been reached then.
    logged: Mutex<Option<(Instant, u64)>>,
}

static REACHED: [Reached; Limit::ALL.len()] =
    [const { Reached { count: AtomicU64::new(0), logged: Mutex::new(None) } }; Limit::ALL.len()];

impl Limit {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Memory,
        Self::Computing,
        Self::ComputeTime,
        Self::Calls,
        Self::Rate,
        Self::Address,
        Self::Connections,
    ];

    /// Its name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Computing => "computing",
            Self::ComputeTime => "compute_time",
            Self::Calls => "calls",
            Self::Rate => "rate",
            Self::Address => "address",
            Self::Connections => "connections",
        }
    }

    /// How often it was reached since the process started.
    pub fn count(self) -> u64 {
        self.reached().count.load(Ordering::Relaxed)
    }

    /// Counts that it was reached, and logs the reason, at most once a minute.
    pub fn reach(self, reason: impl Display) {
        let Reached { count, logged } = self.reached();
        let count = count.fetch_add(1, Ordering::Relaxed) + 1;
        let mut logged = logged.lock().unwrap_or_else(PoisonError::into_inner);
        let before = match *logged {
            Some((at, _)) if at.elapsed() < QUIET => return,
            Some((_, before)) => before,
            None => 0,
        };
        *logged = Some((Instant::now(), count));
        drop(logged);
        let name = self.name();
        match count.saturating_sub(before + 1) {
            0 => tracing::warn!(limit = name, "over a limit: {reason}"),
            more => tracing::warn!(limit = name, more, "over a limit again: {reason}"),
        }
    }

    fn reached(self) -> &'static Reached {
        // The numbers of the variants are their indices in the list.
        &REACHED[self as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_counted_by_its_name() {
        for (place, limit) in Limit::ALL.into_iter().enumerate() {
            assert_eq!(limit as usize, place, "{}", limit.name());
        }
        let before = Limit::Connections.count();
        Limit::Connections.reach("too many");
        Limit::Connections.reach("too many");
        assert_eq!(Limit::Connections.count(), before + 2);
    }
}
