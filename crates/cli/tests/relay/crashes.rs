//! Upstreams that die.

use std::time::Instant;

use sabir_client::{CallEvent, CallOptions, CallRequest};
use sabir_wire::types::ToolReply;
use sabir_wire::{CallTool, Raw, Request, Revision};
use serde_json::json;

use super::lifetimes::pid;
use super::memory::{CONFIGURATION, program, remembered};
use super::{FIXTURE, PATIENCE, Relay, at_url, fixture, raw, text, until, upstream};
use super::{http_fixture, http_fixture_at};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upstream_that_dies_in_a_call_a_hundred_times_is_there_for_the_next() {
    let relay = Relay::start(&fixture("up", Revision::NEWEST_LEGACY));
    let (client, _) = relay.client(Revision::NEWEST).await;
    super::listed(&client, "up_wait").await;
    for round in 0..100 {
        let request = CallTool { name: "up_wait".into(), ..CallTool::default() };
        let options = CallOptions { progress: true, ..CallOptions::default() };
        let request = CallRequest::new(Request::CallTool(request)).with(options);
        let mut waiting = client.start(request).await.unwrap();
        // It has arrived when it reports.
        assert!(matches!(waiting.next().await, CallEvent::Progress(_)));
        let died = client.call_tool("up_die", Raw::default()).await.unwrap();
        assert!(died.is_error, "{round}: {died:?}");
        let died = text(&died);
        assert!(died.starts_with("upstream `up`: "), "{round}: {died}");
        let also: ToolReply = waiting.result().await.unwrap().read().unwrap();
        assert!(also.is_error, "{round}: {also:?}");
        let next = client.call_tool("up_echo", raw(json!({ "round": round }))).await.unwrap();
        assert_eq!(text(&next), format!(r#"{{"round":{round}}}"#));
    }
}

/// The program writes down each of its starts: a repeated call would need one more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_in_which_an_upstream_dies_is_not_repeated() {
    let folder = remembered().await;
    program(folder.path(), &format!("echo $$ >> started\nexec {FIXTURE} stdio 2025-06-18"));
    let relay = Relay::start_in(folder, CONFIGURATION);
    let (client, _) = relay.client(Revision::NEWEST).await;
    let died = client.call_tool("up_die", Raw::default()).await.unwrap();
    assert!(died.is_error, "{died:?}");
    client.call_tool("up_echo", Raw::default()).await.unwrap();
    let started = std::fs::read_to_string(relay.folder.path().join("started")).unwrap();
    assert_eq!(started.lines().count(), 2, "{started}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upstream_behind_a_url_that_was_restarted_is_reached_again() {
    for far in [Revision::NEWEST_LEGACY, Revision::NEWEST] {
        let (first, url) = http_fixture(&["http", far.date()]);
        let relay = Relay::start(&at_url(&url));
        let (client, _) = relay.client(Revision::NEWEST).await;
        super::listed(&client, "up_die").await;
        let died = client.call_tool("up_die", Raw::default()).await.unwrap();
        assert!(died.is_error && text(&died).starts_with("upstream `up`: "), "{died:?}");
        drop(first);
        let port = url.rsplit([':', '/']).nth(1).unwrap().parse().unwrap();
        let (second, again) = http_fixture_at(port, &["http", far.date()]);
        assert_eq!(again, url);
        let own = second.child.id().to_string();
        assert_eq!(pid(&client).await, own, "the next call reaches it");
        // It tells of changes as before.
        until("a new tool is listed", async || {
            client.call_tool("up_grow", Raw::default()).await.unwrap();
            let tools = client.list_tools().await.unwrap();
            tools.iter().any(|tool| tool.name.starts_with("up_grown"))
        })
        .await;
        assert_eq!(pid(&client).await, own);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upstream_that_never_starts_harms_only_itself() {
    let configuration = upstream("bad", &["hostile", "exits-at-once"])
        + "[[upstream]]\nname = \"none\"\nrun = [\"/no/such/program\"]\n"
        + &fixture("good", Revision::NEWEST);
    let relay = Relay::start(&configuration);
    let (client, _) = relay.client(Revision::NEWEST).await;
    super::listed(&client, "good_echo").await;
    let begin = Instant::now();
    let reply = client.call_tool("good_echo", raw(json!({}))).await.unwrap();
    assert_eq!(text(&reply), "{}");
    assert!(begin.elapsed() < PATIENCE);
}
