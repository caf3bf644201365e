//! A store in a file that survives the process, also one that is killed.

use std::path::Path;
use std::sync::Arc;

use redb::{Database, ReadableDatabase as _, ReadableTable as _, TableDefinition};
use sabir_cluster::create_private;

use crate::record::TaskRecord;
use crate::store::{Pending, StoreError, TaskStore};

const TASKS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("tasks");

type Tasks<'t> = redb::Table<'t, &'static str, &'static [u8]>;

/// Keeps tasks in a file, which one process has open at a time. A change is on the disk before the
/// future completes.
#[derive(Debug)]
pub struct DiskStore(Arc<Database>);

impl DiskStore {
    /// Opens the file, or creates it.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let named = |error: &dyn std::fmt::Display| {
            StoreError::new(format!("cannot open the task store {}: {error}", path.display()))
        };
        create_private(path).map_err(|error| named(&error))?;
        let database = Database::create(path).map_err(|error| named(&error))?;
        // Reading demands that the table exists.
        let created = || -> Result<(), redb::Error> {
            let change = database.begin_write()?;
            change.open_table(TASKS)?;
            Ok(change.commit()?)
        };
        created().map_err(|error| named(&error))?;
        Ok(Self(Arc::new(database)))
    }

    /// Runs outside of the threads that serve: a write waits for the disk.
    fn change<T: Send + 'static, R: Send + 'static>(
        &self,
        given: T,
        change: impl FnOnce(&mut Tasks<'_>, T) -> Result<R, redb::StorageError> + Send + 'static,
    ) -> Pending<'_, R> {
        let database = self.0.clone();
        Box::pin(async move {
            let changed = tokio::task::spawn_blocking(move || -> Result<R, redb::Error> {
                let transaction = database.begin_write()?;
                let changed = change(&mut transaction.open_table(TASKS)?, given)?;
                transaction.commit()?;
                Ok(changed)
            });
            changed.await.map_err(StoreError::new)?.map_err(StoreError::new)
        })
    }

    fn read(&self) -> Result<Vec<Vec<u8>>, redb::Error> {
        let mut all = Vec::new();
        for entry in self.0.begin_read()?.open_table(TASKS)?.iter()? {
            all.push(entry?.1.value().to_vec());
        }
        Ok(all)
    }
}

impl TaskStore for DiskStore {
    fn load(&self) -> Result<Vec<TaskRecord>, StoreError> {
        let all = self.read().map_err(StoreError::new)?;
        let read = all.iter().filter_map(|bytes| match TaskRecord::from_bytes(bytes) {
            Ok(record) => Some(record.found()),
            // A task that another version has written must not hide the others.
            Err(error) => {
                tracing::error!("a task that was kept cannot be read: {error}");
                None
            }
        });
        Ok(read.collect())
    }

    fn save<'a>(&'a self, record: &'a TaskRecord) -> Pending<'a, Option<TaskRecord>> {
        Box::pin(async move {
            let bytes = record.to_bytes().map_err(StoreError::new)?;
            let given = (record.task.id.clone(), bytes);
            let save = |tasks: &mut Tasks<'_>, (id, bytes): (Box<str>, Vec<u8>)| {
                let known = tasks.get(&*id)?.map(|known| TaskRecord::from_bytes(known.value()));
                // One that cannot be read is replaced.
                let ended = known.and_then(Result::ok).filter(|one| one.task.state.is_final());
                if ended.is_none() {
                    tasks.insert(&*id, &*bytes)?;
                }
                Ok(ended)
            };
            self.change(given, save).await
        })
    }

    fn remove<'a>(&'a self, ids: &'a [Box<str>]) -> Pending<'a, ()> {
        self.change(ids.to_vec(), |tasks, ids| {
            ids.iter().try_for_each(|id| tasks.remove(&**id).map(drop))
        })
    }
}

#[cfg(test)]
mod tests {
    use sabir_wire::types::ClientCapabilities;
    use sabir_wire::{Caller, Raw, Task, TaskState};

    use super::*;
    use crate::record::Continuation;

    fn record(id: &str, state: TaskState) -> TaskRecord {
        let task =
            Task { id: id.into(), created_ms: 1, updated_ms: 2, ttl_ms: 3, poll_ms: 4, state };
        let (owner, conversation) = (Caller::new("i", "ann"), Some(7));
        TaskRecord { owner, conversation, task, continuation: None }
    }

    #[tokio::test]
    async fn what_was_saved_is_there_when_the_file_is_opened_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tasks.redb");
        let done = TaskState::Completed(Raw::parse(r#"{"content":[1e400]}"#).unwrap());
        let store = DiskStore::open(&path).unwrap();
        store.save(&record("done", TaskState::Working)).await.unwrap();
        store.save(&record("done", done.clone())).await.unwrap();
        store.save(&record("lost", TaskState::Working)).await.unwrap();
        let continuation = Continuation {
            tool: "t".into(),
            arguments: Raw::empty_object(),
            capabilities: ClientCapabilities::everything(),
            state: Raw::parse("[7]").unwrap(),
        };
        for (id, state) in [("works", TaskState::Working), ("worked", TaskState::Cancelled)] {
            let continuation = Some(continuation.clone());
            store.save(&TaskRecord { continuation, ..record(id, state) }).await.unwrap();
        }
        store.save(&record("gone", TaskState::Cancelled)).await.unwrap();
        store.save(&record("old", TaskState::Cancelled)).await.unwrap();
        store.remove(&["old".into(), "unknown".into()]).await.unwrap();
        drop(store);
        let mut read = DiskStore::open(&path).unwrap().load().unwrap();
        read.sort_by(|a, b| a.task.id.cmp(&b.task.id));
        let states: Vec<_> = read.iter().map(|r| (&*r.task.id, r.task.state.clone())).collect();
        let lost = record("lost", TaskState::Working).interrupted().task.state;
        let (cancelled, works) = (TaskState::Cancelled, TaskState::Working);
        assert_eq!(
            states,
            [
                ("done", done),
                ("gone", cancelled.clone()),
                ("lost", lost),
                ("worked", cancelled),
                ("works", works)
            ]
        );
        let continuations: Vec<_> =
            read.iter().map(|record| record.continuation.as_ref()).collect();
        assert_eq!(continuations, [None, None, None, None, Some(&continuation)]);
        assert!(read[0].owner.is_same_as(&Caller::new("i", "ann")));
        assert_eq!(
            (read[0].task.created_ms, read[0].task.ttl_ms, read[0].conversation),
            (1, 3, None)
        );
    }

    #[tokio::test]
    async fn a_task_that_has_ended_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let store = DiskStore::open(&folder.path().join("tasks.redb")).unwrap();
        assert!(store.save(&record("a", TaskState::Cancelled)).await.unwrap().is_none());
        let late = [TaskState::Working, TaskState::Completed(Raw::empty_object())];
        for state in late {
            let known = store.save(&record("a", state)).await.unwrap();
            assert_eq!(known.map(|known| known.task.state), Some(TaskState::Cancelled));
        }
        assert_eq!(store.load().unwrap()[0].task.state, TaskState::Cancelled);
    }

    #[tokio::test]
    async fn a_task_that_cannot_be_read_does_not_hide_the_others() {
        let folder = tempfile::tempdir().unwrap();
        let store = DiskStore::open(&folder.path().join("tasks.redb")).unwrap();
        store.save(&record("done", TaskState::Cancelled)).await.unwrap();
        let newer = store.change((), |tasks, ()| tasks.insert("new", &b"{\"of\":2}"[..]).map(drop));
        newer.await.unwrap();
        let read = store.load().unwrap();
        assert_eq!(read.iter().map(|record| &*record.task.id).collect::<Vec<_>>(), ["done"]);
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_can_read_a_new_file() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tasks.redb");
        drop(DiskStore::open(&path).unwrap());
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
        drop(DiskStore::open(&path).unwrap());
        let mode = path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o640, "chosen permissions stay");
    }

    #[test]
    fn a_file_that_is_something_else_is_refused_by_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes.txt");
        std::fs::write(&path, "notes, not tasks").unwrap();
        let refused = DiskStore::open(&path).unwrap_err().to_string();
        assert!(refused.contains("notes.txt"), "{refused}");
    }
}
