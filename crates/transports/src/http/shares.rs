//! The legacy sessions of each caller, so that one caller cannot fill the table.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use rustc_hash::FxHashMap;

/// The sessions of all callers.
pub(crate) struct Shares<T> {
    callers: FxHashMap<u64, Share<T>>,
    /// The limit per caller.
    limit: usize,
}

struct Share<T> {
    count: usize,
    /// In the order of their creation; some have ended.
    sessions: VecDeque<Weak<T>>,
}

/// The number of sessions that are compared to find the one that was idle for the longest time.
const COMPARED: usize = 32;

impl<T> Shares<T> {
    /// For a table of `sessions`, of which one caller may have a quarter.
    pub(crate) fn new(sessions: usize) -> Self {
        Self { callers: FxHashMap::default(), limit: (sessions / 4).max(1) }
    }

    /// Adds a session of the caller `share`. If there are too many, returns the one to end: of the
    /// oldest, the one with the lowest `seen`.
    pub(crate) fn add(
        &mut self,
        share: u64,
        session: &Arc<T>,
        seen: impl Fn(&T) -> u64,
    ) -> Option<Arc<T>> {
        let empty = || Share { count: 0, sessions: VecDeque::new() };
        let share = self.callers.entry(share).or_insert_with(empty);
        share.count += 1;
        if share.sessions.len() > 2 * share.count + COMPARED {
            share.sessions.retain(|session| session.strong_count() > 0);
        }
        let is_too_many = share.count > self.limit;
        let candidates = share.sessions.iter().filter_map(Weak::upgrade);
        let oldest = candidates.take(COMPARED).filter(|_| is_too_many).min_by_key(|s| seen(s));
        share.sessions.push_back(Arc::downgrade(session));
        oldest
    }

    /// A session of the caller `share` has ended.
    pub(crate) fn forget(&mut self, share: u64) {
        if let Some(known) = self.callers.get_mut(&share) {
            known.count = known.count.saturating_sub(1);
            if known.count == 0 {
                self.callers.remove(&share);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_has_a_quarter_and_then_its_own_oldest_goes() {
        let mut shares = Shares::new(16);
        let sessions: Vec<_> = (0..6).map(Arc::new).collect();
        for session in &sessions[..4] {
            assert_eq!(shares.add(7, session, |seen| *seen), None);
        }
        assert_eq!(shares.add(8, &sessions[5], |seen| *seen), None, "another caller");
        assert_eq!(shares.add(7, &sessions[4], |seen| 9 - *seen).as_deref(), Some(&3));
        shares.forget(7);
        shares.forget(7);
        assert_eq!(shares.add(7, &sessions[5], |seen| *seen), None);
    }

    #[test]
    fn ended_sessions_leave_nothing_behind() {
        let mut shares = Shares::new(400);
        for number in 0..10_000 {
            shares.add(1, &Arc::new(number), |seen| *seen);
            shares.forget(1);
            shares.add(number, &Arc::new(number), |seen| *seen);
        }
        assert!(shares.callers.values().all(|share| share.sessions.len() < 100));
    }
}
