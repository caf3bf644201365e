//! Upstreams that die.

use std::time::Instant;

use sabir_client::{CallEvent, CallOptions, CallRequest};
use sabir_wire::types::ToolReply;
use sabir_wire::{CallTool, Raw, Request, Resume, Revision};
use serde_json::json;

use super::{PATIENCE, Relay, fixture, raw, text, upstream};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upstream_that_dies_in_a_call_a_hundred_times_is_there_for_the_next() {
    let relay = Relay::start(&fixture("up", Revision::NEWEST_LEGACY));
    let (client, _) = relay.client(Revision::NEWEST).await;
    super::listed(&client, "up_wait").await;
    for round in 0..100 {
        let request = CallTool {
            name: "up_wait".into(),
            arguments: None,
            resume: Resume::default(),
            task: None,
        };
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
