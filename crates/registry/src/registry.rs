//! The sources of a server. Replaces the catalog when they change, and notifies the listener.
//!
//! No code of a source runs under a lock: a source may call back at any time.

mod status; // the status of each source, for operators
mod why; // why a caller sees a tool, or does not

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use sabir_wire::types::Topic;
use sabir_wire::{Raw, write_notification};

pub use self::status::SourceStatus;
pub use self::why::ToolSight;

use crate::access::{Access, AddedSource};
use crate::catalog::{Catalog, CheckedOffer};
use crate::figures::LinkEnd;
use crate::source::{BadOffer, Closing, Report, Source, SourceHandle, StartError, Starting};
use crate::watching::Watching;

/// The sources, and the current catalog of their offers.
pub struct Registry {
    current: ArcSwap<Catalog>,
    sources: Mutex<Sources>,
    /// Watched resources, by URI.
    watching: Watching,
    on_change: Mutex<Option<Listener>>,
    on_link_end: OnceLock<LinkListener>,
    server: Raw,
    page_size: usize,
}

type Listener = Box<dyn Fn(Announcement) + Send + Sync>;
type LinkListener = Box<dyn Fn(&LinkEnd<'_>) + Send + Sync>;

/// A change that clients are notified of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Announcement {
    /// Something that is offered has changed. Its subscribers are notified.
    Changed(Topic),
    /// Anything may have changed: messages of another node were lost.
    Everything,
    /// A source's own notification, a whole message. Sent to every client that has completed its
    /// handshake.
    Notification(Bytes),
}

#[derive(Default)]
struct Sources {
    entries: Vec<Entry>,
    last_id: u64,
    /// Sources may be added and removed while clients are connected.
    changeable: bool,
}

struct Entry {
    id: SourceId,
    source: Arc<dyn Source>,
    access: Access,
    checked: Arc<CheckedOffer>,
    state: SourceState,
    /// Names that it lost to another source.
    collisions: Vec<BadOffer>,
    /// Offers are numbered when they are asked for: an older one never replaces a newer one.
    last_asked: u64,
    current: u64,
}

/// Names a source that was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SourceId(u64);

/// The ids of the sources that were added, and the sources that were removed.
pub type Exchanged = Result<(Vec<SourceId>, Vec<Arc<dyn Source>>), (usize, BadOffer)>;

/// The state of a source's life cycle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceState {
    /// Added, not started.
    Added,
    /// Started, not ready yet.
    Starting,
    /// Ready.
    Ready,
    /// It could not be started.
    Failed(StartError),
}

impl Registry {
    /// An empty registry. `server` is the server's identity as JSON.
    pub fn new(server: Raw, page_size: usize) -> Arc<Self> {
        let (empty, _) = Catalog::build(&[], server.clone(), page_size, false);
        Arc::new(Self {
            current: ArcSwap::from_pointee(empty),
            sources: Mutex::default(),
            watching: Watching::default(),
            on_change: Mutex::default(),
            on_link_end: OnceLock::new(),
            server,
            page_size,
        })
    }

    /// Adds a source. Refused if any part of a strict offer is invalid or has a taken name, or if a
    /// tool or a prompt of a tolerant offer has a taken name.
    pub fn add(&self, source: Arc<dyn Source>) -> Result<SourceId, BadOffer> {
        let mut ids = self.add_all(vec![source]).map_err(|(_, bad)| bad)?;
        // One id per source.
        Ok(ids.remove(0))
    }

    /// Adds sources in their order, all of them or none. An error names the source by its place in
    /// the list.
    pub fn add_all<A: Into<AddedSource>>(
        &self,
        added: Vec<A>,
    ) -> Result<Vec<SourceId>, (usize, BadOffer)> {
        self.exchange(&[], added).map(|(ids, _)| ids)
    }

    /// The same, and removes others in the same step, whose names the new ones may take. Also
    /// returns the removed sources. The caller closes them.
    pub fn exchange<A: Into<AddedSource>>(&self, removed: &[SourceId], added: Vec<A>) -> Exchanged {
        let added: Vec<AddedSource> = added.into_iter().map(Into::into).collect();
        let checked = added.iter().enumerate().map(|(nth, AddedSource { source, access })| {
            let checked = CheckedOffer::check(source, source.offer(), access, None);
            checked.map(Arc::new).map_err(|bad| (nth, bad))
        });
        let checked = checked.collect::<Result<Vec<_>, _>>()?;
        let mut sources = self.lock();
        let stays = |entry: &&Entry| !removed.contains(&entry.id);
        let known = sources.entries.iter().filter(stays).map(|entry| &*entry.checked);
        let offers: Vec<_> = known.chain(checked.iter().map(|checked| &**checked)).collect();
        let (catalog, taken) = self.build(&offers, sources.changeable);
        // Earlier sources may have lost a name to each other.
        let before = offers.len() - checked.len();
        let is_strict =
            |nth: &usize| offers.get(*nth).is_some_and(|checked| !checked.offer.tolerant);
        // The operator chooses the names of tools and prompts, also those of another server.
        let is_refused = |(nth, bad): &&(usize, BadOffer)| {
            *nth >= before && (is_strict(nth) || bad.is_collision(&offers[*nth].provider.name))
        };
        let mut refused = taken.iter().filter(is_refused);
        if let Some((nth, bad)) = refused.next() {
            return Err((nth - before, bad.clone()));
        }
        let entries = std::mem::take(&mut sources.entries).into_iter();
        let (kept, gone): (Vec<_>, Vec<_>) = entries.partition(|entry| stays(&entry));
        sources.entries = kept;
        let mut ids = Vec::new();
        for (AddedSource { source, access }, checked) in added.into_iter().zip(checked) {
            sources.last_id += 1;
            let id = SourceId(sources.last_id);
            let (state, collisions) = (SourceState::Added, Vec::new());
            let (last_asked, current) = (0, 0);
            sources.entries.push(Entry {
                id,
                source,
                access,
                checked,
                state,
                collisions,
                last_asked,
                current,
            });
            ids.push(id);
        }
        self.replace(catalog, taken, sources);
        Ok((ids, gone.into_iter().map(|entry| entry.source).collect()))
    }

    /// Starts all sources that were added and not started. Each future must be driven, inside the
    /// runtime; it completes when its source is ready or has failed.
    pub fn start(self: &Arc<Self>) -> Vec<Starting> {
        self.start_chosen(|_| true)
    }

    /// The same for the sources that `is_chosen` names; the others stay as they are.
    pub fn start_chosen(self: &Arc<Self>, is_chosen: impl Fn(SourceId) -> bool) -> Vec<Starting> {
        let mut sources = self.lock();
        let is_added = |entry: &&mut Entry| entry.state == SourceState::Added;
        let added = sources.entries.iter_mut().filter(is_added);
        let added = added.filter(|entry| is_chosen(entry.id));
        let started = added.map(|entry| {
            entry.state = SourceState::Starting;
            (entry.id, entry.source.clone())
        });
        let started: Vec<_> = started.collect();
        drop(sources);
        let starting = started.into_iter().map(|(id, source)| {
            let registry = Arc::downgrade(self);
            let handle = SourceHandle::new(Reporter { registry: registry.clone(), id });
            let starting = source.start(handle);
            let starting: Starting = Box::pin(async move {
                let started = starting.await;
                if let Some(registry) = registry.upgrade() {
                    registry.set_state(id, &started);
                }
                started
            });
            starting
        });
        starting.collect()
    }

    /// Whether every awaited source is ready or has failed.
    pub fn is_settled(&self) -> bool {
        let sources = self.lock();
        let starting = sources
            .entries
            .iter()
            .filter(|entry| matches!(entry.state, SourceState::Added | SourceState::Starting));
        let starting: Vec<_> = starting.map(|entry| entry.source.clone()).collect();
        drop(sources);
        !starting.iter().any(|source| source.is_awaited())
    }

    /// Closes all sources. Each future must be driven, inside the runtime, for `patience` at most.
    pub fn close(&self, patience: Duration) -> Vec<Closing> {
        let sources: Vec<_> =
            self.lock().entries.iter().map(|entry| entry.source.clone()).collect();
        sources.into_iter().map(|source| source.close(patience)).collect()
    }

    /// Removes a source; `None` if it is not there. The caller closes it.
    pub fn remove(&self, id: SourceId) -> Option<Arc<dyn Source>> {
        let mut sources = self.lock();
        let at = sources.entries.iter().position(|entry| entry.id == id)?;
        let removed = sources.entries.remove(at);
        self.rebuild(sources);
        Some(removed.source)
    }

    /// The source that provides the tool `name`.
    pub fn provider_of_tool(&self, name: &str) -> Option<SourceId> {
        let provides =
            |entry: &&Entry| entry.checked.offer.tools.iter().any(|tool| tool.name == name);
        self.lock().entries.iter().find(provides).map(|entry| entry.id)
    }

    /// Declares that sources may come and go from now on, so that clients expect changes.
    pub fn allow_changes(&self) {
        let mut sources = self.lock();
        sources.changeable = true;
        self.rebuild(sources);
    }

    /// Announces that the contents of a resource have changed.
    pub fn updated(&self, uri: impl Into<Box<str>>) {
        self.announce(Announcement::Changed(Topic::Resource(uri.into())));
    }

    /// Sends a notification of our own to every client that has completed its handshake. A client
    /// that does not read loses the oldest ones. Modern clients do not get it: they only listen to
    /// changes that the specification defines.
    pub fn notify(&self, method: &str, params: Option<&Raw>) {
        self.announce(Announcement::Notification(write_notification(method, params)));
    }

    /// Adds a watcher of a resource. Its source is notified of the first one.
    pub fn watch(&self, uri: &str) {
        self.watching.add(uri, || self.provider_of_resource(uri));
    }

    fn provider_of_resource(&self, uri: &str) -> Option<Arc<dyn Source>> {
        self.snapshot().resource(uri).map(|found| found.source().clone())
    }

    /// Removes a watcher of a resource. Its source is notified when the last one is gone.
    pub fn unwatch(&self, uri: &str) {
        self.watching.remove(uri);
    }

    /// Calls `listener` at every change. It replaces the previous listener.
    pub fn on_change(&self, listener: impl Fn(Announcement) + Send + Sync + 'static) {
        *lock(&self.on_change) = Some(Box::new(listener));
    }

    /// Calls `listener` when a connection to another server has ended. The first listener stays.
    pub fn on_link_end(&self, listener: impl Fn(&LinkEnd<'_>) + Send + Sync + 'static) {
        let _ = self.on_link_end.set(Box::new(listener));
    }

    /// The current catalog.
    pub fn snapshot(&self) -> Arc<Catalog> {
        self.current.load_full()
    }

    fn set_state(&self, id: SourceId, started: &Result<(), StartError>) {
        let state = started.clone().map_or_else(SourceState::Failed, |()| SourceState::Ready);
        if let Some(entry) = self.lock().entries.iter_mut().find(|entry| entry.id == id) {
            entry.state = state;
        }
    }

    /// Asks a source for its offer again.
    fn refresh(&self, id: SourceId) -> Result<(), BadOffer> {
        let mut sources = self.lock();
        let Some(entry) = sources.entries.iter_mut().find(|entry| entry.id == id) else {
            return Ok(());
        };
        entry.last_asked += 1;
        let asked = entry.last_asked;
        let (source, before) = (entry.source.clone(), entry.checked.clone());
        let access = entry.access.clone();
        drop(sources);
        let checked = CheckedOffer::check(&source, source.offer(), &access, Some(&before))?;
        let checked = Arc::new(checked);

        let mut sources = self.lock();
        let place = sources.entries.iter().position(|entry| entry.id == id);
        let Some(nth) = place.filter(|nth| sources.entries[*nth].current < asked) else {
            return Ok(());
        };
        let is_strict = !checked.offer.tolerant;
        let before = std::mem::replace(&mut sources.entries[nth].checked, checked);
        let (catalog, taken) = self.build(&sources.offers(), sources.changeable);
        let lost = taken.iter().find(|(loser, _)| *loser == nth && is_strict);
        if let Some((_, bad)) = lost {
            sources.entries[nth].checked = before;
            return Err(bad.clone());
        }
        sources.entries[nth].current = asked;
        self.replace(catalog, taken, sources);
        Ok(())
    }

    fn rebuild(&self, sources: MutexGuard<'_, Sources>) {
        let (catalog, taken) = self.build(&sources.offers(), sources.changeable);
        self.replace(catalog, taken, sources);
    }

    fn build(
        &self,
        offers: &[&CheckedOffer],
        changeable: bool,
    ) -> (Catalog, Vec<(usize, BadOffer)>) {
        Catalog::build(offers, self.server.clone(), self.page_size, changeable)
    }

    /// Makes `catalog` the current one, then announces what has changed. The sources stay locked
    /// until the pointer is swapped, so that no older catalog can replace a newer one.
    fn replace(
        &self,
        catalog: Catalog,
        taken: Vec<(usize, BadOffer)>,
        mut sources: MutexGuard<'_, Sources>,
    ) {
        for entry in &mut sources.entries {
            entry.collisions.clear();
        }
        for (nth, bad) in taken {
            sources.entries[nth].collisions.push(bad);
        }
        let new = Arc::new(catalog);
        let old = self.current.swap(new.clone());
        drop(sources);
        self.watching.update(|uri| self.provider_of_resource(uri));
        let topics = [
            (Topic::Tools, old.tools() != new.tools()),
            (Topic::Prompts, old.prompts() != new.prompts()),
            (
                Topic::Resources,
                old.resources() != new.resources() || old.templates() != new.templates(),
            ),
        ];
        for (topic, _) in topics.into_iter().filter(|(_, changed)| *changed) {
            self.announce(Announcement::Changed(topic));
        }
    }

    fn announce(&self, announcement: Announcement) {
        if let Some(listener) = lock(&self.on_change).as_ref() {
            listener(announcement);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Sources> {
        lock(&self.sources)
    }
}

impl Sources {
    fn offers(&self) -> Vec<&CheckedOffer> {
        self.entries.iter().map(|entry| &*entry.checked).collect()
    }
}

/// A poisoned lock is used: every change to the data is a single step.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registry").field("sources", &self.lock().entries.len()).finish()
    }
}

/// Reports of one source to its registry.
struct Reporter {
    registry: Weak<Registry>,
    id: SourceId,
}

impl Report for Reporter {
    fn changed(&self) -> Result<(), BadOffer> {
        self.registry.upgrade().map_or(Ok(()), |registry| registry.refresh(self.id))
    }

    fn updated(&self, uri: Box<str>) {
        if let Some(registry) = self.registry.upgrade() {
            registry.updated(uri);
        }
    }

    fn notify(&self, method: &str, params: Option<&Raw>) {
        if let Some(registry) = self.registry.upgrade() {
            registry.notify(method, params);
        }
    }

    fn link_ended(&self, end: &LinkEnd<'_>) {
        let registry = self.registry.upgrade();
        if let Some(listener) = registry.as_ref().and_then(|one| one.on_link_end.get()) {
            listener(end);
        }
    }
}

#[cfg(test)]
mod tests;
