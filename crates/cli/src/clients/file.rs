//! Reads and writes a client's file: a symbolic link is followed, a backup is made, and the file is
//! replaced at once.

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

    /// The servers of the file.
    pub(crate) fn servers(&self) -> Result<Vec<Server>, Failure> {
        let text = self.text.as_deref().unwrap_or_default();
        self.client.servers(text).map_err(|error| self.wrong(&error))
    }

    /// Adds or replaces an entry.
    pub(crate) fn add(&self, name: &str, value: &Value) -> Result<(), Failure> {
        let old = self.text.as_deref().unwrap_or_default();
        let new = self.client.with(old, name, value).map_err(|error| self.wrong(&error))?;
        self.check_writable()?;
        if let Some(old) = &self.text {
            self.replace(&backup_of(&self.path), old)?;
        }
        self.replace(&self.path, &new)
    }

    /// Removes an entry. If nothing else has changed since it was added, the file becomes what it
    /// was before, byte for byte.
    pub(crate) fn remove(&self, server: &Server) -> Result<(), Failure> {
        let text = self.text.as_deref().unwrap_or_default();
        self.check_writable()?;
        let backup = backup_of(&self.path);
        if let Ok(before) = fs::read_to_string(&backup)
            && self.client.with(&before, &server.name, &server.value).is_ok_and(|with| with == text)
        {
            self.replace(&self.path, &before)?;
            let _ = fs::remove_file(&backup);
            return Ok(());
        }
        // A file that consists of the entry was made for it.
        if self.client.with("", &server.name, &server.value).is_ok_and(|only| only == text) {
            return fs::remove_file(&self.path).map_err(|error| self.unwritable(&error));
        }
        let without =
            self.client.without(text, &server.name).map_err(|error| self.wrong(&error))?;
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
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
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
