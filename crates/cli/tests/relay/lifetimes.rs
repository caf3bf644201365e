//! When upstreams are started and stopped, and who shares them.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use sabir_client::{CallEvent, CallOptions, CallRequest, Client};
use sabir_testkit::leftovers::kill;
use sabir_wire::{CallTool, Raw, Request, Revision};
use serde_json::json;

use super::memory::{CONFIGURATION, program, remembered};
use super::{FIXTURE, PATIENCE, Process, Relay, fixture, raw, text, until};

/// The process that answers this client.
pub(crate) async fn pid(client: &Client) -> String {
    text(&client.call_tool("up_pid", Raw::default()).await.unwrap())
}

fn runs(pid: &str) -> bool {
    Path::new("/proc").join(pid).exists()
}

/// Begins a call that lasts until it is dropped; it has reached the upstream.
pub(crate) async fn wait(client: &Client) -> sabir_client::Call {
    let request = CallTool { name: "up_wait".into(), ..CallTool::default() };
    let options = CallOptions { progress: true, ..CallOptions::default() };
    let request = CallRequest::new(Request::CallTool(request)).with(options);
    let mut waiting = client.start(request).await.unwrap();
    assert!(matches!(waiting.next().await, CallEvent::Progress(_)));
    waiting
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_session_has_an_instance_that_ends_with_it() {
    let configuration = fixture("up", Revision::NEWEST_LEGACY) + "scope = \"session\"\n";
    let relay = Relay::start(&configuration);
    let (first, _) = relay.client(Revision::NEWEST_LEGACY).await;
    let (second, _) = relay.client(Revision::NEWEST_LEGACY).await;
    super::listed(&first, "up_pid").await;
    let (its, others) = (pid(&first).await, pid(&second).await);
    assert_ne!(its, others);
    assert_eq!(pid(&first).await, its);
    first.close().await;
    until("it has ended", async || !runs(&its)).await;
    assert_eq!(pid(&second).await, others, "another session keeps its own");
    // A caller of the modern era has no session: all its requests share an instance.
    let (modern, _) = relay.client(Revision::NEWEST).await;
    let (also, _) = relay.client(Revision::NEWEST).await;
    let shared = pid(&modern).await;
    assert_eq!(pid(&also).await, shared);
    assert_ne!(shared, others);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_upstream_is_stopped_and_started_by_the_next_call() {
    for revision in [Revision::NEWEST_LEGACY, Revision::NEWEST] {
        let relay = Relay::start(&(fixture("up", revision) + "idle_stop = \"500ms\"\n"));
        let (client, _) = relay.client(Revision::NEWEST).await;
        super::listed(&client, "up_pid").await;
        let waiting = wait(&client).await;
        let before = pid(&client).await;
        // Longer than the limit and the interval of the check.
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert_eq!(pid(&client).await, before, "it was stopped during a call");
        drop(waiting);
        until("it is stopped", async || !runs(&before)).await;
        assert!(client.list_tools().await.unwrap().iter().any(|tool| tool.name == "up_pid"));
        assert_ne!(pid(&client).await, before);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_may_go_on_as_long_as_it_reports_progress() {
    for revision in [Revision::NEWEST_LEGACY, Revision::NEWEST] {
        let relay = Relay::start(&(fixture("up", revision) + "timeout = \"2s\"\n"));
        let (client, person) = relay.client(Revision::NEWEST).await;
        super::listed(&client, "up_progress").await;
        // Twice as long as the limit. The client itself wants no progress.
        let steps = raw(json!({ "steps": 40, "waitMs": 100 }));
        let reply = client.call_tool("up_progress", steps).await.unwrap();
        assert_eq!((reply.is_error, &*text(&reply)), (false, "done"));
        assert!(person.progress.lock().unwrap().is_empty());
        let reply = client.call_tool("up_echo", raw(json!({ "waitMs": 600_000 }))).await.unwrap();
        assert!(reply.is_error && text(&reply).contains("no answer within 2000 ms"), "{reply:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_eager_upstream_runs_without_a_call_and_is_started_again() {
    let folder = remembered().await;
    program(folder.path(), &format!("echo $$ >> started\nexec {FIXTURE} stdio 2025-06-18"));
    let relay = Relay::start_in(folder, &format!("{CONFIGURATION}start = \"eager\"\n"));
    let started = || {
        let pids = fs::read_to_string(relay.folder.path().join("started")).unwrap_or_default();
        pids.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    until("it is started", async || started().len() == 1).await;
    let (client, _) = relay.client(Revision::NEWEST).await;
    assert_eq!(pid(&client).await, started()[0], "one process for all");
    kill(started()[0].parse().unwrap(), Signal::KILL);
    until("it is started again", async || started().len() == 2).await;
    assert_eq!(pid(&client).await, started()[1]);
}

/// Starts the server of a folder on stdio; the answer to `tools/list`, and how long it took.
fn first_list(folder: &Path) -> (String, Duration) {
    const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let begin = Instant::now();
    let mut child = Command::new(env!("CARGO_BIN_EXE_sabir"))
        .args(["serve", "--stdio"])
        .current_dir(folder)
        .env("XDG_CACHE_HOME", folder.join("cache"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let _process = Process { child, _stdin: None };
    writeln!(stdin, "{LIST}").unwrap();
    let answer = lines.next().unwrap().unwrap();
    (answer, begin.elapsed())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tools_are_listed_at_once_although_their_upstream_never_answers() {
    let folder = remembered().await;
    program(folder.path(), "exec sleep 1000");
    let (answer, took) = first_list(folder.path());
    assert!(answer.contains("up_echo"), "{answer}");
    assert!(took < PATIENCE / 4, "{took:?}");
    println!("tools/list {took:?} after the start of the process");
}

/// The first start gives it two seconds; later ones do not wait for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upstream_that_never_answered_delays_no_further_start() {
    let folder = remembered().await;
    let silent = "[[upstream]]\nname = \"silent\"\nrun = [\"sleep\", \"1000\"]\n";
    fs::write(folder.path().join("sabir.toml"), format!("{CONFIGURATION}{silent}")).unwrap();
    let times = [(); 8].map(|()| {
        let (answer, took) = first_list(folder.path());
        assert!(answer.contains("up_echo"), "{answer}");
        took
    });
    assert!(times[0] >= Duration::from_secs(2), "{times:?}");
    assert!(times[1..].iter().min() < Some(&Duration::from_secs(2)), "{times:?}");
}
