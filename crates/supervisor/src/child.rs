//! A program that is kept: its three streams, and its end.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use tokio::net::unix::pipe;
use tokio::sync::OwnedSemaphorePermit;

use crate::line::Line;
use crate::order::Word;

/// A program that runs. When this is dropped the program is ended, with all that it started.
#[derive(Debug)]
pub struct Child {
    /// Its standard input, unless that is empty by order. Drop it to close it.
    pub stdin: Option<pipe::Sender>,
    /// Its standard output.
    pub stdout: Option<pipe::Receiver>,
    /// Its standard error.
    pub stderr: Option<pipe::Receiver>,
    pid: Option<i32>,
    line: Option<Line>,
    exit: Option<Result<Exit, WaitError>>,
    gone: bool,
    /// Its keeper leaves with it.
    told_to_end: bool,
    home: Arc<dyn Home>,
    _room: OwnedSemaphorePermit,
}

/// Where a keeper goes when its program is gone. It stays as long as a program needs it.
pub(crate) trait Home: std::fmt::Debug + Send + Sync {
    fn keep_idle(&self, line: Line);
}

/// How a program left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

/// Why the end of a program is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WaitError {
    /// It was launched, and the system refused to start it, with this error number.
    #[error("the program could not be started: {}", io::Error::from_raw_os_error(*.0))]
    NotStarted(i32),
    /// Its keeper was killed. The warden ends what it kept.
    #[error("the keeper of this program was killed")]
    KeeperLost,
}

impl Child {
    pub(crate) fn new(
        pid: Option<i32>,
        streams: Streams,
        line: Line,
        home: Arc<dyn Home>,
        room: OwnedSemaphorePermit,
    ) -> Self {
        let Streams { stdin, stdout, stderr } = streams;
        Self {
            stdin,
            stdout: Some(stdout),
            stderr: Some(stderr),
            pid,
            line: Some(line),
            exit: None,
            gone: false,
            told_to_end: false,
            home,
            _room: room,
        }
    }

    /// Its process id, which is also the id of its group. `None`: it was launched, not started.
    pub fn pid(&self) -> Option<i32> {
        self.pid
    }

    /// Whether the program itself is known to have left. What it left behind may still be there.
    pub fn has_left(&self) -> bool {
        self.exit.is_some()
    }

    /// Waits until the program has left and nothing of it remains: no descendant, no zombie.
    ///
    /// May be dropped and called again. It does not read the streams: a program that waits for
    /// somebody to read its output does not leave.
    pub async fn wait(&mut self) -> Result<Exit, WaitError> {
        while !self.gone {
            let line = self.line.as_mut().ok_or(WaitError::KeeperLost)?;
            match (line.hear().await, self.exit) {
                (Ok(Some(Word::Exited(code))), None) => self.exit = Some(Ok(Exit::Code(code))),
                (Ok(Some(Word::Signalled(signal))), None) => {
                    self.exit = Some(Ok(Exit::Signal(signal)));
                }
                (Ok(Some(Word::NotStarted(errno))), None) if self.pid.is_none() => {
                    self.exit = Some(Err(WaitError::NotStarted(errno)));
                    self.gone = true;
                }
                (Ok(Some(Word::Gone)), Some(_)) => self.gone = true,
                (Ok(Some(Word::GoneToo)), Some(_)) => {
                    self.gone = true;
                    self.told_to_end = true;
                }
                _ => {
                    self.line = None;
                    return Err(WaitError::KeeperLost);
                }
            }
        }
        self.exit.unwrap_or(Err(WaitError::KeeperLost))
    }

    /// Begins to end the program: closes its input, and tells its keeper. [`Child::wait`] tells
    /// when it is done.
    pub fn end(&mut self) {
        self.stdin = None;
        self.told_to_end = true;
        if let Some(line) = &self.line {
            line.close();
        }
    }
}

impl Drop for Child {
    /// A keeper whose program is gone can be used again. Any other loses its line and so ends
    /// what it keeps.
    fn drop(&mut self) {
        if let Some(line) = self.line.take()
            && self.gone
            && !self.told_to_end
        {
            self.home.keep_idle(line);
        }
    }
}

/// Our ends of a program's standard streams.
#[derive(Debug)]
pub(crate) struct Streams {
    stdin: Option<pipe::Sender>,
    stdout: pipe::Receiver,
    stderr: pipe::Receiver,
}

impl Streams {
    /// Opens them, and gives the program's ends in the order of their numbers.
    pub(crate) fn open(with_stdin: bool) -> io::Result<(Self, Vec<OwnedFd>)> {
        let mut theirs = Vec::with_capacity(3);
        let mut stdin = None;
        if with_stdin {
            let (read, write) = io::pipe()?;
            theirs.push(read.into());
            stdin = Some(pipe::Sender::from_owned_fd(write.into())?);
        }
        let mut output = || {
            let (read, write) = io::pipe()?;
            theirs.push(write.into());
            pipe::Receiver::from_owned_fd(read.into())
        };
        let (stdout, stderr) = (output()?, output()?);
        Ok((Self { stdin, stdout, stderr }, theirs))
    }
}
