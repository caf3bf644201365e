//! A store that several nodes share, or that one node keeps over restarts.
//!
//! A task is one record, whose name is derived from its caller and its id. The store decides about
//! the end of a task: it is written by compare-and-set, and stays.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sabir_cluster::{Append, Away, Cluster, Swap};
use sabir_wire::Caller;

use crate::record::TaskRecord;
use crate::store::{Pending, StoreError, TaskStore};

/// The listed tasks of one caller. The oldest are left out.
const MAX_LISTED: usize = 1000;

/// The shortest time for which the list of a caller's tasks is kept after the last task.
const LISTED: Duration = Duration::from_secs(7 * 86_400);

/// How often a change is tried while other nodes are faster.
const MAX_TRIES: usize = 16;

/// Keeps tasks in the store of a cluster.
#[derive(Clone, Debug)]
pub struct SharedStore(Cluster);

impl SharedStore {
    /// Tasks of the node that `cluster` names.
    pub fn new(cluster: Cluster) -> Self {
        Self(cluster)
    }

    fn name(&self, kind: &str, caller: &Caller, id: &str) -> String {
        let parts = [kind, caller.issuer(), caller.subject(), id];
        self.0.seal.name(&parts.map(str::as_bytes))
    }

    fn open(&self, name: &str, sealed: &[u8]) -> Result<TaskRecord, StoreError> {
        let bytes = self.0.seal.open(name, sealed).map_err(StoreError::new)?;
        TaskRecord::from_bytes(&bytes).map_err(StoreError::new)
    }

    async fn replace(&self, record: &TaskRecord) -> Result<Option<TaskRecord>, StoreError> {
        let TaskRecord { owner, task, .. } = record;
        let name = self.name("task", owner, &task.id);
        let sealed = self.0.seal.seal(&name, &record.to_bytes().map_err(StoreError::new)?);
        let life = Duration::from_millis(record.expires_ms()).saturating_sub(unix_time());
        for _ in 0..MAX_TRIES {
            let old = self.0.store.get(&name, None).await?;
            if let Some(known) = old.as_deref().map(|old| self.open(&name, old)).transpose()?
                && known.task.state.is_final()
            {
                return Ok(Some(known));
            }
            if life.is_zero() {
                return Ok(None);
            }
            let swap = Swap { old: old.as_deref(), new: &sealed, life };
            if self.0.store.swap(&name, swap).await? {
                if old.is_none() {
                    self.index(owner, &task.id, life).await?;
                }
                return Ok(None);
            }
        }
        Err(StoreError::new("too many nodes change the task"))
    }

    /// Adds a task to the list of its caller.
    async fn index(&self, owner: &Caller, id: &str, life: Duration) -> Result<(), StoreError> {
        let name = self.name("tasks", owner, "");
        let items = &[self.0.seal.seal(&name, id.as_bytes())];
        let list = Append { items, most: MAX_LISTED, life: life.max(LISTED) };
        Ok(self.0.store.append(&name, list).await?)
    }

    async fn read(&self, caller: &Caller, id: &str) -> Result<Option<TaskRecord>, StoreError> {
        let name = self.name("task", caller, id);
        let sealed = self.0.store.get(&name, None).await?;
        sealed.map(|sealed| self.open(&name, &sealed)).transpose()
    }
}

impl TaskStore for SharedStore {
    /// Empty: the tasks of a process that has ended are found by their ids.
    fn load(&self) -> Result<Vec<TaskRecord>, StoreError> {
        Ok(Vec::new())
    }

    fn save<'a>(&'a self, record: &'a TaskRecord) -> Pending<'a, Option<TaskRecord>> {
        Box::pin(self.replace(record))
    }

    /// The store removes expired records by itself.
    fn remove<'a>(&'a self, _ids: &'a [Box<str>]) -> Pending<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    fn node(&self) -> Option<&str> {
        Some(&self.0.node)
    }

    fn find<'a>(&'a self, caller: &'a Caller, id: &'a str) -> Pending<'a, Option<TaskRecord>> {
        Box::pin(self.read(caller, id))
    }

    fn list<'a>(&'a self, caller: &'a Caller) -> Pending<'a, Vec<TaskRecord>> {
        Box::pin(async move {
            let name = self.name("tasks", caller, "");
            let mut records = Vec::new();
            for sealed in self.0.store.items(&name).await? {
                let id = self.0.seal.open(&name, &sealed).map_err(StoreError::new)?;
                let id = String::from_utf8(id).map_err(StoreError::new)?;
                records.extend(self.read(caller, &id).await?);
            }
            Ok(records)
        })
    }
}

impl From<Away> for StoreError {
    fn from(away: Away) -> Self {
        Self::new(away)
    }
}

fn unix_time() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use sabir_cluster::{DiskStore, Hub, Store};
    use sabir_wire::types::Question;
    use sabir_wire::{Raw, Task, TaskState};

    use super::*;

    fn ann() -> Caller {
        Caller::new("i", "ann")
    }

    fn record(id: &str, state: TaskState) -> TaskRecord {
        let created_ms = u64::try_from(unix_time().as_millis()).unwrap();
        let (updated_ms, ttl_ms, poll_ms) = (created_ms, 60_000, 4);
        let task = Task { id: id.into(), created_ms, updated_ms, ttl_ms, poll_ms, state };
        TaskRecord { owner: ann(), conversation: None, task, continuation: None }
    }

    async fn a_task_is_found_on_every_node_and_its_end_is_final(store: Arc<dyn Store>) {
        let [one, other] =
            [0, 1].map(|_| SharedStore::new(Cluster::alone(store.clone(), &[7; 32])));
        assert_ne!(one.node(), other.node());
        for state in [
            TaskState::Working,
            TaskState::InputRequired(vec![("k".into(), Question::roots())]),
            TaskState::Working,
        ] {
            assert!(one.save(&record("a", state.clone())).await.unwrap().is_none());
            let found = other.find(&ann(), "a").await.unwrap().unwrap();
            assert_eq!(found.task.state, state);
        }
        let bob = Caller::new("i", "bob");
        assert!(other.find(&bob, "a").await.unwrap().is_none(), "to others it does not exist");
        assert!(other.save(&record("a", TaskState::Cancelled)).await.unwrap().is_none());
        let done = TaskState::Completed(Raw::parse("{}").unwrap());
        let known = one.save(&record("a", done.clone())).await.unwrap().unwrap();
        assert_eq!(known.task.state, TaskState::Cancelled);
        assert!(one.save(&record("b", done)).await.unwrap().is_none());
        let listed = other.list(&ann()).await.unwrap();
        let ids: Vec<_> = listed.iter().map(|record| &*record.task.id).collect();
        assert_eq!(ids, ["a", "b"]);
        assert!(other.list(&bob).await.unwrap().is_empty());
        let stranger = SharedStore::new(Cluster::alone(store, &[8; 32]));
        assert!(stranger.find(&ann(), "a").await.unwrap().is_none(), "another key");
    }

    #[tokio::test]
    async fn tasks_are_shared_in_memory_and_in_a_file() {
        a_task_is_found_on_every_node_and_its_end_is_final(Arc::new(Hub::default())).await;
        let folder = tempfile::tempdir().unwrap();
        let file = DiskStore::open(&folder.path().join("state.redb")).unwrap();
        a_task_is_found_on_every_node_and_its_end_is_final(Arc::new(file)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn the_store_forgets_a_task_when_its_time_is_over() {
        let hub = Arc::new(Hub::default());
        let store = SharedStore::new(Cluster::alone(hub.clone(), &[7; 32]));
        store.save(&record("a", TaskState::Working)).await.unwrap();
        assert!(store.find(&ann(), "a").await.unwrap().is_some());
        tokio::time::advance(Duration::from_millis(60_001)).await;
        assert!(store.find(&ann(), "a").await.unwrap().is_none());
        assert!(store.list(&ann()).await.unwrap().is_empty());
        hub.set_away(true);
        assert!(store.save(&record("b", TaskState::Working)).await.is_err());
    }
}
