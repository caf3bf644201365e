//! Streams of a session that nodes share: their numbers, changes by other nodes, and the events in
//! the store.

use sabir_engine::Connection;

use super::{Event, Origin, Stream, Streams};

/// The events of a stream that are not in the store.
pub(crate) struct Unlogged {
    pub(crate) stream: u64,
    pub(crate) events: Vec<Event>,
    /// No event will follow.
    pub(crate) is_last: bool,
}

impl Streams {
    /// Numbers further streams after `last`.
    pub(crate) fn numbered_after(self, last: u32) -> Self {
        Self { last_number: last, ..self }
    }

    /// Changes the connection, for a change that does not come from the client.
    pub(crate) fn change(&mut self, change: impl FnOnce(&mut Connection)) {
        change(&mut self.connection);
        self.sort();
        self.wake_all();
    }

    /// The new events of streams without a reader that clients can resume.
    pub(crate) fn unlogged(&self) -> Vec<Unlogged> {
        let can_be_missed = self.streams.iter().filter(|stream| {
            stream.origin == Origin::Post && stream.reader.is_none() && !stream.is_lost
        });
        let news = can_be_missed.filter(|s| s.logged < s.last_event + u64::from(s.is_ended));
        let unlogged = news.map(|stream| Unlogged {
            stream: stream.number,
            events: stream.events.iter().filter(|e| e.number > stream.logged).cloned().collect(),
            is_last: stream.is_ended,
        });
        unlogged.collect()
    }

    /// The events before `before` that are not in the store, because it could not be reached.
    pub(crate) fn missed(&self, number: u64, before: u64) -> Vec<Event> {
        let Some(stream) = self.streams.iter().find(|stream| stream.number == number) else {
            return Vec::new();
        };
        let missing = stream.logged + 1..before;
        stream.events.iter().filter(|event| missing.contains(&event.number)).cloned().collect()
    }

    /// The client follows a stream on another node: its call goes on.
    pub(crate) fn follow(&mut self, number: u64, now: u64) {
        let is_it = |stream: &&mut Stream| stream.number == number && stream.reader.is_none();
        if let Some(stream) = self.streams.iter_mut().find(is_it) {
            stream.left_at = Some(now);
        }
    }

    /// How many of the newest events of a stream the store keeps together with those of the bytes
    /// `new`, which it keeps in any case.
    pub(crate) fn kept(&self, number: u64, new: &[usize]) -> usize {
        let stream = self.streams.iter().find(|stream| stream.number == number);
        let mut bytes: usize = new.iter().sum();
        let known = stream.into_iter().flat_map(|stream| stream.stored.iter().rev());
        let known = known.take_while(|known| {
            bytes += **known;
            bytes <= self.bounds.bytes
        });
        (new.len() + known.count()).min(self.bounds.events + 1)
    }

    /// The store has the events of a stream up to `event`; the last ones have the bytes `new`.
    pub(crate) fn set_logged(&mut self, number: u64, event: u64, is_last: bool, new: &[usize]) {
        if let Some(stream) = self.streams.iter_mut().find(|stream| stream.number == number) {
            stream.logged = stream.logged.max(event + u64::from(is_last));
            stream.stored.extend(new);
            let excess = stream.stored.len().saturating_sub(self.bounds.events + 1);
            stream.stored.drain(..excess);
        }
    }
}
