//! Follows the changes of a store and tells clients of them.
//!
//! One thread, because announcing waits for nobody but may take a moment: the list is put right
//! first, then those who watch an article are told. It holds neither the store nor the registry,
//! and ends when the store is gone.

use std::sync::{Arc, Weak};
use std::time::Duration;

use sabir_registry::Handle;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

use super::listed::Listed;
use sabir_articles::Change;
use sabir_articles::Store;

/// How long the store is held at a time while its first reading is waited for.
const HOLD: Duration = Duration::from_millis(250);

/// What the follower must know of the offer that it follows.
pub(super) struct Since {
    /// What has changed after the offer was made: nothing happens unheard in between.
    changes: broadcast::Receiver<Arc<Change>>,
    /// The folder was still being read, so that the offer may be no more than its beginning.
    was_reading: bool,
}

impl Since {
    pub(super) fn now(store: &Store) -> Self {
        Self { changes: store.changes(), was_reading: store.indexing().is_some() }
    }
}

pub(super) struct Follower {
    pub(super) store: Weak<Store>,
    pub(super) listed: Arc<Listed>,
    pub(super) since: Since,
    pub(super) handle: Handle,
}

impl Follower {
    pub(super) fn start(self) -> std::io::Result<()> {
        let thread = std::thread::Builder::new().name("article-news".to_owned());
        thread.spawn(move || self.run()).map(drop)
    }

    fn run(mut self) {
        if self.since.was_reading {
            if !self.wait_ready() {
                return;
            }
            // All that has been told so far is in what is told now.
            let changes = &mut self.since.changes;
            while !matches!(changes.try_recv(), Err(TryRecvError::Empty | TryRecvError::Closed)) {}
            self.tell(&[Arc::new(Change { many: true, ..Change::default() })]);
        }
        while let Some(news) = self.news() {
            self.tell(&news);
        }
    }

    /// Waits for the first reading of the folder; `false` if the store is gone.
    fn wait_ready(&self) -> bool {
        loop {
            let Some(store) = self.store.upgrade() else { return false };
            if store.wait_ready(HOLD) {
                return true;
            }
        }
    }

    /// All that has changed since the last time; `None` when nothing will change any more.
    fn news(&mut self) -> Option<Vec<Arc<Change>>> {
        let missed = || Arc::new(Change { many: true, ..Change::default() });
        let mut news = match self.since.changes.blocking_recv() {
            Ok(change) => vec![change],
            Err(RecvError::Lagged(_)) => vec![missed()],
            Err(RecvError::Closed) => return None,
        };
        loop {
            match self.since.changes.try_recv() {
                Ok(change) => news.push(change),
                Err(TryRecvError::Lagged(_)) => news.push(missed()),
                Err(TryRecvError::Empty | TryRecvError::Closed) => return Some(news),
            }
        }
    }

    fn tell(&self, news: &[Arc<Change>]) {
        let Some(store) = self.store.upgrade() else { return };
        for change in news {
            if let Err(error) = self.listed.apply(&store, change) {
                tracing::error!(%error, "the list of articles is read anew");
                self.listed.forget();
            }
        }
        // A change of one article changes its line in the list: its title, size and date.
        if let Err(error) = self.handle.changed() {
            tracing::error!(%error, "the list of articles stays as it was");
        }
        if news.iter().any(|change| change.many) {
            store.ids().iter().for_each(|id| self.handle.updated(self.listed.uri_of(id)));
            return;
        }
        for change in news {
            for id in change.updated.iter().chain(&change.removed).chain(&change.added) {
                self.handle.updated(self.listed.uri_of(id));
            }
        }
    }
}
