//! A store in a file that survives the process, also one that is killed.

use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use redb::{
    Database, Durability, ReadableDatabase as _, ReadableTable as _, ReadableTableMetadata as _,
};
use redb::{Table, TableDefinition};

use crate::store::{Append, Away, Bound, Count, Pending, Store, Swap, count_all};

/// By name: when it expires, in milliseconds since 1970, and the record.
const RECORDS: TableDefinition<'_, &str, (u64, &[u8])> = TableDefinition::new("records");

/// Records at once. One more is refused, once those that have expired are removed.
const MAX_RECORDS: u64 = 1_000_000;

/// After so many changes, records that have expired are removed.
const SWEEP_AFTER: usize = 1024;

/// Keeps records in a file, which one process has open at a time. A change is on the disk before
/// its future completes.
#[derive(Debug)]
pub struct DiskStore(Arc<Records>);

#[derive(Debug)]
struct Records {
    database: Database,
    changes: AtomicUsize,
    clock: fn() -> u64,
}

impl DiskStore {
    /// Opens the file, or creates it.
    pub fn open(path: &Path) -> Result<Self, Away> {
        Self::open_with(path, unix_millis)
    }

    fn open_with(path: &Path, clock: fn() -> u64) -> Result<Self, Away> {
        let named = |error: &dyn std::fmt::Display| {
            Away::new(format!("cannot open the store {}: {error}", path.display()))
        };
        create_private(path).map_err(|error| named(&error))?;
        let database = Database::create(path).map_err(|error| named(&error))?;
        let records = Records { database, changes: AtomicUsize::new(0), clock };
        // Reading demands that the table exists.
        let now = (records.clock)();
        records.change(|table| expire(table, now)).map_err(|error| named(&error))?;
        Ok(Self(Arc::new(records)))
    }

    /// Runs outside of the threads that serve: a write waits for the disk.
    fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Records) -> Result<T, redb::Error> + Send + 'static,
    ) -> Pending<'_, T> {
        let records = self.0.clone();
        Box::pin(async move {
            let done = tokio::task::spawn_blocking(move || work(&records)).await;
            done.map_err(Away::new)?.map_err(Away::new)
        })
    }
}

/// Creates the file of a store, unless it is there, for its owner only: it holds data of callers.
pub fn create_private(path: &Path) -> std::io::Result<()> {
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

impl Records {
    fn change<T>(
        &self,
        change: impl FnOnce(&mut Table<'_, &str, (u64, &[u8])>) -> Result<T, redb::StorageError>,
    ) -> Result<T, redb::Error> {
        let transaction = self.database.begin_write()?;
        let changed = change(&mut transaction.open_table(RECORDS)?)?;
        transaction.commit()?;
        Ok(changed)
    }

    fn read(&self, name: &str) -> Result<Option<Bytes>, redb::Error> {
        let table = self.database.begin_read()?.open_table(RECORDS)?;
        let record = table.get(name)?;
        let record = record.as_ref().map(redb::AccessGuard::value);
        let record = record.filter(|(end, _)| *end > (self.clock)());
        Ok(record.map(|(_, record)| Bytes::copy_from_slice(record)))
    }

    /// Reads a record that is kept for `life` from now on.
    fn renew(&self, name: &str, life: Duration) -> Result<Option<Bytes>, redb::Error> {
        let Some(record) = self.read(name)? else { return Ok(None) };
        self.swap(name, Swap { old: Some(&record), new: &record, life })?;
        Ok(Some(record))
    }

    /// Counts one for each name. Counts may be lost when the process is killed: calls do not wait
    /// for the disk.
    fn count(&self, counts: &[Count<'_>]) -> Result<Option<(usize, Duration)>, redb::Error> {
        let now = (self.clock)();
        let is_due = self.is_due();
        let mut transaction = self.database.begin_write()?;
        if !is_due {
            transaction.set_durability(Durability::None).map_err(std::io::Error::other)?;
        }
        let counted = {
            let mut table = transaction.open_table(RECORDS)?;
            let mut states = Vec::with_capacity(counts.len());
            for count in counts {
                let known = table.get(count.name)?;
                let known = known.as_ref().map(redb::AccessGuard::value);
                let state = known.filter(|(end, _)| *end > now).map(|(_, state)| state);
                let state = state.and_then(|state| state.try_into().ok());
                states.push(state.map_or(0, u64::from_le_bytes));
            }
            match count_all(counts, &states, now.saturating_mul(1000)) {
                Err(refused) => return Ok(Some(refused)),
                Ok(counted) => {
                    for (count, (state, life)) in counts.iter().zip(counted) {
                        let end = now.saturating_add(millis(life));
                        table.insert(count.name, (end, state.to_le_bytes().as_slice()))?;
                    }
                }
            }
            if is_due {
                expire(&mut table, now)?;
            }
            None
        };
        transaction.commit()?;
        Ok(counted)
    }

    /// Whether it is time to remove expired records.
    fn is_due(&self) -> bool {
        self.changes.fetch_add(1, Ordering::Relaxed) % SWEEP_AFTER == SWEEP_AFTER - 1
    }

    fn swap(&self, name: &str, swap: Swap<'_>) -> Result<bool, redb::Error> {
        let Swap { old, new, life } = swap;
        let now = (self.clock)();
        let is_due = self.is_due();
        let is_full = self.change(|table| {
            let is_new = {
                let known = table.get(name)?;
                let known = known.as_ref().map(redb::AccessGuard::value);
                let known = known.filter(|(end, _)| *end > now);
                if known.map(|(_, record)| record) != old {
                    return Ok(None);
                }
                known.is_none()
            };
            if is_due || (is_new && table.len()? >= MAX_RECORDS) {
                expire(table, now)?;
                if is_new && table.len()? >= MAX_RECORDS {
                    return Ok(Some(true));
                }
            }
            table.insert(name, (now.saturating_add(millis(life)), new))?;
            Ok(Some(false))
        })?;
        match is_full {
            Some(true) => {
                let reason = format!("too many records (limit {MAX_RECORDS})");
                Err(redb::Error::Io(std::io::Error::other(reason)))
            }
            swapped => Ok(swapped.is_some()),
        }
    }
}

fn expire(table: &mut Table<'_, &str, (u64, &[u8])>, now: u64) -> Result<(), redb::StorageError> {
    table.retain(|_, (end, _)| end > now)
}

/// A list as one record: each item after its length.
fn pack(items: &[&[u8]]) -> Vec<u8> {
    let lengths = items.iter().map(|item| (item.len() as u64).to_le_bytes());
    lengths.zip(items).flat_map(|(length, item)| [&length, *item].concat()).collect()
}

fn unpack(mut list: &[u8]) -> Vec<Bytes> {
    let mut items = Vec::new();
    while let Some((length, rest)) = list.split_first_chunk::<8>() {
        let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
        let Some((item, rest)) = rest.split_at_checked(length) else { break };
        items.push(Bytes::copy_from_slice(item));
        list = rest;
    }
    items
}

fn unix_millis() -> u64 {
    millis(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl Store for DiskStore {
    fn get<'a>(&'a self, name: &'a str, renew: Option<Duration>) -> Pending<'a, Option<Bytes>> {
        let name = name.to_owned();
        self.run(move |records| match renew {
            None => records.read(&name),
            Some(life) => records.renew(&name, life),
        })
    }

    fn swap<'a>(&'a self, name: &'a str, swap: Swap<'a>) -> Pending<'a, bool> {
        let Swap { old, new, life } = swap;
        let (name, old, new) = (name.to_owned(), old.map(<[u8]>::to_vec), new.to_vec());
        self.run(move |records| records.swap(&name, Swap { old: old.as_deref(), new: &new, life }))
    }

    fn append<'a>(&'a self, name: &'a str, list: Append<'a>) -> Pending<'a, ()> {
        let Append { items, most, life } = list;
        let (name, new) = (name.to_owned(), items.to_vec());
        self.run(move |records| {
            loop {
                let old = records.read(&name)?;
                let kept = old.as_deref().map(unpack).unwrap_or_default();
                let items = kept.iter().map(|item| &**item).chain(new.iter().map(|item| &**item));
                let items: Vec<_> = items.collect();
                let list = pack(&items[items.len().saturating_sub(most)..]);
                // Try again if another thread has appended meanwhile.
                if records.swap(&name, Swap { old: old.as_deref(), new: &list, life })? {
                    return Ok(());
                }
            }
        })
    }

    fn items<'a>(&'a self, name: &'a str) -> Pending<'a, Vec<Bytes>> {
        let name = name.to_owned();
        self.run(move |records| Ok(records.read(&name)?.as_deref().map(unpack).unwrap_or_default()))
    }

    fn count<'a>(&'a self, counts: &'a [Count<'a>]) -> Pending<'a, Option<(usize, Duration)>> {
        let counts: Vec<(String, Bound)> =
            counts.iter().map(|count| (count.name.to_owned(), count.bound)).collect();
        self.run(move |records| {
            let counts = counts.iter().map(|(name, bound)| Count { name, bound: *bound });
            records.count(&counts.collect::<Vec<_>>())
        })
    }

    fn remove<'a>(&'a self, name: &'a str) -> Pending<'a, ()> {
        let name = name.to_owned();
        self.run(move |records| records.change(|table| table.remove(&*name).map(drop)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;
    use crate::store::tests::{
        a_list_keeps_the_newest_items, a_record_expires, a_record_is_replaced_by_compare_and_set,
        counts_are_shared_and_all_or_nothing,
    };

    static NOW: AtomicU64 = AtomicU64::new(1);

    async fn pass(time: Duration) {
        NOW.fetch_add(u64::try_from(time.as_millis()).unwrap(), Ordering::SeqCst);
    }

    #[tokio::test]
    async fn records_survive_are_replaced_and_expire() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.redb");
        let open = || DiskStore::open_with(&path, || NOW.load(Ordering::SeqCst)).unwrap();
        let store = open();
        a_record_is_replaced_by_compare_and_set(&store).await;
        a_list_keeps_the_newest_items(&store).await;
        counts_are_shared_and_all_or_nothing(&store, pass).await;
        a_record_expires(&store, pass).await;
        drop(store);
        let again = open();
        assert!(again.get("used", None).await.unwrap().is_some());
        drop(again);
        pass(Duration::from_secs(100)).await;
        let later = open();
        let count = later.run(|records| records.change(|table| table.len())).await.unwrap();
        assert_eq!(count, 0, "expired records do not stay on the disk");
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_can_read_a_new_file() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.redb");
        drop(DiskStore::open(&path).unwrap());
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_file_that_is_something_else_is_refused_by_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes.txt");
        std::fs::write(&path, "notes, not records").unwrap();
        let refused = DiskStore::open(&path).unwrap_err().to_string();
        assert!(refused.contains("notes.txt"), "{refused}");
    }
}
