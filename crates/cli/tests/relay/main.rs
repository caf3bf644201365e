//! The relay: the real binary between our client and real upstream processes.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod callers;
mod crashes;
mod crowd;
mod foreign;
mod grid;
mod hostile;
mod lifetimes;
mod logins;
mod members;
mod memory;
mod naming;
mod recorded;
mod rows;
mod secure;
mod tasks;
mod traced;

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sabir_client::{Answerer, Answering, Client, ClientConfig, HttpTarget, HttpTransport};
use sabir_wire::types::{
    ClientCapabilities, ContentKind, LogMessage, Progress, Question, ToolReply,
};
use sabir_wire::{Era, Raw, Revision};
use serde_json::json;
use tempfile::TempDir;

const FIXTURE: &str = env!("CARGO_BIN_EXE_relay-fixture");

/// The tokens of two callers, by the variables that hold them.
const TOKENS: [(&str, &str); 2] = [("ANN", "secret-of-ann"), ("BOB", "secret-of-bob")];

/// How long anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(180);

/// A process that is killed with its owner.
struct Process {
    child: Child,
    _stdin: Option<ChildStdin>,
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The real binary with a configuration, on HTTP.
struct Relay {
    process: Process,
    url: String,
    folder: TempDir,
}

impl Relay {
    fn start(configuration: &str) -> Self {
        Self::start_in(TempDir::new().unwrap(), configuration)
    }

    fn start_in(folder: TempDir, configuration: &str) -> Self {
        Self::start_with(folder, configuration, |_| {})
    }

    fn start_with(folder: TempDir, configuration: &str, change: impl FnOnce(&mut Command)) -> Self {
        std::fs::write(folder.path().join("sabir.toml"), configuration).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_sabir"));
        command
            .args(["serve", "--http", "127.0.0.1:0"])
            .current_dir(folder.path())
            .env("XDG_CACHE_HOME", folder.path().join("cache"))
            .envs(TOKENS)
            .env_remove("SABIR_LOG")
            .stdin(Stdio::null())
            .stderr(Stdio::piped());
        change(&mut command);
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let url = lines.find_map(|line| {
            let line = line.unwrap();
            line.split_once(" on ").map(|(_, url)| url.to_owned())
        });
        // The rest must be read, or the pipe fills up.
        std::thread::spawn(move || lines.for_each(drop));
        Self { process: Process { child, _stdin: None }, url: url.unwrap(), folder }
    }

    /// Resident memory in MB.
    fn memory(&self) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.child.id()));
        let line = status.unwrap_or_default();
        let line =
            line.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default().to_owned();
        let digits: String = line.chars().filter(char::is_ascii_digit).collect();
        digits.parse::<usize>().unwrap_or(0) / 1024
    }

    async fn client(&self, revision: Revision) -> (Client, Arc<Person>) {
        connect(HttpTarget::new(&*self.url).unwrap(), revision).await
    }
}

/// `[[upstream]]` for the fixture on stdio.
fn fixture(name: &str, revision: Revision) -> String {
    upstream(name, &["stdio", revision.date()])
}

fn upstream(name: &str, args: &[&str]) -> String {
    let line: Vec<_> = std::iter::once(FIXTURE).chain(args.iter().copied()).collect();
    format!("[[upstream]]\nname = \"{name}\"\nrun = {line:?}\n")
}

/// `[[upstream]]` for a URL.
fn at_url(url: &str) -> String {
    format!("[[upstream]]\nname = \"up\"\nurl = \"{url}\"\n")
}

/// A fixture that serves HTTP, and its URL.
fn http_fixture(args: &[&str]) -> (Process, String) {
    http_fixture_at(0, args)
}

/// The same on a port; 0 chooses one.
fn http_fixture_at(port: u16, args: &[&str]) -> (Process, String) {
    let mut command = Command::new(FIXTURE);
    command.args(args).env("PORT", port.to_string());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let stdin = child.stdin.take();
    (Process { child, _stdin: stdin }, line.trim().to_owned())
}

/// A client of one revision.
async fn connect(target: HttpTarget, revision: Revision) -> (Client, Arc<Person>) {
    let person = Arc::new(Person::default());
    let transport = Arc::new(HttpTransport::new(target));
    let client = Client::new(transport, config(revision), person.clone());
    let server = tokio::time::timeout(PATIENCE, client.open()).await.unwrap().unwrap();
    assert_eq!(server.revision, revision);
    (client, person)
}

/// A client of one revision that can be asked everything.
fn config(revision: Revision) -> ClientConfig {
    let mut config = ClientConfig::new("test", "0");
    config.era = Some(revision.era());
    if revision.era() == Era::Legacy {
        config.legacy_revision = revision;
    }
    config.capabilities = ClientCapabilities::everything();
    config
}

/// The user of a client: answers every question, and remembers what it was told.
#[derive(Debug, Default)]
struct Person {
    asked: Mutex<Vec<String>>,
    progress: Mutex<Vec<f64>>,
    logs: Mutex<Vec<String>>,
}

impl Answerer for Person {
    fn answer(&self, question: Question) -> Answering<'_> {
        let answer = match &question {
            Question::Elicit(sabir_wire::types::Elicit::Form { message, .. }) => {
                json!({ "action": "accept", "content": { "name": message } })
            }
            Question::Elicit(_) => json!({ "action": "accept" }),
            Question::Sample(sample) if sample.uses_tools() => json!({
                "role": "assistant", "model": "test-model", "stopReason": "toolUse", "content": [{
                    "type": "tool_use", "id": "1", "input": {},
                    "name": sample.tools.first().map(|tool| tool.name.clone()),
                }],
            }),
            Question::Sample(_) => json!({
                "role": "assistant", "content": { "type": "text", "text": "a model" },
                "model": "test-model", "stopReason": "endTurn",
            }),
            Question::Roots { params } => {
                json!({ "roots": [{ "uri": "file:///project" }], "params": params })
            }
            Question::Other { .. } => json!({}),
        };
        self.asked.lock().unwrap().push(question.method().to_owned());
        Box::pin(async move { Ok(Raw::of(&answer).unwrap()) })
    }

    fn progress(&self, progress: &Progress) {
        self.progress.lock().unwrap().push(progress.progress);
    }

    fn log(&self, message: &LogMessage) {
        self.logs.lock().unwrap().push(format!("{:?}", message.level));
    }
}

/// The text of a result.
fn text(reply: &ToolReply) -> String {
    let texts = reply.content.iter().filter_map(|content| match &content.kind {
        ContentKind::Text(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

fn raw(value: serde_json::Value) -> Raw {
    Raw::of(&value).unwrap()
}

/// Waits until a condition is true.
async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let end = tokio::time::Instant::now() + PATIENCE;
    while !is_so().await {
        assert!(tokio::time::Instant::now() < end, "never: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Waits until a tool is listed: on a busy machine an upstream takes its time.
async fn listed(client: &Client, tool: &str) {
    until(tool, async || client.list_tools().await.unwrap().iter().any(|one| one.name == tool))
        .await;
}

/// Where the documents are.
fn docs() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}
