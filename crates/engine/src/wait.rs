//! Waiting for something to happen to a connection, without borrowing it.

use std::future::pending;
use std::sync::Arc;
use std::time::Instant;

use sabir_registry::Announcement;
use tokio::sync::{broadcast, watch};

use crate::events::EventQueue;

/// Completes when something may have happened to the connection that gave it.
/// See [`Connection::wait`](crate::Connection::wait).
#[derive(Debug)]
pub struct Wait {
    pub(crate) events: Option<Arc<EventQueue>>,
    pub(crate) changes: Option<broadcast::Receiver<Announcement>>,
    pub(crate) tasks: Option<broadcast::Receiver<Box<str>>>,
    pub(crate) stopping: Option<watch::Receiver<bool>>,
    pub(crate) wake_at: Option<Instant>,
}

impl Wait {
    /// The same, but only for deadlines and a stop of the engine.
    #[must_use]
    pub fn for_time_only(self) -> Self {
        Self { events: None, changes: None, tasks: None, ..self }
    }

    /// The same, but completes at `at` if nothing has happened before.
    #[must_use]
    pub fn no_later_than(self, at: Instant) -> Self {
        Self { wake_at: Some(self.wake_at.map_or(at, |wake_at| wake_at.min(at))), ..self }
    }

    /// Waits. Dropping the future loses no event.
    pub async fn happened(self) {
        let Self { events, mut changes, mut tasks, mut stopping, wake_at } = self;
        let event = async {
            match &events {
                Some(events) => events.arrival().await,
                None => pending().await,
            }
        };
        let changed = async {
            match &mut changes {
                Some(changes) => drop(changes.recv().await),
                None => pending().await,
            }
        };
        let task_changed = async {
            match &mut tasks {
                Some(tasks) => drop(tasks.recv().await),
                None => pending().await,
            }
        };
        let stopped = async {
            let is_stopped = match &mut stopping {
                Some(stopping) => stopping.wait_for(|stop| *stop).await.is_ok(),
                None => false,
            };
            if !is_stopped {
                pending::<()>().await;
            }
        };
        let due = async {
            match wake_at {
                Some(at) => tokio::time::sleep_until(at.into()).await,
                None => pending().await,
            }
        };
        tokio::select! {
            biased;
            () = event => {}
            () = changed => {}
            () = task_changed => {}
            () = stopped => {}
            () = due => {}
        }
    }
}
