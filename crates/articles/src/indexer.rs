//! Keeps the index equal to the folder.
//!
//! At the start the folder is scanned and compared with the index, and only new or different files
//! are read. After that the same happens for every path that changes. Every batch ends with a
//! commit, a new snapshot, and a notification of what changed. If anything fails, the old snapshot
//! stays.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tantivy::IndexWriter;

use crate::article::Hidden;
use crate::context::Context;
use crate::events::{Changes, Event, Events};
use crate::files::Files;
use crate::folder::{Found, Scan};
use crate::index::{Index, View, damaged};
use crate::listing::{Listing, id_of};
use crate::page::SETTLE_TIME;
use crate::pdf;
use crate::problem::Problem;
use crate::reader::{Batch, Reader};
use crate::results::{Change, Indexing};
use crate::snapshot::{Snapshot, change_between};
use crate::threads::give_way;
use crate::watcher::Watcher;

/// Bytes of the files in one batch. The first batch is small, so that results are available soon;
/// each further one is twice as large. The largest one bounds the memory of queued documents.
const FIRST_BATCH: u64 = 2 << 20;
const LARGEST_BATCH: u64 = 32 << 20;

/// From this number of files on, several threads read them.
const MANY_FILES: usize = 200;

/// The limit of threads that read files.
const MOST_THREADS: usize = 4;

/// How often to check whether another folder is at the path of the watched one.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// The commit payload that says that the whole folder is indexed.
pub(crate) const COMPLETE: &str = "complete";

/// Reads the folder and writes the index.
pub(crate) struct Indexer<'a> {
    context: &'a Context,
    events: &'a Events,
    watcher: Watcher,
    index: Index,
    generation: u64,
    writer: Option<IndexWriter>,
    view: View,
    /// Problems of the cache, of the last scans, and of each file.
    cache_problems: &'a [Problem],
    scan_problems: Vec<Problem>,
    ignored: usize,
    files: Arc<Files>,
    file_problems: BTreeMap<Box<str>, Vec<Problem>>,
    /// Files that are being written, and when to read them again. The empty path is the folder.
    held: BTreeMap<String, Instant>,
    /// Whether segments of a large build may still be merging.
    merging: bool,
}

/// The files that differ between the folder and a listing.
#[derive(Default)]
struct Difference {
    changed: BTreeMap<Box<str>, Found>,
    gone: BTreeSet<Box<str>>,
}

impl Difference {
    /// Compares the files that were found at or below `root`. Those in `named` count as changed
    /// even if their time and size say otherwise.
    fn add(&mut self, listing: &Listing, root: &str, found: Vec<Found>, named: &BTreeSet<String>) {
        let there: BTreeSet<&str> = found.iter().map(|found| &*found.path).collect();
        let gone = listing.under(root).filter(|entry| !there.contains(&*entry.path));
        self.gone.extend(gone.map(|entry| entry.path.clone()));
        self.changed.extend(found.into_iter().filter_map(|found| {
            let known = listing.file(&found.path);
            let is_current = known.is_some_and(|entry| entry.is_current(found.stamp));
            let is_changed = !is_current || named.contains(&*found.path);
            is_changed.then(|| (found.path.clone(), found))
        }));
    }

    fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.gone.is_empty()
    }
}

impl<'a> Indexer<'a> {
    pub(crate) fn new(
        context: &'a Context,
        events: &'a Events,
        watcher: Watcher,
        index: Index,
        cache_problems: &'a [Problem],
    ) -> tantivy::Result<Self> {
        Ok(Self {
            context,
            events,
            watcher,
            view: index.reload()?,
            index,
            generation: context.shared.next_generation(),
            writer: None,
            cache_problems,
            scan_problems: Vec::new(),
            ignored: 0,
            files: Arc::default(),
            file_problems: BTreeMap::new(),
            held: BTreeMap::new(),
            merging: false,
        })
    }

    /// Makes the index equal to the folder as it was scanned.
    pub(crate) fn start(&mut self, scan: Scan) -> tantivy::Result<()> {
        let loaded = self.index.load(&self.view)?;
        let known = Listing::new(loaded.entries);
        let total = scan.found.len();
        let mut difference = Difference::default();
        difference.add(&known, "", scan.found, &BTreeSet::new());
        self.scan_problems = scan.problems;
        self.ignored = scan.ignored;
        self.note_files("", scan.files);
        // A file that changed while no store was open is not served until it has been read again.
        let outdated = difference.changed.keys().chain(&difference.gone);
        let listing = known.with(outdated.map(|path| (path.clone(), None)).collect());
        self.context.shared.expect(total, total - difference.changed.len());
        for problem in loaded.problems {
            if listing.file(&problem.file).is_some() {
                self.file_problems.entry(problem.file.as_str().into()).or_default().push(problem);
            }
        }
        for entry in listing.files() {
            if let Some(reason) = entry.hidden {
                tracing::debug!(file = &*entry.path, %reason, "not served");
            }
        }
        self.publish(Arc::new(listing), Change::default());
        let many = !difference.is_empty();
        if many {
            self.build(difference, !known.files().is_empty())?;
        }
        for problem in self.context.shared.snapshot().listing.shadowed() {
            tracing::debug!(file = problem.file, reason = %Hidden::SameId, "not served");
        }
        if !self.context.events.is_stopped() {
            self.context.report_progress();
            self.context.shared.finish(Change { many, ..Change::default() });
        }
        self.finish_merges()
    }

    /// Follows the changes of the folder until the store is closed. Fails if the index cannot be
    /// changed.
    pub(crate) fn follow(&mut self) -> tantivy::Result<()> {
        let mut polled = Instant::now();
        loop {
            let next_poll = self.watcher.poll_interval().map(|interval| polled + interval);
            let next_look = self.context.settings.watch.then(|| Instant::now() + LOOK_INTERVAL);
            let until = self.held.values().copied().chain(next_poll).chain(next_look).min();
            let changes = match self.events.wait(until) {
                Event::Stop => return Ok(()),
                Event::Changes(changes) => changes,
                Event::Timeout => {
                    let now = Instant::now();
                    if next_poll.is_some_and(|next| next <= now) {
                        polled = now;
                        self.held.insert(String::new(), now);
                    }
                    let due = self.held.iter().filter(|(_, at)| **at <= now);
                    Changes::Paths(due.map(|(path, _)| path.clone()).collect())
                }
            };
            self.update(changes)?;
            self.finish_merges()?;
            self.look_for_another_folder()?;
        }
    }

    /// Goes on with another folder if it has taken the place of this one: a link that was switched, a
    /// folder that was moved or made again.
    fn look_for_another_folder(&mut self) -> tantivy::Result<()> {
        let Context { settings, folder, events, .. } = self.context;
        let replaced = || folder.load().replaced(&settings.folder);
        let Some(other) = settings.watch.then(replaced).flatten().map(Arc::new) else {
            return Ok(());
        };
        folder.store(Arc::clone(&other));
        self.watcher = Watcher::start(&other, events);
        // Copies have the same times, so other files may look unchanged: all of them are read.
        self.compare(BTreeSet::from([String::new()]), true)
    }

    fn update(&mut self, changes: Changes) -> tantivy::Result<()> {
        if self.context.shared.is_damaged(self.generation) {
            return Err(damaged("a question could not be answered".to_owned()));
        }
        match changes {
            Changes::Everything => self.compare(BTreeSet::from([String::new()]), false),
            Changes::Paths(paths) if paths.is_empty() => Ok(()),
            Changes::Paths(paths) => self.compare(paths, false),
        }
    }

    /// Makes the index equal to the folder at and below these paths. `all`: files that look unchanged
    /// are read, too.
    fn compare(&mut self, mut named: BTreeSet<String>, all: bool) -> tantivy::Result<()> {
        let old = self.context.shared.snapshot();
        // A linked file changes when the target of its link does.
        let linked = old.listing.files().iter().filter(|entry| entry.linked);
        let mut difference = Difference::default();
        let linked = linked.map(|entry| entry.path.to_string());
        for root in named.iter().cloned().chain(linked).collect::<Vec<_>>() {
            self.held.remove(&root);
            let scan = self.context.folder.load().scan(&root);
            if root.is_empty() {
                self.ignored = scan.ignored;
            }
            self.note_files(&root, scan.files);
            let inside = |file: &str| {
                root.is_empty() || file == root || file.starts_with(&format!("{root}/"))
            };
            self.scan_problems.retain(|problem| !inside(&problem.file));
            self.scan_problems.extend(scan.problems);
            if all {
                named.extend(scan.found.iter().map(|found| found.path.to_string()));
            }
            difference.add(&old.listing, &root, scan.found, &named);
        }
        self.build(difference, true)
    }

    /// Remembers the images and other files at and below a path.
    fn note_files(&mut self, root: &str, found: Vec<Box<str>>) {
        if let Some(files) = self.files.replace(root, found) {
            self.files = Arc::new(files);
        }
    }

    /// Reads changed files, removes those that are gone, and publishes the result. `replaces`: the
    /// index may contain some of them.
    fn build(&mut self, difference: Difference, replaces: bool) -> tantivy::Result<()> {
        if difference.is_empty() {
            // The problems may have changed.
            self.publish(Arc::clone(&self.context.shared.snapshot().listing), Change::default());
            return Ok(());
        }
        let files: Vec<Found> = difference.changed.into_values().collect();
        let mut gone = difference.gone;
        let threads = match files.len() {
            0..MANY_FILES => 1,
            _ => std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS),
        };
        if files.len() >= MANY_FILES || self.writer.is_none() {
            self.merging = files.len() >= MANY_FILES;
            self.writer = None; // an index has one writer at a time
            if self.merging && self.index.is_on_disk() {
                // After a large build, merging keeps the cores busy for a while.
                give_way();
            }
            let bytes = files.iter().map(|found| found.stamp.size).sum();
            self.writer = Some(self.index.writer(threads, bytes)?);
        }
        let mut rest = &files[..];
        let mut size = FIRST_BATCH;
        loop {
            let (files, after) = rest.split_at(batch_length(rest, size));
            rest = after;
            size = (size * 2).min(LARGEST_BATCH);
            let mut batch = self.read(files, threads, replaces)?;
            batch.files.extend(std::mem::take(&mut gone).into_iter().map(|path| (path, None)));
            self.commit(batch, rest.is_empty())?;
            if rest.is_empty() || self.context.events.is_stopped() {
                return Ok(());
            }
            // A long build must not serve old states of files that change meanwhile.
            match self.events.pending() {
                Some(Changes::Paths(paths)) if paths.len() < MANY_FILES => {
                    self.update(Changes::Paths(paths))?;
                }
                Some(_) => _ = self.held.insert(String::new(), Instant::now()),
                None => {}
            }
        }
    }

    fn read(&self, files: &[Found], threads: usize, replaces: bool) -> tantivy::Result<Batch> {
        let Some(writer) = &self.writer else { return Ok(Batch::default()) };
        Reader { context: self.context, index: &self.index, writer, replaces }.read(files, threads)
    }

    /// Commits a batch and publishes it.
    fn commit(&mut self, batch: Batch, last: bool) -> tantivy::Result<()> {
        let shared = &self.context.shared;
        let again = Instant::now() + SETTLE_TIME / 8;
        self.held.extend(batch.held.into_iter().map(|path| (path.into(), again)));
        let old = shared.snapshot();
        if batch.files.is_empty() {
            self.publish(Arc::clone(&old.listing), Change::default());
            return Ok(());
        }
        let Some(writer) = &mut self.writer else { return Ok(()) };
        for (path, _) in batch.files.iter().filter(|(_, entry)| entry.is_none()) {
            writer.delete_term(self.index.path_term(path));
        }
        let indexing = shared.indexing().filter(|_| !last || self.context.events.is_stopped());
        let mut commit = writer.prepare_commit()?;
        commit.set_payload(&indexing.map_or_else(|| COMPLETE.to_owned(), payload));
        commit.commit()?;
        self.view = self.index.reload()?;
        for (path, _) in &batch.files {
            self.file_problems.remove(path);
        }
        self.file_problems
            .extend(batch.problems.into_iter().filter(|(_, problems)| !problems.is_empty()));
        let ids: Vec<String> = batch.files.iter().map(|(path, _)| id_of(path).to_owned()).collect();
        let listing = old.listing.with(batch.files);
        let change = match shared.indexing() {
            // The first indexing is announced at its end.
            Some(_) => Change::default(),
            None => change_between(&old.listing, &listing, Some(&ids)),
        };
        self.publish(Arc::new(listing), change);
        Ok(())
    }

    fn publish(&self, listing: Arc<Listing>, change: Change) {
        let mut problems: Vec<Problem> = self
            .scan_problems
            .iter()
            .chain(self.cache_problems)
            .chain(self.file_problems.values().flatten())
            .chain(listing.shadowed())
            .cloned()
            .chain(self.watcher.problem())
            .chain(pdf::unread(&listing))
            .collect();
        problems.sort_unstable();
        problems.dedup();
        let (view, files) = (Some(self.view.clone()), Arc::clone(&self.files));
        let snapshot = Snapshot {
            listing,
            view,
            generation: self.generation,
            problems,
            ignored: self.ignored,
            files,
        };
        self.context.shared.publish(snapshot, change);
    }

    /// After a large build, waits until its segments are merged, and searches the merged ones.
    fn finish_merges(&mut self) -> tantivy::Result<()> {
        if !std::mem::take(&mut self.merging) || self.context.events.is_stopped() {
            return Ok(());
        }
        self.writer.take().map_or(Ok(()), IndexWriter::wait_merging_threads)?;
        self.view = self.index.reload()?;
        self.publish(Arc::clone(&self.context.shared.snapshot().listing), Change::default());
        Ok(())
    }
}

/// The number of files, at least one, that have about this many bytes together.
fn batch_length(files: &[Found], bytes: u64) -> usize {
    let mut sum = 0;
    let fits = |found: &&Found| {
        let fits = sum < bytes;
        sum += found.stamp.size;
        fits
    };
    files.iter().take_while(fits).count()
}

/// The commit payload during the first indexing, which other processes read.
fn payload(Indexing { done, total }: Indexing) -> String {
    format!("{done} {total}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder::Stamp;

    #[test]
    fn a_batch_has_at_least_one_file_and_about_the_given_bytes() {
        let file =
            |size| Found { path: "a".into(), stamp: Stamp { size, mtime: 0 }, linked: false };
        let files = [10, 1, 1, 1].map(file);
        assert_eq!(batch_length(&files, 5), 1);
        assert_eq!(batch_length(&files[1..], 2), 2);
        assert_eq!(batch_length(&files, 100), 4);
        assert_eq!(batch_length(&[], 5), 0);
    }
}
