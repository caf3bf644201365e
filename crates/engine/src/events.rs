//! The events of the calls of a connection: notifications and outcomes.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sabir_session::{CallKey, CallNotification};
use tokio::sync::Notify;

use crate::admitted::Admitted;

/// The events of all calls of one connection.
pub(crate) struct EventQueue {
    queue: Mutex<Queue>,
    arrival: Notify,
    /// How many notifications may wait. When full, further ones are dropped: the next progress
    /// replaces the last, and log messages may be lost. An ending is never dropped.
    limit: usize,
}

#[derive(Default)]
struct Queue {
    events: VecDeque<CallEvent>,
    notifications: usize,
}

/// Something that a call reported.
pub(crate) enum CallEvent {
    Notified(CallKey, CallNotification),
    Finished(CallKey, Admitted),
}

impl EventQueue {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { queue: Mutex::default(), arrival: Notify::new(), limit })
    }

    pub(crate) fn finished(&self, call: CallKey, outcome: Admitted) {
        self.lock().events.push_back(CallEvent::Finished(call, outcome));
        self.arrival.notify_one();
    }

    pub(crate) fn notified(&self, call: CallKey, note: CallNotification) {
        let mut queue = self.lock();
        if queue.notifications < self.limit {
            queue.notifications += 1;
            queue.events.push_back(CallEvent::Notified(call, note));
            drop(queue);
            self.arrival.notify_one();
        }
    }

    /// Removes the oldest event.
    pub(crate) fn take(&self) -> Option<CallEvent> {
        let mut queue = self.lock();
        let event = queue.events.pop_front()?;
        if matches!(event, CallEvent::Notified(..)) {
            queue.notifications -= 1;
        }
        Some(event)
    }

    /// Completes when there may be an event.
    pub(crate) async fn arrival(&self) {
        self.arrival.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for EventQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("EventQueue")
    }
}
