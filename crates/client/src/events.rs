//! What a server says outside of calls.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sabir_wire::Raw;
use sabir_wire::types::{LogMessage, Topic};
use tokio::sync::Notify;

use crate::call::Asked;
use crate::error::OpenError;
use crate::io::ServerInfo;

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
    Log(LogMessage),
    /// A question, and several calls could have asked it; see [`Asked::calls`].
    Question(Asked),
    /// A notification that is not known here.
    Notification {
        /// Its method.
        method: String,
        /// Its params.
        params: Option<Raw>,
    },
}

/// Events that wait for the owner. When full, log messages and unknown notifications are dropped and
/// counted, and questions are refused; a change that is already waiting is not added again.
const MAX_EVENTS: usize = 1024;

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
    /// Nobody has asked for events yet: only the state of the lists is remembered.
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

    /// The number of events that were dropped because nobody took them.
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
        // A dropped question is refused by its destructor, which needs the connection's lock: it
        // must not run inside of ours.
        let refused = if !waiting.is_owned || waiting.events.len() >= MAX_EVENTS {
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
