//! The convention by which Claude Code finds an editor: a lock file that names the port of a
//! WebSocket and the token that opens it.

use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use sabir::{HttpSettings, NamedToken, Token};
use serde::{Deserialize, Serialize};

use crate::report::Failure;

/// The header by which the client shows the token of the lock file.
const TOKEN_HEADER: &str = "x-claude-code-ide-authorization";

/// How an editor presents itself.
#[derive(Debug)]
pub(super) struct Ide {
    /// What people see.
    pub(super) name: String,
    /// The folders that are open.
    pub(super) folders: Vec<PathBuf>,
    /// The process of the editor. The client deletes the lock file of a process that is gone.
    pub(super) pid: u32,
    token: String,
}

impl Ide {
    pub(super) fn new(name: &str, folders: &[PathBuf], pid: u32) -> Result<Self, Failure> {
        let here = [PathBuf::from(".")];
        let folders = if folders.is_empty() { &here } else { folders };
        let whole = |folder: &PathBuf| {
            folder.canonicalize().map_err(|error| {
                Failure::new(format!("cannot use the folder {}: {error}", folder.display()))
            })
        };
        let folders = folders.iter().map(whole).collect::<Result<_, _>>()?;
        Ok(Self { name: name.to_owned(), folders, pid, token: nanoid::nanoid!(43) })
    }

    /// Admits only clients on this machine that know the token.
    pub(super) fn guard(&self, settings: &mut HttpSettings) -> Result<(), Failure> {
        if !settings.address.ip().is_loopback() {
            let address = settings.address;
            return Err(Failure::new(format!(
                "--ide cannot use {address} (expected a loopback address)"
            )));
        }
        settings.tokens = Token::new(&self.token)
            .map(|token| NamedToken::new("ide", token))
            .into_iter()
            .collect();
        settings.authenticate = None;
        settings.tls = None;
        settings.token_header = Some(TOKEN_HEADER.into());
        Ok(())
    }

    /// Writes the lock file of an editor that listens on `port`.
    pub(super) fn lock(self, port: u16) -> Result<LockFile, Failure> {
        let folder = folder().ok_or_else(|| {
            Failure::new("cannot write a lock file (set HOME or CLAUDE_CONFIG_DIR)")
        })?;
        let failed = |error: io::Error| {
            Failure::new(format!("cannot write a lock file in {}: {error}", folder.display()))
        };
        DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(failed)?;
        fs::set_permissions(&folder, Permissions::from_mode(0o700)).map_err(failed)?;
        remove_stale(&folder);
        let path = folder.join(format!("{port}.lock"));
        let lock = LockFile { path, ide: Mutex::new(self) };
        lock.write().map_err(failed)?;
        Ok(lock)
    }
}

/// A lock file, which is removed when this is dropped.
#[derive(Debug)]
pub(super) struct LockFile {
    path: PathBuf,
    ide: Mutex<Ide>,
}

impl LockFile {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Tells the client which folders are open from now on.
    pub(super) fn set_folders(&self, folders: Vec<PathBuf>) -> io::Result<()> {
        self.lock().folders = folders;
        self.write()
    }

    /// Removes the file, if that has not been done.
    pub(super) fn remove(&self) {
        let _ = fs::remove_file(&self.path);
    }

    /// Written whole beside its place, then renamed: the client never reads half of it.
    fn write(&self) -> io::Result<()> {
        let ide = self.lock();
        let contents = Contents {
            pid: ide.pid,
            workspace_folders: ide.folders.clone(),
            ide_name: ide.name.clone(),
            transport: "ws".to_owned(),
            running_in_windows: false,
            auth_token: ide.token.clone(),
            sabir_pid: Some(std::process::id()),
        };
        let beside = self.path.with_extension(format!("{}.tmp", std::process::id()));
        let written = (|| {
            let mut file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .open(&beside)?;
            file.write_all(&serde_json::to_vec(&contents)?)?;
            fs::rename(&beside, &self.path)
        })();
        if written.is_err() {
            let _ = fs::remove_file(&beside);
        }
        written
    }

    fn lock(&self) -> MutexGuard<'_, Ide> {
        self.ide.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for LockFile {
    fn drop(&mut self) {
        self.remove();
    }
}

/// A lock file, as the client reads it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Contents {
    pid: u32,
    workspace_folders: Vec<PathBuf>,
    ide_name: String,
    transport: String,
    running_in_windows: bool,
    auth_token: String,
    /// Ours: the process that serves the port. The client does not know it.
    sabir_pid: Option<u32>,
}

/// The folder of the lock files.
fn folder() -> Option<PathBuf> {
    let from = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let config = from("CLAUDE_CONFIG_DIR").or_else(|| Some(from("HOME")?.join(".claude")))?;
    Some(config.join("ide"))
}

/// Who wrote a lock file.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Owner {
    pid: Option<u32>,
    sabir_pid: Option<u32>,
}

/// The lock files in the folder, and who wrote them.
fn locks(folder: &Path) -> Vec<(PathBuf, Owner)> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let locks = paths.filter(|path| path.extension().is_some_and(|extension| extension == "lock"));
    locks
        .filter_map(|path| {
            let owner = serde_json::from_slice(&fs::read(&path).ok()?).ok()?;
            Some((path, owner))
        })
        .collect()
}

/// Removes the lock files of ours whose process was killed. Those of other editors are the client's
/// to remove.
fn remove_stale(folder: &Path) {
    for (path, owner) in locks(folder) {
        if owner.sabir_pid.is_some_and(|pid| !is_alive(pid)) {
            let _ = fs::remove_file(&path);
        }
    }
}

/// The lock files of processes that are gone, those of other editors too.
pub(in crate::commands) fn stale_locks() -> Vec<PathBuf> {
    let locks = folder().map(|folder| locks(&folder)).unwrap_or_default();
    let is_stale = |owner: &Owner| {
        let pids = [owner.sabir_pid, owner.pid];
        pids.into_iter().flatten().any(|pid| !is_alive(pid))
    };
    locks.into_iter().filter(|(_, owner)| is_stale(owner)).map(|(path, _)| path).collect()
}

fn is_alive(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    // A process of another user (`EPERM`) is alive, too.
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}
