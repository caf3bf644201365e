//! Starts programs, reuses idle monitors, and stops everything at the end.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::io::Errno;
use tokio::net::UnixStream;
use tokio::process::Command;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::channel::{Channel, send};
use crate::child::{Child, IdlePool, Streams};
use crate::message::{EncodeError, Report, StartRequest};
use crate::modes::{self, MARKER, current_executable};

/// Starts programs and guarantees that they stop with this process. Clones share everything.
///
/// No process is started before the first request. When the last clone and the last [`Child`] are
/// dropped, all processes stop in the background; [`Supervisor::close`] waits for that.
#[derive(Clone, Debug)]
pub struct Supervisor(Arc<Pool>);

/// The settings of a [`Supervisor`].
#[derive(Clone, Debug)]
pub struct SupervisorSettings {
    /// The executable to start as supervisor process. It must call [`crate::hidden_mode`].
    pub executable: PathBuf,
    /// How many programs may run at the same time. Further requests fail with
    /// [`StartError::Full`].
    pub max_children: usize,
    /// How many idle monitors are kept for later requests. Further ones exit.
    pub max_idle: usize,
    /// How long a new monitor may take to report that it is ready. Then the request fails.
    pub start_timeout: Duration,
}

impl Default for SupervisorSettings {
    fn default() -> Self {
        Self {
            executable: current_executable(),
            max_children: 1024,
            max_idle: 8,
            start_timeout: Duration::from_secs(10),
        }
    }
}

/// Why a program could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The file does not exist.
    #[error("program not found: {}", .0.display())]
    NoProgram(PathBuf),
    /// The file exists but cannot be executed.
    #[error("{} is not executable", .0.display())]
    NotExecutable(PathBuf),
    /// The working directory does not exist or is not a directory.
    #[error("working directory not found: {}", .0.display())]
    NoFolder(PathBuf),
    /// The path of the program or of the working directory is relative.
    #[error("{} is not an absolute path", .0.display())]
    Relative(PathBuf),
    /// The arguments and the environment are too large.
    #[error("the arguments and the environment are larger than the system allows")]
    TooLarge,
    /// An argument or an environment variable contains a NUL byte.
    #[error("an argument or an environment variable contains a NUL byte")]
    Nul,
    /// The maximum number of programs is running.
    #[error("too many programs are running (limit {0})")]
    Full(usize),
    /// [`Supervisor::close`] has been called.
    #[error("the supervisor is closed")]
    Closed,
    /// The system refused to start the program for another reason.
    #[error("cannot start the program: {0}")]
    System(#[source] io::Error),
    /// No monitor process could be started.
    #[error("cannot start a monitor process: {0}")]
    NoMonitor(#[source] io::Error),
}

impl StartError {
    /// The error for a system error number that was returned on starting `program` in `cwd`.
    pub fn from_errno(errno: i32, program: &Path, cwd: &Path) -> Self {
        match Errno::from_raw_os_error(errno) {
            // The error number does not tell the program, its interpreter and `cwd` apart.
            Errno::NOENT | Errno::NOTDIR | Errno::ACCESS if !cwd.is_dir() => {
                Self::NoFolder(cwd.to_owned())
            }
            Errno::NOENT | Errno::NOTDIR => Self::NoProgram(program.to_owned()),
            Errno::ACCESS => Self::NotExecutable(program.to_owned()),
            Errno::TOOBIG => Self::TooLarge,
            _ => Self::System(io::Error::from_raw_os_error(errno)),
        }
    }
}

/// A request that a monitor has received.
struct Sent {
    streams: Streams,
    channel: Channel,
    permit: OwnedSemaphorePermit,
}

impl Supervisor {
    /// Creates a supervisor. Starts no process yet.
    pub fn new(settings: SupervisorSettings) -> Self {
        Self(Arc::new(Pool {
            idle: Mutex::new(Some(Vec::new())),
            root: tokio::sync::Mutex::new(None),
            permits: Arc::new(Semaphore::new(settings.max_children)),
            settings,
        }))
    }

    /// How many programs run.
    pub fn running(&self) -> usize {
        let Pool { settings, permits, .. } = &*self.0;
        settings.max_children.saturating_sub(permits.available_permits())
    }

    /// Starts a program and waits until it runs. If the future is dropped, the program is stopped
    /// or was never started.
    pub async fn start(&self, request: &StartRequest) -> Result<Child, StartError> {
        let mut sent = self.send(request, true).await?;
        match sent.channel.receive().await.map_err(StartError::NoMonitor)? {
            Some(Report::Started(pid)) => Ok(self.child(Some(pid), sent)),
            Some(Report::NotStarted(errno)) => {
                self.0.put_back(sent.channel);
                Err(StartError::from_errno(errno, &request.program, &request.cwd))
            }
            _ => Err(no_monitor(io::ErrorKind::InvalidData, "it exited")),
        }
    }

    /// Starts a program without waiting until it runs, which is faster. A failed start is reported
    /// by [`Child::wait`].
    pub async fn launch(&self, request: &StartRequest) -> Result<Child, StartError> {
        let sent = self.send(request, false).await?;
        Ok(self.child(None, sent))
    }

    fn child(&self, pid: Option<i32>, sent: Sent) -> Child {
        let idle = Arc::clone(&self.0) as Arc<dyn IdlePool>;
        Child::new(pid, sent.streams, sent.channel, idle, sent.permit)
    }

    /// Sends the request to a monitor.
    async fn send(&self, request: &StartRequest, announce: bool) -> Result<Sent, StartError> {
        let pool = &self.0;
        let bytes = request.encode(announce).map_err(|error| match error {
            EncodeError::Nul => StartError::Nul,
            EncodeError::TooLarge => StartError::TooLarge,
        })?;
        let mut paths = [&request.program, &request.cwd].into_iter();
        if let Some(path) = paths.find(|path| !path.is_absolute()) {
            return Err(StartError::Relative(path.clone()));
        }
        let permit = Arc::clone(&pool.permits)
            .try_acquire_owned()
            .map_err(|_| StartError::Full(pool.settings.max_children))?;
        let (streams, theirs) = Streams::open(request.stdin).map_err(StartError::System)?;
        let files: Vec<_> = theirs.iter().map(AsFd::as_fd).collect();
        loop {
            let (channel, is_new) = pool.take_monitor().await?;
            match channel.send(&bytes, &files).await {
                Ok(()) => return Ok(Sent { streams, channel, permit }),
                // The monitor exited while it was idle: try the next one.
                Err(_) if !is_new => {}
                Err(error) => return Err(StartError::NoMonitor(error)),
            }
        }
    }

    /// Stops every program, and waits until none of their processes is left, or until `timeout` has
    /// passed. Returns whether all are gone. Later requests fail with [`StartError::Closed`].
    ///
    /// A process that is not gone by then is blocked in the kernel or has changed its user. Its
    /// monitor keeps waiting for it, even after this process has exited.
    pub async fn close(&self, timeout: Duration) -> bool {
        self.0.idle().take();
        let Some(Root { stream, mut process, .. }) = self.0.root.lock().await.take() else {
            return true;
        };
        drop(stream);
        tokio::time::timeout(timeout, process.wait()).await.is_ok()
    }
}

/// The state that all clones share.
#[derive(Debug)]
struct Pool {
    settings: SupervisorSettings,
    /// Monitors without a program. `None` after `close`.
    idle: Mutex<Option<Vec<Channel>>>,
    /// Locked while a monitor is started, so that there is one supervisor process.
    root: tokio::sync::Mutex<Option<Root>>,
    permits: Arc<Semaphore>,
}

/// The supervisor process.
#[derive(Debug)]
struct Root {
    stream: UnixStream,
    process: tokio::process::Child,
    /// Whether one of its monitors has ever reported. Until then it may be any program.
    verified: bool,
}

impl IdlePool for Pool {
    fn put_back(&self, channel: Channel) {
        if let Some(idle) = self.idle().as_mut()
            && idle.len() < self.settings.max_idle
        {
            idle.push(channel);
        }
    }
}

impl Pool {
    fn idle(&self) -> MutexGuard<'_, Option<Vec<Channel>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A monitor that waits for requests (the one used last, or a new one), and whether it is new.
    async fn take_monitor(&self) -> Result<(Channel, bool), StartError> {
        loop {
            match self.idle().as_mut().ok_or(StartError::Closed)?.pop() {
                Some(channel) if channel.is_stale() => {}
                Some(channel) => return Ok((channel, false)),
                None => break,
            }
        }
        let start = tokio::time::timeout(self.settings.start_timeout, self.start_monitor());
        let result = start
            .await
            .unwrap_or_else(|_| Err(no_monitor(io::ErrorKind::TimedOut, "it does not respond")));
        self.verify_root(result.is_ok()).await;
        result.map(|channel| (channel, true))
    }

    async fn start_monitor(&self) -> Result<Channel, StartError> {
        let (ours, theirs) = StdUnixStream::pair().map_err(StartError::NoMonitor)?;
        self.send_to_root(&theirs).await?;
        drop(theirs);
        let stream = ours.set_nonblocking(true).and_then(|()| UnixStream::from_std(ours));
        let mut channel = Channel::new(stream.map_err(StartError::NoMonitor)?);
        match channel.receive().await {
            Ok(Some(Report::Ready)) => Ok(channel),
            Ok(_) => Err(no_monitor(io::ErrorKind::BrokenPipe, "it exited")),
            Err(error) => Err(StartError::NoMonitor(error)),
        }
    }

    /// Kills a supervisor process whose monitors never reported: it is some other program, which
    /// would not stop by itself.
    async fn verify_root(&self, monitor_is_ready: bool) {
        let mut slot = self.root.lock().await;
        match &mut *slot {
            Some(root) if monitor_is_ready => root.verified = true,
            Some(root) if !root.verified => {
                let _ = root.process.kill().await;
                *slot = None;
            }
            _ => {}
        }
    }

    /// Sends a monitor's socket to the supervisor process, which is started if necessary.
    async fn send_to_root(&self, socket: &StdUnixStream) -> Result<(), StartError> {
        let mut root = self.root.lock().await;
        if self.idle().is_none() {
            return Err(StartError::Closed);
        }
        if let Some(running) = &*root
            && send(&running.stream, &[0], &[socket.as_fd()]).await.is_ok()
        {
            return Ok(());
        }
        let started = start_root(&self.settings.executable).map_err(StartError::NoMonitor)?;
        let stream = &root.insert(started).stream;
        send(stream, &[0], &[socket.as_fd()]).await.map_err(StartError::NoMonitor)
    }
}

fn no_monitor(kind: io::ErrorKind, reason: &str) -> StartError {
    let hint = "does the executable call hidden_mode first in main?";
    StartError::NoMonitor(io::Error::new(kind, format!("{reason}; {hint}")))
}

fn start_root(executable: &Path) -> io::Result<Root> {
    if std::env::var_os(MARKER).is_some() {
        return Err(io::Error::other("a monitor process cannot start a supervisor process"));
    }
    let (ours, theirs) = StdUnixStream::pair()?;
    ours.set_nonblocking(true)?;
    let process = Command::new(executable)
        .arg0(format!("supervisor of {}", std::process::id()))
        .arg(modes::SUPERVISOR)
        .env_clear()
        .env(MARKER, "1")
        // Not our streams: a reader of our output must see its end when we exit.
        .stdin(OwnedFd::from(theirs))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    Ok(Root { stream: UnixStream::from_std(ours)?, process, verified: false })
}
