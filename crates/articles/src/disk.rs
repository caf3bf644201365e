//! The folder of an index on the disk, read without mapping its files.
//!
//! A mapped file that another process shortens ends the process. So the files that every search
//! needs whole (dictionaries, lengths, columns) are kept in memory, and the others are read at the
//! moment. A file that is too short is an error, which leads to a new index.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tantivy::directory::error::{
    DeleteError, LockError, OpenDirectoryError, OpenReadError, OpenWriteError,
};
use tantivy::directory::{
    Directory, DirectoryLock, FileHandle, Lock, MmapDirectory, OwnedBytes, WatchCallback,
    WatchHandle, WritePtr,
};
use tantivy_common::file_slice::WrapFile;

/// The extensions of the files that are kept in memory.
const IN_MEMORY: [&str; 3] = ["term", "fieldnorm", "fast"];

/// A folder on the disk.
#[derive(Clone, Debug)]
pub(crate) struct DiskDirectory {
    path: PathBuf,
    /// Writes, locks and removes files. It never opens one.
    inner: MmapDirectory,
}

impl DiskDirectory {
    pub(crate) fn open(path: &Path) -> Result<Self, OpenDirectoryError> {
        Ok(Self { path: path.to_owned(), inner: MmapDirectory::open(path)? })
    }
}

impl Directory for DiskDirectory {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        let whole = path.extension().is_some_and(|ending| IN_MEMORY.iter().any(|it| ending == *it));
        let full = self.path.join(path);
        let handle = match whole {
            true => std::fs::read(full)
                .map(|bytes| -> Arc<dyn FileHandle> { Arc::new(OwnedBytes::new(bytes)) }),
            false => File::open(full)
                .and_then(WrapFile::new)
                .map(|file| -> Arc<dyn FileHandle> { Arc::new(file) }),
        };
        handle.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => OpenReadError::FileDoesNotExist(path.to_owned()),
            _ => OpenReadError::wrap_io_error(error, path.to_owned()),
        })
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        self.inner.delete(path)
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        self.inner.exists(path)
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        self.inner.open_write(path)
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        self.inner.atomic_read(path)
    }

    fn atomic_write(&self, path: &Path, data: &[u8]) -> io::Result<()> {
        self.inner.atomic_write(path, data)
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.inner.sync_directory()
    }

    fn acquire_lock(&self, lock: &Lock) -> Result<DirectoryLock, LockError> {
        self.inner.acquire_lock(lock)
    }

    fn watch(&self, callback: WatchCallback) -> tantivy::Result<WatchHandle> {
        self.inner.watch(callback)
    }
}
