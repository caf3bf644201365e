//! A child process that serves on its standard streams, under the supervisor.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sabir_supervisor::{Child, Exit, GracePeriod, StartError, StartRequest, Supervisor};
use sabir_wire::{Line, LineSplitter};
use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::error::OpenError;
use crate::io::LinkKind;
use crate::link::{Inbox, Link, Opening, Transport};
use crate::pipe::carry_lines;

/// Lines of standard error that are remembered. Older ones are forgotten.
const MAX_LINES: usize = 100;
/// Bytes of a line of standard error. A longer one is dropped.
const MAX_LINE: usize = 4096;
/// How long a program that closed its output may take to exit before it is stopped.
const EXIT_TIME: Duration = Duration::from_secs(2);

/// A program that serves on its standard streams.
#[derive(Clone, Debug)]
pub struct Program {
    /// The absolute path of the file to execute. Neither a shell nor a search path is used.
    pub path: PathBuf,
    /// The arguments after its name.
    pub args: Vec<OsString>,
    /// The whole environment: the program inherits nothing.
    pub env: Vec<(OsString, OsString)>,
    /// The absolute path of the working directory.
    pub cwd: PathBuf,
    /// How long each step of stopping it may take.
    pub grace: GracePeriod,
}

/// Starts a program for each link.
#[derive(Debug)]
pub struct ChildTransport {
    supervisor: Supervisor,
    request: StartRequest,
    stderr: Arc<Tail>,
}

impl ChildTransport {
    /// A transport to this program. The supervisor guarantees that it never outlives us.
    pub fn new(supervisor: Supervisor, program: Program) -> Self {
        let Program { path, args, env, cwd, grace } = program;
        let request = StartRequest { program: path, args, env, cwd, stdin: true, grace };
        Self { supervisor, request, stderr: Arc::default() }
    }
}

impl Transport for ChildTransport {
    fn kind(&self) -> LinkKind {
        LinkKind::Pipe
    }

    fn open(&self, link: Link) -> Opening<'_> {
        Box::pin(async move {
            let child = self.supervisor.start(&self.request).await.map_err(not_started)?;
            self.stderr.lock().clear();
            tokio::spawn(run(child, link, self.stderr.clone()));
            Ok(())
        })
    }

    fn stderr(&self) -> Vec<String> {
        self.stderr.lock().iter().cloned().collect()
    }
}

fn not_started(error: StartError) -> OpenError {
    match error {
        StartError::Full(_) | StartError::System(_) | StartError::NoMonitor(_) => {
            OpenError::Start(error.to_string())
        }
        _ => OpenError::Impossible(error.to_string()),
    }
}

/// Carries messages until either side ends, then stops the program.
async fn run(mut child: Child, link: Link, tail: Arc<Tail>) {
    let inbox = link.inbox.clone();
    let streams = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(stdin), Some(stdout), Some(stderr)) = streams else { return };
    let reading = tokio::spawn(read_stderr(stderr, tail.clone(), inbox.clone()));
    let (reason, unsent) = carry_lines(stdout, stdin, link).await;
    // The program's input is closed by now.
    let exit = tokio::time::timeout(EXIT_TIME, child.wait()).await;
    // The last line says why the program exited. Descendants may keep the stream open.
    let _ = tokio::time::timeout(Duration::from_millis(100), reading).await;
    let reason = match exit {
        Ok(Ok(Exit::Code(code))) => format!("the program exited with code {code}"),
        Ok(Ok(Exit::Signal(signal))) => format!("the program was killed by signal {signal}"),
        Ok(Err(error)) => error.to_string(),
        Err(_) => reason,
    };
    let last = tail.lock().back().map(|line| format!(": {}", line.trim())).unwrap_or_default();
    inbox.end(OpenError::Ended(format!("{reason}{last}")), &unsent);
    child.stop();
    let _ = child.wait().await;
}

/// The last lines of standard error.
#[derive(Debug, Default)]
struct Tail(Mutex<VecDeque<String>>);

impl Tail {
    fn lock(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, line: String) {
        let mut lines = self.lock();
        if lines.len() >= MAX_LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }
}

async fn read_stderr(mut stderr: impl AsyncRead + Unpin, tail: Arc<Tail>, inbox: Inbox) {
    let mut lines = LineSplitter::new(MAX_LINE);
    loop {
        lines.make_room(MAX_LINE);
        let read = stderr.read_buf(lines.buffer()).await;
        let is_over = !matches!(read, Ok(read) if read > 0);
        while let Some(line) = lines.next_line() {
            keep(line, &tail, &inbox);
        }
        if is_over {
            return lines.finish().map_or((), |line| keep(line, &tail, &inbox));
        }
    }
}

fn keep(line: Line, tail: &Tail, inbox: &Inbox) {
    if let Line::Message(line) = line {
        let line = String::from_utf8_lossy(&line).into_owned();
        tracing::debug!(line, "standard error of the server");
        inbox.wrote(&line);
        tail.push(line);
    }
}
