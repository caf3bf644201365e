//! Sabir's side of the keepers: starts them, uses them again, closes them.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::io::Errno;
use tokio::net::UnixStream;
use tokio::process::Command;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::child::{Child, Home, Streams};
use crate::line::{Line, send};
use crate::modes::{KEEP_ALL, MARK, this_program};
use crate::order::{BadOrder, Order, Word};

/// Where programs are started, and kept. A clone is the same keepers.
///
/// Nothing runs before the first order. When the last clone and the last [`Child`] are dropped,
/// all is ended in the background; [`Keepers::close`] waits for it.
#[derive(Clone, Debug)]
pub struct Keepers(Arc<Pool>);

/// What may be set about keepers.
#[derive(Clone, Debug)]
pub struct KeeperSettings {
    /// The executable to start as warden. It must call [`crate::hidden_mode`].
    pub program: PathBuf,
    /// How many programs may run at the same time. One more is refused.
    pub max_children: usize,
    /// How many idle keepers wait for the next order. One more is let go.
    pub max_idle: usize,
    /// How long a keeper may take from its start to its first word. After that the order fails.
    pub start_within: Duration,
}

impl Default for KeeperSettings {
    fn default() -> Self {
        Self {
            program: this_program(),
            max_children: 1024,
            max_idle: 8,
            start_within: Duration::from_secs(10),
        }
    }
}

/// Why a program could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// There is no such file.
    #[error("there is no program {}", .0.display())]
    NoProgram(PathBuf),
    /// The file is there, but may not be run.
    #[error("{} may not be executed", .0.display())]
    NotExecutable(PathBuf),
    /// The folder to start in is not there, or is no folder.
    #[error("there is no folder {} to start in", .0.display())]
    NoFolder(PathBuf),
    /// The path of the program or of its folder is not absolute.
    #[error("{} is not an absolute path", .0.display())]
    Relative(PathBuf),
    /// The system takes no arguments and environment of that size.
    #[error("the arguments and the environment are larger than the system allows")]
    TooLarge,
    /// An argument or variable contains a NUL byte.
    #[error("an argument or a variable contains a NUL byte")]
    Nul,
    /// As many programs run as are allowed to.
    #[error("{0} programs are running, which is the bound")]
    Full(usize),
    /// [`Keepers::close`] has been called.
    #[error("no more programs are started")]
    Closed,
    /// The system refused, for another reason.
    #[error("the program could not be started: {0}")]
    System(#[source] io::Error),
    /// There is no keeper to start it.
    #[error("no keeper: {0}")]
    NoKeeper(#[source] io::Error),
}

/// An order that a keeper has.
struct Given {
    streams: Streams,
    line: Line,
    room: OwnedSemaphorePermit,
}

impl Keepers {
    /// Keepers to be. Starts nothing yet.
    pub fn new(settings: KeeperSettings) -> Self {
        Self(Arc::new(Pool {
            idle: Mutex::new(Some(Vec::new())),
            warden: tokio::sync::Mutex::new(None),
            room: Arc::new(Semaphore::new(settings.max_children)),
            settings,
        }))
    }

    /// Starts a program, and waits until it runs. If the future is dropped, the program is ended
    /// or was never started.
    pub async fn start(&self, order: &Order) -> Result<Child, StartError> {
        let Given { streams, mut line, room } = self.give(order, true).await?;
        match line.hear().await.map_err(StartError::NoKeeper)? {
            Some(Word::Started(pid)) => Ok(self.child(Some(pid), streams, line, room)),
            Some(Word::NotStarted(errno)) => {
                self.0.keep_idle(line);
                Err(refusal(errno, &order.program, &order.cwd))
            }
            _ => no_keeper(io::ErrorKind::InvalidData, "it has left"),
        }
    }

    /// Launches a program, which is cheaper than to start it: whether it runs is not waited for.
    /// That it could not be started is then told by [`Child::wait`].
    pub async fn launch(&self, order: &Order) -> Result<Child, StartError> {
        let Given { streams, line, room } = self.give(order, false).await?;
        Ok(self.child(None, streams, line, room))
    }

    fn child(
        &self,
        pid: Option<i32>,
        streams: Streams,
        line: Line,
        room: OwnedSemaphorePermit,
    ) -> Child {
        Child::new(pid, streams, line, Arc::clone(&self.0) as Arc<dyn Home>, room)
    }

    /// Gives the order to a keeper.
    async fn give(&self, order: &Order, announce: bool) -> Result<Given, StartError> {
        let pool = &self.0;
        let bytes = order.encode(announce).map_err(|bad| match bad {
            BadOrder::Nul => StartError::Nul,
            BadOrder::TooLarge => StartError::TooLarge,
        })?;
        if let Some(path) = [&order.program, &order.cwd].into_iter().find(|p| !p.is_absolute()) {
            return Err(StartError::Relative(path.clone()));
        }
        let room = Arc::clone(&pool.room)
            .try_acquire_owned()
            .map_err(|_| StartError::Full(pool.settings.max_children))?;
        let (streams, theirs) = Streams::open(order.stdin).map_err(StartError::System)?;
        let files: Vec<_> = theirs.iter().map(AsFd::as_fd).collect();
        loop {
            let (line, is_new) = pool.take_line().await?;
            match line.send(&bytes, &files).await {
                Ok(()) => return Ok(Given { streams, line, room }),
                // It left while it was idle: the next one, please.
                Err(_) if !is_new => {}
                Err(error) => return Err(StartError::NoKeeper(error)),
            }
        }
    }

    /// Ends every program that runs, and returns when nothing of any of them is left, or after
    /// this time. Returns whether all are gone. From now on nothing is started.
    ///
    /// What is not gone by then hangs in the kernel or has changed its user; its keeper stays
    /// with it, even without us.
    pub async fn close(&self, within: Duration) -> bool {
        self.0.idle().take();
        let Some(Warden { stream, mut process, .. }) = self.0.warden.lock().await.take() else {
            return true;
        };
        drop(stream);
        tokio::time::timeout(within, process.wait()).await.is_ok()
    }
}

/// What all clones share.
#[derive(Debug)]
struct Pool {
    settings: KeeperSettings,
    /// Keepers without a program. `None`: closed.
    idle: Mutex<Option<Vec<Line>>>,
    /// The lock is held while a keeper is being started, so that there is one warden.
    warden: tokio::sync::Mutex<Option<Warden>>,
    room: Arc<Semaphore>,
}

#[derive(Debug)]
struct Warden {
    stream: UnixStream,
    process: tokio::process::Child,
    /// Whether a keeper of it has ever spoken. Otherwise it may be any program.
    proven: bool,
}

impl Home for Pool {
    /// Puts a keeper back whose program is gone.
    fn keep_idle(&self, line: Line) {
        if let Some(idle) = self.idle().as_mut()
            && idle.len() < self.settings.max_idle
        {
            idle.push(line);
        }
    }
}

impl Pool {
    fn idle(&self) -> std::sync::MutexGuard<'_, Option<Vec<Line>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A keeper that waits for orders: the one used last, or a new one, and whether it is new.
    async fn take_line(&self) -> Result<(Line, bool), StartError> {
        loop {
            match self.idle().as_mut().ok_or(StartError::Closed)?.pop() {
                Some(line) if line.is_stale() => {}
                Some(line) => return Ok((line, false)),
                None => break,
            }
        }
        let start = self.start_keeper();
        let timeout = tokio::time::timeout(self.settings.start_within, start).await;
        let line =
            timeout.unwrap_or_else(|_| no_keeper(io::ErrorKind::TimedOut, "it says nothing"));
        self.judge_warden(line.is_ok()).await;
        line.map(|line| (line, true))
    }

    async fn start_keeper(&self) -> Result<Line, StartError> {
        let (ours, theirs) = StdUnixStream::pair().map_err(StartError::NoKeeper)?;
        self.send_to_warden(&theirs).await?;
        drop(theirs);
        let open = ours.set_nonblocking(true).and_then(|()| UnixStream::from_std(ours));
        let mut line = Line::new(open.map_err(StartError::NoKeeper)?);
        match line.hear().await {
            Ok(Some(Word::Ready)) => Ok(line),
            Ok(_) => no_keeper(io::ErrorKind::BrokenPipe, "it has left"),
            Err(error) => Err(StartError::NoKeeper(error)),
        }
    }

    /// A warden without a single good keeper is no warden. Nobody else would ever end it.
    async fn judge_warden(&self, good: bool) {
        let mut slot = self.warden.lock().await;
        match &mut *slot {
            Some(warden) if good => warden.proven = true,
            Some(warden) if !warden.proven => {
                let _ = warden.process.kill().await;
                *slot = None;
            }
            _ => {}
        }
    }

    /// Hands a keeper's socket to the warden, which is started if there is none any more.
    async fn send_to_warden(&self, socket: &StdUnixStream) -> Result<(), StartError> {
        let mut warden = self.warden.lock().await;
        if self.idle().is_none() {
            return Err(StartError::Closed);
        }
        if let Some(running) = &*warden
            && send(&running.stream, &[0], &[socket.as_fd()]).await.is_ok()
        {
            return Ok(());
        }
        let started = start_warden(&self.settings.program).map_err(StartError::NoKeeper)?;
        let stream = &warden.insert(started).stream;
        send(stream, &[0], &[socket.as_fd()]).await.map_err(StartError::NoKeeper)
    }
}

fn no_keeper<T>(kind: io::ErrorKind, what: &str) -> Result<T, StartError> {
    let hint = "does the executable call hidden_mode first in main?";
    Err(StartError::NoKeeper(io::Error::new(kind, format!("{what}; {hint}"))))
}

fn start_warden(program: &Path) -> io::Result<Warden> {
    if std::env::var_os(MARK).is_some() {
        return Err(io::Error::other("a keeper was asked to start keepers"));
    }
    let (ours, theirs) = StdUnixStream::pair()?;
    ours.set_nonblocking(true)?;
    let process = Command::new(program)
        .arg0(format!("keeper of {}", std::process::id()))
        .arg(KEEP_ALL)
        .env_clear()
        .env(MARK, "1")
        // Not our streams: whoever waits for the end of our output must not wait for a keeper.
        .stdin(OwnedFd::from(theirs))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    Ok(Warden { stream: UnixStream::from_std(ours)?, process, proven: false })
}

/// What the system's error number means for the start of `program` in `cwd`.
pub fn refusal(errno: i32, program: &Path, cwd: &Path) -> StartError {
    match Errno::from_raw_os_error(errno) {
        // The system does not say whether it missed the program, its folder or its interpreter.
        Errno::NOENT | Errno::NOTDIR | Errno::ACCESS if !cwd.is_dir() => {
            StartError::NoFolder(cwd.to_owned())
        }
        Errno::NOENT | Errno::NOTDIR => StartError::NoProgram(program.to_owned()),
        Errno::ACCESS => StartError::NotExecutable(program.to_owned()),
        Errno::TOOBIG => StartError::TooLarge,
        _ => StartError::System(io::Error::from_raw_os_error(errno)),
    }
}
