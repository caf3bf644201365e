//! The events of POST streams in the store, for clients that resume a stream on another node.
//!
//! Every event is stored before it is sent. A node that does not have a stream reads its events
//! from the store, and waits for more as long as the node with the stream lives.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use sabir_budget::memory;
use sabir_cluster::{Append, Away, To};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::notice::{News, Notice};
use super::reply::{EventStream, Refusal};
use super::shared::{self, away};
use super::sharing::Sharing;
use super::sse;
use super::state::{OpenStream, ServerState};
use super::streams::{Event, EventId};
use super::table::StoredSession;

/// An event in the store.
#[derive(Debug, Serialize, Deserialize)]
struct Logged {
    /// The node that has the stream.
    node: String,
    /// The number of the event; 0 before the first.
    event: u64,
    /// The message; `None` in an item that only marks the start or the end of the stream.
    text: Option<String>,
    #[serde(default)]
    is_end: bool,
}

/// How often a node that does not have a stream polls the store for its events, and how often it
/// tells the node with the stream that the client follows it.
const LOOK: Duration = Duration::from_millis(250);
const FOLLOW: Duration = Duration::from_secs(2);

/// The bytes that tell one stored item from another.
const BEGINNING: usize = 64;

fn name(sharing: &Sharing, stored: &StoredSession, stream: u64) -> String {
    sharing.named(&format!("events {stream}"), &stored.id, &stored.owner)
}

/// Writes events of a stream to the store. If that fails, they can be replayed on this node only,
/// until they are written together with the next ones.
pub(crate) async fn log(
    state: &ServerState,
    stored: &StoredSession,
    stream: u64,
    events: &[Event],
    is_last: bool,
) {
    let Some(sharing) = &state.sharing else { return };
    let first = events.first().map_or(u64::MAX, |event| event.number);
    let mut missed = stored.lock().as_ref().map(|s| s.missed(stream, first)).unwrap_or_default();
    let events = match missed.is_empty() {
        true => events,
        false => {
            missed.extend_from_slice(events);
            &missed
        }
    };
    let written = match write(state, sharing, stored, stream, events, is_last).await {
        Ok(written) => written,
        Err(error) => return tracing::debug!("events are not stored: {error}"),
    };
    let last = events.last().map_or(0, |event| event.number);
    if let Some(streams) = &mut *stored.lock() {
        streams.set_logged(stream, last, is_last, &written);
    }
}

/// Returns the bytes of each event in the store.
async fn write(
    state: &ServerState,
    sharing: &Sharing,
    stored: &StoredSession,
    stream: u64,
    events: &[Event],
    is_last: bool,
) -> Result<Vec<usize>, Away> {
    let name = name(sharing, stored, stream);
    let node = &*sharing.cluster.node;
    let item = |event: u64, text: Option<&[u8]>, is_end| -> Result<Vec<u8>, Away> {
        let text = text.map(|text| String::from_utf8_lossy(text).into_owned());
        let logged = Logged { node: node.to_owned(), event, text, is_end };
        let logged = serde_json::to_vec(&logged).map_err(Away::new)?;
        Ok(sharing.cluster.seal.seal(&name, &logged))
    };
    let mut items = Vec::new();
    for event in events {
        items.push(item(event.number, Some(&event.frame.text), false)?);
    }
    if is_last || events.is_empty() {
        items.push(item(events.last().map_or(0, |event| event.number), None, is_last)?);
    }
    let limits = &state.settings.limits;
    // A running call may send no event until its time limit.
    let call_time = state.engine.settings().limits.call_time.unwrap_or(sharing.idle);
    let life = limits.replay_time + if is_last { Duration::ZERO } else { call_time };
    let written: Vec<usize> = items.iter().map(Vec::len).collect();
    let most = stored.lock().as_ref().map_or(items.len(), |s| s.kept(stream, &written));
    sharing.cluster.store.append(&name, Append { items: &items, most, life }).await?;
    Ok(written)
}

/// Writes the new events of streams without a reader.
pub(crate) async fn log_unread(state: &ServerState, stored: &StoredSession) {
    let unlogged = stored.lock().as_ref().map(|streams| streams.unlogged()).unwrap_or_default();
    for unlogged in unlogged {
        log(state, stored, unlogged.stream, &unlogged.events, unlogged.is_last).await;
    }
}

/// A stream of another node.
pub(crate) struct Foreign {
    state: Arc<ServerState>,
    stored: Arc<StoredSession>,
    name: String,
    /// The last event that was sent.
    last: EventId,
    next_comment: Instant,
    next_notice: Instant,
    /// The last item in the store, by its first bytes, if there were no new events then.
    known: Option<(Bytes, Tail)>,
}

/// The stored events of a stream after the last one that was sent.
#[derive(Clone, Debug, Default)]
struct Tail {
    node: String,
    /// Those that follow it without a gap.
    events: Vec<(u64, String)>,
    is_end: bool,
    /// Later events are stored, but not the next one.
    has_gap: bool,
}

impl Tail {
    /// Whether no event follows these, or not the next one.
    fn is_over(&self) -> bool {
        self.is_end || self.has_gap
    }
}

/// Resumes a stream that this node does not have. `None` if its events are not stored, or no event
/// will follow the last one.
pub(crate) async fn resume(
    state: &Arc<ServerState>,
    stored: &Arc<StoredSession>,
    last: EventId,
) -> Result<Option<Foreign>, Refusal> {
    let Some(sharing) = &state.sharing else { return Ok(None) };
    let name = name(sharing, stored, last.stream);
    let next_comment = Instant::now() + state.settings.keep_alive;
    let (state, stored) = (state.clone(), stored.clone());
    let next_notice = Instant::now();
    let mut foreign = Foreign { state, stored, name, last, next_comment, next_notice, known: None };
    let tail = foreign.look().await.map_err(|error| away(&error))?;
    let Some(tail) = tail else { return Ok(None) };
    let is_over = tail.is_over() || foreign.is_gone(&tail.node).await;
    Ok((!tail.events.is_empty() || !is_over).then_some(foreign))
}

impl Foreign {
    /// The messages of the stream, as events.
    pub(crate) fn stream(self, open: OpenStream) -> EventStream {
        let begun = futures_util::stream::iter([sse::keep_alive()]);
        let rest = futures_util::stream::unfold((self, open), |(mut foreign, open)| async move {
            let piece = foreign.next().await?;
            Some((piece, (foreign, open)))
        });
        Box::pin(begun.chain(rest))
    }

    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let is_ended = self.stored.lock().is_none();
            match self.look().await {
                _ if is_ended => return None,
                // The stored events have expired.
                Ok(None) => return None,
                Ok(Some(tail)) => {
                    let is_over = tail.is_over() || self.is_gone(&tail.node).await;
                    if !tail.events.is_empty() {
                        return Some(self.write(&tail.events));
                    }
                    if is_over {
                        return None;
                    }
                }
                // The client waits until the store can be reached again.
                Err(_) => {}
            }
            if Instant::now() >= self.next_comment {
                self.next_comment = Instant::now() + self.state.settings.keep_alive;
                return Some(sse::keep_alive());
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    fn write(&mut self, events: &[(u64, String)]) -> Bytes {
        let mut piece = Vec::new();
        for (event, text) in events {
            self.last = EventId { event: *event, ..self.last };
            sse::write(&mut piece, Some(&self.last.to_string()), text.as_bytes());
        }
        memory().count(piece.into())
    }

    /// Reads the events if there are new ones.
    async fn look(&mut self) -> Result<Option<Tail>, Away> {
        let Some(sharing) = &self.state.sharing else { return Ok(None) };
        let Some(newest) = sharing.cluster.store.last(&self.name).await? else { return Ok(None) };
        // Each item begins with random bytes.
        let newest = Bytes::copy_from_slice(&newest[..newest.len().min(BEGINNING)]);
        if let Some((known, tail)) = &self.known
            && *known == newest
        {
            return Ok(Some(tail.clone()));
        }
        let tail = self.read(sharing).await?;
        let without_news = tail.clone().filter(|tail| tail.events.is_empty());
        self.known = without_news.map(|tail| (newest, tail));
        Ok(tail)
    }

    async fn read(&self, sharing: &Sharing) -> Result<Option<Tail>, Away> {
        let mut tail: Option<Tail> = None;
        // By number: an event that was sent twice, to a client that resumed, is stored twice.
        let (mut stored, mut newest) = (BTreeMap::new(), 0);
        for item in sharing.cluster.store.items(&self.name).await? {
            let opened = sharing.cluster.seal.open(&self.name, &item).map_err(Away::new)?;
            let logged: Logged = serde_json::from_slice(&opened).map_err(Away::new)?;
            let tail = tail.get_or_insert_default();
            tail.node = logged.node;
            tail.is_end |= logged.is_end;
            newest = newest.max(logged.event);
            stored.extend(logged.text.map(|text| (logged.event, text)));
        }
        if let Some(tail) = &mut tail {
            let numbers = (self.last.event..u64::MAX).map(|number| number + 1);
            tail.events = numbers.map_while(|n| Some((n, stored.remove(&n)?))).collect();
            let last = tail.events.last().map_or(self.last.event, |(event, _)| *event);
            tail.has_gap = newest > last;
        }
        Ok(tail)
    }

    /// Whether the node that has the stream has stopped, or has forgotten the stream. Every few
    /// seconds that node is told that the client follows the stream, and the session is renewed.
    async fn is_gone(&mut self, node: &str) -> bool {
        let Some(sharing) = &self.state.sharing else { return true };
        if *node == *sharing.cluster.node {
            return true;
        }
        if Instant::now() < self.next_notice {
            return false;
        }
        self.next_notice = Instant::now() + FOLLOW;
        self.state.table.touch(&self.stored);
        shared::touch(&self.state, sharing, &self.stored).await;
        let notice = Notice::new(&self.stored, News::Follows(self.last.stream));
        sharing.tell(To::Node(node), &notice).await == Ok(false)
    }
}
