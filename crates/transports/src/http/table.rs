//! The legacy sessions of a server: create, look up, end, forget when unused.
//!
//! An idle session is only memory: it has no task and no timer. One task checks the sessions that
//! may have expired.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use nanoid::nanoid;
use sabir_budget::{Hold, memory};
use sabir_engine::{Progress, Turn, Waiting};
use sabir_session::SessionState;
use sabir_wire::Caller;
use subtle::ConstantTimeEq as _;

use super::activity::{Clock, millis};
use super::settings::Limits;
use super::shares::Shares;
use super::streams::Streams;

/// The id of a session: 32 random characters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SessionId([u8; 32]);

impl SessionId {
    pub(crate) fn random() -> Self {
        let mut id = [b'0'; 32];
        // `nanoid!(32)` returns 32 characters of one byte each.
        id.copy_from_slice(nanoid!(32).as_bytes());
        Self(id)
    }

    /// `None` if it cannot be the id of a session.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        text.try_into().ok().map(Self)
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Its key in the table: a hash, as the session contains the whole id.
    pub(crate) fn file(&self) -> u64 {
        let words = self.0.chunks_exact(8).filter_map(|word| word.try_into().ok());
        words.map(u64::from_le_bytes).fold(0, |file, word| file.rotate_left(7) ^ word)
    }

    /// Compares in constant time.
    fn is(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

/// A session that outlives its connections.
pub(crate) struct StoredSession {
    pub(crate) id: SessionId,
    /// The caller who opened it. For all other callers it does not exist.
    pub(crate) owner: Caller,
    /// It uses the transport of the first revision, and ends with its stream.
    is_old: bool,
    /// When it was last used.
    seen: AtomicU64,
    /// `None` once it has ended.
    streams: Mutex<Option<Streams>>,
}

impl StoredSession {
    /// Changes the session, then runs the resulting work outside of the lock; tasks take over calls
    /// that have to wait. `None` once the session has ended.
    pub(crate) fn with<T>(&self, change: impl FnOnce(&mut Streams) -> T) -> Option<T> {
        self.with_waiting(change).map(|(changed, _)| changed)
    }

    /// The same, but returns the calls that have to wait.
    pub(crate) fn with_waiting<T>(
        &self,
        change: impl FnOnce(&mut Streams) -> T,
    ) -> Option<(T, Vec<Waiting>)> {
        let mut waiting = Vec::new();
        let mut guard = self.lock();
        let streams = guard.as_mut()?;
        let changed = change(streams);
        let mut next = streams.take_work();
        drop(guard);
        let mut turn = Turn::default();
        while let Some(work) = next {
            let progress = turn.run(work);
            let mut guard = self.lock();
            let Some(streams) = guard.as_mut() else { break };
            match progress {
                Progress::Done(done) => streams.complete(done),
                Progress::Waiting(call) => waiting.push(call),
            }
            next = streams.take_work();
        }
        Some((changed, waiting))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Option<Streams>> {
        // A poisoned lock is used: the state of a session stays consistent.
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether its handshake is complete, and whether it is in use.
    fn look(&self) -> (bool, bool) {
        let streams = self.lock();
        let Some(streams) = streams.as_ref() else { return (true, false) };
        (streams.connection().session().state() == SessionState::Ready, streams.is_busy())
    }

    fn end(&self) {
        // Dropped outside of the lock: cancelling its calls may take a moment.
        let ended = self.lock().take();
        if let Some(streams) = ended {
            streams.wake_all();
        }
    }
}

/// The memory of a session without subscriptions.
const SESSION_MEMORY: usize = 3 << 10;

/// The number of sessions that are checked to find an idle one.
const MAX_LOOKS: usize = 64;

/// All sessions.
pub(crate) struct SessionTable {
    /// By [`SessionId::file`].
    sessions: DashMap<u64, Arc<StoredSession>>,
    /// Includes sessions that are being created, so that the limit holds for concurrent requests.
    count: AtomicUsize,
    limit: usize,
    idle: u64,
    handshake: u64,
    clock: Arc<Clock>,
    shares: Mutex<Shares<StoredSession>>,
    memory: Mutex<Hold>,
    /// When to check which session.
    ages: Mutex<BinaryHeap<Age>>,
    /// Sessions with something to look after: calls or streams without a reader.
    unattended: Mutex<Vec<Weak<StoredSession>>>,
}

/// When to check a session. The earliest is the greatest.
struct Age {
    due: u64,
    stored: Weak<StoredSession>,
}

impl Ord for Age {
    fn cmp(&self, other: &Self) -> Ordering {
        other.due.cmp(&self.due)
    }
}

impl PartialOrd for Age {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Age {
    fn eq(&self, other: &Self) -> bool {
        self.due == other.due
    }
}

impl Eq for Age {}

impl SessionTable {
    pub(crate) fn new(clock: Arc<Clock>, limits: &Limits) -> Self {
        Self {
            sessions: DashMap::new(),
            count: AtomicUsize::new(0),
            limit: limits.sessions,
            idle: millis(limits.session_idle),
            handshake: millis(limits.handshake_time.min(limits.session_idle)),
            clock,
            shares: Mutex::new(Shares::new(limits.sessions)),
            memory: Mutex::new(memory().take_anyway(0)),
            ages: Mutex::default(),
            unattended: Mutex::default(),
        }
    }

    /// Adds a session. If there are too many, the least recently used one is ended; `None` if all
    /// are in use, or there is no memory.
    pub(crate) fn insert(&self, streams: Streams, is_old: bool) -> Option<Arc<StoredSession>> {
        let owner = streams.connection().session().owner().clone();
        self.keep(None, owner, streams, is_old)
    }

    /// Adds a session of another node or an earlier process. Returns the existing one if another
    /// request has added it.
    pub(crate) fn restore(
        &self,
        id: SessionId,
        owner: Caller,
        streams: Streams,
    ) -> Option<Arc<StoredSession>> {
        self.keep(Some(id), owner, streams, false)
    }

    fn keep(
        &self,
        given: Option<SessionId>,
        owner: Caller,
        streams: Streams,
        is_old: bool,
    ) -> Option<Arc<StoredSession>> {
        let has_room = |count| (count < self.limit).then_some(count + 1);
        while self.count.fetch_update(AcqRel, Acquire, has_room).is_err() {
            self.end_oldest()?;
        }
        match memory().take(SESSION_MEMORY) {
            Ok(hold) => lock(&self.memory).absorb(hold),
            Err(_) => {
                self.count.fetch_sub(1, AcqRel);
                return None;
            }
        }
        let now = self.clock.now();
        let (streams, seen) = (Mutex::new(Some(streams)), AtomicU64::new(now));
        let (id, file) = loop {
            let id = given.unwrap_or_else(SessionId::random);
            match self.sessions.entry(id.file()) {
                Entry::Vacant(file) => break (id, file),
                Entry::Occupied(file) if given.is_some() => {
                    self.count.fetch_sub(1, AcqRel);
                    lock(&self.memory).shrink(SESSION_MEMORY);
                    return Some(file.get()).filter(|stored| stored.id.is(&id)).cloned();
                }
                // A collision of two keys is nearly impossible; another id is drawn.
                Entry::Occupied(_) => {}
            }
        };
        let stored = Arc::new(StoredSession { id, owner, is_old, seen, streams });
        drop(file.insert(stored.clone()));
        self.look_at(now.saturating_add(self.handshake), &stored);
        let one_too_many = {
            let seen = |stored: &StoredSession| stored.seen.load(Relaxed);
            lock(&self.shares).add(stored.owner.share(), &stored, seen)
        };
        if let Some(oldest) = one_too_many {
            self.remove(&oldest.id);
        }
        Some(stored)
    }

    /// Ends the least recently used session; `None` if all are in use.
    fn end_oldest(&self) -> Option<()> {
        for _ in 0..MAX_LOOKS {
            let age = lock(&self.ages).pop()?;
            let Some(stored) = age.stored.upgrade() else { continue };
            let (is_ready, is_busy) = stored.look();
            let due = self.due(&stored, is_ready);
            match is_busy || due > age.due {
                true => self.look_at(due.max(age.due + 1), &stored),
                false => return self.remove(&stored.id).then_some(()),
            }
        }
        None
    }

    /// When a session expires if it is not used.
    fn due(&self, stored: &StoredSession, is_ready: bool) -> u64 {
        let time = if is_ready { self.idle } else { self.handshake };
        stored.seen.load(Relaxed).saturating_add(time)
    }

    /// The session with this id, if it belongs to the caller. Marks it as used.
    pub(crate) fn find(
        &self,
        id: &SessionId,
        caller: &Caller,
        is_old: bool,
    ) -> Option<Arc<StoredSession>> {
        let stored = self.sessions.get(&id.file())?;
        let is_it = |s: &&Arc<StoredSession>| {
            s.id.is(id) && s.is_old == is_old && s.owner.is_same_as(caller)
        };
        let stored = Some(&*stored).filter(is_it)?.clone();
        self.touch(&stored);
        Some(stored)
    }

    /// Marks a session as used.
    pub(crate) fn touch(&self, stored: &StoredSession) {
        stored.seen.store(self.clock.now(), Relaxed);
    }

    /// Ends a session; `false` if there is none with this id.
    pub(crate) fn remove(&self, id: &SessionId) -> bool {
        let removed = self.sessions.remove_if(&id.file(), |_, stored| stored.id.is(id));
        let Some((_, stored)) = removed else { return false };
        self.count.fetch_sub(1, AcqRel);
        lock(&self.memory).shrink(SESSION_MEMORY);
        lock(&self.shares).forget(stored.owner.share());
        stored.end();
        true
    }

    /// Asks the sweeper to check a session that has running work without a reader.
    pub(crate) fn look_after(&self, stored: &Arc<StoredSession>) {
        lock(&self.unattended).push(Arc::downgrade(stored));
    }

    /// The sessions with a reader or a running call, without those of the first revision.
    pub(crate) fn busy(&self) -> Vec<Arc<StoredSession>> {
        let sessions = self.sessions.iter().map(|entry| entry.clone());
        sessions.filter(|stored| !stored.is_old && stored.look().1).collect()
    }

    /// The number of sessions.
    pub(crate) fn len(&self) -> usize {
        self.count.load(Acquire)
    }

    /// Ends all sessions.
    pub(crate) fn clear(&self) {
        let ids: Vec<_> = self.sessions.iter().map(|entry| entry.id).collect();
        for id in ids {
            self.remove(&id);
        }
        lock(&self.ages).clear();
    }

    /// Checks at most `most` sessions, and ends those that have expired. Whether there may be more.
    pub(crate) fn expire(&self, now: u64, most: usize) -> bool {
        for _ in 0..most {
            let Some(stored) = self.next_due(now) else { return false };
            let Some(stored) = stored.upgrade() else { continue };
            let (is_ready, is_busy) = stored.look();
            // A stream alone does not keep a session without a handshake.
            if is_busy && (is_ready || !stored.is_old) {
                stored.seen.store(now, Relaxed);
            }
            let due = self.due(&stored, is_ready);
            if due <= now {
                self.remove(&stored.id);
            } else {
                self.look_at(due, &stored);
            }
        }
        true
    }

    fn look_at(&self, due: u64, stored: &Arc<StoredSession>) {
        lock(&self.ages).push(Age { due, stored: Arc::downgrade(stored) });
    }

    fn next_due(&self, now: u64) -> Option<Weak<StoredSession>> {
        let mut ages = lock(&self.ages);
        // Entries of ended sessions are removed once they outnumber the others.
        if ages.len() > 2 * self.len() + 1024 {
            ages.retain(|age| age.stored.strong_count() > 0);
        }
        if ages.peek()?.due > now {
            return None;
        }
        ages.pop().map(|age| age.stored)
    }

    /// Takes all sessions from the list of the sweeper.
    pub(crate) fn unattended(&self) -> Vec<Weak<StoredSession>> {
        std::mem::take(&mut *lock(&self.unattended))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
