//! The events that the worker thread waits for: changes of the folder, and the request to stop.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// Events that wait for the worker. When the queue is full, the debouncer waits, and meanwhile
/// merges further changes of the same path.
const QUEUE: usize = 16;

/// Paths that are handled one by one. When more have changed, the whole folder is scanned.
const MOST_PATHS: usize = 4096;

/// The part of the folder that may have changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Changes {
    Paths(BTreeSet<String>),
    Everything,
}

impl Changes {
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Paths(mut paths), Self::Paths(more)) => {
                paths.extend(more);
                if paths.len() > MOST_PATHS { Self::Everything } else { Self::Paths(paths) }
            }
            _ => Self::Everything,
        }
    }
}

/// The reason why [`Events::wait`] returned.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Changes(Changes),
    Timeout,
    Stop,
}

/// The receiving end, for the worker.
pub(crate) struct Events {
    queue: Receiver<Changes>,
    stopped: Arc<AtomicBool>,
}

/// The sending end, for the store and its watcher.
#[derive(Clone)]
pub(crate) struct EventSender {
    queue: SyncSender<Changes>,
    stopped: Arc<AtomicBool>,
}

pub(crate) fn channel() -> (EventSender, Events) {
    let (sender, receiver) = sync_channel(QUEUE);
    let stopped = Arc::new(AtomicBool::new(false));
    let events = Events { queue: receiver, stopped: Arc::clone(&stopped) };
    (EventSender { queue: sender, stopped }, events)
}

impl EventSender {
    /// Sends changes. Waits while the queue is full.
    pub(crate) fn send(&self, changes: Changes) {
        // Without a receiver the worker has already stopped.
        let _ = self.queue.send(changes);
    }

    /// Wakes the worker. If the queue is full, the worker is awake.
    pub(crate) fn wake(&self) {
        let _ = self.queue.try_send(Changes::Paths(BTreeSet::new()));
    }

    /// Asks the worker to stop as soon as possible.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        self.wake();
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }
}

impl Events {
    /// Waits for an event, or until the given time.
    pub(crate) fn wait(&self, until: Option<Instant>) -> Event {
        // Without a time limit: until a sender wakes us.
        let timeout = until.map_or(Duration::from_secs(3600), |until| {
            until.saturating_duration_since(Instant::now())
        });
        let received = self.queue.recv_timeout(timeout);
        match received {
            _ if self.stopped.load(Ordering::Acquire) => Event::Stop,
            Ok(changes) => {
                Event::Changes(self.pending().map_or(changes.clone(), |more| changes.and(more)))
            }
            Err(RecvTimeoutError::Timeout) => Event::Timeout,
            Err(RecvTimeoutError::Disconnected) => Event::Stop,
        }
    }

    /// All changes in the queue, without waiting.
    pub(crate) fn pending(&self) -> Option<Changes> {
        self.queue.try_iter().reduce(Changes::and)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(paths: impl IntoIterator<Item = &'static str>) -> Changes {
        Changes::Paths(paths.into_iter().map(str::to_owned).collect())
    }

    #[test]
    fn queued_changes_are_merged() {
        let (sender, events) = channel();
        sender.send(paths(["b"]));
        sender.send(paths(["a", "b"]));
        assert_eq!(events.wait(None), Event::Changes(paths(["a", "b"])));
        assert_eq!(events.wait(Some(Instant::now())), Event::Timeout);
        sender.send(paths(["a"]));
        sender.send(Changes::Everything);
        assert_eq!(events.pending(), Some(Changes::Everything));
        assert_eq!(events.pending(), None);
    }

    #[test]
    fn too_many_paths_become_everything() {
        let many = |count: usize| Changes::Paths((0..count).map(|n| n.to_string()).collect());
        assert_eq!(many(MOST_PATHS).and(paths(["0"])), many(MOST_PATHS));
        assert_eq!(many(MOST_PATHS).and(paths(["x"])), Changes::Everything);
    }

    #[test]
    fn stop_precedes_changes_and_stays() {
        let (sender, events) = channel();
        (0..QUEUE).for_each(|_| sender.send(paths(["a"])));
        sender.stop();
        assert_eq!(events.wait(None), Event::Stop);
        assert_eq!(events.wait(None), Event::Stop);
        assert!(sender.is_stopped());
    }
}
