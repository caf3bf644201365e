//! The messages of a stream, and their numbers.

use sabir_engine::Frame;

/// The request that opened a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A POST: the stream ends with its answers.
    Post,
    /// A GET: the stream carries messages that belong to no request.
    Get,
    /// The only stream of the first revision's transport: it carries every message.
    Only,
}

/// A message of a stream.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    /// Its number in the stream, from 1.
    pub(crate) number: u64,
    pub(crate) frame: Frame,
}

/// A position in a stream, as sent to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EventId {
    pub(crate) origin: Origin,
    pub(crate) stream: u64,
    /// The event; 0 is before the first.
    pub(crate) event: u64,
}

/// The memory of a message besides its text.
pub(crate) const OVERHEAD: usize = 256;

impl Event {
    /// The memory that it needs.
    pub(crate) fn cost(&self) -> usize {
        self.frame.text.len() + OVERHEAD
    }
}

impl EventId {
    /// Parses `Last-Event-ID`; `None` if it is not one of our ids.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (origin, place) = match text.split_at_checked(1)? {
            ("p", place) => (Origin::Post, place),
            ("g", place) => (Origin::Get, place),
            _ => return None,
        };
        let (stream, event) = place.split_once('-')?;
        Some(Self { origin, stream: stream.parse().ok()?, event: event.parse().ok()? })
    }
}

impl std::fmt::Display for EventId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let origin = if self.origin == Origin::Post { 'p' } else { 'g' };
        write!(f, "{origin}{}-{}", self.stream, self.event)
    }
}
