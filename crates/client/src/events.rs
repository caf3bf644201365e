//! Events outside of calls.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sabir_wire::Raw;
use sabir_wire::types::{LogMessage, Topic};
use tokio::sync::Notify;

use crate::call::Asked;
use crate::error::OpenError;
use crate::io::{CallKey, ServerInfo};

/// Something that happened outside of calls.
#[derive(Debug)]
#[non_exhaustive]
pub enum ClientEvent {
    /// The link is open. After a reconnection the server may offer something else.
    Opened(Arc<ServerInfo>),
    /// The link ended, or could not be opened.
    Closed(OpenError),
    /// Something that the server offers changed.
    Changed(Topic),
    /// A log message that belongs to no call for certain.
    Log {
        /// The calls that it can belong to. They ran when it arrived.
        calls: Vec<CallKey>,
        /// The message.
        message: LogMessage,
    },
    /// A question, and several calls could have asked it; see [`Asked::calls`].
    Question(Asked),
    /// A notification with an unknown method.
    Notification {
        /// The calls that it can belong to. They ran when it arrived.
        calls: Vec<CallKey>,
        /// Its method.
        method: String,
        /// Its params.
        params: Option<Raw>,
    },
}

/// Events that wait for the owner. When full, log messages and unknown notifications are dropped
/// and counted, and questions are refused. Changes and the state of the link have more room, so
/// that these cannot displace them; a change that is already waiting is not added again.
const MAX_EVENTS: usize = 1024;

impl ClientEvent {
    /// The length of the queue at which this event is dropped.
    fn room(&self) -> usize {
        match self {
            Self::Log { .. } | Self::Question(_) | Self::Notification { .. } => MAX_EVENTS,
            Self::Changed(Topic::Resource(_)) => 2 * MAX_EVENTS,
            Self::Changed(_) | Self::Opened(_) | Self::Closed(_) => 3 * MAX_EVENTS,
        }
    }
}

/// The events of a client. There is one queue: each event is given out once.
#[derive(Clone, Debug, Default)]
pub struct Events(Arc<Queue>);

#[derive(Debug, Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    notify: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    events: VecDeque<ClientEvent>,
    dropped: u64,
    /// The owner takes events. Before that, they are dropped.
    is_owned: bool,
}

impl Events {
    /// The next event.
    pub async fn next(&self) -> ClientEvent {
        loop {
            let notified = self.0.notify.notified();
            if let Some(event) = self.lock().events.pop_front() {
                return event;
            }
            notified.await;
        }
    }

    /// The number of events that were dropped because the owner did not take them.
    pub fn dropped(&self) -> u64 {
        self.lock().dropped
    }

    pub(crate) fn own(&self) {
        self.lock().is_owned = true;
    }

    pub(crate) fn push(&self, event: ClientEvent) {
        let mut waiting = self.lock();
        let is_there = match &event {
            ClientEvent::Changed(topic) => waiting
                .events
                .iter()
                .any(|other| matches!(other, ClientEvent::Changed(same) if same == topic)),
            _ => false,
        };
        if is_there {
            return;
        }
        // The destructor of a question refuses it, and needs the connection's lock: it must not run
        // under the lock of the queue.
        let refused = if !waiting.is_owned || waiting.events.len() >= event.room() {
            waiting.dropped += 1;
            Some(event)
        } else {
            waiting.events.push_back(event);
            None
        };
        drop(waiting);
        drop(refused);
        self.0.notify.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn log_messages_and_notifications_displace_no_change() {
        let note = || ClientEvent::Notification {
            calls: Vec::new(),
            method: "x".to_owned(),
            params: None,
        };
        let updated = |nth: usize| ClientEvent::Changed(Topic::Resource(format!("x:{nth}").into()));
        let events = Events::default();
        events.own();
        (0..2 * MAX_EVENTS).for_each(|_| events.push(note()));
        (0..2 * MAX_EVENTS).for_each(|nth| events.push(updated(nth)));
        for _ in 0..2 {
            events.push(ClientEvent::Changed(Topic::Tools));
        }
        events.push(ClientEvent::Closed(OpenError::Closed));
        assert_eq!(events.dropped(), 2 * MAX_EVENTS as u64);
        let mut taken = Vec::new();
        while !matches!(taken.last(), Some(ClientEvent::Closed(_))) {
            taken.push(events.next().await);
        }
        assert_eq!(taken.len(), 2 * MAX_EVENTS + 2);
        assert!(matches!(taken[2 * MAX_EVENTS], ClientEvent::Changed(Topic::Tools)));
    }
}
