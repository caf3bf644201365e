//! Many calls at once: each answer reaches its own caller.

use std::sync::Arc;

use sabir_client::{Answerer as _, Client, ClientConfig, ClientEvent, Events, PipeTransport};
use sabir_wire::types::ClientCapabilities;
use sabir_wire::{Era, Revision};
use serde_json::json;
use tokio::task::JoinSet;

use super::{Person, fixture, http_fixture, raw, text};

/// A client on the standard streams of the real binary.
fn on_stdio(configuration: &str, era: Era) -> (Client, tokio::process::Child, tempfile::TempDir) {
    let folder = tempfile::TempDir::new().unwrap();
    std::fs::write(folder.path().join("sabir.toml"), configuration).unwrap();
    let mut child = tokio::process::Command::new(env!("CARGO_BIN_EXE_sabir"))
        .args(["serve", "--stdio"])
        .current_dir(folder.path())
        .env("XDG_CACHE_HOME", folder.path().join("cache"))
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let streams = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
    let mut config = ClientConfig::new("crowd", "0");
    config.era = Some(era);
    config.capabilities =
        ClientCapabilities { elicitation_form: true, ..ClientCapabilities::default() };
    let transport = Arc::new(PipeTransport::new(streams.0, streams.1));
    let client = Client::new(transport, config, Arc::new(Person::default()));
    tokio::spawn(answer(client.events()));
    (client, child, folder)
}

/// Answers the questions that could be those of several calls.
async fn answer(events: Events) {
    let person = Person::default();
    loop {
        if let ClientEvent::Question(asked) = events.next().await {
            let answered = person.answer(asked.question().clone()).await;
            asked.answer(answered.unwrap());
        }
    }
}

async fn a_thousand(near: Era, far: Revision) {
    let (_http, url) = http_fixture(&["http", far.date()]);
    let configuration = format!(
        "{}\n[[upstream]]\nname = \"web\"\nurl = \"{url}\"\n\n[limits]\ncalls = 2000\n",
        fixture("pipe", far)
    );
    let (client, _child, _folder) = on_stdio(&configuration, near);
    super::listed(&client, "pipe_echo").await;
    super::listed(&client, "web_echo").await;
    let mut calls = JoinSet::new();
    for nth in 0..1000 {
        let client = client.clone();
        calls.spawn(async move {
            let way = if nth % 2 == 0 { "pipe" } else { "web" };
            let is_question = nth % 20 < 2 && nth < 500;
            let (tool, arguments) = match is_question {
                true => ("elicit", json!({ "word": format!("w{nth}") })),
                false => ("echo", json!({ "nth": nth, "waitMs": 50 })),
            };
            let reply = client.call_tool(&format!("{way}_{tool}"), raw(arguments)).await;
            let seen = text(&reply.unwrap_or_else(|error| panic!("{nth} {way}_{tool}: {error}")));
            match is_question {
                true => assert!(seen.contains(&format!(r#"Who? \"w{nth}\""#)), "{nth}: {seen}"),
                false => assert_eq!(seen, format!(r#"{{"nth":{nth},"waitMs":50}}"#)),
            }
            is_question
        });
    }
    let questions = calls.join_all().await.into_iter().filter(|is_question| *is_question).count();
    assert_eq!(questions, 50);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_calls_of_a_modern_client_at_legacy_upstreams() {
    a_thousand(Era::Modern, Revision::NEWEST_LEGACY).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_calls_of_a_legacy_client_at_modern_upstreams() {
    a_thousand(Era::Legacy, Revision::NEWEST).await;
}
