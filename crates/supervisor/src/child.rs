//! A running program: its standard streams and its exit.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use tokio::net::unix::pipe;
use tokio::sync::OwnedSemaphorePermit;

use crate::channel::Channel;
use crate::message::Report;

/// A running program. Dropping it stops the program and all its descendants.
#[derive(Debug)]
pub struct Child {
    /// The program's standard input, if the request asked for a pipe. Drop it to close it.
    pub stdin: Option<pipe::Sender>,
    /// The program's standard output.
    pub stdout: Option<pipe::Receiver>,
    /// The program's standard error.
    pub stderr: Option<pipe::Receiver>,
    pid: Option<i32>,
    channel: Option<Channel>,
    exit: Option<Result<Exit, WaitError>>,
    gone: bool,
    /// The monitor exits together with the program.
    stopping: bool,
    idle: Arc<dyn IdlePool>,
    _permit: OwnedSemaphorePermit,
}

/// Takes back a monitor whose program is gone. Alive as long as any program needs it.
pub(crate) trait IdlePool: std::fmt::Debug + Send + Sync {
    fn put_back(&self, channel: Channel);
}

/// How a program exited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// With this exit code.
    Code(i32),
    /// Killed by this signal.
    Signal(i32),
}

/// Why the exit of a program is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WaitError {
    /// The system refused to start the program, with this error number.
    #[error("cannot start the program: {}", io::Error::from_raw_os_error(*.0))]
    NotStarted(i32),
    /// The program's monitor was killed. The supervisor process stops the program.
    #[error("the monitor process of this program was killed")]
    MonitorLost,
}

impl Child {
    pub(crate) fn new(
        pid: Option<i32>,
        streams: Streams,
        channel: Channel,
        idle: Arc<dyn IdlePool>,
        permit: OwnedSemaphorePermit,
    ) -> Self {
        let Streams { stdin, stdout, stderr } = streams;
        Self {
            stdin,
            stdout: Some(stdout),
            stderr: Some(stderr),
            pid,
            channel: Some(channel),
            exit: None,
            gone: false,
            stopping: false,
            idle,
            _permit: permit,
        }
    }

    /// The process id, which is also the id of the process group. `None` after
    /// [`Supervisor::launch`](crate::Supervisor::launch).
    pub fn pid(&self) -> Option<i32> {
        self.pid
    }

    /// Whether the program itself is known to have exited. Descendants may still be running.
    pub fn has_exited(&self) -> bool {
        self.exit.is_some()
    }

    /// Waits until the program has exited and no descendant is left, not even as a zombie.
    ///
    /// Cancel safe. The streams are not read meanwhile: a program that blocks on writing its output
    /// does not exit.
    pub async fn wait(&mut self) -> Result<Exit, WaitError> {
        while !self.gone {
            let channel = self.channel.as_mut().ok_or(WaitError::MonitorLost)?;
            match (channel.receive().await, self.exit) {
                (Ok(Some(Report::Exited(code))), None) => self.exit = Some(Ok(Exit::Code(code))),
                (Ok(Some(Report::Signalled(signal))), None) => {
                    self.exit = Some(Ok(Exit::Signal(signal)));
                }
                (Ok(Some(Report::NotStarted(errno))), None) if self.pid.is_none() => {
                    self.exit = Some(Err(WaitError::NotStarted(errno)));
                    self.gone = true;
                }
                (Ok(Some(Report::Gone)), Some(_)) => self.gone = true,
                (Ok(Some(Report::GoneAndExiting)), Some(_)) => {
                    self.gone = true;
                    self.stopping = true;
                }
                _ => {
                    self.channel = None;
                    return Err(WaitError::MonitorLost);
                }
            }
        }
        self.exit.unwrap_or(Err(WaitError::MonitorLost))
    }

    /// Starts to stop the program: closes its standard input and tells its monitor.
    /// [`Child::wait`] returns when that is done.
    pub fn stop(&mut self) {
        self.stdin = None;
        self.stopping = true;
        if let Some(channel) = &self.channel {
            channel.close();
        }
    }
}

impl Drop for Child {
    /// A monitor whose program is gone can be reused. Any other monitor sees its socket close and
    /// stops its program.
    fn drop(&mut self) {
        if let Some(channel) = self.channel.take()
            && self.gone
            && !self.stopping
        {
            self.idle.put_back(channel);
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
    /// Opens the pipes. Returns the program's ends in the order of their descriptor numbers.
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
