//! The events of POST streams in the store, for clients that resume a stream on another node.
//!
//! Every event is stored before it is sent. A node that does not have a stream reads its events
//! from the store, and waits for more as long as the node with the stream lives.

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
    if let Err(error) = write(state, sharing, stored, stream, events, is_last).await {
        return tracing::debug!("events are not stored: {error}");
    }
    let last = events.last().map_or(0, |event| event.number);
    if let Some(streams) = &mut *stored.lock() {
        streams.set_logged(stream, last, is_last);
    }
}

async fn write(
    state: &ServerState,
    sharing: &Sharing,
    stored: &StoredSession,
    stream: u64,
    events: &[Event],
    is_last: bool,
) -> Result<(), Away> {
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
    let list = Append { items: &items, most: limits.replay + 1, life };
    sharing.cluster.store.append(&name, list).await
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
}

/// The stored events of a stream after the last one that was sent.
struct Tail {
    node: String,
    events: Vec<(u64, String)>,
    is_end: bool,
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
    let mut foreign = Foreign { state, stored, name, last, next_comment, next_notice };
    let tail = foreign.look().await.map_err(|error| away(&error))?;
    let Some(tail) = tail else { return Ok(None) };
    let is_over = tail.is_end || foreign.is_gone(&tail.node).await;
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
                    let is_over = tail.is_end || self.is_gone(&tail.node).await;
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

    async fn look(&self) -> Result<Option<Tail>, Away> {
        let Some(sharing) = &self.state.sharing else { return Ok(None) };
        let mut tail: Option<Tail> = None;
        let mut last = self.last.event;
        for item in sharing.cluster.store.items(&self.name).await? {
            let opened = sharing.cluster.seal.open(&self.name, &item).map_err(Away::new)?;
            let logged: Logged = serde_json::from_slice(&opened).map_err(Away::new)?;
            let (events, node) = (Vec::new(), String::new());
            let tail = tail.get_or_insert(Tail { node, events, is_end: false });
            tail.node = logged.node;
            tail.is_end |= logged.is_end;
            // An event that was sent twice, to a client that resumed, is stored twice.
            if let Some(text) = logged.text.filter(|_| logged.event > last) {
                last = logged.event;
                tail.events.push((logged.event, text));
            }
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
