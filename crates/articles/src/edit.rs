//! Changes files of the folder: whole files, atomically, and nothing outside.
//!
//! A path is relative to the folder, and every operation goes through its handle, as reading does. A
//! symbolic link is never written through: it would be replaced, or lead to a file that is not an
//! article. A file is written beside its place and moved there, so that no reader sees half of it. One
//! change is made at a time, by all processes that serve the folder.

use std::io::{self, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};

use cap_std::fs::{Dir, OpenOptions, Permissions};
use xxhash_rust::xxh3::xxh3_64;

use crate::folder::{DEEPEST, Folder, LARGEST_FILE, ReadError, is_hidden, is_link};
use crate::format::Format;
use crate::frontmatter::split;
use crate::results::StoreError;

/// The longest name of a file or folder, in bytes, so that the system takes it.
const LONGEST_NAME: usize = 200;

/// Why an article could not be changed.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The article cannot be found.
    #[error(transparent)]
    Find(#[from] StoreError),
    /// No file can have this name.
    #[error("invalid name `{name}` ({reason})")]
    Name {
        /// The name.
        name: String,
        /// The expected form.
        reason: &'static str,
    },
    /// An article, or a file that is not served, has this name.
    #[error("`{0}` exists already (expected the `etag` of its current content)")]
    Exists(String),
    /// The target of a move exists: an article, or a file that is not served.
    #[error("`{0}` exists already (expected a place where no article is)")]
    Taken(String),
    /// The article has changed since it was read.
    #[error("`{0}` has changed since it was read (expected its current `etag`: read it again)")]
    Stale(String),
    /// The file would be too large.
    #[error("the content is too large: {size} bytes (limit {LARGEST_FILE})")]
    TooLarge {
        /// Its size in bytes.
        size: usize,
    },
    /// An article needs a text.
    #[error("the content is empty")]
    Empty,
    /// The system refused.
    #[error("cannot write `{path}`: {source}")]
    Io {
        /// The file.
        path: String,
        /// The reason.
        source: io::Error,
    },
}

/// The result of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The id of the article.
    pub id: String,
    /// Identifies its new content.
    pub etag: String,
    /// The files that changed, relative to the folder. Empty: nothing changed.
    pub files: Vec<String>,
}

/// Identifies the content of a file.
pub(crate) fn etag(hash: u64) -> String {
    format!("{hash:016x}")
}

/// How the new content of a file is made.
pub(crate) enum Edit<'a> {
    /// Replaces the file. Its frontmatter stays if the content has none.
    Replace(&'a str),
    /// Adds lines at the end.
    Append(&'a str),
}

impl Edit<'_> {
    fn apply(&self, old: &str, path: &str) -> Result<String, WriteError> {
        let split = |text: &str| split(text, Format::of(path).unwrap_or(Format::Text)).1.len();
        let (Self::Replace(content) | Self::Append(content)) = self;
        if content.trim().is_empty() {
            return Err(WriteError::Empty);
        }
        let end = if content.ends_with('\n') { "" } else { "\n" };
        let above = match self {
            Self::Replace(_) if split(content) < content.len() => "",
            Self::Replace(_) => &old[..old.len() - split(old)],
            Self::Append(_) => old,
        };
        let separator = if above.is_empty() || above.ends_with('\n') { "" } else { "\n" };
        let new = format!("{above}{separator}{content}{end}");
        match new.len() as u64 > LARGEST_FILE {
            true => Err(WriteError::TooLarge { size: new.len() }),
            false => Ok(new),
        }
    }
}

/// The path of the file for a name that a caller gives. Without the extension of an article it gets
/// `extension`.
pub(crate) fn path_of(name: &str, extension: &str) -> Result<String, WriteError> {
    let invalid = |reason| WriteError::Name { name: name.to_owned(), reason };
    let path = name.trim().trim_start_matches("article:///").trim_start_matches('/');
    let path = match Format::of(path) {
        None => format!("{path}.{extension}"),
        Some(Format::Html | Format::Pdf | Format::Notebook) => {
            return Err(invalid("expected a file of text, such as Markdown"));
        }
        Some(_) => path.to_owned(),
    };
    let is_wrong = |part: &str| {
        part.is_empty() || is_hidden(part) || part.contains(|c: char| c.is_control() || c == '\\')
    };
    if path.split('/').any(is_wrong) {
        return Err(invalid("expected category/slug, in which no part begins with a dot"));
    }
    if path.split('/').any(|part| part.len() > LONGEST_NAME) {
        return Err(invalid("expected names of at most 200 bytes"));
    }
    if path.split('/').count() > DEEPEST {
        return Err(invalid("expected at most 32 folders"));
    }
    Ok(path)
}

impl Folder {
    /// Creates a file that does not exist.
    pub(crate) fn create(&self, path: &str, content: &str) -> Result<u64, WriteError> {
        let content = Edit::Replace(content).apply("", path)?;
        self.locked(path, |root| {
            self.check_place(root, path)?;
            let placed = put(root, path, content.as_bytes(), None);
            placed.map_err(|error| refused(path, error))?;
            Ok(xxh3_64(content.as_bytes()))
        })
    }

    /// Changes a file. `expected`: only if its content has this etag. Returns the hash of its new
    /// content, and whether that is different.
    pub(crate) fn edit(
        &self,
        path: &str,
        edit: &Edit<'_>,
        expected: Option<&str>,
    ) -> Result<(u64, bool), WriteError> {
        self.locked(path, |root| {
            self.check_place(root, path)?;
            let (old, hash) = self.current(path, expected)?;
            let text = String::from_utf8(old).map_err(|_| {
                refused(path, io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
            })?;
            let new = edit.apply(&text, path)?;
            if new == text {
                return Ok((hash, false));
            }
            let mode = root.metadata(path).map(|metadata| metadata.permissions()).ok();
            let placed = put(root, path, new.as_bytes(), Some(mode));
            placed.map_err(|error| refused(path, error))?;
            Ok((xxh3_64(new.as_bytes()), true))
        })
    }

    /// Moves a file to a path where no file is.
    pub(crate) fn rename(
        &self,
        path: &str,
        to: &str,
        expected: Option<&str>,
    ) -> Result<u64, WriteError> {
        self.locked(path, |root| {
            self.check_place(root, path)?;
            self.check_place(root, to)?;
            let (_, hash) = self.current(path, expected)?;
            let moved = make_parent(root, to).and_then(|()| move_new(root, path, to));
            moved.map_err(|error| match refused(to, error) {
                WriteError::Exists(to) => WriteError::Taken(to),
                error => error,
            })?;
            sync(root, path);
            sync(root, to);
            Ok(hash)
        })
    }

    /// The content of a file, if it is the one that the caller knows.
    fn current(&self, path: &str, expected: Option<&str>) -> Result<(Vec<u8>, u64), WriteError> {
        let (old, _) = self.read(path, LARGEST_FILE).map_err(|error| match error {
            ReadError::Changing => WriteError::Stale(path.to_owned()),
            ReadError::TooLarge(size) => {
                WriteError::TooLarge { size: usize::try_from(size).unwrap_or(usize::MAX) }
            }
            ReadError::Io(error) => refused(path, error),
        })?;
        let hash = xxh3_64(&old);
        match expected.is_some_and(|expected| expected != etag(hash)) {
            true => Err(WriteError::Stale(path.to_owned())),
            false => Ok((old, hash)),
        }
    }

    /// Runs `work` under the lock of the folder, which all these functions take.
    fn locked<T>(
        &self,
        path: &str,
        work: impl FnOnce(&Dir) -> Result<T, WriteError>,
    ) -> Result<T, WriteError> {
        let failed = |source| WriteError::Io { path: path.to_owned(), source };
        let root = self.root().map_err(failed)?;
        // A separate handle: a lock excludes other handles only, and ends when its handle is
        // closed.
        let lock = std::fs::File::open(self.path()).map_err(failed)?;
        lock.lock().map_err(failed)?;
        work(root)
    }

    /// Refuses paths through symbolic links, and those that would not be served.
    fn check_place(&self, root: &Dir, path: &str) -> Result<(), WriteError> {
        let invalid = |reason| Err(WriteError::Name { name: path.to_owned(), reason });
        let parents = path.match_indices('/').map(|(at, _)| &path[..at]);
        if parents.chain([path]).any(|part| is_link(root, part)) {
            return invalid("expected a path without symbolic links");
        }
        match self.may_serve(path) {
            Ok(true) => Ok(()),
            Ok(false) => invalid("the settings or .gitignore leave it out"),
            Err(source) => Err(WriteError::Io { path: path.to_owned(), source }),
        }
    }
}

fn refused(path: &str, source: io::Error) -> WriteError {
    match source.kind() {
        io::ErrorKind::AlreadyExists => WriteError::Exists(path.to_owned()),
        _ => WriteError::Io { path: path.to_owned(), source },
    }
}

/// Writes a file. `replaces`: the permissions of the file that it replaces.
fn put(
    root: &Dir,
    path: &str,
    bytes: &[u8],
    replaces: Option<Option<Permissions>>,
) -> io::Result<()> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    make_parent(root, path)?;
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    // A hidden name: the file is not served if it is left behind.
    let name = format!(".sabir-{}-{count}.tmp", std::process::id());
    let beside = match path.rsplit_once('/') {
        Some((parent, _)) => format!("{parent}/{name}"),
        None => name,
    };
    let written = (|| {
        let mut file = root.open_with(&beside, OpenOptions::new().write(true).create_new(true))?;
        file.write_all(bytes)?;
        if let Some(Some(permissions)) = &replaces {
            file.set_permissions(permissions.clone())?;
        }
        file.sync_all()?;
        match replaces {
            Some(_) => root.rename(&beside, root, path),
            None => move_new(root, &beside, path),
        }
    })();
    if written.is_err() {
        let _ = root.remove_file(&beside);
    }
    sync(root, path);
    written
}

/// Moves a file to a path where no file is: a hard link fails if there is one.
fn move_new(root: &Dir, from: &str, to: &str) -> io::Result<()> {
    match root.hard_link(from, root, to) {
        Ok(()) => root.remove_file(from),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
        // A file system without hard links.
        Err(_) if root.symlink_metadata(to).is_err() => root.rename(from, root, to),
        Err(_) => Err(io::ErrorKind::AlreadyExists.into()),
    }
}

fn make_parent(root: &Dir, path: &str) -> io::Result<()> {
    path.rsplit_once('/').map_or(Ok(()), |(parent, _)| root.create_dir_all(parent))
}

/// Makes the change of a folder durable. Not every file system can.
fn sync(root: &Dir, path: &str) {
    let parent = path.rsplit_once('/').map_or(".", |(parent, _)| parent);
    if let Ok(dir) = root.open_dir(parent) {
        let _ = dir.into_std_file().sync_all();
    }
}

#[cfg(test)]
mod tests;
