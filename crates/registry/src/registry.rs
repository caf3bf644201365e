//! The sources of a server. Replaces the catalog when they change, and tells who listens.

use std::sync::{Arc, Mutex, MutexGuard, Weak};

use arc_swap::ArcSwap;
use sabir_wire::Raw;
use sabir_wire::types::Topic;

use crate::catalog::{Catalog, CheckedOffer};
use crate::source::{Announce, BadOffer, Handle, Source};

/// What is offered now, and who offers it.
pub struct Registry {
    current: ArcSwap<Catalog>,
    sources: Mutex<Sources>,
    listener: Mutex<Option<Listener>>,
    server: Raw,
    page_size: usize,
}

type Listener = Box<dyn Fn(Topic) + Send + Sync>;

#[derive(Default)]
struct Sources {
    entries: Vec<Entry>,
    last_id: u64,
    /// Sources may come and go while clients are there.
    changeable: bool,
}

struct Entry {
    id: SourceId,
    source: Arc<dyn Source>,
    checked: CheckedOffer,
}

/// Names a source that was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SourceId(u64);

impl Registry {
    /// A registry that offers nothing. `server` is who answers, as JSON.
    pub fn new(server: Raw, page_size: usize) -> Arc<Self> {
        let (empty, _) = Catalog::build(&[], server.clone(), page_size, false);
        Arc::new(Self {
            current: ArcSwap::from_pointee(empty),
            sources: Mutex::default(),
            listener: Mutex::default(),
            server,
            page_size,
        })
    }

    /// Adds a source. Refused whole if any part of its offer is no good or its name is taken.
    pub fn add(self: &Arc<Self>, source: Arc<dyn Source>) -> Result<SourceId, BadOffer> {
        let mut ids = self.add_all(vec![source]).map_err(|(_, bad)| bad)?;
        // As many as there were sources.
        Ok(ids.remove(0))
    }

    /// Adds sources in their order, all of them or none. What is no good is told with the place of
    /// the source in the list.
    pub fn add_all(
        self: &Arc<Self>,
        added: Vec<Arc<dyn Source>>,
    ) -> Result<Vec<SourceId>, (usize, BadOffer)> {
        let checked = added
            .iter()
            .enumerate()
            .map(|(nth, source)| CheckedOffer::check(source, None).map_err(|bad| (nth, bad)));
        let checked = checked.collect::<Result<Vec<_>, _>>()?;
        let mut sources = self.lock();
        let known = sources.entries.iter().map(|entry| &entry.checked);
        let offers: Vec<_> = known.chain(&checked).collect();
        let (catalog, taken) = self.build(&offers, sources.changeable);
        // Sources that were there may have lost a name to each other before.
        let before = sources.entries.len();
        if let Some((nth, bad)) = taken.into_iter().find(|(nth, _)| *nth >= before) {
            return Err((nth - before, bad));
        }
        let mut ids = Vec::new();
        for (source, checked) in added.iter().zip(checked) {
            sources.last_id += 1;
            let id = SourceId(sources.last_id);
            sources.entries.push(Entry { id, source: source.clone(), checked });
            ids.push(id);
        }
        self.replace(catalog, sources);
        for (source, id) in added.iter().zip(&ids) {
            source.attach(Handle::new(WayBack { registry: Arc::downgrade(self), id: *id }));
        }
        Ok(ids)
    }

    /// Removes a source; `false` if it is not there.
    pub fn remove(&self, id: SourceId) -> bool {
        let mut sources = self.lock();
        let before = sources.entries.len();
        sources.entries.retain(|entry| entry.id != id);
        let found = sources.entries.len() < before;
        if found {
            self.rebuild(sources);
        }
        found
    }

    /// Removes the source that provides the tool `name`; `false` if there is none.
    pub fn remove_tool(&self, name: &str) -> bool {
        let provides =
            |entry: &Entry| entry.checked.offer.tools.iter().any(|tool| tool.name == name);
        let id = self.lock().entries.iter().find(|entry| provides(entry)).map(|entry| entry.id);
        id.is_some_and(|id| self.remove(id))
    }

    /// Says that sources may come and go from now on, so that clients are told that they may.
    pub fn allow_changes(&self) {
        let mut sources = self.lock();
        sources.changeable = true;
        self.rebuild(sources);
    }

    /// What a resource holds has changed.
    pub fn updated(&self, uri: impl Into<Box<str>>) {
        self.tell(Topic::Resource(uri.into()));
    }

    /// Calls `listener` whenever something changes. There is one; it replaces the one before.
    pub fn on_change(&self, listener: impl Fn(Topic) + Send + Sync + 'static) {
        *lock(&self.listener) = Some(Box::new(listener));
    }

    /// What is offered now.
    pub fn snapshot(&self) -> Arc<Catalog> {
        self.current.load_full()
    }

    fn refresh(&self, id: SourceId) -> Result<(), BadOffer> {
        let mut sources = self.lock();
        let Some(entry) = sources.entries.iter_mut().find(|entry| entry.id == id) else {
            return Ok(());
        };
        entry.checked = CheckedOffer::check(&entry.source, Some(&entry.checked))?;
        self.rebuild(sources);
        Ok(())
    }

    fn rebuild(&self, sources: MutexGuard<'_, Sources>) {
        let offers: Vec<_> = sources.entries.iter().map(|entry| &entry.checked).collect();
        let (catalog, _) = self.build(&offers, sources.changeable);
        self.replace(catalog, sources);
    }

    fn build(
        &self,
        offers: &[&CheckedOffer],
        changeable: bool,
    ) -> (Catalog, Vec<(usize, BadOffer)>) {
        Catalog::build(offers, self.server.clone(), self.page_size, changeable)
    }

    /// Makes `catalog` the current one, then tells what has changed. The sources stay locked until
    /// the pointer is swapped, so that no older catalog can replace a newer one.
    fn replace(&self, catalog: Catalog, sources: MutexGuard<'_, Sources>) {
        let new = Arc::new(catalog);
        let old = self.current.swap(new.clone());
        drop(sources);
        let topics = [
            (Topic::Tools, old.tools() != new.tools()),
            (Topic::Prompts, old.prompts() != new.prompts()),
            (
                Topic::Resources,
                old.resources() != new.resources() || old.templates() != new.templates(),
            ),
        ];
        for (topic, _) in topics.into_iter().filter(|(_, changed)| *changed) {
            self.tell(topic);
        }
    }

    fn tell(&self, topic: Topic) {
        if let Some(listener) = lock(&self.listener).as_ref() {
            listener(topic);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Sources> {
        lock(&self.sources)
    }
}

/// A panic elsewhere leaves the list of sources whole: every change to it is a single step.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registry").field("sources", &self.lock().entries.len()).finish()
    }
}

/// A source's way back to its registry.
struct WayBack {
    registry: Weak<Registry>,
    id: SourceId,
}

impl Announce for WayBack {
    fn changed(&self) -> Result<(), BadOffer> {
        self.registry.upgrade().map_or(Ok(()), |registry| registry.refresh(self.id))
    }

    fn updated(&self, uri: Box<str>) {
        if let Some(registry) = self.registry.upgrade() {
            registry.updated(uri);
        }
    }
}

#[cfg(test)]
mod tests;
