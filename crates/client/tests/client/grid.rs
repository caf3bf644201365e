//! Our own server in every revision, over every transport.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use sabir_client::{CallError, CallOptions, Client, ClientEvent};
use sabir_testkit::StandInServer;
use sabir_wire::types::{Content, Level, SubscriptionFilter, Topic};
use sabir_wire::{Code, Era, Raw, Revision};
use serde_json::json;

use crate::support::{Robot, Way, config, transport};

struct Cell {
    client: Client,
    robot: Arc<Robot>,
    server: StandInServer,
    revision: Revision,
    way: Way,
}

impl Cell {
    async fn new(revision: Revision, way: Way) -> Self {
        let mut server = StandInServer::start().await;
        let transport = transport(&mut server, way).await;
        let robot = Arc::new(Robot::default());
        let client = Client::new(transport, config(revision), robot.clone());
        let info = client.open().await.unwrap();
        assert_eq!(info.revision, revision, "{way:?}");
        Self { client, robot, server, revision, way }
    }

    fn name(&self) -> String {
        format!("{} over {:?}", self.revision, self.way)
    }
}

/// Runs a check for each revision and transport.
async fn everywhere(check: impl AsyncFn(&Cell)) {
    for revision in Revision::ALL {
        for way in [Way::Pipe, Way::Http, Way::WebSocket] {
            check(&Cell::new(revision, way).await).await;
        }
    }
    // The old transport belongs to the first revision; later ones work on it as well.
    check(&Cell::new(Revision::ALL[0], Way::OldSse).await).await;
}

fn text(content: &[Content]) -> String {
    format!("{content:?}")
}

#[tokio::test]
async fn lists_are_complete_and_calls_are_answered() {
    everywhere(async |cell| {
        let name = cell.name();
        let tools = cell.client.list_tools().await.unwrap();
        assert_eq!(tools.len(), 12, "{name}");
        assert_eq!(cell.client.list_prompts().await.unwrap()[0].name, "greeting", "{name}");
        assert_eq!(cell.client.list_resources().await.unwrap()[0].uri, "memo:///a", "{name}");
        assert_eq!(cell.client.list_templates().await.unwrap().len(), 1, "{name}");
        let sum = cell.client.call_tool("add", json!({ "a": 1, "b": 2 })).await.unwrap();
        assert!(text(&sum.content).contains("sum"), "{name}: {sum:?}");
        let memo = cell.client.read_resource("memo:///a").await.unwrap();
        assert_eq!(memo.contents.len(), 2, "{name}");
        let prompt = cell.client.get_prompt("greeting", [("name", "Ada")]).await.unwrap();
        assert_eq!(prompt.description.as_deref(), Some("A greeting"), "{name}");
    })
    .await;
}

#[tokio::test]
async fn numbers_beyond_all_machine_words_pass_in_both_directions() {
    everywhere(async |cell| {
        let big = r#"{"n":123456789012345678901234567890,"x":1.50,"z":{"b":1,"a":2}}"#;
        let reply = cell.client.call_tool("echo", Raw::parse(big).unwrap()).await.unwrap();
        let echoed = text(&reply.content);
        assert!(echoed.contains("123456789012345678901234567890"), "{}: {echoed}", cell.name());
        if let Some(structured) = reply.structured {
            assert_eq!(structured.text(), big, "{}", cell.name());
        }
    })
    .await;
}

#[tokio::test]
async fn failures_are_results_or_errors_with_their_code() {
    everywhere(async |cell| {
        let name = cell.name();
        assert!(cell.client.call_tool("fail", json!({})).await.unwrap().is_error, "{name}");
        let broken = cell.client.call_tool("broken", json!({})).await.unwrap_err();
        assert_eq!(broken.rpc().unwrap().code, Code::INTERNAL, "{name}");
        let unknown = cell.client.call_tool("nope", json!({})).await.unwrap_err();
        assert_eq!(unknown.rpc().unwrap().code, Code::INVALID_PARAMS, "{name}");
        let missing = cell.client.read_resource("memo:///none").await.unwrap_err();
        assert!(matches!(missing, CallError::Rpc(_)), "{name}: {missing:?}");
    })
    .await;
}

#[tokio::test]
async fn progress_and_log_messages_reach_the_call() {
    everywhere(async |cell| {
        let name = cell.name();
        cell.client.set_level(Level::Info).await.unwrap();
        let options =
            CallOptions { progress: true, log_level: Some(Level::Info), ..CallOptions::default() };
        let done = cell.client.call_tool_with("noisy", json!({}), options).await.unwrap();
        assert!(text(&done.content).contains("done"), "{name}");
        assert_eq!(cell.robot.progress.load(Ordering::SeqCst), 2, "{name}");
        assert_eq!(cell.robot.logged.load(Ordering::SeqCst), 2, "{name}");
    })
    .await;
}

#[tokio::test]
async fn questions_are_answered_in_both_eras() {
    everywhere(async |cell| {
        let name = cell.name();
        let has_elicitation = cell.revision.features().elicitation;
        let greeted = cell.client.call_tool("ask_name", json!({})).await;
        if has_elicitation {
            assert!(text(&greeted.unwrap().content).contains("hello Ada"), "{name}");
            let all = cell.client.call_tool("ask_all", json!({})).await.unwrap();
            assert!(text(&all.content).contains("Paris, 2 roots, kept"), "{name}: {all:?}");
            assert_eq!(cell.robot.asked.load(Ordering::SeqCst), 4, "{name}");
        } else {
            let refused = greeted.map_or(true, |reply| reply.is_error);
            assert!(refused, "{name}");
        }
        let asked = cell.client.call_tool("ask_model", json!({})).await.unwrap();
        assert!(text(&asked.content).contains("thank you"), "{name}");
    })
    .await;
}

#[tokio::test]
async fn changes_are_announced_after_they_are_watched() {
    everywhere(async |cell| {
        let name = cell.name();
        let events = cell.client.events();
        cell.client.watch(SubscriptionFilter {
            tools_list_changed: true,
            resource_subscriptions: vec!["memo:///a".into()],
            ..SubscriptionFilter::default()
        });
        let registry = cell.server.engine.registry();
        let until = tokio::time::Instant::now() + Duration::from_secs(20);
        let mut wanted = vec![Topic::Tools, Topic::Resource("memo:///a".into())];
        // The subscription begins at some time: change until the change is announced.
        while !wanted.is_empty() {
            assert!(tokio::time::Instant::now() < until, "{name}: {wanted:?}");
            cell.server.change();
            registry.updated("memo:///a");
            let next = tokio::time::timeout(Duration::from_millis(100), events.next());
            if let Ok(ClientEvent::Changed(topic)) = next.await {
                wanted.retain(|other| *other != topic);
            }
        }
    })
    .await;
}

#[tokio::test]
async fn many_calls_at_once_get_their_own_answers() {
    for (revision, way) in [
        (Revision::NEWEST, Way::Pipe),
        (Revision::NEWEST, Way::Http),
        (Revision::NEWEST, Way::WebSocket),
        (Revision::NEWEST_LEGACY, Way::Pipe),
    ] {
        let cell = Cell::new(revision, way).await;
        let mut calls = tokio::task::JoinSet::new();
        for n in 0..300 {
            let client = cell.client.clone();
            calls.spawn(async move {
                let reply = client.call_tool("echo", json!({ "n": n })).await;
                reply.unwrap().structured.unwrap().text() == format!(r#"{{"n":{n}}}"#)
            });
        }
        assert!(calls.join_all().await.into_iter().all(|is_own| is_own), "{}", cell.name());
    }
}

#[tokio::test]
async fn the_era_is_found_out() {
    for way in [Way::Pipe, Way::Http, Way::WebSocket] {
        let mut server = StandInServer::start().await;
        let transport = transport(&mut server, way).await;
        let client = Client::without_answers(transport, sabir_client::ClientConfig::default());
        let info = client.open().await.unwrap();
        assert_eq!((info.revision.era(), info.is_certain), (Era::Modern, true));
    }
}
