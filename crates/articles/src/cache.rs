//! Where the index of a large folder is kept on the disk, and the lock of its writer.
//!
//! Several processes may serve the same folder at once: every client that starts its own Sabir over
//! stdio does. The operating system releases the lock, however its holder exits.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::Xxh3;

use crate::index::FORMAT;
use crate::settings::Settings;

/// The right to write the index, until it is dropped.
pub(crate) struct WriteLock {
    _lock: File,
}

/// The cache of one folder of articles.
#[derive(Clone, Debug)]
pub(crate) struct CacheFolder(PathBuf);

impl CacheFolder {
    /// The cache of a folder. Other settings of its documents have another cache.
    pub(crate) fn new(cache: &Path, folder: &Path, settings: &Settings) -> Self {
        let mut hash = Xxh3::new();
        hash.update(&FORMAT.to_le_bytes());
        hash.update(folder.as_os_str().as_encoded_bytes());
        let mut statuses: Option<Vec<String>> = settings
            .statuses
            .as_ref()
            .map(|statuses| statuses.iter().map(|status| status.to_lowercase()).collect());
        statuses.iter_mut().for_each(|statuses| statuses.sort_unstable());
        let Settings { weights, language, pdf, .. } = settings;
        let others = format!("{statuses:?} {weights:?} {language:?} {}", pdf.is_some());
        hash.update(others.as_bytes());
        Self(cache.join("articles").join(format!("{:032x}", hash.digest128())))
    }

    /// The folder of the index.
    pub(crate) fn index(&self) -> PathBuf {
        self.0.join("index")
    }

    /// Takes the lock. `None` if another process holds it.
    pub(crate) fn lock(&self) -> io::Result<Option<WriteLock>> {
        create_private(&self.index())?;
        let lock =
            File::options().create(true).truncate(false).write(true).open(self.0.join("lock"))?;
        match lock.try_lock() {
            Ok(()) => Ok(Some(WriteLock { _lock: lock })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Removes a damaged index. Only the holder of the lock may.
    pub(crate) fn clear(&self, _lock: &WriteLock) -> io::Result<()> {
        match fs::remove_dir_all(self.index()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => create_private(&self.index()),
        }
    }
}

/// The index contains the text of every article: other users must not read it.
pub(crate) fn create_private(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(statuses: &[&str]) -> Settings {
        let statuses = statuses.iter().map(|&name| name.to_owned()).collect();
        Settings { statuses: Some(statuses), ..Settings::new("") }
    }

    #[test]
    fn a_folder_has_one_cache_for_each_set_of_statuses() {
        let place = |folder: &str, names: &[&str]| {
            CacheFolder::new(Path::new("c"), Path::new(folder), &settings(names)).0
        };
        assert_eq!(place("a", &["Live", "Draft"]), place("a", &["draft", "live"]));
        assert_ne!(place("a", &["Live"]), place("b", &["Live"]));
        assert_ne!(place("a", &["Live"]), place("a", &["Live", "Draft"]));
        assert_ne!(place("a", &["ab"]), place("a", &["a", "b"]));
    }

    #[test]
    fn one_process_holds_the_lock_and_the_next_gets_it_after() {
        let home = tempfile::TempDir::new().unwrap();
        let cache = CacheFolder::new(home.path(), Path::new("a"), &settings(&[]));
        let first = cache.lock().unwrap();
        assert!(first.is_some());
        assert!(cache.lock().unwrap().is_none());
        drop(first);
        assert!(cache.lock().unwrap().is_some());
    }

    #[test]
    fn the_cache_is_private_and_can_be_cleared() {
        let home = tempfile::TempDir::new().unwrap();
        let cache = CacheFolder::new(home.path(), Path::new("a"), &settings(&[]));
        let lock = cache.lock().unwrap().unwrap();
        let permissions = fs::metadata(cache.index()).unwrap().permissions();
        assert_eq!(std::os::unix::fs::PermissionsExt::mode(&permissions) & 0o077, 0);
        fs::write(cache.index().join("x"), "y").unwrap();
        cache.clear(&lock).unwrap();
        assert_eq!(fs::read_dir(cache.index()).unwrap().count(), 0);
        assert!(cache.lock().unwrap().is_none());
    }
}
