//! One call of a program, from its start until all its processes are gone.
//!
//! [`Call::step`] waits for everything at once: input to write, output to read, the program's exit,
//! and the deadline. Dropping the future stops the program in the background; [`run_until`] waits
//! until it is gone.
//!
//! A program that reaches a limit is stopped; the result names the limit and has the output so far.

use std::ffi::OsString;
use std::io;
use std::time::Duration;

use sabir_budget::{Hold, MemoryFull, QueueFull, memory};
use sabir_supervisor::{Child, Exit, StartError, StartRequest, Supervisor, WaitError};
use signal_hook::consts::{SIGXCPU, SIGXFSZ};
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::capture::{Capture, Observer, Stream};
use super::exec::{Launcher, Refused};
use super::program::Program;

/// How long beyond the grace period a program that is being stopped is waited for. A program that
/// SIGKILL does not stop is blocked in the kernel; the call is answered without it.
const STUCK: Duration = Duration::from_secs(5);

/// The longest timeout: longer durations overflow clocks.
const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// How long output is read after all processes of the program are gone. Only an unrelated process
/// can still have it open.
const LINGER: Duration = Duration::from_millis(500);

/// The result of a call.
#[derive(Debug)]
pub struct Finish {
    /// Whether it exited by itself, within all limits, with a code that means success.
    pub success: bool,
    /// How the program exited. `None`: it is blocked in the kernel and cannot be stopped.
    pub exit: Option<Exit>,
    /// The limit that it reached.
    pub limit: Option<Limit>,
    /// Its standard output, at most `max_output` bytes.
    pub stdout: Vec<u8>,
    /// The memory that `stdout` holds.
    pub hold: Hold,
    /// The last 8 KiB of its standard error.
    pub stderr: Vec<u8>,
    /// The number of bytes of standard error before those.
    pub stderr_cut: u64,
}

/// A limit that a program can reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// `timeout`.
    Time,
    /// `max_output`, of this stream.
    Output(Stream),
    /// The CPU time.
    Cpu,
    /// The size of a file.
    FileSize,
}

/// Why a call could not be run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The program could not be started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// It lost its place in the queue to another caller.
    #[error(transparent)]
    Queue(#[from] QueueFull),
    /// The memory budget has no room for its output.
    #[error("the program was stopped: {0}")]
    Memory(#[from] MemoryFull),
    /// The program did not start before its timeout.
    #[error("the program did not start before its timeout")]
    NotStartedInTime,
    /// Its limits or its sandbox could not be applied, so it was not started.
    #[error("cannot apply the limits or the sandbox of the program: {0}")]
    Sandbox(String),
    /// Its files could not be written or read.
    #[error("The program failed: {0}")]
    Files(String),
    /// The program's monitor was killed. The program is being stopped.
    #[error("the monitor process of this program was killed")]
    MonitorLost,
}

/// Runs a program once, with these arguments and this standard input.
pub async fn run(
    supervisor: &Supervisor,
    program: &Program,
    args: Vec<OsString>,
    stdin: Option<Vec<u8>>,
    observer: Option<&mut Observer<'_>>,
) -> Result<Finish, RunError> {
    run_until(std::future::pending(), supervisor, program, args, stdin, observer).await
}

/// Like [`run`], but stops the program when `cancelled` completes. Returns when all its processes
/// are gone.
pub async fn run_until(
    cancelled: impl Future<Output = ()>,
    supervisor: &Supervisor,
    program: &Program,
    args: Vec<OsString>,
    stdin: Option<Vec<u8>>,
    mut observer: Option<&mut Observer<'_>>,
) -> Result<Finish, RunError> {
    let deadline = Instant::now() + program.timeout.min(YEAR);
    let launcher = Launcher::new(program, &args);
    let (path, args) = match &launcher {
        Some(launcher) => (launcher.path.clone(), launcher.args.clone()),
        None => (program.path.clone(), args),
    };
    let order = StartRequest {
        program: path,
        args,
        env: program.env.clone(),
        cwd: program.cwd.clone(),
        stdin: stdin.is_some(),
        grace: program.grace,
    };
    let start = timeout_at(deadline, supervisor.launch(&order)).await;
    let mut child = start.map_err(|_| RunError::NotStartedInTime)??;
    let mut call = Call {
        input: Input { pipe: child.stdin.take(), bytes: stdin.unwrap_or_default(), written: 0 },
        output: Capture::new(Stream::Output, child.stdout.take(), program.max_output, memory()),
        errors: Capture::new(Stream::Error, child.stderr.take(), program.max_output, memory()),
        child,
        phase: Phase::Running,
        deadline,
        exit: None,
        limit: None,
    };
    let mut cancelled = std::pin::pin!(cancelled);
    while call.phase == Phase::Running {
        tokio::select! {
            biased;
            () = &mut cancelled => call.stop(program),
            step = call.step(program, observer.as_deref_mut()) => step?,
        }
    }
    while call.phase != Phase::Done {
        call.step(program, observer.as_deref_mut()).await?;
    }
    if let Some(full) = call.output.full() {
        return Err(RunError::Memory(full));
    }
    let finish = call.finish(program);
    let refused = match (&launcher, finish.exit) {
        (Some(launcher), Some(Exit::Code(code))) => launcher.refused(code, &finish.stderr, program),
        _ => None,
    };
    match refused {
        None => Ok(finish),
        Some(Refused::Start(error)) => Err(RunError::Start(error)),
        Some(Refused::Sandbox(reason)) => Err(RunError::Sandbox(reason)),
    }
}

/// A running call.
struct Call {
    child: Child,
    input: Input,
    output: Capture,
    errors: Capture,
    phase: Phase,
    /// When the phase ends.
    deadline: Instant,
    exit: Option<Exit>,
    limit: Option<Limit>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The program runs.
    Running,
    /// The program, or what is left of it, is being stopped.
    Stopping,
    /// All processes are gone; output may still be unread.
    Draining,
    Done,
}

impl Call {
    /// Waits for one event and handles it.
    async fn step(
        &mut self,
        program: &Program,
        observer: Option<&mut Observer<'_>>,
    ) -> Result<(), RunError> {
        tokio::select! {
            written = self.input.write(), if self.input.is_open() => self.input.take(written),
            read = self.output.read(), if self.output.is_open() => {
                self.output.take(read, observer);
                self.check_limit(Stream::Output, program);
            }
            read = self.errors.read(), if self.errors.is_open() => {
                self.errors.take(read, observer);
                self.check_limit(Stream::Error, program);
            }
            exit = self.child.wait(), if self.exit.is_none() => {
                self.exit = Some(exit.map_err(|error| wait_error(error, program))?);
                self.enter(Phase::Draining, LINGER);
            }
            () = sleep_until(self.deadline) => self.on_deadline(program),
        }
        let drained = !self.output.is_open() && !self.errors.is_open();
        if self.phase == Phase::Draining && drained {
            self.phase = Phase::Done;
        }
        Ok(())
    }

    fn check_limit(&mut self, stream: Stream, program: &Program) {
        let over = match stream {
            Stream::Output => self.output.is_over(),
            Stream::Error => self.errors.is_over(),
        };
        if over && self.limit.is_none() {
            self.limit = Some(Limit::Output(stream));
        }
        let is_too_much = over || self.output.full().is_some();
        if is_too_much && self.phase == Phase::Running {
            self.stop(program);
        }
    }

    fn on_deadline(&mut self, program: &Program) {
        match self.phase {
            // The program has exited in time; its descendants have not.
            Phase::Running if self.child.has_exited() => {
                self.enter(Phase::Stopping, stop_time(program))
            }
            Phase::Running => {
                self.limit.get_or_insert(Limit::Time);
                self.stop(program);
            }
            Phase::Stopping | Phase::Draining | Phase::Done => self.phase = Phase::Done,
        }
    }

    fn stop(&mut self, program: &Program) {
        self.input.close();
        self.child.stop();
        self.enter(Phase::Stopping, stop_time(program));
    }

    fn enter(&mut self, phase: Phase, timeout: Duration) {
        self.phase = phase;
        self.deadline = Instant::now() + timeout;
    }

    fn finish(self, program: &Program) -> Finish {
        let limit = self.limit.or(match self.exit {
            Some(Exit::Signal(SIGXCPU)) => Some(Limit::Cpu),
            Some(Exit::Signal(SIGXFSZ)) => Some(Limit::FileSize),
            _ => None,
        });
        let good = |exit| matches!(exit, Exit::Code(code) if program.success_codes.contains(&code));
        let stderr_cut = self.errors.cut();
        let (stdout, hold) = self.output.into_kept();
        Finish {
            success: limit.is_none() && self.exit.is_some_and(good),
            exit: self.exit,
            limit,
            stdout,
            hold,
            stderr: self.errors.into_kept().0,
            stderr_cut,
        }
    }
}

fn wait_error(error: WaitError, program: &Program) -> RunError {
    match error {
        WaitError::NotStarted(errno) => {
            StartError::from_errno(errno, &program.path, &program.cwd).into()
        }
        WaitError::MonitorLost => RunError::MonitorLost,
    }
}

/// The longest time that stopping a program may take.
fn stop_time(program: &Program) -> Duration {
    program.grace.total() + STUCK
}

/// The standard input that is being written.
struct Input {
    pipe: Option<pipe::Sender>,
    bytes: Vec<u8>,
    written: usize,
}

impl Input {
    fn is_open(&self) -> bool {
        self.pipe.is_some()
    }

    fn close(&mut self) {
        self.pipe = None;
    }

    /// Writes some bytes. Cancel safe.
    async fn write(&mut self) -> io::Result<usize> {
        match &mut self.pipe {
            Some(pipe) if self.written < self.bytes.len() => {
                pipe.write(&self.bytes[self.written..]).await
            }
            _ => Ok(0),
        }
    }

    /// Handles the result of [`Input::write`]. A program need not read its input, so an error only
    /// ends the writing.
    fn take(&mut self, written: io::Result<usize>) {
        self.written += written.as_ref().map_or(0, |written| *written);
        if written.is_err() || self.written == self.bytes.len() {
            self.close();
        }
    }
}
