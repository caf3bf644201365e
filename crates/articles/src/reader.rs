//! Reading many files at once, and putting their documents on the way into the index.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use crate::folder::{Folder, Found};
use crate::inbox::Inbox;
use crate::index::Index;
use crate::page::{self, Outcome};
use crate::problem::Problem;
use crate::listing::Entry;
use crate::snapshot::Shared;
use crate::writer::Writer;

/// Progress is told after so many files.
const TOLD_EVERY: usize = 64;

/// Reads files for the index.
pub(crate) struct Reader<'a> {
    pub(crate) folder: &'a Folder,
    pub(crate) statuses: &'a [String],
    pub(crate) shared: &'a Shared,
    pub(crate) inbox: &'a Inbox,
    pub(crate) index: &'a Index,
    pub(crate) writer: &'a Writer,
    /// The index may have older documents of these files.
    pub(crate) replaces: bool,
    pub(crate) tell_progress: &'a (dyn Fn() + Sync),
}

/// What came of reading some files.
#[derive(Default)]
pub(crate) struct Round {
    /// Files that were read (`Some`) or are gone.
    pub(crate) files: Vec<(Box<str>, Option<Entry>)>,
    pub(crate) problems: Vec<(Box<str>, Vec<Problem>)>,
    /// Files that are being written.
    pub(crate) held: Vec<Box<str>>,
}

impl Reader<'_> {
    /// Reads on this many threads, until all is read or nobody wants it any more.
    pub(crate) fn read(&self, files: &[Found], threads: usize) -> tantivy::Result<Round> {
        let next = AtomicUsize::new(0);
        let rounds = Mutex::new(Vec::new());
        let work = || -> tantivy::Result<()> {
            let mut round = Round::default();
            while let Some(found) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                if self.inbox.is_stopped() {
                    break;
                }
                self.read_one(found, &mut round)?;
                if self.shared.count_one().is_multiple_of(TOLD_EVERY) {
                    (self.tell_progress)();
                }
            }
            rounds.lock().unwrap_or_else(PoisonError::into_inner).push(round);
            Ok(())
        };
        if threads == 1 {
            work()?;
        } else {
            std::thread::scope(|scope| {
                let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
                workers
                    .into_iter()
                    .try_for_each(|worker| worker.join().unwrap_or_else(|_| Err(panicked())))
            })?;
        }
        let mut whole = Round::default();
        for round in rounds.into_inner().unwrap_or_else(PoisonError::into_inner) {
            whole.files.extend(round.files);
            whole.problems.extend(round.problems);
            whole.held.extend(round.held);
        }
        Ok(whole)
    }

    fn read_one(&self, found: &Found, round: &mut Round) -> tantivy::Result<()> {
        self.shared.files_read.fetch_add(1, Ordering::Relaxed);
        match page::read(self.folder, found, self.statuses, SystemTime::now()) {
            Outcome::Held => round.held.push(found.path.clone()),
            Outcome::Gone => round.files.push((found.path.clone(), None)),
            Outcome::Read(page) => {
                let snapshot = self.shared.snapshot();
                if snapshot.listing.file(&found.path).is_some_and(|known| **known == page.entry) {
                    return Ok(());
                }
                if self.replaces {
                    self.writer.delete(self.index.path_term(&found.path));
                }
                self.writer.add(self.index.document(&page.entry, &page.reading)?)?;
                round.problems.push((found.path.clone(), page.reading.problems));
                round.files.push((found.path.clone(), Some(page.entry)));
            }
        }
        Ok(())
    }
}

fn panicked() -> tantivy::TantivyError {
    tantivy::TantivyError::SystemError("a reading thread panicked".to_owned())
}
