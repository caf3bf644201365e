//! A program over a pipe, as a client starts it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use sabir_session::CallNotification;
use sabir_wire::types::Topic;

use crate::player::{CallNumber, Ending, Event, Player};

/// Plays against a program that serves its standard streams.
///
/// It sees no calls: only scripts that do not look inside can be played.
pub struct Program {
    child: Child,
    to_server: Option<ChildStdin>,
    from_server: Receiver<Vec<u8>>,
    ahead: Option<Bytes>,
    has_closed: bool,
}

/// How long a program may take to answer, or to exit, before the test fails.
const PATIENCE: Duration = Duration::from_secs(20);

impl Program {
    /// Starts a program, which shares the standard error of the test.
    ///
    /// # Panics
    /// If there is no such program.
    pub fn start(path: impl AsRef<Path>, arguments: &[&str]) -> Self {
        let mut command = Command::new(path.as_ref());
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| {
            panic!("cannot start {}: {error}", path.as_ref().display());
        });
        let to_server = child.stdin.take();
        let stdout = child.stdout.take().expect("a pipe");
        let (sender, from_server) = channel();
        thread::spawn(move || {
            let mut lines = BufReader::new(stdout);
            let mut line = Vec::new();
            while lines.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
                if sender.send(std::mem::take(&mut line)).is_err() {
                    return;
                }
            }
        });
        Self { child, to_server, from_server, ahead: None, has_closed: false }
    }

    /// The program's process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the program has ended.
    ///
    /// # Panics
    /// If it does not end.
    pub fn wait(&mut self) -> ExitStatus {
        let end = Instant::now() + PATIENCE;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return status,
                Ok(None) if Instant::now() < end => thread::sleep(Duration::from_millis(2)),
                other => panic!("the program did not end: {other:?}"),
            }
        }
    }

    fn line(&mut self, patience: Duration) -> Option<Bytes> {
        if let Some(line) = self.ahead.take() {
            return Some(line);
        }
        match self.from_server.recv_timeout(patience) {
            Ok(mut line) => {
                // The standard output carries messages and nothing else, one a line.
                assert_eq!(line.pop(), Some(b'\n'), "a line without an end");
                Some(line.into())
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => None,
        }
    }
}

impl Player for Program {
    fn say(&mut self, frame: &[u8]) {
        let input = self.to_server.as_mut().expect("the input was ended by the script");
        let written = input.write_all(&[frame, b"\n"].concat()).and_then(|()| input.flush());
        written.expect("the program takes what it is sent");
    }

    fn end_input(&mut self) {
        self.to_server = None;
    }

    fn hear(&mut self) -> Option<Bytes> {
        self.line(PATIENCE)
    }

    /// The only event that is visible from outside is its end.
    fn event(&mut self) -> Option<Event> {
        if self.has_closed || self.to_server.is_some() {
            return None;
        }
        let status = self.wait();
        assert!(status.success(), "the program ended with {status}");
        self.has_closed = true;
        Some(Event::Close)
    }

    fn finish(&mut self, _: CallNumber, _: Ending) {
        panic!("a program's calls cannot be ended from outside");
    }

    fn note(&mut self, _: CallNumber, _: CallNotification) {
        panic!("a program's calls cannot speak from outside");
    }

    fn change(&mut self, _: Topic) {
        panic!("a program's offer cannot be changed from outside");
    }

    fn pass(&mut self, _: Duration) {
        panic!("a program's clock cannot be moved");
    }

    fn said_too_much(&mut self) -> Option<Bytes> {
        self.ahead = self.line(Duration::ZERO);
        self.ahead.clone()
    }

    fn leave(&mut self) -> Vec<Bytes> {
        self.to_server = None;
        let mut left = Vec::new();
        while let Some(line) = self.line(PATIENCE) {
            left.push(line);
        }
        let status = self.wait();
        assert!(status.success(), "the program ended with {status}");
        left
    }

    fn sees_inside(&self) -> bool {
        false
    }
}

/// A program that was not waited for has failed its test; it must not outlive it.
impl Drop for Program {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
