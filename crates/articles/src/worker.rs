//! The thread behind a store: chooses where the index is kept, and who writes it.
//!
//! The index of a small folder is kept in memory. The index of a large one is kept in the cache and
//! shared by all processes that serve the folder: the one that holds the lock writes it, the others
//! read what it commits, and one of them takes over when the lock is free.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::cache::{CacheFolder, WriteLock};
use crate::context::Context;
use crate::events::{Event, Events};
use crate::files::Files;
use crate::folder::Scan;
use crate::index::{Index, damaged};
use crate::indexer::{COMPLETE, Indexer};
use crate::listing::Listing;
use crate::problem::Problem;
use crate::results::Change;
use crate::snapshot::{Snapshot, change_between};
use crate::watcher::Watcher;

/// How often to check for commits of another process.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(500);

/// A folder that is watched, and a scan of it that was made afterwards, so that no change is missed.
type Watched = (Watcher, Scan);

/// Serves the folder until the store is closed.
pub(crate) fn run(context: &Context, events: &Events) {
    let mut watched = watch(context);
    let mut problem = None;
    if let Some(cache) = cache_folder(context, &watched.1) {
        let Err(error) = serve_from_cache(context, events, &cache, watched) else { return };
        let message = format!("cannot use the cache, so the index is kept in memory: {error}");
        problem = Some(Problem::of("", message));
        watched = watch(context);
    }
    if let Err(error) = serve(context, events, Index::in_memory(), watched, problem.as_slice()) {
        tracing::error!(%error, "cannot index the articles");
    }
}

fn watch(context: &Context) -> Watched {
    let watcher = match context.settings.watch {
        true => Watcher::start(&context.folder.load_full(), &context.events),
        false => Watcher::none(),
    };
    (watcher, context.folder.load().scan(""))
}

/// Where the index is kept; `None`: in memory.
fn cache_folder(context: &Context, scan: &Scan) -> Option<CacheFolder> {
    let settings = &context.settings;
    let bytes: u64 = scan.found.iter().map(|found| found.stamp.size).sum();
    let cache = settings.cache.as_ref().filter(|_| bytes > settings.small)?;
    Some(CacheFolder::new(cache, context.folder.load().path(), settings))
}

/// Serves with the index in the cache; if that is damaged, with a new one.
fn serve_from_cache(
    context: &Context,
    events: &Events,
    cache: &CacheFolder,
    watched: Watched,
) -> tantivy::Result<()> {
    let (lock, watched) = match cache.lock()? {
        Some(lock) => (lock, watched),
        None => {
            let (watcher, scan) = watched;
            drop(watcher);
            let files = Files::default().replace("", scan.files).unwrap_or_default();
            let Some(lock) = follow(context, events, cache, files) else { return Ok(()) };
            (lock, watch(context))
        }
    };
    let served = caught(|| serve(context, events, Index::on_disk(&cache.index()), watched, &[]));
    served.or_else(|error| {
        tracing::warn!(%error, "the index of the articles is damaged and is built again");
        cache.clear(&lock)?;
        caught(|| serve(context, events, Index::on_disk(&cache.index()), watch(context), &[]))
    })
}

/// Turns a panic into an error: tantivy panics on some damaged files.
fn caught(work: impl FnOnce() -> tantivy::Result<()>) -> tantivy::Result<()> {
    let panicked = |_| Err(damaged("reading it panicked".to_owned()));
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(panicked)
}

fn serve(
    context: &Context,
    events: &Events,
    index: tantivy::Result<Index>,
    (watcher, scan): Watched,
    problems: &[Problem],
) -> tantivy::Result<()> {
    let index = index?.with_weights(&context.settings.weights);
    context.shared.on_disk.store(index.is_on_disk(), Ordering::Relaxed);
    let mut indexer = Indexer::new(context, events, watcher, index, problems)?;
    context.shared.expect(0, 0);
    indexer.start(scan)?;
    indexer.follow()
}

/// Serves the index that another process writes, until the lock is free. `None` if the store was
/// closed.
fn follow(
    context: &Context,
    events: &Events,
    cache: &CacheFolder,
    files: Files,
) -> Option<WriteLock> {
    context.shared.on_disk.store(true, Ordering::Relaxed);
    let mut follower = Follower { index: None, commit: None, files: Arc::new(files) };
    loop {
        if let Err(error) = follower.publish(context, cache) {
            tracing::warn!(%error, "cannot read the index of another process");
        }
        if let Ok(Some(lock)) = cache.lock() {
            return Some(lock);
        }
        if events.wait(Some(Instant::now() + FOLLOW_INTERVAL)) == Event::Stop {
            return None;
        }
    }
}

/// Reads the index that another process writes.
struct Follower {
    /// `None` until it exists.
    index: Option<Index>,
    /// The last commit that was published.
    commit: Option<u64>,
    /// As they were when the store was opened: the index does not have them.
    files: Arc<Files>,
}

impl Follower {
    /// Publishes the last commit, if it is new.
    fn publish(&mut self, context: &Context, cache: &CacheFolder) -> tantivy::Result<()> {
        if self.index.is_none() {
            self.index = Index::open(&cache.index()).ok();
        }
        let Some(index) = &self.index else { return Ok(()) };
        let (commit, payload) = index.last_commit()?;
        if self.commit == Some(commit) {
            return Ok(());
        }
        let view = index.reload()?;
        let loaded = index.load(&view)?;
        let listing = Arc::new(Listing::new(loaded.entries));
        let shared = &context.shared;
        let change = match self.commit.replace(commit) {
            None => Change { many: true, ..Change::default() },
            Some(_) => change_between(&shared.snapshot().listing, &listing, None),
        };
        let mut problems = loaded.problems;
        problems.extend_from_slice(listing.shadowed());
        problems.sort_unstable();
        shared.publish(
            // Only the process that reads the folder knows the ignored files.
            Snapshot {
                listing,
                view: Some(view),
                generation: 0,
                problems,
                ignored: 0,
                files: Arc::clone(&self.files),
            },
            Change::default(),
        );
        let progress = payload.split_once(' ').map(|(done, total)| (done.parse(), total.parse()));
        match progress {
            Some((Ok(done), Ok(total))) => {
                shared.expect(total, done);
                shared.announce(change);
            }
            _ if payload == COMPLETE => shared.finish(change),
            _ => {}
        }
        Ok(())
    }
}
