//! Upstreams that misbehave, all of them behind one relay: it stays small, and others are served.

use sabir_wire::{Raw, Revision};
use serde_json::json;
use tokio::task::JoinSet;

use super::{PATIENCE, Process, Relay, fixture, http_fixture, raw, text, upstream};

/// How each misbehaves, and a part of its caller's result; `None` if the call may end in any way.
const MODES: [(&str, Option<&str>); 24] = [
    ("endless-line", None),
    ("huge-result", None),
    ("wrong-ids", Some("no answer within")),
    ("duplicate-answers", Some("good")),
    ("unasked-answers", Some("good")),
    ("invalid-utf-8", None),
    ("deep-json", None),
    ("no-result", None),
    ("result-of-wrong-type", Some("upstream")),
    ("exits-on-call", Some("upstream")),
    ("silent-on-call", Some("no answer within")),
    ("floods-notifications", Some("no answer within")),
    ("floods-pings", Some("no answer within")),
    ("floods-questions", None),
    ("floods-list-changed", Some("good")),
    ("refuses-lists", Some("good")),
    ("prints-noise", Some("good")),
    ("floods-stderr", Some("good")),
    ("names-with-control-characters", Some("good")),
    ("schema-bomb", Some("good")),
    ("many-tools", Some("good")),
    ("endless-pages", Some("good")),
    ("exits-at-once", None),
    ("never-answers", None),
];

/// Memory of the relay, in MB, with all of them at once. The longest message has 64 MB.
const MAX_MEMORY: usize = 1000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_upstreams_cost_bounded_memory_and_harm_nobody() {
    let mut configuration = fixture("good", Revision::NEWEST);
    let mut processes: Vec<Process> = Vec::new();
    for (mode, told) in MODES {
        configuration += &upstream(mode, &["hostile", mode]);
        // Those that answer in the end may take long on a busy machine.
        if told != Some("good") {
            configuration += "timeout = \"20s\"\n";
        }
    }
    for mode in ["redirects-to-private", "endless-sse", "endless-body"] {
        let (process, url) = http_fixture(&["hostile-http", mode]);
        processes.push(process);
        configuration +=
            &format!("[[upstream]]\nname = \"{mode}\"\nurl = \"{url}\"\ntimeout = \"5s\"\n");
    }
    let relay = Relay::start(&configuration);
    let (client, _) = relay.client(Revision::NEWEST).await;
    super::listed(&client, "good_echo").await;
    // Two never list anything.
    super::until("their tools are listed", async || {
        let tools = client.list_tools().await.unwrap();
        tools.iter().filter(|tool| tool.name.ends_with("_tool")).count() >= MODES.len() - 2
    })
    .await;
    let mut calls = JoinSet::new();
    for (mode, told) in MODES {
        let client = client.clone();
        calls.spawn(async move {
            let tool = format!("{mode}_tool");
            let called = client.call_tool(&tool, Raw::default());
            let called = tokio::time::timeout(PATIENCE, called).await;
            let seen = match called.unwrap_or_else(|_| panic!("{mode}: no end")) {
                Ok(reply) => text(&reply),
                Err(error) => error.to_string(),
            };
            assert!(told.is_none_or(|told| seen.contains(told)), "{mode}: {seen}");
        });
    }
    for nth in 0..50 {
        let called = client.call_tool("good_echo", raw(json!({ "nth": nth })));
        let reply = tokio::time::timeout(PATIENCE, called).await.unwrap().unwrap();
        assert_eq!(text(&reply), format!(r#"{{"nth":{nth}}}"#));
    }
    calls.join_all().await;
    let memory = relay.memory();
    assert!(memory < MAX_MEMORY, "{memory} MB");
    let reply = client.call_tool("good_echo", Raw::default()).await.unwrap();
    assert_eq!(text(&reply), "{}");
}

/// Lists that are cut are served as far as they go, and `sabir check --start` says what is missing.
#[test]
fn lists_without_an_end_are_cut_and_reported() {
    let folder = tempfile::TempDir::new().unwrap();
    let modes = ["many-tools", "endless-pages", "same-cursor", "refuses-lists"];
    let configuration: String = modes.map(|mode| upstream(mode, &["hostile", mode])).concat();
    std::fs::write(folder.path().join("sabir.toml"), configuration).unwrap();
    let checked = std::process::Command::new(env!("CARGO_BIN_EXE_sabir"))
        .args(["check", "--start"])
        .current_dir(folder.path())
        .env("XDG_CACHE_HOME", folder.path().join("cache"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&checked.stderr);
    for (mode, cut) in modes.iter().zip([
        "left out: more than 10000 tools",
        "left out: tools after page 500",
        "left out: tools after a page that names itself the next",
        "cannot list its prompts: unknown",
    ]) {
        let is_said = said.lines().any(|line| line.contains(mode) && line.contains(cut));
        assert!(is_said, "{mode}: {said}");
    }
    assert!(said.contains("offers 10503 tools"), "{said}");
}
