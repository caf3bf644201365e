//! The one thread that reads the folder and writes the index.
//!
//! At the start it looks at the folder, opens what was indexed before, and reads only what is new
//! or different; then it waits for news and does the same for the paths in them. Every round
//! ends the same way: commit, look at the new index, publish the new snapshot, tell what changed.
//! If anything fails, the old snapshot stays.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustc_hash::{FxHashMap, FxHashSet};

use crate::folder::{Found, Scan};
use crate::inbox::{Inbox, Wake};
use crate::index::{Index, View};
use crate::page::PATIENCE;
use crate::problem::Problem;
use crate::reader::{Reader, Round};
use crate::results::{Change, Indexing};
use crate::listing::{Entry, Listing, id_of};
use crate::snapshot::{Shared, Snapshot, change_between};
use crate::watch::Lookout;
use crate::writer::Writer;

/// Files of the first commit of a large build, so that answers start soon. Each next is twice as large.
const FIRST_BATCH: usize = 500;
const LARGEST_BATCH: usize = 32_000;

/// Fewer files than this are not worth more threads than one.
const FEW: usize = 200;

/// Segments that are searched one after another; after a build with more they are merged.
const MOST_SEGMENTS: usize = 3;

/// How often a merge is asked whether it is over.
const MERGE_LOOK: Duration = Duration::from_millis(200);

/// Rounds that may fail before the index is given up.
const MOST_FAILURES: usize = 3;

/// How long to wait before the same is tried again.
const AFTER_FAILURE: Duration = Duration::from_millis(500);

/// What is said with a commit when the whole folder is in it.
pub(crate) const COMPLETE: &str = "complete";

/// Told how far the first reading is.
pub(crate) type Progress = Box<dyn Fn(Indexing) + Send + Sync>;

/// Reads the folder and writes the index.
pub(crate) struct Indexer {
    lookout: Arc<Lookout>,
    pub(crate) statuses: Vec<String>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) progress: Arc<Progress>,
    index: Index,
    writer: Option<Writer>,
    view: View,
    /// The end of a merge that is under way.
    merging: Option<JoinHandle<()>>,
    /// What is wrong with the cache, with the folder, and with each file.
    standing_problems: Vec<Problem>,
    scan_problems: Vec<Problem>,
    file_problems: BTreeMap<Box<str>, Vec<Problem>>,
    /// Files in the middle of a save, and when to look again.
    held: BTreeMap<String, Instant>,
    /// Rounds that failed since the last that did not.
    failures: usize,
}

impl Indexer {
    pub(crate) fn new(
        lookout: Arc<Lookout>,
        statuses: Vec<String>,
        shared: Arc<Shared>,
        inbox: Arc<Inbox>,
        progress: Arc<Progress>,
        index: Index,
    ) -> tantivy::Result<Self> {
        let view = index.reload()?;
        Ok(Self {
            lookout,
            statuses,
            shared,
            inbox,
            progress,
            index,
            writer: None,
            view,
            merging: None,
            standing_problems: Vec::new(),
            scan_problems: Vec::new(),
            file_problems: BTreeMap::new(),
            held: BTreeMap::new(),
            failures: 0,
        })
    }

    /// Remembers a problem that no look at the folder can solve.
    pub(crate) fn note(&mut self, problem: Problem) {
        self.standing_problems.push(problem);
    }

    /// Brings the index in line with the folder as it was scanned.
    pub(crate) fn start(&mut self, scan: Scan) -> tantivy::Result<()> {
        let loaded = self.index.load(&self.view)?;
        let known: FxHashMap<&str, &Arc<Entry>> =
            loaded.entries.iter().map(|entry| (&*entry.path, entry)).collect();
        let mut kept: Vec<Arc<Entry>> = Vec::new();
        let mut different: Vec<Found> = Vec::new();
        for found in scan.found {
            match known.get(&*found.path) {
                Some(&entry) if entry.is_current(found.stamp) => kept.push(Arc::clone(entry)),
                _ => different.push(found),
            }
        }
        let mut gone: Vec<Box<str>> = Vec::new();
        // Where all that is known was found again, nothing is gone.
        if kept.len() < loaded.entries.len() {
            let paths = kept.iter().map(|entry| &*entry.path);
            let there: FxHashSet<&str> =
                paths.chain(different.iter().map(|found| &*found.path)).collect();
            let is_gone = |entry: &&Arc<Entry>| !there.contains(&*entry.path);
            gone.extend(loaded.entries.iter().filter(is_gone).map(|entry| entry.path.clone()));
        }
        self.shared.expect(kept.len() + different.len(), kept.len());
        let listing = Listing::new(kept);
        for problem in loaded.problems {
            if listing.file(&problem.file).is_some() {
                self.file_problems.entry(problem.file.as_str().into()).or_default().push(problem);
            }
        }
        self.scan_problems = scan.problems;
        // What changed while nobody looked is not served until it has been read again.
        self.publish(Arc::new(listing), Change::default());
        let nothing_new = different.is_empty() && gone.is_empty();
        if !nothing_new {
            self.build(&different, gone, !loaded.entries.is_empty())?;
        }
        self.finish(!nothing_new);
        Ok(())
    }

    /// Waits for news and follows them, until it is told to stop. Fails when the index cannot be
    /// changed any more.
    pub(crate) fn keep(&mut self) -> tantivy::Result<()> {
        let mut looked = Instant::now();
        loop {
            let next_look = self.lookout.every().map(|every| looked + every);
            let merged = self.merging.is_some().then(|| Instant::now() + MERGE_LOOK);
            let until = self.held.values().copied().chain(next_look).chain(merged).min();
            match self.inbox.wait(until) {
                Wake::Stop => return Ok(()),
                Wake::Time => {
                    let now = Instant::now();
                    self.end_merge();
                    if next_look.is_some_and(|next| next <= now) {
                        looked = now;
                        self.follow(Wake::Everywhere)?;
                    }
                    let due = self.held.iter().filter(|(_, at)| **at <= now);
                    let due: Vec<String> = due.map(|(path, _)| path.clone()).collect();
                    if !due.is_empty() {
                        self.follow(Wake::Paths(due))?;
                    }
                }
                news => self.follow(news)?,
            }
        }
    }

    /// Follows news. If that fails, what was served is served on, and the same is tried again, a few
    /// times.
    fn follow(&mut self, news: Wake) -> tantivy::Result<()> {
        let again = match &news {
            Wake::Paths(paths) => paths.clone(),
            _ => vec![String::new()],
        };
        let Err(error) = self.sync(news) else {
            self.failures = 0;
            return Ok(());
        };
        self.failures += 1;
        if self.failures == MOST_FAILURES {
            return Err(error);
        }
        tracing::warn!(%error, "the index of the articles could not be changed");
        if let Some(writer) = &mut self.writer
            && writer.rollback().is_err()
        {
            self.writer = None;
        }
        let later = Instant::now() + AFTER_FAILURE;
        self.held.extend(again.into_iter().map(|path| (path, later)));
        Ok(())
    }

    fn sync(&mut self, news: Wake) -> tantivy::Result<()> {
        let old = self.shared.snapshot();
        let (roots, named) = match news {
            Wake::Everywhere => (vec![String::new()], BTreeSet::new()),
            Wake::Paths(paths) => {
                // A linked file changes at the path that its link leads to.
                let linked = old
                    .listing
                    .files()
                    .iter()
                    .filter(|entry| entry.linked)
                    .map(|entry| entry.path.to_string());
                let named: BTreeSet<String> = paths.iter().cloned().collect();
                (paths.into_iter().chain(linked).collect(), named)
            }
            Wake::Time | Wake::Stop => return Ok(()),
        };
        let mut different: BTreeMap<Box<str>, Found> = BTreeMap::new();
        let mut gone: BTreeSet<Box<str>> = BTreeSet::new();
        for root in &roots {
            self.held.remove(root);
            let scan = self.lookout.scan(root);
            let inside = |file: &str| {
                root.is_empty() || file == root || file.starts_with(&format!("{root}/"))
            };
            self.scan_problems.retain(|problem| !inside(&problem.file));
            self.scan_problems.extend(scan.problems);
            let there: BTreeSet<&str> = scan.found.iter().map(|found| &*found.path).collect();
            let missing = old.listing.under(root).filter(|entry| !there.contains(&*entry.path));
            gone.extend(missing.map(|entry| entry.path.clone()));
            for found in &scan.found {
                // A file that is named has changed, even if its time and size say no.
                let current =
                    old.listing.file(&found.path).is_some_and(|entry| entry.is_current(found.stamp));
                if !current || named.contains(&*found.path) {
                    different.insert(found.path.clone(), found.clone());
                }
            }
        }
        let files: Vec<Found> = different.into_values().collect();
        self.build(&files, gone.into_iter().collect(), true)
    }

    /// Reads `files`, takes `gone` away, and publishes. `replaces`: the index may have some of them.
    fn build(
        &mut self,
        files: &[Found],
        gone: Vec<Box<str>>,
        replaces: bool,
    ) -> tantivy::Result<()> {
        let threads = if files.len() < FEW {
            1
        } else {
            std::thread::available_parallelism().map_or(1, usize::from).min(4)
        };
        if threads > 1 {
            self.merging = None;
            self.writer = None;
            let bytes: u64 = files.iter().map(|found| found.stamp.size).sum();
            self.writer = Some(self.index.large_writer(threads, bytes)?);
        } else if self.writer.is_none() {
            self.writer = Some(self.index.small_writer()?);
        }
        let mut gone = gone;
        let mut rest = files;
        let mut size = FIRST_BATCH;
        loop {
            let (batch, after) = rest.split_at(rest.len().min(size));
            rest = after;
            size = (size * 2).min(LARGEST_BATCH);
            let mut round = self.read(batch, threads, replaces)?;
            round.files.extend(std::mem::take(&mut gone).into_iter().map(|path| (path, None)));
            self.end_round(round, rest.is_empty())?;
            if rest.is_empty() || self.inbox.is_stopped() {
                break;
            }
            // A long build must not keep old states of files that change meanwhile.
            if let Some(news @ Wake::Paths(_)) = self.inbox.peek() {
                self.sync_small(news)?;
            }
        }
        if threads > 1 {
            self.start_merge()?;
        }
        Ok(())
    }

    fn read(&self, files: &[Found], threads: usize, replaces: bool) -> tantivy::Result<Round> {
        let Some(writer) = &self.writer else { return Ok(Round::default()) };
        let reader = Reader {
            folder: self.lookout.folder(),
            statuses: &self.statuses,
            shared: &self.shared,
            inbox: &self.inbox,
            index: &self.index,
            writer,
            replaces,
            tell_progress: &|| self.tell_progress(),
        };
        reader.read(files, threads)
    }

    /// Follows news in the middle of a build.
    fn sync_small(&mut self, news: Wake) -> tantivy::Result<()> {
        if let Wake::Paths(paths) = &news
            && paths.len() < FEW
        {
            return self.sync(news);
        }
        self.inbox.add_everywhere();
        Ok(())
    }

    /// Commits what was read and publishes it.
    fn end_round(&mut self, round: Round, last: bool) -> tantivy::Result<()> {
        let again = Instant::now() + PATIENCE / 8;
        self.held.extend(round.held.into_iter().map(|path| (path.into(), again)));
        if round.files.is_empty() {
            self.publish_again();
            return Ok(());
        }
        let Some(writer) = &mut self.writer else { return Ok(()) };
        for (path, _) in round.files.iter().filter(|(_, entry)| entry.is_none()) {
            writer.delete(self.index.path_term(path));
        }
        let complete = last && !self.inbox.is_stopped();
        writer.commit(&if complete {
            COMPLETE.to_owned()
        } else {
            said(self.shared.indexing())
        })?;
        self.view = self.index.reload()?;
        for (path, _) in &round.files {
            self.file_problems.remove(path);
        }
        self.file_problems
            .extend(round.problems.into_iter().filter(|(_, problems)| !problems.is_empty()));
        let old = self.shared.snapshot();
        let ids: Vec<String> = round.files.iter().map(|(path, _)| id_of(path).to_owned()).collect();
        let listing = old.listing.with(round.files);
        let change = if self.shared.indexing().is_some() {
            // The first reading is told at its end.
            Change::default()
        } else {
            change_between(&old.listing, &listing, Some(&ids))
        };
        self.publish(Arc::new(listing), change);
        Ok(())
    }

    fn publish(&self, listing: Arc<Listing>, change: Change) {
        let files = self.file_problems.values().flatten();
        let mut problems: Vec<Problem> = self
            .scan_problems
            .iter()
            .chain(&self.standing_problems)
            .chain(files)
            .chain(listing.shadowed())
            .cloned()
            .chain(self.lookout.problem())
            .collect();
        problems.sort_unstable();
        problems.dedup();
        self.shared.publish(Snapshot { listing, view: Some(self.view.clone()), problems }, change);
    }

    /// Publishes the same files with what else has changed: problems, or the shape of the index.
    fn publish_again(&self) {
        let old = self.shared.snapshot();
        self.publish(Arc::clone(&old.listing), Change::default());
    }

    /// The folder has been read for the first time.
    fn finish(&self, changed: bool) {
        if self.inbox.is_stopped() || self.shared.indexing().is_none() {
            return;
        }
        self.tell_progress();
        self.shared.finish(Change { many: changed, ..Change::default() });
    }

    fn tell_progress(&self) {
        if let Some(indexing) = self.shared.indexing() {
            (self.progress)(indexing);
        }
    }

    /// After a large build: starts to make one segment of many, while questions are answered.
    fn start_merge(&mut self) -> tantivy::Result<()> {
        let segments = self.index.segments()?;
        let Some(writer) = self.writer.as_mut().filter(|_| segments.len() > MOST_SEGMENTS) else {
            self.writer = None;
            return Ok(());
        };
        let merge = writer.merge(&segments);
        // The waiting thread ends with the merge, or with the writer.
        self.merging = Some(std::thread::spawn(move || drop(merge.wait())));
        Ok(())
    }

    /// When a merge is over: looks at the new segment, and lets go of the large writer.
    fn end_merge(&mut self) {
        if self.merging.take_if(|merging| merging.is_finished()).is_none() {
            return;
        }
        self.writer = None;
        if let Ok(view) = self.index.reload() {
            self.view = view;
            self.publish_again();
        }
    }
}

fn said(indexing: Option<Indexing>) -> String {
    indexing
        .map_or_else(|| COMPLETE.to_owned(), |Indexing { done, total }| format!("{done} {total}"))
}
