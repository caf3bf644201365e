//! Parallel work.

use std::panic::resume_unwind;

/// Runs `work` on this many threads, the current one included, and returns all results.
pub(crate) fn on_threads<T: Send>(threads: usize, work: impl Fn() -> T + Sync) -> Vec<T> {
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(&work)).collect();
        let mut results = vec![work()];
        let join = |other: std::thread::ScopedJoinHandle<'_, T>| {
            other.join().unwrap_or_else(|panic| resume_unwind(panic))
        };
        results.extend(others.into_iter().map(join));
        results
    })
}
