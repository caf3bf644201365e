//! Notices between nodes about sessions that they share.
//!
//! A call runs on the node where it began. A message about it that arrives at another node is
//! passed on: the answer to a question goes to the node in the question's id, a cancellation to all
//! nodes. Messages of a session of the first revision go to the node that has its stream.

use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use sabir_cluster::{Away, MAX_FOR_ALL, Received, Swap, To};
use sabir_engine::{Changes, Connection, PeerNews};
use sabir_wire::{Caller, Cancelled, Incoming, Message, Method, Raw};
use sabir_wire::{write_error, write_notification, write_result};
use serde_json::json;
use tokio::sync::mpsc;

use super::notice::{News, Notice};
use super::peers;
use super::reply::Refusal;
use super::shared::{away, no_such_session, refresh, refresh_busy};
use super::sharing::Sharing;
use super::state::ServerState;
use super::table::{SessionId, StoredSession};
use crate::received::ReceivedMessage;

/// Passes on the parts of a posted message that are for other nodes.
pub(crate) async fn pass_on(
    sharing: &Sharing,
    stored: &StoredSession,
    incoming: &Incoming,
) -> Result<(), Refusal> {
    let messages: Vec<&Message> = match incoming {
        Incoming::One(message) => vec![message],
        Incoming::Batch(parts) => parts.iter().flatten().collect(),
    };
    for message in messages {
        let Some((node, text)) = destination(sharing, stored, message) else { continue };
        let text = String::from_utf8_lossy(&text).into_owned();
        let notice = Notice::new(stored, News::Message(text));
        let to = node.as_deref().map_or(To::All, To::Node);
        // If the node has stopped, its call has ended and needs no answer.
        sharing.tell(to, &notice).await.map_err(|error| away(&error))?;
    }
    Ok(())
}

/// The node that a message is for, or all of them; `None` if it is for this one.
fn destination(
    sharing: &Sharing,
    stored: &StoredSession,
    message: &Message,
) -> Option<(Option<String>, Bytes)> {
    match message {
        Message::Response { id: Some(id), result } => {
            // The id as JSON is a string in quotes.
            let mut written = Vec::new();
            id.write(&mut written);
            let written = String::from_utf8(written).ok()?;
            let (node, _) = written.strip_prefix('"')?.split_once('-')?;
            let is_ours = *node == *sharing.cluster.node;
            let text = match result {
                _ if is_ours => return None,
                Ok(result) => write_result(id, result.text().as_bytes()),
                Err(error) => write_error(Some(id), error),
            };
            Some((Some(node.to_owned()), text))
        }
        Message::Notification { method: Method::Cancelled, params } => {
            let cancelled = Cancelled::parse(params.as_ref())?;
            let is_here = stored.lock().as_ref().is_some_and(|streams| {
                streams.connection().session().is_running(&cancelled.request)
            });
            // Without the reason, which may be long: all nodes get it. Nor is a call with such a
            // long id stopped on another node.
            let params = Raw::of(&json!({ "requestId": cancelled.request })).ok()?;
            let text = write_notification("notifications/cancelled", Some(&params));
            (!is_here && text.len() <= MAX_FOR_ALL / 4).then_some((None, text))
        }
        _ => None,
    }
}

/// Handles the messages of other nodes, as long as the server exists.
pub(crate) async fn listen(state: Weak<ServerState>, mut notices: mpsc::Receiver<Received>) {
    loop {
        let received = tokio::time::timeout(Duration::from_secs(1), notices.recv()).await;
        let Some(state) = state.upgrade() else { return };
        let Some(sharing) = &state.sharing else { return };
        match received {
            Err(_) => {}
            Ok(None) => return,
            Ok(Some(Received::Message(sealed))) => hear(&state, sharing, &sealed).await,
            Ok(Some(Received::Gap)) => {
                let lost = Changes { everything: true, ..Changes::default() };
                state.engine.hear(PeerNews::Changed(lost)).await;
                let state = state.clone();
                tokio::spawn(async move { refresh_busy(&state).await });
            }
        }
    }
}

async fn hear(state: &Arc<ServerState>, sharing: &Sharing, sealed: &[u8]) {
    let Some(notice) = Notice::open(&sharing.cluster.seal, sealed) else {
        if let Some(news) = peers::open(&sharing.cluster, sealed) {
            state.engine.hear(news).await;
        }
        return;
    };
    let Notice { session, caller, is_old, news } = notice;
    let Some(id) = SessionId::parse(session.as_bytes()) else { return };
    let Some(stored) = state.table.find(&id, &caller, is_old) else { return };
    match news {
        News::Ended => drop(state.table.remove(&stored.id)),
        News::Changed => refresh(state, sharing, &stored).await,
        News::Follows(stream) => {
            if let Some(streams) = &mut *stored.lock() {
                streams.follow(stream, state.clock.now());
            }
        }
        News::Message(text) => {
            let depth = state.engine.settings().engine_limits.depth;
            let frame = Bytes::from(text);
            let message = ReceivedMessage::parse(&frame, depth);
            let receive = |connection: &mut Connection, stream| {
                message.hand_to(connection, stream, caller);
            };
            // A client that does not read its messages gets no more of them.
            let _ = stored.with(|streams| streams.post_to_only(receive));
        }
    }
}

/// The kind of the record with the node that has the stream of an old session.
const OLD: &str = "old session";

/// Records that this node has the stream of an old session.
pub(crate) async fn claim_old(sharing: &Sharing, stored: &StoredSession) -> Result<(), Away> {
    let name = sharing.named(OLD, &stored.id, &stored.owner);
    let node = sharing.cluster.seal.seal(&name, sharing.cluster.node.as_bytes());
    let swap = Swap { old: None, new: &node, life: sharing.idle };
    sharing.cluster.store.swap(&name, swap).await.map(drop)
}

/// Renews that record, or writes it again if the store has lost it.
pub(crate) async fn touch_old(sharing: &Sharing, stored: &StoredSession) {
    let name = sharing.named(OLD, &stored.id, &stored.owner);
    if sharing.cluster.store.get(&name, Some(sharing.idle)).await == Ok(None)
        && let Err(error) = claim_old(sharing, stored).await
    {
        tracing::debug!("other nodes were not told of a session: {error}");
    }
}

/// Removes that record when the stream has ended.
pub(crate) async fn release_old(sharing: &Sharing, stored: &StoredSession) {
    let name = sharing.named(OLD, &stored.id, &stored.owner);
    if let Err(error) = sharing.cluster.store.remove(&name).await {
        tracing::debug!("other nodes were not told of the end of a session: {error}");
    }
}

/// Passes a message of an old session on to the node that has its stream.
pub(crate) async fn pass_on_old(
    sharing: &Sharing,
    id: &SessionId,
    caller: Caller,
    text: String,
) -> Result<(), Refusal> {
    let name = sharing.named(OLD, id, &caller);
    let record = sharing.cluster.store.get(&name, None).await.map_err(|error| away(&error))?;
    let node = sharing
        .cluster
        .seal
        .open(&name, &record.ok_or_else(no_such_session)?)
        .map_err(|_| no_such_session())?;
    let node = String::from_utf8(node).map_err(|_| no_such_session())?;
    let notice = Notice::about(id, caller, true, News::Message(text));
    let told = sharing.tell(To::Node(&node), &notice).await.map_err(|error| away(&error))?;
    if told { Ok(()) } else { Err(no_such_session()) }
}
