//! What is run, and within which limits. Decided once, when the configuration is read.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sabir_supervisor::GracePeriod;

/// A program, and how a call of it is run.
#[derive(Clone, Debug)]
pub struct Program {
    /// The file to run: absolute, see [`find_program`].
    pub path: PathBuf,
    /// The folder it starts in: absolute.
    pub cwd: PathBuf,
    /// Its whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// How long a call may take. Then it is ended.
    pub timeout: Duration,
    /// How many bytes it may write to standard output, and as many to standard error. If it
    /// writes more, it is ended.
    pub max_output: usize,
    /// The exit codes that mean success.
    pub success_codes: Vec<i32>,
    /// How long it may take to exit when it is stopped.
    pub grace: GracePeriod,
    /// What the system grants it.
    pub limits: Limits,
    /// What it may touch. `None`: what we may.
    pub sandbox: Option<Sandbox>,
}

impl Program {
    /// A program with the usual limits: a minute, 4 MiB, no variables but `PATH`; it is asked to
    /// leave at once when it should, since the input of a command says nothing about its end.
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

/// What the system grants a program, and each of its descendants alike. `None`: as we have it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of address space. A program that asks for more is refused it.
    pub memory: Option<u64>,
    /// Seconds of work by the processor. Then it gets SIGXCPU, and SIGKILL a second later.
    pub cpu_seconds: Option<u64>,
    /// Bytes of the largest file it may write. Beyond that it gets SIGXFSZ.
    pub file_size: Option<u64>,
}

/// What a program may touch, enforced by Linux. Where it cannot be enforced, nothing is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sandbox {
    /// The files it may touch. `None`: all that we may. Needs Linux 6.2 or newer (Landlock 3).
    pub files: Option<Files>,
    /// Whether it may open sockets other than Unix ones.
    pub network: bool,
}

/// Files and folders, with all that is in them. All absolute, and all must exist.
///
/// What a program needs in order to start is readable anyway: itself, and the system's programs
/// and libraries (`/usr`, `/bin`, `/lib`, …), not its configuration or anybody's files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    /// What it may read and execute.
    pub read: Vec<PathBuf>,
    /// What it may read, execute, write, make and remove.
    pub write: Vec<PathBuf>,
}

/// Why a program was not found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FindError {
    /// A path to nothing.
    #[error("there is no file {}", .0.display())]
    NoFile(PathBuf),
    /// A path to something that cannot be run.
    #[error("{} is not an executable file", .0.display())]
    NotExecutable(PathBuf),
    /// A name that no folder of the search path has.
    #[error("there is no program `{0}` in the search path; install it, or write its full path")]
    NotInPath(String),
}

/// Finds programs, and looks for each only once: many tools may run the same.
#[derive(Debug)]
pub struct Finder {
    base: PathBuf,
    /// By what was written, and where it was looked for.
    found: HashMap<(String, Option<OsString>), PathBuf>,
}

impl Finder {
    /// Paths are relative to `base`.
    pub fn new(base: PathBuf) -> Self {
        Self { base, found: HashMap::new() }
    }

    /// The program of that name, or at that path. See [`find_program`].
    pub fn find(&mut self, written: &str, search: Option<&OsStr>) -> Result<&Path, FindError> {
        match self.found.entry((written.to_owned(), search.map(OsStr::to_owned))) {
            Entry::Occupied(found) => Ok(found.into_mut()),
            Entry::Vacant(new) => Ok(new.insert(find_program(written, &self.base, search)?)),
        }
    }
}

/// Finds a program: a path is relative to `base`, a mere name is looked for in `search`.
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
