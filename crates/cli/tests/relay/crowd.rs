//! Many calls at once: each answer reaches its own caller.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sabir_client::{
    Answerer, Answering, CallOptions, CallRequest, Client, ClientConfig, ClientEvent, Events,
    HttpTarget, HttpTransport, PipeTransport,
};
use sabir_wire::types::{ClientCapabilities, Elicit, Level, LogMessage, Question};
use sabir_wire::{CallTool, Era, Request, Revision};
use serde_json::json;
use tokio::task::JoinSet;

use super::{Person, Relay, config, fixture, http_fixture, raw, text, upstream};

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

/// Remembers the words that reach it in log messages and questions.
#[derive(Debug, Default)]
struct Ear(Mutex<BTreeSet<String>>);

impl Answerer for Ear {
    fn answer(&self, question: Question) -> Answering<'_> {
        if let Question::Elicit(Elicit::Form { message, .. }) = question {
            self.0.lock().unwrap().insert(format!("asked {message}"));
        }
        Box::pin(async { Ok(raw(json!({ "action": "decline" }))) })
    }

    fn log(&self, message: &LogMessage) {
        self.0.lock().unwrap().insert(format!("heard {}", message.data.text()));
    }
}

/// A call of the tool that ignores cancellation.
fn gossip(word: &str, wait: u64, asks: bool) -> CallRequest {
    let arguments = json!({ "word": word, "waitMs": wait, "asks": asks });
    let options = CallOptions { log_level: Some(Level::Debug), ..CallOptions::default() };
    let call =
        CallTool { name: "up_tool".into(), arguments: Some(raw(arguments)), ..CallTool::default() };
    CallRequest::new(Request::CallTool(call)).with(options)
}

/// One client calls, cancels and is asked without a pause, while a call of another one runs.
async fn two_clients(revision: Revision) {
    let relay = Relay::start(&upstream("up", &["hostile", "ignores-cancellation"]));
    let connect = || {
        let ear = Arc::new(Ear::default());
        let transport = HttpTransport::new(HttpTarget::new(&*relay.url).unwrap());
        (Client::new(Arc::new(transport), config(revision), ear.clone()), ear)
    };
    let ((ann, anns), (bob, bobs)) = (connect(), connect());
    super::listed(&ann, "up_tool").await;
    let waiting = bob.clone();
    let waiting = tokio::spawn(async move { waiting.call(gossip("bob", 5_000, false)).await });
    for nth in 0..20 {
        let mut calls = JoinSet::new();
        for _ in 0..40 {
            let ann = ann.clone();
            calls.spawn(async move { ann.call(gossip("ann", 0, false)).await.unwrap() });
        }
        // It asks after it was cancelled, when at most the other call runs.
        let asking = ann.call(gossip("ann", 50 * nth, true));
        let _ = tokio::time::timeout(Duration::from_millis(50), asking).await;
        calls.join_all().await;
    }
    let reply = waiting.await.unwrap().unwrap();
    assert_eq!(reply.questions().unwrap().map(|asked| asked.questions), None);
    // Once every call is answered, a question has one possible caller again.
    let asked = || bobs.0.lock().unwrap().contains("asked bob");
    super::until("the question is certain", async || {
        let arguments = raw(json!({ "word": "bob", "asks": true }));
        bob.call_tool("up_tool", arguments).await.unwrap();
        asked()
    })
    .await;
    for (word, ear) in [("ann", &anns), ("bob", &bobs)] {
        let foreign = |said: &&String| !said.contains(word);
        let said = ear.0.lock().unwrap();
        assert_eq!(said.iter().find(foreign), None, "{word}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_of_one_session_reaches_another() {
    two_clients(Revision::NEWEST_LEGACY).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_of_one_modern_client_reaches_another() {
    two_clients(Revision::NEWEST).await;
}
