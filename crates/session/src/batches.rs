//! Batches, which one revision demands: their answers are sent together.

use std::collections::HashSet;

use bytes::Bytes;
use sabir_wire::{Id, Raw, write_batch};
use serde::{Deserialize, Serialize};

use crate::io::StreamId;

/// The batches that are not answered in full.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Batches(Vec<Batch>);

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Batch {
    key: u64,
    stream: StreamId,
    running: usize,
    /// The ids of its requests: in use until the whole batch is answered.
    ids: HashSet<Id>,
    answers: Vec<Raw>,
}

impl Batches {
    /// Begins a batch. It counts as a running part itself until all of its parts are started.
    pub(crate) fn open(&mut self, key: u64, stream: StreamId) {
        let (ids, answers) = (HashSet::new(), Vec::new());
        let batch = Batch { key, stream, running: 1, ids, answers };
        self.0.push(batch);
    }

    /// A part of it began to run.
    pub(crate) fn begin_part(&mut self, key: Option<u64>) {
        if let Some(batch) = self.find(key) {
            batch.running += 1;
        }
    }

    /// A part of it has ended; the last one gives the answers, if there are any.
    pub(crate) fn end_part(&mut self, key: Option<u64>) -> Option<(StreamId, Bytes)> {
        let batches = &mut self.0;
        let at = batches.iter().position(|batch| Some(batch.key) == key)?;
        batches[at].running -= 1;
        if batches[at].running > 0 {
            return None;
        }
        let batch = batches.swap_remove(at);
        let answers: Vec<_> = batch.answers.iter().map(Raw::as_bytes).collect();
        (!answers.is_empty()).then(|| (batch.stream, write_batch(&answers)))
    }

    pub(crate) fn find(&mut self, key: Option<u64>) -> Option<&mut Batch> {
        self.0.iter_mut().find(|batch| Some(batch.key) == key)
    }

    /// Whether there is none.
    pub(crate) fn is_unused(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether an answer with this id is still to be sent.
    pub(crate) fn has(&self, id: &Id) -> bool {
        self.0.iter().any(|batch| batch.ids.contains(id))
    }

    pub(crate) fn uses(&self, stream: StreamId) -> bool {
        self.0.iter().any(|batch| batch.stream == stream)
    }
}

impl Batch {
    /// The size of its answers in bytes.
    pub(crate) fn size(&self) -> usize {
        self.answers.iter().map(|answer| answer.as_bytes().len()).sum()
    }

    /// Records the id of one of its requests.
    pub(crate) fn reserve_id(&mut self, id: &Id) {
        self.ids.insert(id.clone());
    }

    /// Keeps the answer to one of its requests. Our own frames are valid JSON.
    pub(crate) fn answer(&mut self, frame: Bytes) {
        self.answers.extend(Raw::parse(frame).ok());
    }
}
