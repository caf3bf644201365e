//! Scans the folder and reads its files.
//!
//! Every path is opened relative to a handle of the folder, and the operating system refuses to
//! leave it: neither `..`, nor a symbolic link, nor a race leads outside. Links that stay inside
//! are followed once. Hidden files are ignored, even behind a link, and so are those that `ignored`
//! leaves out.

use std::io::{self, Read};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::UNIX_EPOCH;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, DirEntry, File, Metadata, MetadataExt as _};

use crate::article::Hidden;
use crate::format::{Format, media_type};
use crate::ignored::{self, IgnoreFile, Rules};
use crate::problem::Problem;
use crate::regular;
use crate::threads::on_threads;

/// The deepest level of folders. Deeper ones are not read, and reported as a problem.
pub(crate) const DEEPEST: usize = 32;

/// The largest file in bytes. A larger one is not served, and reported as a problem.
pub(crate) const LARGEST_FILE: u64 = 8 * 1024 * 1024;

/// Tells whether a file has changed, without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) size: u64,
    /// Nanoseconds since 1970.
    pub(crate) mtime: i64,
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        let since = metadata.modified().ok().map(|time| time.into_std().duration_since(UNIX_EPOCH));
        let mtime = match since {
            Some(Ok(after)) => i64::try_from(after.as_nanos()).unwrap_or(i64::MAX),
            Some(Err(before)) => {
                i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, |n| -n)
            }
            None => 0,
        };
        Self { size: metadata.len(), mtime }
    }
}

/// The start of the problem of a link that is not followed.
pub(crate) const LOST_LINK: &str = "not served: the link leads";

/// A file that may be an article.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// Relative to the folder, with `/`.
    pub(crate) path: Box<str>,
    pub(crate) stamp: Stamp,
    /// Reached through a link: its changes are reported at another path.
    pub(crate) linked: bool,
}

/// The result of a scan.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scan {
    pub(crate) found: Vec<Found>,
    pub(crate) problems: Vec<Problem>,
    /// Articles and folders that rules leave out.
    pub(crate) ignored: usize,
    /// The images and other files that articles may refer to.
    pub(crate) files: Vec<Box<str>>,
}

/// Why a file could not be read.
#[derive(Debug)]
pub(crate) enum ReadError {
    /// It changed while it was read.
    Changing,
    /// It has this many bytes.
    TooLarge(u64),
    Io(io::Error),
}

/// A folder of articles.
pub(crate) struct Folder {
    /// `None`: the folder does not exist any more.
    root: Option<Dir>,
    path: PathBuf,
    /// The device and the inode of the folder.
    identity: (u64, u64),
    rules: Rules,
    /// The rules above it in its git repository.
    above: Vec<IgnoreFile>,
}

impl Folder {
    pub(crate) fn open(path: &Path, rules: Rules) -> io::Result<Self> {
        let path = path.canonicalize()?;
        let root = Dir::open_ambient_dir(&path, ambient_authority())?;
        let metadata = root.dir_metadata()?;
        let (above, identity) = (IgnoreFile::above(&path), (metadata.dev(), metadata.ino()));
        Ok(Self { root: Some(root), path, identity, rules, above })
    }

    /// The folder that is now at this path, if it is another one.
    pub(crate) fn replaced(&self, given: &Path) -> Option<Self> {
        let now = given.canonicalize().and_then(|path| Ok((std::fs::metadata(&path)?, path)));
        match now {
            Ok((metadata, path)) => {
                let same = self.root.is_some()
                    && path == self.path
                    && self.identity == (metadata.dev(), metadata.ino());
                if same { None } else { Self::open(given, self.rules.clone()).ok() }
            }
            Err(_) => self.root.is_some().then(|| Self {
                root: None,
                path: self.path.clone(),
                identity: (0, 0),
                rules: self.rules.clone(),
                above: Vec::new(),
            }),
        }
    }

    pub(crate) fn root(&self) -> io::Result<&Dir> {
        self.root
            .as_ref()
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the folder is gone"))
    }

    /// The canonical path of the folder.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a path relative to the folder; `None` if it is outside or hidden.
    pub(crate) fn relative(&self, path: &Path) -> Option<String> {
        let mut relative = path.strip_prefix(&self.path).ok()?;
        // A change of the rules may change everything below them.
        if relative.file_name().is_some_and(|name| ignored::FILES.iter().any(|file| name == *file))
        {
            relative = relative.parent()?;
        }
        let parts: Option<Vec<&str>> = relative.iter().map(|part| part.to_str()).collect();
        parts.filter(|parts| parts.iter().all(|part| !is_hidden(part))).map(|parts| parts.join("/"))
    }

    /// All files at or below `under` (empty: the whole folder).
    pub(crate) fn scan(&self, under: &str) -> Scan {
        match self.root() {
            Err(error) => {
                let problems = vec![Problem::of("", error.to_string())];
                Scan { problems, ..Scan::default() }
            }
            Ok(root) => {
                let mut walk = self.walk(root);
                if under.is_empty() {
                    walk.whole();
                } else {
                    walk.path(under);
                }
                walk.scan
            }
        }
    }

    /// A walk that begins at the top.
    fn walk<'a>(&'a self, root: &'a Dir) -> Walk<'a> {
        let (rules, ignores) = (&self.rules, self.above.clone());
        let mut walk = Walk { root, rules, ignores, scan: Scan::default() };
        walk.enter(root, "");
        walk
    }

    /// Whether a file with this path would be served: it is neither hidden nor excluded.
    pub(crate) fn may_serve(&self, path: &str) -> io::Result<bool> {
        let hidden = |part: &str| part.is_empty() || is_hidden(part);
        let mut walk = self.walk(self.root()?);
        let is_left_out = path.split('/').any(hidden) || !walk.may_enter(path);
        Ok(!is_left_out && !walk.is_ignored(path, false))
    }

    /// Whether [`Folder::read_file`] finds a file.
    pub(crate) fn has_file(&self, path: &str) -> bool {
        let is_file = |root: &Dir| root.metadata(path).is_ok_and(|metadata| metadata.is_file());
        self.root().is_ok_and(is_file) && self.may_serve(path).unwrap_or(false)
    }

    /// Reads a file of any kind, unless it is hidden or excluded.
    pub(crate) fn read_file(&self, path: &str) -> Result<Vec<u8>, ReadError> {
        if !self.may_serve(path).map_err(ReadError::Io)? {
            return Err(ReadError::Io(io::ErrorKind::NotFound.into()));
        }
        self.read(path, LARGEST_FILE).map(|(bytes, _)| bytes)
    }

    /// Reads a file that a scan found, of at most this many bytes.
    pub(crate) fn read(&self, path: &str, largest: u64) -> Result<(Vec<u8>, Stamp), ReadError> {
        let file = self.root().and_then(|root| regular::open(root, path)).map_err(ReadError::Io)?;
        let before = stamp(&file)?;
        if before.size > largest {
            return Err(ReadError::TooLarge(before.size));
        }
        let mut bytes = Vec::with_capacity(usize::try_from(before.size).unwrap_or(0) + 1);
        (&file).take(largest + 1).read_to_end(&mut bytes).map_err(ReadError::Io)?;
        if stamp(&file)? != before || bytes.len() as u64 != before.size {
            return Err(ReadError::Changing);
        }
        Ok((bytes, before))
    }
}

fn stamp(file: &File) -> Result<Stamp, ReadError> {
    file.metadata().map(|metadata| Stamp::of(&metadata)).map_err(ReadError::Io)
}

pub(crate) fn is_hidden(name: &str) -> bool {
    name.starts_with('.')
}

struct Walk<'a> {
    root: &'a Dir,
    rules: &'a Rules,
    /// The rules of the folders that the walk is in, from the top.
    ignores: Vec<IgnoreFile>,
    scan: Scan,
}

impl Walk<'_> {
    /// Scans one path: a file, a folder, or nothing.
    fn path(&mut self, path: &str) {
        let root = self.root;
        if path.split('/').any(|part| part.is_empty() || is_hidden(part)) {
            return;
        }
        if !self.may_enter(path) {
            return;
        }
        if self.is_ignored(path, root.metadata(path).is_ok_and(|metadata| metadata.is_dir())) {
            return;
        }
        // A link in the path makes it a linked file, whose target must be checked too.
        let linked = path.match_indices('/').any(|(at, _)| is_link(root, &path[..at]));
        if linked || is_link(root, path) {
            return self.link(path, false);
        }
        match root.symlink_metadata(path) {
            Ok(metadata) if metadata.is_file() => self.file(path, &metadata, false),
            Ok(metadata) if metadata.is_dir() => match root.open_dir(path) {
                Ok(dir) => self.folder(&dir, path, path.split('/').count(), false),
                Err(error) => self.problem(path, error.to_string()),
            },
            _ => {}
        }
    }

    /// Scans the whole folder, its subfolders in parallel: for many files this takes most of the
    /// time of a start.
    fn whole(&mut self) {
        let entries = match self.root.entries() {
            Ok(entries) => entries,
            Err(error) => return self.problem("", error.to_string()),
        };
        let mut folders = Vec::new();
        for entry in entries {
            match entry {
                Ok(entry) if entry.file_type().is_ok_and(|kind| kind.is_dir()) => {
                    folders.push(entry);
                }
                Ok(entry) => self.entry(&entry, "", 0, false),
                Err(error) => self.problem("", error.to_string()),
            }
        }
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let next = AtomicUsize::new(0);
        let scans = on_threads(threads.min(folders.len()), || {
            let mut walk = Walk {
                root: self.root,
                rules: self.rules,
                ignores: self.ignores.clone(),
                scan: Scan::default(),
            };
            while let Some(entry) = folders.get(next.fetch_add(1, Ordering::Relaxed)) {
                walk.entry(entry, "", 0, false);
            }
            walk.scan
        });
        for scan in scans {
            self.scan.found.extend(scan.found);
            self.scan.problems.extend(scan.problems);
            self.scan.ignored += scan.ignored;
            self.scan.files.extend(scan.files);
        }
    }

    /// Reads the rules in a folder. They hold for everything below it.
    fn enter(&mut self, dir: &Dir, path: &str) {
        self.ignores.extend(IgnoreFile::read(dir, path));
    }

    /// Enters the folders above a path. Returns whether none of them is left out.
    fn may_enter(&mut self, path: &str) -> bool {
        path.match_indices('/').all(|(at, _)| {
            let parent = &path[..at];
            let may = !self.is_ignored(parent, true);
            if let Ok(dir) = self.root.open_dir(parent) {
                self.enter(&dir, parent);
            }
            may
        })
    }

    /// Whether a file or folder is left out, by the settings or by the rules in the folder.
    fn is_ignored(&mut self, path: &str, is_folder: bool) -> bool {
        let ignored = self.rules.leaves_out(path, is_folder)
            || self
                .ignores
                .iter()
                .rev()
                .find_map(|file| file.decides(path, is_folder))
                .unwrap_or(false);
        if ignored && (is_folder || Format::of(path).is_some()) {
            tracing::debug!(file = path, "ignored");
            self.scan.ignored += 1;
        }
        ignored
    }

    fn folder(&mut self, dir: &Dir, path: &str, depth: usize, linked: bool) {
        if depth > DEEPEST {
            return self
                .problem(path, format!("not served: nested too deep (limit {DEEPEST} folders)"));
        }
        let entries = match dir.entries() {
            Ok(entries) => entries,
            Err(error) => return self.problem(path, error.to_string()),
        };
        let known = self.ignores.len();
        self.enter(dir, path);
        for entry in entries {
            match entry {
                Ok(entry) => self.entry(&entry, path, depth, linked),
                Err(error) => self.problem(path, error.to_string()),
            }
        }
        self.ignores.truncate(known);
    }

    fn entry(&mut self, entry: &DirEntry, parent: &str, depth: usize, linked: bool) {
        let name = entry.file_name();
        let Some(name) = name.to_str() else {
            return self
                .problem(parent, format!("file name is not UTF-8: {}", name.to_string_lossy()));
        };
        if is_hidden(name) {
            return;
        }
        if name.contains(|c: char| c.is_control() || c == '\\') {
            return self.problem(
                parent,
                format!(
                    "file name with control characters or backslashes: {}",
                    name.escape_debug()
                ),
            );
        }
        let path = if parent.is_empty() { name.to_owned() } else { format!("{parent}/{name}") };
        let Ok(kind) = entry.file_type() else { return };
        if self.is_ignored(&path, kind.is_dir()) {
            return;
        }
        if kind.is_dir() {
            match entry.open_dir() {
                Ok(dir) => self.folder(&dir, &path, depth + 1, linked),
                Err(error) => self.problem(&path, error.to_string()),
            }
        } else if kind.is_symlink() {
            self.link(&path, linked);
        } else if kind.is_file() && (Format::of(name).is_some() || media_type(name).is_some()) {
            match entry.metadata() {
                Ok(metadata) => self.file(&path, &metadata, linked),
                // It has been removed meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => self.problem(&path, error.to_string()),
            }
        }
    }

    /// Scans a link, or a path that contains one.
    fn link(&mut self, path: &str, linked: bool) {
        let root = self.root;
        let Ok(target) = root.canonicalize(path) else {
            if root.symlink_metadata(path).is_ok() {
                self.lost_link(path, "outside the folder, or nowhere");
            }
            return;
        };
        // The folder itself is `.`, which is neither hidden nor outside.
        let target: PathBuf =
            target.components().filter(|part| *part != Component::CurDir).collect();
        if target.iter().any(|part| part.to_str().is_none_or(is_hidden)) {
            return self.lost_link(path, "to a hidden file");
        }
        match root.metadata(&target) {
            Ok(metadata) if metadata.is_file() => self.file(path, &metadata, true),
            // Only one link is followed: a link inside a linked folder may lead back up.
            Ok(metadata)
                if metadata.is_dir() && !linked && !Path::new(path).starts_with(&target) =>
            {
                if let Ok(dir) = root.open_dir(&target) {
                    self.folder(&dir, path, path.split('/').count(), true);
                }
            }
            _ => {}
        }
    }

    fn file(&mut self, path: &str, metadata: &Metadata, linked: bool) {
        if Format::of(path).is_some() {
            self.scan.found.push(Found { path: path.into(), stamp: Stamp::of(metadata), linked });
        }
        if media_type(path).is_some() {
            self.scan.files.push(path.into());
        }
    }

    fn lost_link(&mut self, path: &str, to: &str) {
        tracing::debug!(file = path, reason = %Hidden::Link, "not served");
        self.problem(path, format!("{LOST_LINK} {to}"));
    }

    fn problem(&mut self, path: &str, message: impl Into<String>) {
        self.scan.problems.push(Problem::of(path, message));
    }
}

pub(crate) fn is_link(root: &Dir, path: &str) -> bool {
    root.symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink())
}

#[cfg(test)]
mod tests;
