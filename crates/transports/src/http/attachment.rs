//! A connection that reads a stream of a legacy session.
//!
//! A reader also drives the session: it handles all pending events, for itself and for the other
//! readers. When it disconnects the stream is kept, so that the client can resume it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use sabir_budget::memory;
use tokio::time::Instant;

use super::notices;
use super::replay;
use super::reply::EventStream;
use super::shared;
use super::sse;
use super::state::{OpenStream, ServerState};
use super::streams::{Event, EventId, Origin, ReadResult, Reader};
use super::table::StoredSession;

/// A connection that is attached to a stream.
pub(crate) struct Attachment {
    state: Arc<ServerState>,
    stored: Arc<StoredSession>,
    reader: Reader,
    /// The client knows an event id, so it can resume the stream.
    is_announced: bool,
}

impl Attachment {
    pub(crate) fn new(
        state: &Arc<ServerState>,
        stored: &Arc<StoredSession>,
        reader: Reader,
    ) -> Self {
        Self { state: state.clone(), stored: stored.clone(), reader, is_announced: false }
    }

    /// The next messages, and whether they are the last; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<(Vec<Event>, bool)> {
        loop {
            let reader = &mut self.reader;
            let read = self.stored.with(|streams| streams.read(reader));
            match read.unwrap_or(ReadResult::End) {
                ReadResult::Events(events, is_last) => return Some((events, is_last)),
                ReadResult::End => return None,
                ReadResult::Wait(news, wait) => tokio::select! {
                    () = news.notified() => {}
                    () = wait.happened() => {}
                },
            }
        }
    }

    /// Renews the record of the session, whose client only listens.
    async fn touch(&self) {
        let Some(sharing) = &self.state.sharing else { return };
        match self.reader.origin {
            Origin::Only => notices::touch_old(sharing, &self.stored).await,
            _ => shared::touch(&self.state, sharing, &self.stored).await,
        }
    }

    /// Writes events to the store before they are sent: the client may resume on another node.
    pub(crate) async fn log(&self, events: &[Event], is_last: bool) {
        if self.reader.origin == Origin::Post {
            replay::log(&self.state, &self.stored, self.reader.stream, events, is_last).await;
        }
    }

    /// The id before the first event.
    pub(crate) fn origin(&self) -> EventId {
        self.place_of(0)
    }

    fn place_of(&self, event: u64) -> EventId {
        EventId { origin: self.reader.origin, stream: self.reader.stream, event }
    }

    /// Writes messages as events.
    pub(crate) fn write(&self, out: &mut Vec<u8>, events: &[Event]) {
        for event in events {
            let text = &event.frame.text;
            match self.reader.origin {
                Origin::Only => sse::write_kind(out, "message", text),
                _ => sse::write(out, Some(&self.place_of(event.number).to_string()), text),
            }
        }
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        if self.reader.origin == Origin::Only {
            self.state.table.remove(&self.stored.id);
            if self.state.sharing.is_some() {
                let (state, stored) = (self.state.clone(), self.stored.clone());
                tokio::spawn(async move {
                    if let Some(sharing) = &state.sharing {
                        notices::release_old(sharing, &stored).await;
                    }
                });
            }
            return;
        }
        let (keep, now) = (self.is_announced, self.state.clock.now());
        let mut streams = self.stored.lock();
        let needs_care = streams.as_mut().is_some_and(|s| s.leave(&self.reader, keep, now));
        drop(streams);
        if needs_care {
            self.state.table.look_after(&self.stored);
        }
    }
}

/// How a stream begins and ends.
pub(crate) struct Opening {
    /// The first event.
    pub(crate) begun: Bytes,
    /// No event follows it.
    pub(crate) is_last: bool,
    /// When the stream is closed so that the client resumes it later.
    pub(crate) poll_at: Option<Instant>,
}

struct Live {
    attachment: Attachment,
    open: OpenStream,
    begun: Option<Bytes>,
    is_last: bool,
    poll_at: Option<Instant>,
}

/// The messages of the stream, as events.
pub(crate) fn stream(
    mut attachment: Attachment,
    open: OpenStream,
    opening: Opening,
) -> EventStream {
    attachment.is_announced = true;
    let Opening { begun, is_last, poll_at } = opening;
    let live = Live { attachment, open, begun: Some(begun), is_last, poll_at };
    let events = futures_util::stream::unfold(live, |mut live| async move {
        let piece = live.next().await?;
        Some((piece, live))
    });
    Box::pin(events)
}

impl Live {
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(begun) = self.begun.take().filter(|begun| !begun.is_empty()) {
            return Some(begun);
        }
        if self.is_last {
            return None;
        }
        let Self { attachment, open, is_last, poll_at, .. } = self;
        let settings = open.settings();
        tokio::select! {
            biased;
            news = attachment.next() => {
                let (events, last) = news?;
                *is_last = last;
                attachment.log(&events, last).await;
                let mut piece = Vec::new();
                attachment.write(&mut piece, &events);
                Some(memory().count(piece.into()))
            }
            () = until(*poll_at) => {
                *is_last = true;
                Some(sse::retry(settings.retry.as_millis()))
            }
            () = tokio::time::sleep(settings.keep_alive) => {
                attachment.touch().await;
                Some(sse::keep_alive())
            }
        }
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// The earlier of two times to wait.
pub(crate) fn earlier(silence: Duration, poll_after: Option<Duration>) -> Duration {
    poll_after.map_or(silence, |poll_after| poll_after.min(silence))
}
