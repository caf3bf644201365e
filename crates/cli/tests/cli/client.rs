//! A client that speaks to the real binary through its pipes.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{command, folder_with};

/// How long a message may take. Shorter than the default timeout of a program (a minute), so that
/// a program which is stopped only by that fails its test.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A server that was started for a test, in a folder of its own.
pub(crate) struct Client {
    folder: TempDir,
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Value>,
    last_id: u64,
    /// Messages other than the expected answers.
    pub(crate) notes: Vec<Value>,
}

impl Client {
    /// Starts a server with this `sabir.toml`.
    pub(crate) fn start(file: &str) -> Self {
        Self::start_in(folder_with(file))
    }

    /// Starts a server in a folder that holds its `sabir.toml`.
    pub(crate) fn start_in(folder: TempDir) -> Self {
        Self::start_with(folder, &[])
    }

    /// Starts a server in a folder, with these environment variables.
    pub(crate) fn start_with(folder: TempDir, env: &[(&str, &str)]) -> Self {
        let mut child = command(folder.path(), &["serve", "--stdio"])
            .envs(env.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take(), child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                let line = line.unwrap();
                let message = serde_json::from_str(&line).expect(&line);
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        Self { folder, child, input, lines, last_id: 0, notes: Vec::new() }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn send(&mut self, message: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
    }

    /// The next message of any kind.
    #[track_caller]
    pub(crate) fn receive(&self) -> Value {
        self.lines.recv_timeout(TIMEOUT).expect("a message")
    }

    /// Sends a request, and returns its id.
    pub(crate) fn request(&mut self, method: &str, params: Value) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// Sends a request, and returns the answer. Messages before it are kept in `notes`.
    #[track_caller]
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        self.answer(id)
    }

    #[track_caller]
    pub(crate) fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.receive();
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
            self.notes.push(message);
        }
    }

    /// Performs the handshake, and returns the result of `initialize`.
    #[track_caller]
    pub(crate) fn initialize(&mut self) -> Value {
        let client = json!({ "name": "test", "version": "1" });
        let hello =
            json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
        let result = self.ask("initialize", hello)["result"].clone();
        self.notify("notifications/initialized", json!({}));
        result
    }

    /// The result of a tool.
    #[track_caller]
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.ask("tools/call", json!({ "name": tool, "arguments": arguments }));
        answer.get("result").unwrap_or_else(|| panic!("{answer}")).clone()
    }

    /// Sends a call of a tool, and returns its id.
    pub(crate) fn begin(&mut self, tool: &str, arguments: Value) -> u64 {
        self.request("tools/call", json!({ "name": tool, "arguments": arguments }))
    }

    /// Closes the input, and returns the remaining messages and the exit code.
    #[track_caller]
    pub(crate) fn finish(mut self) -> (Vec<Value>, i32) {
        drop(self.input.take());
        let mut rest = Vec::new();
        loop {
            match self.lines.recv_timeout(TIMEOUT) {
                Ok(message) => rest.push(message),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("it does not end"),
            }
        }
        (rest, self.child.wait().unwrap().code().unwrap_or(-1))
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The only text of a result.
#[track_caller]
pub(crate) fn text(result: &Value) -> &str {
    let content = result["content"].as_array().unwrap();
    assert_eq!((content.len(), &content[0]["type"]), (1, &json!("text")), "{result}");
    content[0]["text"].as_str().unwrap()
}

/// Waits until a condition is true. `what` names it in the failure.
#[track_caller]
pub(crate) fn soon(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < TIMEOUT, "not within {TIMEOUT:?}: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
