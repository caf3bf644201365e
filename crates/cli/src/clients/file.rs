//! Reads and writes a client's file: a symbolic link is followed, a backup is made, and the file is
//! replaced atomically.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Client, Server};
use crate::report::Failure;

/// The file of a client, as it is now.
#[derive(Clone, Debug)]
pub(crate) struct ConfigFile {
    client: Client,
    path: PathBuf,
    /// `None` if it does not exist.
    text: Option<String>,
}

/// The path of the backup of a file.
pub(crate) fn backup_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".before-sabir");
    name.into()
}

/// Where symbolic links lead, even to a file that does not exist.
fn followed(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        let Ok(target) = fs::read_link(&path) else { break };
        path = path.parent().unwrap_or(Path::new("")).join(target);
    }
    path
}

/// The longest chain of links.
const MAX_LINKS: usize = 40;

impl ConfigFile {
    /// Reads a file, which may be missing.
    pub(crate) fn read(client: Client, path: PathBuf) -> Result<Self, Failure> {
        let text = match fs::read_to_string(&path) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                return Err(Failure::new(format!("cannot read {}: {error}", path.display())));
            }
        };
        Ok(Self { client, path, text })
    }

    pub(crate) fn exists(&self) -> bool {
        self.text.is_some()
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn client(&self) -> Client {
        self.client
    }

    /// The whole file, as JSON; nothing if it cannot be read so.
    pub(crate) fn parsed(&self) -> Value {
        self.client.parsed(self.text.as_deref().unwrap_or_default()).unwrap_or_default()
    }

    /// The servers of the file.
    pub(crate) fn servers(&self) -> Result<Vec<Server>, Failure> {
        let text = self.text.as_deref().unwrap_or_default();
        self.client.servers(text).map_err(|error| self.wrong(&error))
    }

    /// Adds or replaces an entry.
    pub(crate) fn add(&self, name: &str, value: &Value) -> Result<(), Failure> {
        let old = self.text.as_deref().unwrap_or_default();
        let new = self.client.with(old, name, value).map_err(|error| self.wrong(&error))?;
        self.back_up()?;
        self.replace(&self.path, &new)
    }

    /// Keeps the text beside the file. A backup that lacks only entries of ours is kept as it is.
    pub(crate) fn back_up(&self) -> Result<(), Failure> {
        self.check_writable()?;
        match &self.text {
            Some(text) if self.since_backup().is_none() => {
                self.replace(&backup_of(&self.path), text)
            }
            _ => Ok(()),
        }
    }

    /// The text of the backup, and the servers that were added since, if nothing else has changed.
    fn since_backup(&self) -> Option<(String, Vec<Server>)> {
        let before = fs::read_to_string(backup_of(&self.path)).ok()?;
        let known = self.client.servers(&before).ok()?;
        let mut added = self.servers().ok()?;
        added.retain(|server| !known.contains(server));
        // In some formats, a new entry comes before the others.
        for _ in 0..2 {
            if self.with_all(&before, &added) == self.text {
                return Some((before, added));
            }
            added.reverse();
        }
        None
    }

    fn with_all(&self, text: &str, servers: &[Server]) -> Option<String> {
        servers.iter().try_fold(text.to_owned(), |text, server| {
            self.client.with(&text, &server.name, &server.value).ok()
        })
    }

    /// After the client itself has removed an entry: if the file means the same as the backup, the
    /// backup replaces it, byte for byte.
    pub(crate) fn restore(self) -> Result<(), Failure> {
        let backup = backup_of(&self.path);
        let Ok(before) = fs::read_to_string(&backup) else { return Ok(()) };
        let now = Self::read(self.client, self.path)?;
        if now.text.as_deref().is_some_and(|text| now.client.is_same(text, &before)) {
            now.replace(&now.path, &before)?;
        }
        let _ = fs::remove_file(&backup);
        Ok(())
    }

    /// Removes an entry. If nothing else has changed since it was added, the file becomes what it
    /// was before, byte for byte.
    pub(crate) fn remove(&self, server: &Server) -> Result<(), Failure> {
        let text = self.text.as_deref().unwrap_or_default();
        self.check_writable()?;
        let backup = backup_of(&self.path);
        if server.folder.is_none()
            && let Some((before, mut added)) = self.since_backup()
            && let Some(nth) = added.iter().position(|one| one.name == server.name)
        {
            added.remove(nth);
            // The text before may have an older entry of ours, which would start Sabir again.
            let starts_sabir = |rest: &String| {
                let servers = self.client.servers(rest).unwrap_or_default();
                servers.iter().any(|one| one.name == server.name && one.is_ours())
            };
            if let Some(rest) = self.with_all(&before, &added).filter(|rest| !starts_sabir(rest)) {
                self.replace(&self.path, &rest)?;
                if added.is_empty() {
                    let _ = fs::remove_file(&backup);
                }
                return Ok(());
            }
        }
        // A file that consists of the entry was made for it.
        if self.client.with("", &server.name, &server.value).is_ok_and(|only| only == text) {
            return fs::remove_file(followed(&self.path)).map_err(|error| self.unwritable(&error));
        }
        let without = self.client.without(text, server).map_err(|error| self.wrong(&error))?;
        self.replace(&backup, text)?;
        self.replace(&self.path, &without)
    }

    fn check_writable(&self) -> Result<(), Failure> {
        match fs::metadata(&self.path) {
            Ok(metadata) if metadata.permissions().readonly() => Err(Failure::Other {
                what: format!("{} is read-only", self.path.display()),
                hint: Some("make it writable, or add what `--print` shows by hand"),
            }),
            _ => Ok(()),
        }
    }

    /// Writes a file beside the real one, and renames it. The permissions stay.
    fn replace(&self, path: &Path, text: &str) -> Result<(), Failure> {
        let path = followed(path);
        let folder = path.parent().unwrap_or(Path::new("."));
        let written = fs::create_dir_all(folder).and_then(|()| {
            let mut new = tempfile::NamedTempFile::new_in(folder)?;
            new.write_all(text.as_bytes())?;
            new.as_file().sync_all()?;
            if let Ok(old) = fs::metadata(&self.path) {
                new.as_file().set_permissions(old.permissions())?;
            }
            new.persist(&path).map_err(|error| error.error)
        });
        written.map(drop).map_err(|error| self.unwritable(&error))
    }

    fn unwritable(&self, error: &io::Error) -> Failure {
        Failure::new(format!("cannot write {}: {error}", self.path.display()))
    }

    fn wrong(&self, error: &super::EditError) -> Failure {
        Failure::Other {
            what: format!("{}: {error}", self.path.display()),
            hint: Some("correct the file, or add what `--print` shows by hand"),
        }
    }
}
