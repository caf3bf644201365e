//! Documents on their way into the index.
//!
//! tantivy queues ten thousand documents before it makes the reader of files wait; with whole
//! articles in them that is more memory than the index. Here each document holds a permit until
//! a writing thread takes it, and there are only so many permits.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use tantivy::index::SegmentId;
use tantivy::indexer::{IndexWriterOptions, LogMergePolicy, NoMergePolicy};
use tantivy::schema::document::Document;
use tantivy::{FutureResult, IndexWriter, SegmentMeta, TantivyDocument, Term};

/// Documents in the queue. When they are all taken, reading waits.
const PERMITS: usize = 256;

/// A writing thread that takes no document for so long is dead.
const STUCK: Duration = Duration::from_secs(120);

/// The least that tantivy accepts, and enough for a few changes.
const SMALL_BUDGET: usize = 15_000_000;

/// Bytes that each thread of a large build gathers before it writes a segment: less makes many
/// segments, and each has its own dictionary to write.
const LARGE_BUDGET: std::ops::RangeInclusive<usize> = 40_000_000..=80_000_000;

/// The one that may change the index.
pub(crate) struct Writer {
    inner: IndexWriter<Queued>,
    permits: Arc<Permits>,
}

impl Writer {
    /// A writer for single changes, which also keeps the number of segments small.
    pub(crate) fn small(index: &tantivy::Index) -> tantivy::Result<Self> {
        let writer = Self::new(index, 1, SMALL_BUDGET)?;
        writer.inner.set_merge_policy(Box::new(LogMergePolicy::default()));
        Ok(writer)
    }

    /// A writer for folders of so many bytes. Segments are merged once, at the end, by [`Writer::merge`].
    pub(crate) fn large(
        index: &tantivy::Index,
        threads: usize,
        bytes: u64,
    ) -> tantivy::Result<Self> {
        let each = usize::try_from(bytes).unwrap_or(usize::MAX) / threads;
        let writer =
            Self::new(index, threads, each.clamp(*LARGE_BUDGET.start(), *LARGE_BUDGET.end()))?;
        writer.inner.set_merge_policy(Box::new(NoMergePolicy));
        Ok(writer)
    }

    fn new(index: &tantivy::Index, threads: usize, budget: usize) -> tantivy::Result<Self> {
        let options = IndexWriterOptions::builder()
            .num_worker_threads(threads)
            .memory_budget_per_thread(budget)
            .num_merge_threads(1)
            .build();
        let permits = Arc::new(Permits { free: Mutex::new(PERMITS), returned: Condvar::new() });
        Ok(Self { inner: index.writer_with_options(options)?, permits })
    }

    /// Adds a document; waits while too many are on their way.
    pub(crate) fn add(&self, document: TantivyDocument) -> tantivy::Result<()> {
        let permit = self.permits.take()?;
        self.inner.add_document(Queued { document, permit }).map(drop)
    }

    /// Removes the documents with this term that were added before.
    pub(crate) fn delete(&self, term: Term) {
        self.inner.delete_term(term);
    }

    /// Makes all changes last, with a word about the state of the index.
    pub(crate) fn commit(&mut self, payload: &str) -> tantivy::Result<()> {
        let mut commit = self.inner.prepare_commit()?;
        commit.set_payload(payload);
        commit.commit().map(drop)
    }

    /// Forgets all changes since the last commit.
    pub(crate) fn rollback(&mut self) -> tantivy::Result<()> {
        self.inner.rollback().map(drop)
    }

    /// Starts to make one segment of these.
    pub(crate) fn merge(&mut self, segments: &[SegmentId]) -> FutureResult<Option<SegmentMeta>> {
        self.inner.merge(segments)
    }
}

struct Permits {
    free: Mutex<usize>,
    returned: Condvar,
}

impl Permits {
    fn take(self: &Arc<Self>) -> tantivy::Result<Permit> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.returned.wait_timeout_while(free, STUCK, |free| *free == 0);
        let (mut free, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() {
            return Err(tantivy::TantivyError::SystemError(
                "the writer of the index is stuck".to_owned(),
            ));
        }
        *free -= 1;
        Ok(Permit(Arc::clone(self)))
    }
}

struct Permit(Arc<Permits>);

impl Drop for Permit {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.returned.notify_one();
    }
}

/// A document that holds a permit until it is taken out of the queue.
struct Queued {
    document: TantivyDocument,
    permit: Permit,
}

impl Document for Queued {
    type Value<'a> = <TantivyDocument as Document>::Value<'a>;
    type FieldsValuesIter<'a> = <TantivyDocument as Document>::FieldsValuesIter<'a>;

    fn iter_fields_and_values(&self) -> Self::FieldsValuesIter<'_> {
        self.document.iter_fields_and_values()
    }

    fn into_tantivy_document(self) -> TantivyDocument {
        drop(self.permit);
        self.document
    }
}

#[cfg(test)]
mod tests {
    use tantivy::schema::{Field, STORED, STRING, Schema};

    use super::*;

    fn index() -> (tantivy::Index, Field) {
        let mut schema = Schema::builder();
        let field = schema.add_text_field("name", STRING | STORED);
        (tantivy::Index::create_in_ram(schema.build()), field)
    }

    fn named(field: Field, name: &str) -> TantivyDocument {
        let mut document = TantivyDocument::default();
        document.add_text(field, name);
        document
    }

    #[test]
    fn permits_come_back_so_more_documents_than_permits_pass() {
        let (index, field) = index();
        let mut writer = Writer::large(&index, 2, 0).unwrap();
        for n in 0..PERMITS * 4 {
            writer.add(named(field, &n.to_string())).unwrap();
        }
        writer.commit("done").unwrap();
        assert_eq!(index.reader().unwrap().searcher().num_docs(), PERMITS as u64 * 4);
        assert_eq!(index.load_metas().unwrap().payload.as_deref(), Some("done"));
        assert_eq!(*writer.permits.free.lock().unwrap(), PERMITS);
    }

    #[test]
    fn a_document_is_replaced_by_its_name_and_a_rollback_forgets() {
        let (index, field) = index();
        let mut writer = Writer::small(&index).unwrap();
        writer.add(named(field, "a")).unwrap();
        writer.commit("").unwrap();
        writer.delete(Term::from_field_text(field, "a"));
        writer.add(named(field, "a")).unwrap();
        writer.commit("").unwrap();
        writer.delete(Term::from_field_text(field, "a"));
        writer.rollback().unwrap();
        writer.commit("").unwrap();
        assert_eq!(index.reader().unwrap().searcher().num_docs(), 1);
    }
}
