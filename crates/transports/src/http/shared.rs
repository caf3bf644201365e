//! Legacy sessions that survive this process, and that other nodes share.
//!
//! The store holds a record of every session. Each request reads it, so that a session which was
//! ended or changed on another node is ended or changed here. Without other nodes, the session in
//! memory is current, and the store is read only for sessions that are not in memory.
//!
//! While the store cannot be reached, sessions in memory are served for one more idle period. For
//! others the answer is 503: 404 would make the client drop a session that may exist.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::RETRY_AFTER;
use http::{HeaderValue, StatusCode};
use sabir_cluster::{Away, Swap, To};
use sabir_engine::Connection;
use sabir_session::{SessionRecord, SessionState};
use sabir_wire::Caller;

use super::activity::millis;
use super::link::Link;
use super::notice::{News, Notice};
use super::reply::Refusal;
use super::sharing::Sharing;
use super::state::ServerState;
use super::streams::Streams;
use super::table::{SessionId, StoredSession};

/// How often a change is merged with those of other nodes before saving it fails.
const MAX_MERGES: usize = 8;

/// The refusal for a session that does not exist, or belongs to another caller.
pub(crate) fn no_such_session() -> Refusal {
    Refusal::new(StatusCode::NOT_FOUND, "unknown session, or it has ended")
}

/// The refusal while the store cannot be reached.
pub(crate) fn away(away: &Away) -> Refusal {
    // The store itself logs a warning, once and not for every request.
    tracing::debug!("the store of sessions: {away}");
    let reason = "the store of sessions cannot be reached; try again";
    let later = HeaderValue::from_static("1");
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, reason).with(RETRY_AFTER, later)
}

/// Writes the record of a session that was just opened. If that fails, the session ends.
pub(crate) async fn create(
    state: &ServerState,
    sharing: &Sharing,
    stored: &StoredSession,
) -> Result<(), Refusal> {
    let shared = look(stored, |connection| Some((connection.shared()?, changes(connection))));
    let Some((record, changes)) = shared.flatten() else { return Err(no_such_session()) };
    let name = sharing.name(&stored.id, &stored.owner);
    let created = async {
        let sealed = sharing.seal(&name, &record)?;
        let swap = Swap { old: None, new: &sealed, life: sharing.life(&record) };
        sharing.cluster.store.swap(&name, swap).await?;
        Ok(Bytes::from(sealed))
    };
    match created.await {
        Ok(sealed) => {
            let now = state.clock.now();
            set_link(stored, Link::new(sealed, record, changes, now));
            Ok(())
        }
        Err(error) => {
            state.table.remove(&stored.id);
            Err(away(&error))
        }
    }
}

/// The caller's session with this id, from memory or from the store.
pub(crate) async fn find(
    state: &ServerState,
    sharing: &Sharing,
    id: &SessionId,
    caller: &Caller,
) -> Result<Arc<StoredSession>, Refusal> {
    let here = state.table.find(id, caller, false);
    let renew = here.as_ref().and_then(|stored| renewal(state, sharing, stored));
    if let (Some(stored), None, None) = (&here, &sharing.cluster.bus, renew) {
        return Ok(stored.clone());
    }
    let name = sharing.name(id, caller);
    match (sharing.cluster.store.get(&name, renew).await, here) {
        (Ok(Some(sealed)), Some(stored)) => {
            confirm(state, sharing, &stored, &name, sealed, renew.is_some()).await;
            Ok(stored)
        }
        (Ok(Some(sealed)), None) => restore(state, sharing, id, caller, &name, sealed).await,
        (Ok(None), Some(stored)) if is_being_created(&stored) => Ok(stored),
        // Ended or expired elsewhere.
        (Ok(None), here) => {
            here.map(|stored| state.table.remove(&stored.id));
            Err(no_such_session())
        }
        (Err(error), Some(stored)) => match is_stale(state, sharing, &stored) {
            true => Err(away(&error)),
            false => {
                // The session was used: the sweeper renews its record later.
                let was_owed = linked(&stored, |link| std::mem::replace(&mut link.is_owed, true));
                if was_owed == Some(false) {
                    state.table.look_after(&stored);
                }
                Ok(stored)
            }
        },
        (Err(error), None) => Err(away(&error)),
    }
}

/// The time by which to renew the record of a session; `None` before a quarter of it has passed.
fn renewal(state: &ServerState, sharing: &Sharing, stored: &StoredSession) -> Option<Duration> {
    let now = state.clock.now();
    linked(stored, |link| {
        let (life, age) = (sharing.life(&link.base), now.saturating_sub(link.renewed));
        (link.is_owed || age >= millis(life / 4)).then_some(life)
    })?
}

fn is_being_created(stored: &StoredSession) -> bool {
    linked(stored, |_| ()).is_none()
}

/// Whether a session in memory may be outdated: another node may have completed its handshake, or
/// its record was not read for an idle period.
fn is_stale(state: &ServerState, sharing: &Sharing, stored: &StoredSession) -> bool {
    let is_ready = look(stored, |connection| connection.session().state() == SessionState::Ready);
    let confirmed = linked(stored, |link| link.confirmed).unwrap_or_default();
    let age = state.clock.now().saturating_sub(confirmed);
    is_ready != Some(true) || age >= millis(sharing.idle)
}

/// Handles the record of a session in memory: adopts the changes of other nodes.
async fn confirm(
    state: &ServerState,
    sharing: &Sharing,
    stored: &StoredSession,
    name: &str,
    sealed: Bytes,
    is_renewed: bool,
) {
    let now = state.clock.now();
    let is_known = linked(stored, |link| {
        link.confirmed = now;
        link.renewed = if is_renewed { now } else { link.renewed };
        link.is_owed &= !is_renewed;
        link.sealed == sealed
    });
    if is_known != Some(false) {
        return;
    }
    let record = match sharing.open(name, &sealed) {
        Ok(record) => record,
        // A node of a newer version has changed it; the session in memory is kept.
        Err(_) => return,
    };
    let (known, life) = (linked(stored, |link| sharing.life(&link.base)), sharing.life(&record));
    adopt(stored, sealed, record);
    // Another node completed its handshake: it expires later than this node has just set.
    if is_renewed && known.is_some_and(|known| known < life) {
        let _ = sharing.cluster.store.get(name, Some(life)).await;
    }
    // Writes the changes of this node that were not written so far.
    if let Err(error) = save(state, sharing, stored).await {
        tracing::debug!("a change of a session is not stored yet: {error}");
    }
}

/// Adopts a record. Changes of this node since the last record are kept, to be written.
fn adopt(stored: &StoredSession, sealed: Bytes, theirs: SessionRecord) {
    stored.with(|streams| {
        let ours = streams.connection().shared();
        let current = changes(streams.connection());
        let Some(link) = &mut streams.link else { return };
        let merged = match ours.filter(|_| current != link.changes) {
            Some(ours) => ours.merged(&link.base, &theirs),
            None => theirs.clone(),
        };
        (link.sealed, link.base) = (sealed, theirs);
        streams.change(|connection| connection.adopt(merged));
    });
}

/// Restores a session of another node, or of an earlier process.
async fn restore(
    state: &ServerState,
    sharing: &Sharing,
    id: &SessionId,
    caller: &Caller,
    name: &str,
    sealed: Bytes,
) -> Result<Arc<StoredSession>, Refusal> {
    let record = sharing.open(name, &sealed).map_err(|error| away(&error))?;
    let life = sharing.life(&record);
    let renewed = sharing.cluster.store.get(name, Some(life)).await;
    let Some(newer) = renewed.map_err(|error| away(&error))? else {
        return Err(no_such_session());
    };
    let (sealed, record) = match newer == sealed {
        true => (sealed, record),
        // Another node has changed the record meanwhile, and may have completed the handshake.
        false => {
            let record = sharing.open(name, &newer).map_err(|error| away(&error))?;
            if sharing.life(&record) > life {
                let _ = sharing.cluster.store.get(name, Some(sharing.life(&record))).await;
            }
            (newer, record)
        }
    };
    let connection = Connection::resume(&state.engine, record.clone());
    let changes = changes(&connection);
    let mut streams = numbered(Streams::new(connection, state.bounds.clone()));
    let now = state.clock.now();
    streams.link = Some(Box::new(Link::new(sealed, record, changes, now)));
    // If another request has restored the session meanwhile, its session is used.
    state.table.restore(*id, caller.clone(), streams).ok_or_else(|| {
        let reason = "too many sessions on this node; try again later";
        Refusal::new(StatusCode::SERVICE_UNAVAILABLE, reason)
            .with(RETRY_AFTER, HeaderValue::from_static("1"))
    })
}

/// Numbers streams from a random start, so that the streams of two nodes do not collide.
pub(crate) fn numbered(streams: Streams) -> Streams {
    streams.numbered_after(SessionId::random().file() as u32)
}

/// Writes the changes of a session since its record was written. If the store cannot be reached,
/// they are written with the next request.
pub(crate) async fn save(
    state: &ServerState,
    sharing: &Sharing,
    stored: &StoredSession,
) -> Result<(), Away> {
    for _ in 0..MAX_MERGES {
        let shared = look(stored, |connection| (connection.shared(), changes(connection)));
        let Some((ours, changes)) = shared else { return Ok(()) };
        let Some(ours) = ours else { return Err(Away::new("this node is stopping")) };
        let link = linked(stored, |link| (link.changes != changes).then(|| link.clone()));
        let Some(Link { sealed: old, base, .. }) = link.flatten() else { return Ok(()) };
        let name = sharing.name(&stored.id, &stored.owner);
        let sealed = sharing.seal(&name, &ours)?;
        let store = &sharing.cluster.store;
        let swap = Swap { old: Some(&old), new: &sealed, life: sharing.life(&ours) };
        if store.swap(&name, swap).await? {
            let now = state.clock.now();
            set_link(stored, Link::new(sealed.into(), ours, changes, now));
            if base.is_ready() {
                let notice = Notice::new(stored, News::Changed);
                sharing.tell(To::All, &notice).await?;
            }
            return Ok(());
        }
        let Some(theirs) = store.get(&name, None).await? else {
            state.table.remove(&stored.id);
            return Ok(());
        };
        let record = sharing.open(&name, &theirs)?;
        adopt(stored, theirs, record);
    }
    Err(Away::new("too many nodes change the session"))
}

/// Reads the record of a session again, which another node has changed.
pub(super) async fn refresh(state: &ServerState, sharing: &Sharing, stored: &StoredSession) {
    look_up(state, sharing, stored, None).await;
}

/// Reads the record of a session in memory, and ends the session if there is none: it was ended or
/// has expired elsewhere. `false` if the store cannot be reached.
async fn look_up(
    state: &ServerState,
    sharing: &Sharing,
    stored: &StoredSession,
    renew: Option<Duration>,
) -> bool {
    let name = sharing.name(&stored.id, &stored.owner);
    let is_new = is_being_created(stored);
    match sharing.cluster.store.get(&name, renew).await {
        Ok(Some(sealed)) => confirm(state, sharing, stored, &name, sealed, renew.is_some()).await,
        Ok(None) if is_new => {}
        Ok(None) => drop(state.table.remove(&stored.id)),
        Err(_) => return false,
    }
    true
}

/// Looks up all sessions with a reader or a call, after notices about them may have been lost.
pub(super) async fn refresh_busy(state: &Arc<ServerState>) {
    let Some(sharing) = &state.sharing else { return };
    for stored in state.table.busy() {
        if !look_up(state, sharing, &stored, None).await {
            // The next gap is reported when the store is back.
            return;
        }
    }
}

/// Renews the record of a session whose client only listens.
pub(crate) async fn touch(state: &ServerState, sharing: &Sharing, stored: &StoredSession) {
    if let Some(life) = renewal(state, sharing, stored) {
        look_up(state, sharing, stored, Some(life)).await;
    }
}

/// Renews the record of a session that was used while the store could not be reached. `false` if it
/// still cannot be reached.
pub(crate) async fn repay(state: &ServerState, sharing: &Sharing, stored: &StoredSession) -> bool {
    let owed = linked(stored, |link| link.is_owed.then(|| sharing.life(&link.base)));
    match owed.flatten() {
        Some(life) => look_up(state, sharing, stored, Some(life)).await,
        None => true,
    }
}

/// Ends a session everywhere.
pub(crate) async fn end(
    state: &ServerState,
    sharing: &Sharing,
    stored: &StoredSession,
) -> Result<(), Refusal> {
    let name = sharing.name(&stored.id, &stored.owner);
    sharing.cluster.store.remove(&name).await.map_err(|error| away(&error))?;
    // Other nodes notice with the next request at the latest; this also ends their running calls.
    if let Err(error) = sharing.tell(To::All, &Notice::new(stored, News::Ended)).await {
        tracing::warn!("other nodes were not told that a session has ended: {error}");
    }
    state.table.remove(&stored.id);
    Ok(())
}

fn look<T>(stored: &StoredSession, look: impl FnOnce(&Connection) -> T) -> Option<T> {
    stored.lock().as_ref().map(|streams| look(streams.connection()))
}

fn changes(connection: &Connection) -> u32 {
    connection.session().changes()
}

/// Reads or changes the link of a session; `None` if it has none, or has ended.
fn linked<T>(stored: &StoredSession, look: impl FnOnce(&mut Link) -> T) -> Option<T> {
    stored.lock().as_mut()?.link.as_deref_mut().map(look)
}

fn set_link(stored: &StoredSession, link: Link) {
    if let Some(streams) = &mut *stored.lock() {
        streams.link = Some(Box::new(link));
    }
}
