//! The program of a command, and its limits.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sabir_supervisor::GracePeriod;

/// A program, and how it is run.
#[derive(Clone, Debug)]
pub struct Program {
    /// The absolute path of the file to run; see [`find_program`].
    pub path: PathBuf,
    /// The absolute path of the working directory.
    pub cwd: PathBuf,
    /// The whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// How long a call may take. Then the program is stopped.
    pub timeout: Duration,
    /// How many bytes it may write to each of standard output and standard error. If it writes
    /// more, it is stopped.
    pub max_output: usize,
    /// The exit codes that mean success.
    pub success_codes: Vec<i32>,
    /// How long it may take to exit when it is stopped.
    pub grace: GracePeriod,
    /// The resource limits.
    pub limits: Limits,
    /// The sandbox. `None`: no restrictions.
    pub sandbox: Option<Sandbox>,
}

impl Program {
    /// A program with the defaults: one minute, 4 MiB, and no environment variable but `PATH`. It
    /// gets SIGTERM immediately when it is stopped.
    pub fn new(path: PathBuf, cwd: PathBuf) -> Self {
        Self {
            path,
            cwd,
            env: std::env::var_os("PATH").map(|path| ("PATH".into(), path)).into_iter().collect(),
            timeout: Duration::from_secs(60),
            max_output: 4 << 20,
            success_codes: vec![0],
            grace: GracePeriod { after_stdin: Duration::ZERO, after_term: Duration::from_secs(2) },
            limits: Limits::default(),
            sandbox: None,
        }
    }
}

/// The resource limits of a program and of each of its descendants. `None`: those of Sabir.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of address space. Further allocations fail.
    pub memory: Option<u64>,
    /// Seconds of CPU time. Then it gets SIGXCPU, and SIGKILL a second later.
    pub cpu_seconds: Option<u64>,
    /// Bytes of the largest file that it may write. Then it gets SIGXFSZ.
    pub file_size: Option<u64>,
}

/// Restrictions of a program, enforced by Linux 6.12 or newer (Landlock 6). If they cannot be
/// enforced, it is not run.
///
/// No program in a sandbox can signal, trace or reprioritize a process outside of it, gain
/// privileges, or connect to an abstract Unix socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sandbox {
    /// The files that it may access. `None`: all.
    pub files: Option<Files>,
    /// Whether it may change modes, owners, times and extended attributes, of any file that Sabir
    /// may change. Without restricted `files` it always may.
    pub metadata: bool,
    /// Whether it may open sockets other than Unix sockets.
    pub network: bool,
    /// The Unix sockets that it may connect to.
    pub sockets: Sockets,
}

impl Default for Sandbox {
    /// Files and the network are not restricted.
    fn default() -> Self {
        Self { files: None, metadata: false, network: true, sockets: Sockets::None }
    }
}

/// Unix sockets that have a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sockets {
    /// None: a program can only open pairs of connected sockets.
    None,
    /// These, and those in these folders. Needs Linux 7.1 or newer (Landlock 9).
    Named(Vec<PathBuf>),
    /// All that Sabir may connect to.
    All,
}

/// Files and folders with their contents. All paths are absolute and must exist.
///
/// The program itself and the system's programs and libraries (`/usr`, `/bin`, `/lib`, …) are always
/// readable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    /// Readable and executable.
    pub read: Vec<PathBuf>,
    /// Also writable.
    pub write: Vec<PathBuf>,
}

/// Why a program was not found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FindError {
    /// The path does not exist.
    #[error("file not found: {}", .0.display())]
    NoFile(PathBuf),
    /// The path is not an executable file.
    #[error("{} is not an executable file", .0.display())]
    NotExecutable(PathBuf),
    /// The name is in no folder of `PATH`.
    #[error("program `{0}` not found in PATH")]
    NotInPath(String),
}

/// Finds programs, and caches the results: many tools may run the same program.
#[derive(Debug)]
pub struct Finder {
    base: PathBuf,
    /// By name and search path.
    found: HashMap<(String, Option<OsString>), PathBuf>,
}

impl Finder {
    /// A finder for which paths are relative to `base`.
    pub fn new(base: PathBuf) -> Self {
        Self { base, found: HashMap::new() }
    }

    /// Finds a program by name or path. See [`find_program`].
    pub fn find(&mut self, written: &str, search: Option<&OsStr>) -> Result<&Path, FindError> {
        match self.found.entry((written.to_owned(), search.map(OsStr::to_owned))) {
            Entry::Occupied(found) => Ok(found.into_mut()),
            Entry::Vacant(new) => Ok(new.insert(find_program(written, &self.base, search)?)),
        }
    }
}

/// Finds a program. A path is relative to `base`; a name is looked up in the search path `search`.
pub fn find_program(
    written: &str,
    base: &Path,
    search: Option<&OsStr>,
) -> Result<PathBuf, FindError> {
    if written.contains('/') {
        let path: PathBuf = base.join(written).components().collect();
        return match which::which_in(&path, None::<&OsStr>, base) {
            Ok(found) => Ok(found),
            Err(_) if path.exists() => Err(FindError::NotExecutable(path)),
            Err(_) => Err(FindError::NoFile(path)),
        };
    }
    which::which_in(written, search, base).map_err(|_| FindError::NotInPath(written.to_owned()))
}
