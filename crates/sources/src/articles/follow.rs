//! Announces the changes of a store to clients.
//!
//! A thread of its own, because updating the list may take a moment. It keeps neither the store nor
//! the registry alive, and ends with the store.

use std::sync::{Arc, Weak};
use std::time::Duration;

use sabir_articles::{Change, Store};
use sabir_registry::SourceHandle;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, oneshot};

use super::resources::ResourceList;

/// How long the store is kept alive at a time while its first indexing is waited for.
const WAIT: Duration = Duration::from_millis(250);

/// The changes after an offer was made.
pub(super) struct Subscription {
    changes: broadcast::Receiver<Arc<Change>>,
    /// Whether the folder was still being indexed, so that the offer may be incomplete.
    was_indexing: bool,
}

impl Subscription {
    pub(super) fn now(store: &Store) -> Self {
        Self { changes: store.changes(), was_indexing: store.indexing().is_some() }
    }
}

pub(super) struct Follower {
    pub(super) store: Weak<Store>,
    pub(super) listed: Arc<ResourceList>,
    pub(super) subscription: Subscription,
    pub(super) handle: SourceHandle,
}

impl Follower {
    /// Starts the thread, which sends `ready` when the whole folder is offered.
    pub(super) fn start(self, ready: oneshot::Sender<()>) -> std::io::Result<()> {
        let thread = std::thread::Builder::new().name("article-changes".to_owned());
        thread.spawn(move || self.run(ready)).map(drop)
    }

    fn run(mut self, ready: oneshot::Sender<()>) {
        if self.subscription.was_indexing {
            if !self.wait_ready() {
                return;
            }
            // One change announces all that were missed.
            self.subscription.changes = self.subscription.changes.resubscribe();
            self.announce(&Change { many: true, ..Change::default() });
        }
        // The receiver may be gone.
        let _ = ready.send(());
        loop {
            match self.subscription.changes.blocking_recv() {
                Ok(change) => self.announce(&change),
                Err(RecvError::Lagged(_)) => {
                    self.announce(&Change { many: true, ..Change::default() });
                }
                Err(RecvError::Closed) => return,
            }
        }
    }

    /// Waits until the folder is indexed; `false` if the store is gone.
    fn wait_ready(&self) -> bool {
        loop {
            let Some(store) = self.store.upgrade() else { return false };
            if store.wait_ready(WAIT) {
                return true;
            }
        }
    }

    fn announce(&self, change: &Change) {
        let Some(store) = self.store.upgrade() else { return };
        if let Err(error) = self.listed.apply(&store, change) {
            tracing::error!(%error, "cannot update the list of articles, reading it again");
            self.listed.clear();
        }
        // A change of one article changes its title, size or date in the list.
        if let Err(error) = self.handle.changed() {
            tracing::error!(%error, "cannot offer the changed list of articles");
        }
        let all = if change.many { store.ids() } else { Vec::new() };
        let named = change.updated.iter().chain(&change.removed).chain(&change.added);
        named.chain(&all).for_each(|id| self.handle.updated(self.listed.uri_of(id)));
    }
}
