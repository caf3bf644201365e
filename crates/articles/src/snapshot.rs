//! What is served at this moment, behind one pointer.
//!
//! The indexer replaces the snapshot; whoever answers a question takes it once and keeps it to the
//! end. So a question never waits for an index, and never sees half a change.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::broadcast;

use crate::index::View;
use crate::listing::Listing;
use crate::problem::Problem;
use crate::results::{Change, Indexing};

/// Changes that a slow listener may fall behind. When it has, it hears that it missed some, and
/// must take everything for changed.
const LISTENER_QUEUE: usize = 64;

/// Ids that one change names. When there are more, it says so instead.
pub(crate) const MOST_NAMED: usize = 1000;

/// The articles, and the index that has their texts.
#[derive(Default)]
pub(crate) struct Snapshot {
    pub(crate) listing: Arc<Listing>,
    /// `None` before the first commit.
    pub(crate) view: Option<View>,
    pub(crate) problems: Vec<Problem>,
}

/// What the indexer shares with those who ask.
pub(crate) struct Shared {
    current: ArcSwap<Snapshot>,
    changes: broadcast::Sender<Arc<Change>>,
    /// Files read and files found, while the folder is read for the first time.
    done: AtomicUsize,
    total: AtomicUsize,
    ready: AtomicBool,
    lock: Mutex<()>,
    became_ready: Condvar,
    /// Files read since the start: shows that nothing is read twice.
    pub(crate) files_read: AtomicUsize,
    pub(crate) on_disk: AtomicBool,
}

impl Shared {
    pub(crate) fn new() -> Self {
        Self {
            current: ArcSwap::from_pointee(Snapshot::default()),
            changes: broadcast::Sender::new(LISTENER_QUEUE),
            done: AtomicUsize::new(0),
            total: AtomicUsize::new(0),
            ready: AtomicBool::new(false),
            lock: Mutex::new(()),
            became_ready: Condvar::new(),
            files_read: AtomicUsize::new(0),
            on_disk: AtomicBool::new(false),
        }
    }

    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        self.current.load_full()
    }

    /// Replaces the snapshot, and announces what changed, if anything did.
    pub(crate) fn publish(&self, snapshot: Snapshot, change: Change) {
        self.current.store(Arc::new(snapshot));
        self.announce(change);
    }

    /// Announces what changed, if anything did.
    pub(crate) fn announce(&self, change: Change) {
        if change != Change::default() {
            // Nobody may be listening.
            let _ = self.changes.send(Arc::new(change));
        }
    }

    pub(crate) fn listen(&self) -> broadcast::Receiver<Arc<Change>> {
        self.changes.subscribe()
    }

    /// How far the first reading is; `None` when it is done.
    pub(crate) fn indexing(&self) -> Option<Indexing> {
        if self.ready.load(Ordering::Acquire) {
            return None;
        }
        let total = self.total.load(Ordering::Relaxed);
        // A file that changes during the first reading is read, and counted, twice.
        Some(Indexing { done: self.done.load(Ordering::Relaxed).min(total), total })
    }

    /// The folder is about to be read from the beginning.
    pub(crate) fn begin(&self) {
        self.expect(0, 0);
        self.ready.store(false, Ordering::Release);
    }

    pub(crate) fn expect(&self, total: usize, done: usize) {
        self.done.store(done, Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
    }

    /// One more file is done. Returns how many.
    pub(crate) fn count_one(&self) -> usize {
        self.done.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The folder has been read. Who waits for that hears of later changes only.
    pub(crate) fn finish(&self, change: Change) {
        let _held = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.ready.store(true, Ordering::Release);
        self.announce(change);
        self.became_ready.notify_all();
    }

    /// Waits until the folder has been read, or the time is over.
    pub(crate) fn wait_ready(&self, most: Duration) -> bool {
        let held = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = self
            .became_ready
            .wait_timeout_while(held, most, |()| !self.ready.load(Ordering::Acquire));
        drop(waiting);
        self.ready.load(Ordering::Acquire)
    }
}

/// What changed between two listings, looking at these ids only, or (`None`) at all.
pub(crate) fn change_between(old: &Listing, new: &Listing, ids: Option<&[String]>) -> Change {
    let mut change = Change::default();
    let everything;
    let ids = match ids {
        Some(ids) => ids,
        None => {
            let all =
                old.articles().iter().chain(new.articles()).map(|entry| entry.id().to_owned());
            let mut all: Vec<String> = all.collect();
            all.sort_unstable();
            all.dedup();
            everything = all;
            &everything
        }
    };
    for id in ids {
        let list = match (old.article(id), new.article(id)) {
            (None, Some(_)) => &mut change.added,
            (Some(_), None) => &mut change.removed,
            (Some(before), Some(after))
                if (before.hash, &before.path) != (after.hash, &after.path) =>
            {
                &mut change.updated
            }
            _ => continue,
        };
        list.push(id.clone());
    }
    if change.added.len() + change.removed.len() + change.updated.len() > MOST_NAMED {
        return Change { many: true, ..Change::default() };
    }
    change
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder::Stamp;
    use crate::listing::Entry;

    fn listing(files: &[(&str, u64)]) -> Listing {
        let entry = |&(path, hash): &(&str, u64)| {
            Arc::new(Entry {
                path: path.into(),
                stamp: Stamp { size: 0, mtime: 0 },
                hash,
                updated: 0,
                visible: hash > 0,
                linked: false,
                unsure: false,
            })
        };
        Listing::new(files.iter().map(entry).collect())
    }

    #[test]
    fn what_came_went_and_changed_is_named() {
        let old = listing(&[("a.md", 1), ("b.md", 1), ("c.md", 1), ("d.md", 1), ("hidden.md", 0)]);
        let new = listing(&[
            ("a.md", 1),
            ("b.md", 2),
            ("d.txt", 1),
            ("e.md", 1),
            ("c.md", 0),
            ("hidden.md", 0),
        ]);
        let change = change_between(&old, &new, None);
        assert_eq!(change.added, ["e"]);
        assert_eq!(change.removed, ["c"]);
        assert_eq!(change.updated, ["b", "d"]);
        assert!(change.changes_list());
        let few = change_between(&old, &new, Some(&["b".to_owned(), "hidden".to_owned()]));
        assert_eq!(few, Change { updated: vec!["b".into()], ..Change::default() });
        assert!(!few.changes_list());
    }

    #[test]
    fn a_change_of_many_names_none() {
        let paths: Vec<String> = (0..=MOST_NAMED).map(|n| format!("{n}.md")).collect();
        let files: Vec<(&str, u64)> = paths.iter().map(|path| (path.as_str(), 1)).collect();
        let change = change_between(&Listing::default(), &listing(&files[..MOST_NAMED]), None);
        assert_eq!((change.added.len(), change.many), (MOST_NAMED, false));
        let change = change_between(&Listing::default(), &listing(&files), None);
        assert_eq!((change.added.len(), change.many), (0, true));
    }

    #[test]
    fn listeners_hear_changes_and_only_changes() {
        let shared = Shared::new();
        let mut listener = shared.listen();
        shared.publish(Snapshot::default(), Change::default());
        assert!(listener.try_recv().is_err());
        shared.publish(Snapshot::default(), Change { many: true, ..Change::default() });
        assert!(listener.try_recv().unwrap().many);
        for _ in 0..=LISTENER_QUEUE {
            shared.publish(Snapshot::default(), Change { many: true, ..Change::default() });
        }
        assert!(matches!(listener.try_recv(), Err(broadcast::error::TryRecvError::Lagged(1))));
    }

    #[test]
    fn waiting_ends_when_the_folder_is_read_or_the_time_is_over() {
        let shared = Arc::new(Shared::new());
        assert!(!shared.wait_ready(Duration::from_millis(1)));
        shared.expect(7, 0);
        shared.count_one();
        assert_eq!(shared.indexing(), Some(Indexing { done: 1, total: 7 }));
        let other = Arc::clone(&shared);
        let finishing = std::thread::spawn(move || other.finish(Change::default()));
        assert!(shared.wait_ready(Duration::from_secs(60)));
        finishing.join().unwrap();
        assert_eq!(shared.indexing(), None);
    }
}
