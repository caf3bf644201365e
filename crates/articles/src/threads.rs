//! Parallel work, and its priority.

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

/// The `nice` value of the threads of a large build.
#[cfg(target_os = "linux")]
const NICE: i32 = 5;

/// Lowers the priority of this thread and of those that it will start: searches go first.
#[cfg(target_os = "linux")]
pub(crate) fn give_way() {
    // On Linux a priority belongs to a thread. Without it, searches are slower during a build.
    let _ = rustix::process::setpriority_process(None, NICE);
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn give_way() {}
