//! One call of a program, from its start to the moment when nothing of it is left.
//!
//! Everything that can happen meanwhile is waited for at one place, [`Call::step`]: input to
//! write, output to read, the end of the program, and time. Drop the future and the program is
//! ended in the background; whoever wants to know when it is gone uses [`run_until`].
//!
//! A limit that is hit ends the program; the answer says which it was and has what was written
//! so far.

use std::ffi::OsString;
use std::io;
use std::time::Duration;

use signal_hook::consts::{SIGXCPU, SIGXFSZ};
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::capture::{Capture, Observer, Stream};
use super::exec::{Refused, Wrapped};
use super::program::Program;
use sabir_supervisor::{Child, Exit, StartError, StartRequest, Supervisor, WaitError};

/// How long beyond the grace period a program that is being stopped is waited for. A program that
/// SIGKILL does not stop is blocked in the kernel; the call is answered without it.
const STUCK: Duration = Duration::from_secs(5);

/// The longest timeout: longer durations overflow clocks.
const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// How long we go on reading when nothing of the program is left. Only somebody else to whom it
/// gave its output can still hold it open.
const LINGER: Duration = Duration::from_millis(500);

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finish {
    /// Whether it ended by itself, within all limits, with a code that means success.
    pub success: bool,
    /// How the program left. `None`: it hangs in the kernel, and could not be ended.
    pub exit: Option<Exit>,
    /// The limit for which it was ended.
    pub limit: Option<Limit>,
    /// What it wrote to standard output, at most `max_output` bytes.
    pub stdout: Vec<u8>,
    /// The last 8 KiB of what it wrote to standard error.
    pub stderr: Vec<u8>,
    /// How many bytes of standard error came before those.
    pub stderr_cut: u64,
}

/// A limit that a program can hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// `timeout`.
    Time,
    /// `max_output`, by this stream.
    Output(Stream),
    /// The processor's time.
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
    /// The machine is so busy that the program did not even start within its time.
    #[error("the program could not be started within its time")]
    NotStartedInTime,
    /// Its limits or its sandbox could not be put on, so it was not started.
    #[error("the program was not started, because it could not be confined: {0}")]
    Sandbox(String),
    /// The program's monitor was killed. The program is being stopped.
    #[error("the monitor process of this program was killed")]
    MonitorLost,
}

/// Runs a program once: with these arguments, and this on its standard input.
pub async fn run(
    supervisor: &Supervisor,
    program: &Program,
    args: Vec<OsString>,
    stdin: Option<Vec<u8>>,
    observer: Option<&mut Observer<'_>>,
) -> Result<Finish, RunError> {
    run_until(std::future::pending(), supervisor, program, args, stdin, observer).await
}

/// The same, but when `unwanted` comes back the program is ended, and this returns when nothing
/// of it is left.
pub async fn run_until(
    unwanted: impl Future<Output = ()>,
    supervisor: &Supervisor,
    program: &Program,
    args: Vec<OsString>,
    stdin: Option<Vec<u8>>,
    mut observer: Option<&mut Observer<'_>>,
) -> Result<Finish, RunError> {
    let deadline = Instant::now() + program.timeout.min(YEAR);
    let wrapped = Wrapped::new(program, &args);
    let (path, args) = match &wrapped {
        Some(wrapped) => (wrapped.path.clone(), wrapped.args.clone()),
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
        output: Capture::new(Stream::Output, child.stdout.take(), program.max_output),
        errors: Capture::new(Stream::Error, child.stderr.take(), program.max_output),
        child,
        phase: Phase::Running,
        deadline,
        exit: None,
        limit: None,
    };
    let mut unwanted = std::pin::pin!(unwanted);
    while call.phase == Phase::Running {
        tokio::select! {
            biased;
            () = &mut unwanted => call.end(program),
            step = call.step(program, observer.as_deref_mut()) => step?,
        }
    }
    while call.phase != Phase::Done {
        call.step(program, observer.as_deref_mut()).await?;
    }
    let finish = call.finish(program);
    let refused = match (&wrapped, finish.exit) {
        (Some(wrapped), Some(Exit::Code(code))) => wrapped.refused(code, &finish.stderr, program),
        _ => None,
    };
    match refused {
        None => Ok(finish),
        Some(Refused::Start(error)) => Err(RunError::Start(error)),
        Some(Refused::Sandbox(reason)) => Err(RunError::Sandbox(reason)),
    }
}

/// A call that runs.
struct Call {
    child: Child,
    input: Input,
    output: Capture,
    errors: Capture,
    phase: Phase,
    /// When the phase ends at the latest.
    deadline: Instant,
    exit: Option<Exit>,
    limit: Option<Limit>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The program works.
    Running,
    /// It is being ended, or what it left is.
    Ending,
    /// Nothing of it is left but, perhaps, unread output.
    Draining,
    Done,
}

impl Call {
    /// Waits for one thing to happen, and does what follows from it.
    async fn step(
        &mut self,
        program: &Program,
        observer: Option<&mut Observer<'_>>,
    ) -> Result<(), RunError> {
        tokio::select! {
            written = self.input.write(), if self.input.is_open() => self.input.take(written),
            read = self.output.read(), if self.output.is_open() => {
                self.output.take(read, observer);
                self.check_bound(Stream::Output, program);
            }
            read = self.errors.read(), if self.errors.is_open() => {
                self.errors.take(read, observer);
                self.check_bound(Stream::Error, program);
            }
            exit = self.child.wait(), if self.exit.is_none() => {
                self.exit = Some(exit.map_err(|error| not_run(error, program))?);
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

    fn check_bound(&mut self, stream: Stream, program: &Program) {
        let over = match stream {
            Stream::Output => self.output.is_over(),
            Stream::Error => self.errors.is_over(),
        };
        if over && self.limit.is_none() {
            self.limit = Some(Limit::Output(stream));
            if self.phase == Phase::Running {
                self.end(program);
            }
        }
    }

    fn on_deadline(&mut self, program: &Program) {
        match self.phase {
            // The program has left in time; it is what it left that has not yet.
            Phase::Running if self.child.has_exited() => {
                self.enter(Phase::Ending, stop_time(program))
            }
            Phase::Running => {
                self.limit.get_or_insert(Limit::Time);
                self.end(program);
            }
            Phase::Ending | Phase::Draining | Phase::Done => self.phase = Phase::Done,
        }
    }

    fn end(&mut self, program: &Program) {
        self.input.close();
        self.child.stop();
        self.enter(Phase::Ending, stop_time(program));
    }

    fn enter(&mut self, phase: Phase, at_most: Duration) {
        self.phase = phase;
        self.deadline = Instant::now() + at_most;
    }

    fn finish(self, program: &Program) -> Finish {
        let limit = self.limit.or(match self.exit {
            Some(Exit::Signal(SIGXCPU)) => Some(Limit::Cpu),
            Some(Exit::Signal(SIGXFSZ)) => Some(Limit::FileSize),
            _ => None,
        });
        let good = |exit| matches!(exit, Exit::Code(code) if program.success_codes.contains(&code));
        Finish {
            success: limit.is_none() && self.exit.is_some_and(good),
            exit: self.exit,
            limit,
            stderr_cut: self.errors.cut(),
            stdout: self.output.into_kept(),
            stderr: self.errors.into_kept(),
        }
    }
}

fn not_run(error: WaitError, program: &Program) -> RunError {
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

/// What is still to be written to the program.
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

    /// Writes some. Nothing is lost or written twice if this is dropped.
    async fn write(&mut self) -> io::Result<usize> {
        match &mut self.pipe {
            Some(pipe) if self.written < self.bytes.len() => {
                pipe.write(&self.bytes[self.written..]).await
            }
            _ => Ok(0),
        }
    }

    /// A program need not read its input: an error is no error, but the end of the writing.
    fn take(&mut self, written: io::Result<usize>) {
        self.written += written.as_ref().map_or(0, |written| *written);
        if written.is_err() || self.written == self.bytes.len() {
            self.close();
        }
    }
}
