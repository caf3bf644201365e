//! The current state of the articles, behind one pointer.
//!
//! The indexer replaces the snapshot. A question takes the snapshot once and keeps it to the end, so
//! that it never waits for the indexer and never sees half a change.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::broadcast;

use crate::files::Files;
use crate::index::View;
use crate::listing::Listing;
use crate::problem::Problem;
use crate::results::{Change, Indexing};

/// Changes that wait for a slow listener. When the queue is full, the oldest is dropped, and the
/// listener learns that it missed some.
const LISTENER_QUEUE: usize = 64;

/// The limit of ids in one change. If there are more, `many` is set instead.
pub(crate) const MOST_NAMED: usize = 1000;

/// The articles, and the index with their texts.
#[derive(Default)]
pub(crate) struct Snapshot {
    pub(crate) listing: Arc<Listing>,
    /// `None` before the first commit.
    pub(crate) view: Option<View>,
    /// The number of the index that `view` reads; 0 for an index of another process.
    pub(crate) generation: u64,
    pub(crate) problems: Vec<Problem>,
    /// Articles and folders that rules leave out.
    pub(crate) ignored: usize,
    /// The images and other files that articles may refer to.
    pub(crate) files: Arc<Files>,
}

/// The state that the worker shares with the store.
pub(crate) struct Shared {
    current: ArcSwap<Snapshot>,
    changes: broadcast::Sender<Arc<Change>>,
    /// The progress of the first indexing; `None` when the folder is indexed.
    indexing: Mutex<Option<Indexing>>,
    finished: Condvar,
    /// Files read since the store was opened.
    pub(crate) files_read: AtomicUsize,
    pub(crate) on_disk: AtomicBool,
    /// Indexes that the worker has opened.
    generations: AtomicU64,
    /// The newest index that a question could not read.
    damaged: AtomicU64,
}

impl Shared {
    pub(crate) fn new() -> Self {
        Self {
            current: ArcSwap::from_pointee(Snapshot::default()),
            changes: broadcast::Sender::new(LISTENER_QUEUE),
            indexing: Mutex::new(Some(Indexing { done: 0, total: 0 })),
            finished: Condvar::new(),
            files_read: AtomicUsize::new(0),
            on_disk: AtomicBool::new(false),
            generations: AtomicU64::new(0),
            damaged: AtomicU64::new(0),
        }
    }

    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        self.current.load_full()
    }

    /// Replaces the snapshot, and announces the change, unless it is empty.
    pub(crate) fn publish(&self, snapshot: Snapshot, change: Change) {
        self.current.store(Arc::new(snapshot));
        self.announce(change);
    }

    /// Announces the change, unless it is empty.
    pub(crate) fn announce(&self, change: Change) {
        if change != Change::default() {
            // There may be no listener.
            let _ = self.changes.send(Arc::new(change));
        }
    }

    pub(crate) fn listen(&self) -> broadcast::Receiver<Arc<Change>> {
        self.changes.subscribe()
    }

    /// The number of an index that is opened now.
    pub(crate) fn next_generation(&self) -> u64 {
        self.generations.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Notes that a question could not read the index with this number.
    pub(crate) fn report_damage(&self, generation: u64) {
        self.damaged.fetch_max(generation, Ordering::Release);
    }

    /// Whether a question could not read the index with this number. Questions to older ones do not
    /// count.
    pub(crate) fn is_damaged(&self, generation: u64) -> bool {
        self.damaged.load(Ordering::Acquire) >= generation
    }

    /// The progress of the first indexing; `None` when the folder is indexed.
    pub(crate) fn indexing(&self) -> Option<Indexing> {
        *self.lock()
    }

    /// Starts the first indexing, or updates its progress.
    pub(crate) fn expect(&self, total: usize, done: usize) {
        *self.lock() = Some(Indexing { done, total });
    }

    /// Counts one more file. Returns how many are done.
    pub(crate) fn count_one(&self) -> usize {
        self.lock().as_mut().map_or(0, |indexing| {
            // A file that changes during the first indexing is counted twice.
            indexing.done = (indexing.done + 1).min(indexing.total);
            indexing.done
        })
    }

    /// Ends the first indexing. Its waiters are notified of later changes only.
    pub(crate) fn finish(&self, change: Change) {
        let mut indexing = self.lock();
        *indexing = None;
        self.announce(change);
        self.finished.notify_all();
    }

    /// Waits until the folder is indexed, or until `timeout` has passed.
    pub(crate) fn wait_ready(&self, timeout: Duration) -> bool {
        let waiting =
            self.finished.wait_timeout_while(self.lock(), timeout, |state| state.is_some());
        waiting.unwrap_or_else(PoisonError::into_inner).0.is_none()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Indexing>> {
        self.indexing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The difference between two listings: of these ids only, or (`None`) of all.
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
    use crate::article::Hidden;
    use crate::folder::Stamp;
    use crate::language::Language;
    use crate::listing::Entry;

    fn listing(files: &[(&str, u64)]) -> Listing {
        let entry = |&(path, hash): &(&str, u64)| {
            Arc::new(Entry {
                path: path.into(),
                stamp: Stamp { size: 0, mtime: 0 },
                hash,
                updated: 0,
                hidden: (hash == 0).then_some(Hidden::Draft),
                linked: false,
                unsure: false,
                language: Language::ENGLISH,
                names: Box::default(),
            })
        };
        Listing::new(files.iter().map(entry).collect())
    }

    #[test]
    fn added_removed_and_changed_articles_are_named() {
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
    fn a_change_of_many_articles_names_none() {
        let paths: Vec<String> = (0..=MOST_NAMED).map(|n| format!("{n}.md")).collect();
        let files: Vec<(&str, u64)> = paths.iter().map(|path| (path.as_str(), 1)).collect();
        let change = change_between(&Listing::default(), &listing(&files[..MOST_NAMED]), None);
        assert_eq!((change.added.len(), change.many), (MOST_NAMED, false));
        let change = change_between(&Listing::default(), &listing(&files), None);
        assert_eq!((change.added.len(), change.many), (0, true));
    }

    #[test]
    fn listeners_get_changes_and_nothing_else() {
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
    fn waiting_ends_when_the_folder_is_indexed_or_after_the_timeout() {
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
