//! The streams of one legacy session: assigns each message to a stream, and replays messages to a
//! client that lost its connection.
//!
//! A request that waits has a stream, and so has each GET. Every message goes to exactly one. A
//! stream outlives the connection that reads it: its messages are numbered and kept, within bounds,
//! and a client that resumes it names the last one that it has seen. No I/O and no clock.

mod bounds; // the limits
mod event; // the messages of a stream
mod sharing; // for sessions that nodes share

use std::collections::VecDeque;
use std::sync::Arc;

use sabir_budget::memory;
use sabir_engine::{Connection, Done, Frame, Wait, Work};
use sabir_session::{MessageKind, StreamId};
use tokio::sync::Notify;

pub(crate) use self::bounds::{Bounds, Full};
use self::event::OVERHEAD;
pub(crate) use self::event::{Event, EventId, Origin};
use super::link::Link;

/// A session's connection, and its streams.
pub(crate) struct Streams {
    connection: Connection,
    streams: Vec<Stream>,
    /// Posted messages that are being handled, with their answers so far.
    posted: Vec<(StreamId, Vec<Frame>)>,
    /// Messages that belong to no request, until a stream is opened.
    undelivered: VecDeque<Frame>,
    /// Numbers streams. When it wraps, the first ones have ended long before.
    last_number: u32,
    /// Shared by all sessions.
    bounds: Arc<Bounds>,
    /// The session is in the list of the sweeper.
    is_looked_after: bool,
    /// The link to the record of the session, if it has one.
    pub(crate) link: Option<Box<Link>>,
}

/// Bytes that a reader gets at once; at least one message.
const MAX_READ: usize = 256 << 10;

struct Stream {
    number: u64,
    origin: Origin,
    events: VecDeque<Event>,
    bytes: usize,
    last_event: u64,
    /// The last event that a reader took.
    taken: u64,
    /// No message will follow.
    is_ended: bool,
    /// The number of its reader, so that an old reader notices that it was replaced.
    reader: Option<u64>,
    last_reader: u64,
    /// Bytes of messages that no reader took.
    unsent: usize,
    /// When the last reader disconnected.
    left_at: Option<u64>,
    /// The client has no event id to resume the stream with.
    is_lost: bool,
    /// The last event in the store; plus one once the store has the end of the stream.
    logged: u64,
    /// The bytes of each event in the store.
    stored: VecDeque<usize>,
    /// Since when a complete stream waits for its client to resume it. `None` while its call runs.
    unread_since: Option<u64>,
    news: Arc<Notify>,
}

/// A reader of a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader {
    pub(crate) origin: Origin,
    pub(crate) stream: u64,
    reader: u64,
    /// The last event that was read.
    pub(crate) last: u64,
}

/// The next events for a reader.
pub(crate) enum ReadResult {
    /// These, and whether they are the last.
    Events(Vec<Event>, bool),
    /// None yet; the reader is woken later.
    Wait(Arc<Notify>, Wait),
    /// None any more.
    End,
}

/// The result of a posted message.
pub(crate) enum Posted {
    /// All messages about it: mostly one answer, or none.
    Done(Vec<Frame>),
    /// A call has to wait; this reader gets its messages.
    Waits(Reader),
}

impl Streams {
    pub(crate) fn new(connection: Connection, bounds: Arc<Bounds>) -> Self {
        Self {
            connection,
            streams: Vec::new(),
            posted: Vec::new(),
            undelivered: VecDeque::new(),
            last_number: 0,
            bounds,
            is_looked_after: false,
            link: None,
        }
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// The next work to be run, outside of the session's lock.
    pub(crate) fn take_work(&mut self) -> Option<Work> {
        self.connection.take_work()
    }

    /// Handles the result of work.
    pub(crate) fn complete(&mut self, done: Done) {
        self.connection.complete(done);
        self.sort();
    }

    /// Hands in a message, unless too many wait already. After its work was run,
    /// [`Streams::finish_post`] returns the result.
    pub(crate) fn post(
        &mut self,
        receive: impl FnOnce(&mut Connection, StreamId),
    ) -> Result<StreamId, Full> {
        if self.readers() + self.posted.len() >= self.bounds.streams {
            return Err(Full::Streams);
        }
        self.check_unsent()?;
        let stream = StreamId(self.next_number());
        self.posted.push((stream, Vec::new()));
        receive(&mut self.connection, stream);
        self.sort();
        Ok(stream)
    }

    fn check_unsent(&self) -> Result<(), Full> {
        let unsent = self.streams.iter().map(|stream| stream.unsent).sum();
        self.bounds.check_unsent(unsent, self.share())
    }

    /// The caller, by its share of the memory.
    fn share(&self) -> u64 {
        self.connection.session().owner().share()
    }

    /// The result of a posted message.
    pub(crate) fn finish_post(&mut self, id: StreamId) -> Posted {
        let at = self.posted.iter().position(|(posted, _)| *posted == id);
        let frames = at.map(|at| self.posted.swap_remove(at).1).unwrap_or_default();
        if !self.connection.is_active(id) {
            self.rest();
            return Posted::Done(frames);
        }
        let mut stream = Stream::new(id.0, Origin::Post);
        for frame in frames {
            stream.push(frame, &self.bounds, self.share());
        }
        let reader = stream.read_after(0);
        self.keep(stream);
        Posted::Waits(reader)
    }

    /// Hands in a message whose answers go to the session's only stream.
    pub(crate) fn post_to_only(
        &mut self,
        receive: impl FnOnce(&mut Connection, StreamId),
    ) -> Result<(), Full> {
        // A client that does not read has no reader that would handle events.
        self.advance();
        self.check_unsent()?;
        receive(&mut self.connection, StreamId(0));
        self.sort();
        // The reader must also wait for the work that began here.
        self.wake_all();
        Ok(())
    }

    /// Opens a stream. `None` if there are too many readers.
    pub(crate) fn open(&mut self, origin: Origin) -> Option<Reader> {
        if self.readers() >= self.bounds.streams {
            return None;
        }
        let mut stream = Stream::new(self.next_number(), origin);
        for frame in std::mem::take(&mut self.undelivered) {
            stream.push(frame, &self.bounds, self.share());
        }
        let reader = stream.read_after(0);
        self.keep(stream);
        Some(reader)
    }

    /// Resumes a stream after the last event that the client has seen, and replaces its reader.
    /// `None` if the stream or the events after that one are no longer kept.
    pub(crate) fn resume(&mut self, last_seen: EventId) -> Option<Reader> {
        let stream = self.streams.iter_mut().find(|stream| stream.number == last_seen.stream)?;
        let first_kept = stream.events.front().map_or(stream.last_event + 1, |e| e.number);
        let next = last_seen.event.saturating_add(1);
        let has_rest = next >= first_kept && last_seen.event <= stream.last_event;
        (stream.origin == last_seen.origin && has_rest).then(|| {
            stream.news.notify_one();
            stream.news = Arc::default();
            stream.taken = last_seen.event;
            let unread = stream.events.iter().filter(|event| event.number > last_seen.event);
            stream.unsent = unread.map(Event::cost).sum();
            stream.read_after(last_seen.event)
        })
    }

    /// The next events for `reader`, after all pending events are handled.
    pub(crate) fn read(&mut self, reader: &mut Reader) -> ReadResult {
        // The wait is registered before the check, so that no event in between is missed.
        let wait = self.connection.wait();
        self.advance();
        let Some(stream) = self.streams.iter_mut().find(|s| s.is_read_by(reader)) else {
            return ReadResult::End;
        };
        let mut room = MAX_READ;
        let new = stream.events.iter().filter(|event| event.number > reader.last);
        let events: Vec<_> = new
            .take_while(|event| {
                let has_room = room > 0;
                room = room.saturating_sub(event.cost());
                has_room
            })
            .cloned()
            .collect();
        if let Some(last) = events.last() {
            reader.last = last.number;
            stream.taken = last.number;
            let read: usize = events.iter().map(Event::cost).sum();
            stream.unsent = stream.unsent.saturating_sub(read);
            let is_last = stream.is_ended && last.number == stream.last_event;
            return ReadResult::Events(events, is_last);
        }
        match stream.is_ended {
            true => ReadResult::End,
            false => ReadResult::Wait(stream.news.clone(), wait),
        }
    }

    /// A reader has disconnected. Without `keep` its client cannot resume the stream. Whether the
    /// session must be added to the list of the sweeper.
    pub(crate) fn leave(&mut self, reader: &Reader, keep: bool, now: u64) -> bool {
        let found = self.streams.iter_mut().find(|stream| stream.is_read_by(reader));
        if let Some(stream) = found {
            stream.reader = None;
            stream.left_at = Some(now);
            stream.unread_since = stream.is_complete().then_some(now);
            stream.is_lost = !keep;
            if !keep && stream.is_complete() {
                self.streams.retain(|stream| stream.number != reader.stream);
            }
            self.forget_oldest();
            // The other readers have to wait for the events that this one waited for.
            self.wake_all();
        }
        let needs_care = self.needs_care();
        needs_care && !std::mem::replace(&mut self.is_looked_after, needs_care)
    }

    /// Handles all pending events.
    pub(crate) fn advance(&mut self) {
        self.connection.advance();
        self.sort();
    }

    /// Looks after streams without a reader. Stops their calls after `grace`, or after
    /// `replay_time` if the client can resume the stream; forgets complete streams after
    /// `replay_time`. Whether the session still needs care.
    pub(crate) fn look_after(&mut self, now: u64, replay_time: u64, grace: u64) -> bool {
        self.advance();
        let is_over = |since: u64, time| now.saturating_sub(since) >= time;
        let is_gone = |stream: &&Stream| {
            let patience = if stream.is_lost { grace } else { replay_time };
            !stream.is_complete() && stream.left_at.is_some_and(|since| is_over(since, patience))
        };
        let gone = self.streams.iter().filter(is_gone).map(|stream| StreamId(stream.number));
        for stream in gone.collect::<Vec<_>>() {
            self.connection.abandon(stream);
        }
        self.sort();
        self.streams.retain_mut(|stream| {
            if stream.reader.is_some() || !stream.is_complete() {
                return true;
            }
            if stream.is_lost {
                return false;
            }
            let since = *stream.unread_since.get_or_insert(now);
            now.saturating_sub(since) < replay_time
        });
        self.rest();
        self.is_looked_after = self.needs_care();
        self.is_looked_after
    }

    fn needs_care(&self) -> bool {
        let is_unread = self.streams.iter().any(|stream| stream.reader.is_none());
        is_unread || self.connection.session().running() > 0
    }

    /// Whether the session has a reader or a running call.
    pub(crate) fn is_busy(&self) -> bool {
        self.readers() > 0 || self.connection.session().running() > 0
    }

    fn next_number(&mut self) -> u64 {
        self.last_number = self.last_number.wrapping_add(1);
        u64::from(self.last_number)
    }

    /// The number of readers.
    pub(crate) fn readers(&self) -> usize {
        self.streams.iter().filter(|stream| stream.reader.is_some()).count()
    }

    /// Wakes all readers.
    pub(crate) fn wake_all(&self) {
        for stream in &self.streams {
            stream.news.notify_one();
        }
    }

    /// Frees the memory that an idle session does not need.
    pub(crate) fn rest(&mut self) {
        self.connection.rest();
        if self.streams.is_empty() && self.posted.is_empty() {
            self.streams = Vec::new();
            self.posted = Vec::new();
        }
    }

    fn keep(&mut self, stream: Stream) {
        self.streams.push(stream);
        self.forget_oldest();
    }

    /// Of the complete streams without a reader, only the newest are kept.
    fn forget_oldest(&mut self) {
        let is_old = |stream: &&Stream| stream.reader.is_none() && stream.is_complete();
        let (mut count, mut bytes) = (0, 0);
        for stream in self.streams.iter().filter(is_old) {
            count += 1;
            bytes += stream.bytes;
        }
        while count > self.bounds.streams || (count > 1 && bytes > self.bounds.bytes) {
            let Some(at) = self.streams.iter().position(|stream| is_old(&stream)) else { return };
            bytes -= self.streams.remove(at).bytes;
            count -= 1;
        }
    }

    fn sort(&mut self) {
        while let Some(frame) = self.connection.next_frame() {
            self.deliver(frame);
        }
        self.end_streams();
    }

    /// Adds a message to the one stream that it belongs to.
    fn deliver(&mut self, frame: Frame) {
        let at = match frame.stream {
            Some(id) => {
                if let Some((_, frames)) = self.posted.iter_mut().find(|(posted, _)| *posted == id)
                {
                    return frames.push(frame);
                }
                self.streams.iter().position(|stream| stream.takes(id))
            }
            // The newest with a reader, or else the newest that can be resumed.
            None => {
                let hears = |stream: &Stream| stream.origin != Origin::Post;
                let read = self.streams.iter().rposition(|s| hears(s) && s.reader.is_some());
                read.or_else(|| self.streams.iter().rposition(hears))
            }
        };
        if let Some(at) = at {
            let share = self.share();
            self.streams[at].push(frame, &self.bounds, share);
        } else if frame.stream.is_none() && !self.undelivered.contains(&frame) {
            // The same notification is not announced twice.
            if self.undelivered.len() >= self.bounds.events {
                self.undelivered.pop_front();
            }
            self.undelivered.push_back(frame);
        }
    }

    fn end_streams(&mut self) {
        let is_closed = self.connection.is_closed();
        for stream in self.streams.iter_mut().filter(|stream| !stream.is_ended) {
            let is_answered = stream.origin == Origin::Post
                && !self.connection.is_active(StreamId(stream.number));
            if is_closed || is_answered {
                stream.is_ended = true;
                stream.news.notify_one();
            }
        }
    }
}

impl Stream {
    fn new(number: u64, origin: Origin) -> Self {
        Self {
            number,
            origin,
            events: VecDeque::new(),
            bytes: 0,
            last_event: 0,
            taken: 0,
            is_ended: false,
            reader: None,
            last_reader: 0,
            unsent: 0,
            left_at: None,
            is_lost: false,
            logged: 0,
            stored: VecDeque::new(),
            unread_since: None,
            news: Arc::default(),
        }
    }

    /// Whether no answer will follow on this stream.
    fn is_complete(&self) -> bool {
        self.is_ended || self.origin != Origin::Post
    }

    fn takes(&self, stream: StreamId) -> bool {
        self.origin == Origin::Only || (self.origin == Origin::Post && self.number == stream.0)
    }

    fn push(&mut self, mut frame: Frame, bounds: &Bounds, share: u64) {
        frame.text = memory().count_short_for(share, frame.text, OVERHEAD);
        self.bytes += frame.text.len();
        self.last_event += 1;
        let event = Event { number: self.last_event, frame };
        self.unsent += event.cost();
        self.events.push_back(event);
        while self.events.len() > bounds.events || self.bytes > bounds.bytes {
            let spare = |event: &Event| event.number <= self.taken;
            let note = |event: &Event| event.frame.kind == MessageKind::Notification;
            let spare = self.events.iter().position(spare);
            let Some(at) = spare.or_else(|| self.events.iter().position(note)) else { break };
            let Some(event) = self.events.remove(at) else { break };
            self.bytes -= event.frame.text.len();
            if event.number > self.taken {
                self.unsent = self.unsent.saturating_sub(event.cost());
            }
        }
        self.news.notify_one();
    }

    fn read_after(&mut self, last: u64) -> Reader {
        self.last_reader += 1;
        self.left_at = None;
        self.reader = Some(self.last_reader);
        let Self { number, origin, last_reader, .. } = *self;
        Reader { origin, stream: number, reader: last_reader, last }
    }

    fn is_read_by(&self, reader: &Reader) -> bool {
        self.number == reader.stream && self.reader == Some(reader.reader)
    }
}

#[cfg(test)]
mod tests;
