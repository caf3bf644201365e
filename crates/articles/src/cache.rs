//! Where the index of a large folder lies on the disk, and who may write to it.
//!
//! Several programs may serve the same folder at once: every client that starts its own Sabir does.
//! One of them holds the lock and writes; the others read what it writes, and one of them takes
//! over when it is gone. The operating system gives the lock back, however the holder ended.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::Xxh3;

use crate::index::FORMAT;

/// The right to write, for as long as it is kept.
pub(crate) struct Claim {
    _lock: File,
}

/// The place of one folder's index.
#[derive(Clone, Debug)]
pub(crate) struct Place(PathBuf);

impl Place {
    /// The place for a folder that is read in this way. What is read differently is kept elsewhere.
    pub(crate) fn new(cache: &Path, folder: &Path, statuses: &[String]) -> Self {
        let mut hash = Xxh3::new();
        hash.update(&FORMAT.to_le_bytes());
        hash.update(folder.as_os_str().as_encoded_bytes());
        let mut statuses: Vec<String> =
            statuses.iter().map(|status| status.to_lowercase()).collect();
        statuses.sort_unstable();
        for status in statuses {
            hash.update(&[0]);
            hash.update(status.as_bytes());
        }
        Self(cache.join("articles").join(format!("{:032x}", hash.digest128())))
    }

    /// Where the index is.
    pub(crate) fn index(&self) -> PathBuf {
        self.0.join("index")
    }

    /// Takes the right to write, unless another has it.
    pub(crate) fn claim(&self) -> io::Result<Option<Claim>> {
        create_private(&self.index())?;
        let lock =
            File::options().create(true).truncate(false).write(true).open(self.0.join("lock"))?;
        match lock.try_lock() {
            Ok(()) => Ok(Some(Claim { _lock: lock })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Removes an index that cannot be used. Only the holder of the claim may.
    pub(crate) fn clear(&self, _claim: &Claim) -> io::Result<()> {
        match fs::remove_dir_all(self.index()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => create_private(&self.index()),
        }
    }
}

/// The index holds the text of every article; nobody else should read it.
fn create_private(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statuses(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn a_folder_has_its_own_place_for_each_way_of_reading_it() {
        let place = |folder: &str, names: &[&str]| {
            Place::new(Path::new("c"), Path::new(folder), &statuses(names)).0
        };
        assert_eq!(place("a", &["Live", "Draft"]), place("a", &["draft", "live"]));
        assert_ne!(place("a", &["Live"]), place("b", &["Live"]));
        assert_ne!(place("a", &["Live"]), place("a", &["Live", "Draft"]));
        assert_ne!(place("a", &["ab"]), place("a", &["a", "b"]));
    }

    #[test]
    fn one_holds_the_claim_and_the_next_gets_it_after() {
        let home = tempfile::TempDir::new().unwrap();
        let place = Place::new(home.path(), Path::new("a"), &[]);
        let first = place.claim().unwrap();
        assert!(first.is_some());
        assert!(place.claim().unwrap().is_none());
        drop(first);
        assert!(place.claim().unwrap().is_some());
    }

    #[test]
    fn the_place_is_private_and_can_be_cleared() {
        let home = tempfile::TempDir::new().unwrap();
        let place = Place::new(home.path(), Path::new("a"), &[]);
        let claim = place.claim().unwrap().unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(place.index()).unwrap().permissions().mode() & 0o077, 0);
        }
        fs::write(place.index().join("x"), "y").unwrap();
        place.clear(&claim).unwrap();
        assert_eq!(fs::read_dir(place.index()).unwrap().count(), 0);
        assert!(place.claim().unwrap().is_none());
    }
}
