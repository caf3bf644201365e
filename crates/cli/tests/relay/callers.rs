//! Questions and their callers: two callers of one upstream, and clients that do not answer.

use std::sync::Arc;

use sabir_client::{Answerer, Answering, CallRequest, Client, HttpTarget, HttpTransport};
use sabir_wire::types::Question;
use sabir_wire::{CallTool, Raw, Request, Resume, Revision};
use serde_json::json;
use tokio::sync::Notify;

use super::lifetimes::{pid, wait};
use super::{Person, Relay, TOKENS, config, connect, fixture, raw, text, until};

/// `[[token]]` for both callers.
pub(super) fn tokens() -> String {
    let token = |(env, _): (&str, &str)| format!("[[token]]\nname = \"{env}\"\nenv = \"{env}\"\n");
    TOKENS.map(token).concat()
}

/// The relay for the caller with this token.
pub(super) fn target(relay: &Relay, token: &str) -> HttpTarget {
    let target = HttpTarget::new(&*relay.url).unwrap();
    target.with_header("authorization", &format!("Bearer {token}")).unwrap()
}

pub(super) async fn both(relay: &Relay) -> [(Client, Arc<Person>); 2] {
    let [ann, bob] = TOKENS.map(|(_, token)| target(relay, token));
    [connect(ann, Revision::NEWEST).await, connect(bob, Revision::NEWEST).await]
}

/// Begins a call that lasts for some seconds.
fn busy(client: &Client) -> tokio::task::JoinHandle<()> {
    let client = client.clone();
    tokio::spawn(async move {
        client.call_tool("up_echo", raw(json!({ "waitMs": 5_000 }))).await.unwrap();
    })
}

/// The answer to a question in a call of `up_elicit`, or why there is none.
async fn elicit(client: &Client) -> String {
    match client.call_tool("up_elicit", raw(json!({ "word": "w" }))).await {
        Ok(reply) => text(&reply),
        Err(error) => error.to_string(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_that_could_be_another_callers_is_refused_with_the_remedy() {
    let relay = Relay::start(&(tokens() + &fixture("up", Revision::NEWEST_LEGACY)));
    let [(ann, asked), (bob, _)] = both(&relay).await;
    super::listed(&ann, "up_elicit").await;
    let waiting = busy(&ann);
    until("the call runs", async || elicit(&bob).await.contains("several callers")).await;
    let refused = elicit(&bob).await;
    for part in ["calls of several callers are running", "scope = \"session\""] {
        assert!(refused.contains(part), "{refused}");
    }
    waiting.await.unwrap();
    until("the question is certain", async || elicit(&bob).await.contains(r#"Who? \"w\""#)).await;
    assert_eq!(asked.asked.lock().unwrap().len(), 0, "another caller was asked");
}

/// Clients without a token are the same caller, but each has a session.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_that_could_be_another_sessions_is_refused_with_the_remedy() {
    let relay = Relay::start(&fixture("up", Revision::NEWEST_LEGACY));
    let (first, asked) = relay.client(Revision::NEWEST_LEGACY).await;
    let (second, _) = relay.client(Revision::NEWEST_LEGACY).await;
    super::listed(&first, "up_elicit").await;
    let waiting = busy(&first);
    until("the call runs", async || elicit(&second).await.contains("scope = \"session\"")).await;
    waiting.await.unwrap();
    until("the question is certain", async || elicit(&second).await.contains(r#"Who? \"w\""#))
        .await;
    assert_eq!(asked.asked.lock().unwrap().len(), 0, "another session was asked");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_with_instances_of_their_own_are_asked_at_the_same_time() {
    let upstream = fixture("up", Revision::NEWEST_LEGACY) + "scope = \"session\"\n";
    let relay = Relay::start(&(tokens() + &upstream));
    let [(ann, _), (bob, _)] = both(&relay).await;
    super::listed(&ann, "up_elicit").await;
    let _waiting = wait(&ann).await;
    let answer = elicit(&bob).await;
    assert!(answer.contains(r#"Who? \"w\""#), "{answer}");
    assert_ne!(pid(&ann).await, pid(&bob).await);
}

/// Waits until the upstream's question has been refused.
async fn abandoned(client: &Client) {
    until("the upstream is told", async || {
        text(&client.call_tool("up_abandoned", Raw::default()).await.unwrap()) == "1"
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_that_is_not_answered_in_time_ends_its_call() {
    let upstream = fixture("up", Revision::NEWEST_LEGACY);
    let relay = Relay::start(&format!("[limits]\nquestion_time = \"1s\"\n{upstream}"));
    let (client, _) = relay.client(Revision::NEWEST).await;
    super::listed(&client, "up_elicit").await;
    let resume = ask(&client).await;
    abandoned(&client).await;
    let error = client.call(request("w", resume)).await.unwrap_err();
    assert!(error.to_string().contains("requestState"), "{error}");
}

/// A call of `up_elicit`.
fn request(word: &str, resume: Resume) -> CallRequest {
    let (name, arguments) = ("up_elicit".into(), Some(raw(json!({ "word": word }))));
    CallRequest::new(Request::CallTool(CallTool { name, arguments, resume, ..CallTool::default() }))
}

/// Calls `up_elicit`, and gives what its client repeats the call with, to decline.
async fn ask(client: &Client) -> Resume {
    let asked = client.call(request("w", Resume::default())).await.unwrap();
    let asked = asked.questions().unwrap().unwrap();
    let answers = vec![(asked.questions[0].0.clone(), raw(json!({ "action": "decline" })))];
    Resume { answers, state: asked.state.map(Into::into), ..Resume::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_asks_belongs_to_its_caller_and_its_arguments() {
    for far in [Revision::NEWEST_LEGACY, Revision::NEWEST] {
        let relay = Relay::start(&(tokens() + &fixture("up", far)));
        let [(ann, _), (bob, _)] = both(&relay).await;
        super::listed(&ann, "up_elicit").await;
        let resume = ask(&ann).await;
        for (client, word) in [(&bob, "w"), (&ann, "other")] {
            let error = client.call(request(word, resume.clone())).await.unwrap_err();
            assert!(error.to_string().contains("requestState"), "{error}");
        }
        let reply = ann.call(request("w", resume.clone())).await.unwrap();
        assert!(reply.json.text().contains("decline"), "{reply:?}");
        if far == Revision::NEWEST_LEGACY {
            // The call was alive, and has ended.
            let error = ann.call(request("w", resume)).await.unwrap_err();
            assert!(error.to_string().contains("the call has ended"), "{error}");
        }
    }
}

/// Never answers; tells that it was asked.
#[derive(Debug, Default)]
struct Silent(Notify);

impl Answerer for Silent {
    fn answer(&self, _question: Question) -> Answering<'_> {
        self.0.notify_one();
        Box::pin(std::future::pending())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_legacy_client_that_leaves_abandons_its_question() {
    for far in [Revision::NEWEST_LEGACY, Revision::NEWEST] {
        let relay = Relay::start(&fixture("up", far));
        let (other, _) = relay.client(Revision::NEWEST).await;
        super::listed(&other, "up_elicit").await;
        let silent = Arc::new(Silent::default());
        let transport = HttpTransport::new(HttpTarget::new(&*relay.url).unwrap());
        let config = config(Revision::NEWEST_LEGACY);
        let client = Client::new(Arc::new(transport), config, silent.clone());
        let caller = client.clone();
        let call = tokio::spawn(async move { elicit(&caller).await });
        silent.0.notified().await;
        client.close().await;
        call.await.unwrap();
        if far == Revision::NEWEST_LEGACY {
            // The call of a modern upstream has ended before its client is asked.
            abandoned(&other).await;
        }
        let reply = other.call_tool("up_pid", Raw::default()).await;
        assert!(reply.is_ok(), "it serves others");
    }
}

/// Servers ask for roots on their own when a session begins, and a call may happen to run then.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_for_roots_does_not_end_the_call_of_a_client_without_roots() {
    let relay = Relay::start(&fixture("up", Revision::NEWEST_LEGACY));
    let mut config = config(Revision::NEWEST);
    config.capabilities.roots = false;
    let transport = Arc::new(HttpTransport::new(HttpTarget::new(&*relay.url).unwrap()));
    let client = Client::new(transport, config, Arc::new(Person::default()));
    super::listed(&client, "up_roots").await;
    let reply = client.call_tool("up_roots", Raw::default()).await.unwrap();
    assert!(text(&reply).contains("the client has no roots"), "{}", text(&reply));
}
