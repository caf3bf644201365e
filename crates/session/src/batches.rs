//! Batches, which one revision demands: their answers are sent together.

use std::collections::HashSet;

use bytes::Bytes;
use sabir_wire::{Id, write_batch};

use crate::io::StreamId;

/// The batches that are not answered in full. Rare, so a session without any keeps one pointer.
#[derive(Debug, Default)]
pub(crate) struct Batches(Option<Box<Open>>);

#[derive(Debug, Default)]
struct Open(Vec<Batch>);

#[derive(Debug)]
pub(crate) struct Batch {
    key: u64,
    stream: StreamId,
    running: usize,
    /// The ids of its requests: not answered before all are, though some may have ended.
    ids: HashSet<Id>,
    answers: Vec<Bytes>,
}

impl Batches {
    /// Begins a batch. It counts as running itself until all of its parts were looked at.
    pub(crate) fn open(&mut self, key: u64, stream: StreamId) {
        let (ids, answers) = (HashSet::new(), Vec::new());
        let batch = Batch { key, stream, running: 1, ids, answers };
        self.0.get_or_insert_default().0.push(batch);
    }

    /// A part of it began to run.
    pub(crate) fn begin_part(&mut self, key: Option<u64>) {
        if let Some(batch) = self.find(key) {
            batch.running += 1;
        }
    }

    /// A part of it has ended; the last one gives the answers, if there are any.
    pub(crate) fn end_part(&mut self, key: Option<u64>) -> Option<(StreamId, Bytes)> {
        let Open(batches) = self.0.as_deref_mut()?;
        let at = batches.iter().position(|batch| Some(batch.key) == key)?;
        batches[at].running -= 1;
        if batches[at].running > 0 {
            return None;
        }
        let batch = batches.swap_remove(at);
        if batches.is_empty() {
            self.0 = None;
        }
        (!batch.answers.is_empty()).then(|| (batch.stream, write_batch(&batch.answers)))
    }

    pub(crate) fn find(&mut self, key: Option<u64>) -> Option<&mut Batch> {
        self.0.as_mut()?.0.iter_mut().find(|batch| Some(batch.key) == key)
    }

    /// Whether an answer with this id is still to be sent.
    pub(crate) fn has(&self, id: &Id) -> bool {
        self.0.iter().flat_map(|open| &open.0).any(|batch| batch.ids.contains(id))
    }

    pub(crate) fn uses(&self, stream: StreamId) -> bool {
        self.0.iter().flat_map(|open| &open.0).any(|batch| batch.stream == stream)
    }
}

impl Batch {
    /// Notes the id of one of its requests.
    pub(crate) fn reserve_id(&mut self, id: &Id) {
        self.ids.insert(id.clone());
    }

    pub(crate) fn answer(&mut self, frame: Bytes) {
        self.answers.push(frame);
    }
}
