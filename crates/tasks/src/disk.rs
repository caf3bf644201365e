//! A store in a file that survives the process, also one that is killed.

use std::path::Path;

use redb::{Database, ReadableDatabase as _, ReadableTable as _, TableDefinition};

use crate::record::TaskRecord;
use crate::store::{StoreError, TaskStore};

const TASKS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("tasks");

/// Keeps tasks in a file, which one process has open at a time. A change is on the disk before the
/// method returns.
#[derive(Debug)]
pub struct DiskStore(Database);

impl DiskStore {
    /// Opens the file, or creates it.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let named = |error: &dyn std::fmt::Display| {
            StoreError::new(format!("cannot open the task store {}: {error}", path.display()))
        };
        let database = Database::create(path).map_err(|error| named(&error))?;
        // Reading demands that the table exists.
        let created = || -> Result<(), redb::Error> {
            let change = database.begin_write()?;
            change.open_table(TASKS)?;
            Ok(change.commit()?)
        };
        created().map_err(|error| named(&error))?;
        Ok(Self(database))
    }

    fn change(
        &self,
        change: impl FnOnce(&mut redb::Table<'_, &str, &[u8]>) -> Result<(), redb::StorageError>,
    ) -> Result<(), redb::Error> {
        let transaction = self.0.begin_write()?;
        change(&mut transaction.open_table(TASKS)?)?;
        Ok(transaction.commit()?)
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
        all.iter().map(|bytes| TaskRecord::from_bytes(bytes).map_err(StoreError::new)).collect()
    }

    fn save(&self, record: &TaskRecord) -> Result<(), StoreError> {
        let bytes = record.to_bytes().map_err(StoreError::new)?;
        let id = &*record.task.id;
        self.change(|tasks| tasks.insert(id, &*bytes).map(drop)).map_err(StoreError::new)
    }

    fn remove(&self, ids: &[Box<str>]) -> Result<(), StoreError> {
        let forget = |tasks: &mut redb::Table<'_, &str, &[u8]>| {
            ids.iter().try_for_each(|id| tasks.remove(&**id).map(drop))
        };
        self.change(forget).map_err(StoreError::new)
    }
}

#[cfg(test)]
mod tests {
    use sabir_wire::{Caller, Raw, Task, TaskState};

    use super::*;

    fn record(id: &str, state: TaskState) -> TaskRecord {
        let task =
            Task { id: id.into(), created_ms: 1, updated_ms: 2, ttl_ms: 3, poll_ms: 4, state };
        TaskRecord { owner: Caller::new("i", "ann"), conversation: Some(7), task }
    }

    #[test]
    fn what_was_saved_is_there_when_the_file_is_opened_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tasks.redb");
        let done = TaskState::Completed(Raw::parse(r#"{"content":[1e400]}"#).unwrap());
        let store = DiskStore::open(&path).unwrap();
        store.save(&record("done", TaskState::Working)).unwrap();
        store.save(&record("done", done.clone())).unwrap();
        store.save(&record("lost", TaskState::Working)).unwrap();
        store.save(&record("gone", TaskState::Cancelled)).unwrap();
        store.save(&record("old", TaskState::Cancelled)).unwrap();
        store.remove(&["old".into(), "unknown".into()]).unwrap();
        drop(store);
        let mut read = DiskStore::open(&path).unwrap().load().unwrap();
        read.sort_by(|a, b| a.task.id.cmp(&b.task.id));
        let states: Vec<_> = read.iter().map(|r| (&*r.task.id, r.task.state.clone())).collect();
        let lost = TaskState::Failed(crate::record::interrupted());
        assert_eq!(states, [("done", done), ("gone", TaskState::Cancelled), ("lost", lost)]);
        assert!(read[0].owner.is_same_as(&Caller::new("i", "ann")));
        assert_eq!(
            (read[0].task.created_ms, read[0].task.ttl_ms, read[0].conversation),
            (1, 3, None)
        );
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
