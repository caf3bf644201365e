//! Upstreams that misbehave, all of them behind one relay: it stays small, and others are served.

use sabir_wire::{Raw, Revision};
use serde_json::json;
use tokio::task::JoinSet;

use super::{PATIENCE, Process, Relay, fixture, http_fixture, raw, text, upstream};

/// What each does, and a part of what its caller is told; `None` if the call may end in any way.
const MODES: [(&str, Option<&str>); 22] = [
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
    ("floods-questions", None),
    ("floods-list-changed", Some("good")),
    ("prints-noise", Some("good")),
    ("floods-stderr", Some("good")),
    ("names-with-control-characters", Some("good")),
    ("schema-bomb", Some("good")),
    // Their lists are so long that a busy machine may not know the tool yet, or not answer in time.
    ("many-tools", None),
    ("endless-pages", None),
    ("exits-at-once", None),
    ("never-answers", None),
];

/// Memory of the relay, in MB, with all of them at once. The longest message has 64 MB.
const MAX_MEMORY: usize = 1000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_upstreams_cost_bounded_memory_and_harm_nobody() {
    let mut configuration = fixture("good", Revision::NEWEST);
    let mut processes: Vec<Process> = Vec::new();
    for (mode, _) in MODES {
        configuration += &upstream(mode, &["hostile", mode]);
        configuration += "timeout = \"20s\"\n";
    }
    for mode in ["redirects-to-private", "endless-sse", "endless-body"] {
        let (process, url) = http_fixture(&["hostile-http", mode]);
        processes.push(process);
        configuration +=
            &format!("[[upstream]]\nname = \"{mode}\"\nurl = \"{url}\"\ntimeout = \"5s\"\n");
    }
    let relay = Relay::start(&configuration);
    let (client, _) = relay.client(Revision::NEWEST).await;
    // Two never list anything; two list so much that it takes long.
    super::until("their tools are listed", async || {
        let tools = client.list_tools().await.unwrap();
        tools.iter().filter(|tool| tool.name.ends_with("_tool")).count() >= MODES.len() - 4
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
