//! Tells when something may have happened to a connection, without holding it.

use std::sync::Arc;
use std::time::Instant;

use sabir_wire::types::Topic;
use tokio::sync::{broadcast, watch};

use crate::events::EventQueue;

/// Rings when something may have happened to the connection that gave it.
///
/// Several who share a connection may each have one. A word of a running call rings only one of
/// them, and whoever hears it must [`advance`](crate::Connection::advance) the connection for
/// all.
#[derive(Debug)]
pub struct Bell {
    pub(crate) events: Option<Arc<EventQueue>>,
    pub(crate) changes: Option<broadcast::Receiver<Topic>>,
    pub(crate) stopping: Option<watch::Receiver<bool>>,
    pub(crate) wake_at: Option<Instant>,
}

impl Bell {
    /// Comes back when it rings. Dropped before, it leaves what happened to the others.
    pub async fn ring(self) {
        let Self { events, mut changes, mut stopping, wake_at } = self;
        let arrival = async {
            match &events {
                Some(events) => events.arrival().await,
                None => std::future::pending().await,
            }
        };
        let changed = async {
            match &mut changes {
                Some(changes) => drop(changes.recv().await),
                None => std::future::pending().await,
            }
        };
        let stopped = async {
            let told = match &mut stopping {
                Some(stopping) => stopping.wait_for(|stop| *stop).await.is_ok(),
                None => false,
            };
            if !told {
                std::future::pending::<()>().await;
            }
        };
        let tick = async {
            match wake_at {
                Some(at) => tokio::time::sleep_until(at.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = arrival => {}
            () = changed => {}
            () = stopped => {}
            () = tick => {}
        }
    }
}
