//! The resources that clients watch, and the sources that are told of them.

use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::source::Source;

/// The watched resources, by URI.
#[derive(Default)]
pub(crate) struct Watching {
    watched: Mutex<HashMap<Box<str>, Watched>>,
    untold: Mutex<Untold>,
}

/// The number of watchers of a resource, and its source.
struct Watched {
    count: usize,
    source: Option<Arc<dyn Source>>,
}

/// Changes that sources have not been told of, in the order in which they happened.
#[derive(Default)]
struct Untold {
    changes: VecDeque<(Arc<dyn Source>, Box<str>, Change)>,
    /// A thread is telling them.
    is_busy: bool,
}

#[derive(Clone, Copy)]
enum Change {
    Watched,
    Unwatched,
}

impl Watching {
    /// Adds a watcher. The source is told of the first one.
    pub(crate) fn add(&self, uri: &str, provider: impl FnOnce() -> Option<Arc<dyn Source>>) {
        let mut watched = lock(&self.watched);
        let entry = watched.entry(uri.into()).or_insert(Watched { count: 0, source: None });
        entry.count += 1;
        if entry.count == 1 {
            entry.source = provider();
            self.note(entry.source.clone(), uri, Change::Watched);
        }
        drop(watched);
        self.tell();
    }

    /// Removes a watcher. The source is told when the last one is gone.
    pub(crate) fn remove(&self, uri: &str) {
        let mut watched = lock(&self.watched);
        let Some(entry) = watched.get_mut(uri) else { return };
        entry.count -= 1;
        if entry.count == 0 {
            let source = watched.remove(uri).and_then(|last| last.source);
            self.note(source, uri, Change::Unwatched);
        }
        drop(watched);
        self.tell();
    }

    /// Tells sources of watched resources that have moved to or from them.
    pub(crate) fn update(&self, provider: impl Fn(&str) -> Option<Arc<dyn Source>>) {
        for (uri, entry) in lock(&self.watched).iter_mut() {
            let now = provider(uri);
            if now.as_ref().map(Arc::as_ptr) != entry.source.as_ref().map(Arc::as_ptr) {
                let before = std::mem::replace(&mut entry.source, now.clone());
                self.note(before, uri, Change::Unwatched);
                self.note(now, uri, Change::Watched);
            }
        }
        self.tell();
    }

    /// Called under the lock of `watched`, so that changes are told in their order.
    fn note(&self, source: Option<Arc<dyn Source>>, uri: &str, change: Change) {
        if let Some(source) = source {
            lock(&self.untold).changes.push_back((source, uri.into(), change));
        }
    }

    /// Tells the changes, without a lock, unless another thread is doing that.
    fn tell(&self) {
        let mut untold = lock(&self.untold);
        if untold.is_busy {
            return;
        }
        while let Some((source, uri, change)) = untold.changes.pop_front() {
            untold.is_busy = true;
            drop(untold);
            // A source that panics, which is reported, must not keep others from hearing.
            let _ = catch_unwind(AssertUnwindSafe(|| match change {
                Change::Watched => source.watch(&uri),
                Change::Unwatched => source.unwatch(&uri),
            }));
            untold = lock(&self.untold);
        }
        untold.is_busy = false;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::Weak;

    use super::*;
    use crate::source::Offer;

    /// Remembers what it was told. While it hears that its resource is no longer watched, another
    /// client watches it.
    struct Slow {
        told: Mutex<Vec<bool>>,
        watching: Watching,
        this: Weak<Self>,
    }

    impl Slow {
        fn add(&self) {
            self.watching.add("a", || self.this.upgrade().map(|this| this as Arc<dyn Source>));
        }
    }

    impl Source for Slow {
        fn offer(&self) -> Offer {
            Offer::default()
        }

        fn watch(&self, _: &str) {
            lock(&self.told).push(true);
        }

        fn unwatch(&self, _: &str) {
            self.add();
            lock(&self.told).push(false);
        }
    }

    #[test]
    fn a_source_is_told_in_the_order_of_the_changes() {
        let source = Arc::new_cyclic(|this| Slow {
            told: Mutex::default(),
            watching: Watching::default(),
            this: this.clone(),
        });
        source.add();
        source.watching.remove("a");
        assert_eq!(*lock(&source.told), [true, false, true]);
    }
}
