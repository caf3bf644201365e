//! Reads many files in parallel and adds their documents to the index.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

use tantivy::IndexWriter;

use crate::context::Context;
use crate::folder::Found;
use crate::index::Index;
use crate::listing::Entry;
use crate::page::{self, Outcome};
use crate::problem::Problem;
use crate::threads::on_threads;

/// Progress is reported after this many files.
const PROGRESS_INTERVAL: usize = 64;

/// Reads files into the index.
pub(crate) struct Reader<'a> {
    pub(crate) context: &'a Context,
    pub(crate) index: &'a Index,
    pub(crate) writer: &'a IndexWriter,
    /// Whether the index may contain older documents of these files.
    pub(crate) replaces: bool,
}

/// The result of reading some files.
#[derive(Default)]
pub(crate) struct Batch {
    /// Files that were read (`Some`) or no longer exist (`None`).
    pub(crate) files: Vec<(Box<str>, Option<Entry>)>,
    pub(crate) problems: Vec<(Box<str>, Vec<Problem>)>,
    /// Files that are being written at the moment.
    pub(crate) held: Vec<Box<str>>,
}

impl Reader<'_> {
    /// Reads the files with this many threads, until all are read or the store is closed.
    pub(crate) fn read(&self, files: &[Found], threads: usize) -> tantivy::Result<Batch> {
        let next = AtomicUsize::new(0);
        let batches = on_threads(threads, || -> tantivy::Result<Batch> {
            let mut batch = Batch::default();
            while let Some(found) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                if self.context.events.is_stopped() {
                    break;
                }
                self.read_one(found, &mut batch)?;
                if self.context.shared.count_one().is_multiple_of(PROGRESS_INTERVAL) {
                    self.context.report_progress();
                }
            }
            Ok(batch)
        });
        let mut total = Batch::default();
        for batch in batches {
            let batch = batch?;
            total.files.extend(batch.files);
            total.problems.extend(batch.problems);
            total.held.extend(batch.held);
        }
        Ok(total)
    }

    fn read_one(&self, found: &Found, batch: &mut Batch) -> tantivy::Result<()> {
        let Context { settings, shared, .. } = self.context;
        let folder = self.context.folder.load();
        shared.files_read.fetch_add(1, Ordering::Relaxed);
        match page::read(&folder, found, settings, SystemTime::now()) {
            Outcome::Held => batch.held.push(found.path.clone()),
            Outcome::Gone => batch.files.push((found.path.clone(), None)),
            Outcome::Read(page) => {
                let snapshot = shared.snapshot();
                if snapshot.listing.file(&found.path).is_some_and(|known| **known == page.entry) {
                    return Ok(());
                }
                if self.replaces {
                    self.writer.delete_term(self.index.path_term(&found.path));
                }
                self.writer.add_document(self.index.document(&page.entry, &page.reading)?)?;
                if let Some(reason) = page.entry.hidden {
                    tracing::debug!(file = &*found.path, %reason, "not served");
                }
                batch.problems.push((found.path.clone(), page.reading.problems));
                batch.files.push((found.path.clone(), Some(page.entry)));
            }
        }
        Ok(())
    }
}
