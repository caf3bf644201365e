//! A call that is alive on one node while its client is asked, and answers that reach another node.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use sabir_cluster::{Hub, Seal};
use sabir_engine::SealKey;
use sabir_registry::{Answer, Ask, Offer, Outcome, Pending, Source, ToolCall};
use sabir_wire::types::{Elicit, Question, Tool, ToolReply};
use sabir_wire::{Problem, Raw};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::{SECRET, node, stop};
use crate::client::{Client, Request, Response};
use crate::server::{Running, Wish, in_time, token};

/// A source whose calls stay in memory: the state only names them.
#[derive(Default)]
struct Held {
    calls: Mutex<HashSet<usize>>,
    last: AtomicUsize,
    /// Calls that were resumed.
    resumed: AtomicUsize,
    /// A call was dropped while it waited.
    dropped: Arc<Notify>,
}

struct Dropped(Arc<Notify>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

impl Held {
    fn ask(&self) -> Answer<ToolReply> {
        let name = self.last.fetch_add(1, Ordering::SeqCst);
        self.calls.lock().unwrap().insert(name);
        let schema = Raw::of(&json!({ "type": "object", "properties": {} })).unwrap();
        let questions = vec![("q".to_owned(), Question::Elicit(Elicit::form("Go on?", schema)))];
        let state = Some(Raw::of(&name).unwrap());
        Ok(Outcome::NeedInput(Ask { questions, state, only_here: true, ..Ask::default() }))
    }
}

impl Source for Held {
    fn offer(&self) -> Offer {
        let schema = Raw::of(&json!({ "type": "object" })).unwrap();
        Offer { tools: vec![Tool::new("hold", "Holds on.", schema)], ..Offer::default() }
    }

    fn call_tool(&self, call: ToolCall) -> Pending<ToolReply> {
        let Some(state) = &call.context.state else {
            let asked = self.ask();
            return Box::pin(async { asked });
        };
        let name: usize = state.read().unwrap();
        if !self.calls.lock().unwrap().remove(&name) {
            return Box::pin(async { Err(Problem::Params("the call has ended".into())) });
        }
        self.resumed.fetch_add(1, Ordering::SeqCst);
        let dropped = Dropped(self.dropped.clone());
        Box::pin(async move {
            let arguments: Value = call.arguments.read().unwrap();
            let steps = arguments["steps"].as_u64().unwrap_or(0);
            for step in 1..=steps {
                call.context.call.progress(step as f64, None, None);
                tokio::task::yield_now().await;
            }
            if arguments["wait"] == true {
                std::future::pending::<()>().await;
            }
            drop(dropped);
            Ok(Outcome::Done(ToolReply::text(
                "x".repeat(arguments["size"].as_u64().unwrap_or(4) as usize),
            )))
        })
    }
}

fn wish() -> Wish {
    let key = SealKey::parse(&STANDARD.encode(SECRET));
    Wish::default().engine(|engine| engine.seal_key = key)
}

async fn with_held(wish: impl Fn() -> Wish) -> ([Running; 2], Arc<Held>) {
    let hub = Arc::new(Hub::default());
    let nodes = [node(&hub, wish()).await, node(&hub, wish()).await];
    let held = Arc::new(Held::default());
    nodes[0].engine.registry().add(held.clone()).unwrap();
    nodes[1].engine.registry().add(Arc::new(Held::default())).unwrap();
    for node in &nodes {
        node.engine.start().await;
    }
    (nodes, held)
}

/// A call of the tool, with the answers and the state that the last result asks for.
fn hold(arguments: Value, asked: Option<&Response>) -> Request {
    let mut params =
        json!({ "name": "hold", "arguments": arguments, "_meta": { "progressToken": 7 } });
    if let Some(asked) = asked {
        let asked = asked.json();
        assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
        params["requestState"] = asked["result"]["requestState"].clone();
        params["inputResponses"] = json!({ "q": { "action": "accept", "content": {} } });
    }
    Request::modern_with(1, "tools/call", params, json!({ "elicitation": {} }))
}

async fn send(client: &mut Client, request: &Request) -> Response {
    in_time(client.send(request)).await
}

#[tokio::test]
async fn the_answer_reaches_the_node_that_has_the_call_and_the_result_comes_back() {
    let (nodes, held) = with_held(wish).await;
    let [mut first, mut second] = [nodes[0].connect().await, nodes[1].connect().await];
    // A result that is long, and one that comes with progress.
    for (arguments, is_stream) in
        [(json!({}), false), (json!({ "size": 3 << 20 }), false), (json!({ "steps": 3 }), true)]
    {
        let asked = send(&mut first, &hold(arguments.clone(), None)).await;
        let answered = send(&mut second, &hold(arguments.clone(), Some(&asked))).await;
        assert_eq!(answered.status, 200);
        let result = match is_stream {
            false => answered.json(),
            true => {
                let events = answered.events();
                let events: Vec<_> = events.iter().filter(|event| event.data.is_some()).collect();
                assert_eq!(events.len(), 4, "{events:?}");
                assert_eq!(events[0].method(), "notifications/progress");
                events[3].json()
            }
        };
        let text = result["result"]["content"][0]["text"].as_str().unwrap();
        assert_eq!(text.len(), arguments["size"].as_u64().unwrap_or(4) as usize);
        // The call was resumed once, and is not resumed again.
        let again = send(&mut second, &hold(arguments, Some(&asked))).await;
        assert_eq!(again.code(), -32602, "{}", again.json());
    }
    assert_eq!(held.resumed.load(Ordering::SeqCst), 3);
    stop(nodes).await;
}

#[tokio::test]
async fn if_its_node_is_gone_the_client_is_told_so() {
    let (nodes, _) = with_held(wish).await;
    let [gone, left] = nodes;
    let asked = send(&mut gone.connect().await, &hold(json!({}), None)).await;
    gone.stop().await;
    let mut second = left.connect().await;
    let refused = send(&mut second, &hold(json!({}), Some(&asked))).await;
    assert_eq!((refused.status, refused.code()), (200, -32602));
    assert!(refused.json()["error"]["message"].as_str().unwrap().contains("is gone"));
    left.stop().await;
}

#[tokio::test]
async fn a_client_that_goes_away_ends_the_call_on_its_node() {
    let (nodes, held) = with_held(wish).await;
    let arguments = json!({ "steps": 1, "wait": true });
    let asked = send(&mut nodes[0].connect().await, &hold(arguments.clone(), None)).await;
    let mut second = nodes[1].connect().await;
    assert_eq!(in_time(second.open(&hold(arguments, Some(&asked)))).await.status, 200);
    drop(second);
    in_time(held.dropped.notified()).await;
    stop(nodes).await;
}

#[tokio::test]
async fn the_state_of_one_caller_is_of_no_use_to_another() {
    let tokens = || {
        wish().http(|http| {
            http.tokens = token("ann-s");
            http.tokens.extend(token("bob-s"));
            http.tokens[1].name = "bob".into();
        })
    };
    let (nodes, held) = with_held(tokens).await;
    let ann = |request: Request| request.header("authorization", "Bearer ann-s");
    let bob = |request: Request| request.header("authorization", "Bearer bob-s");
    let asked = send(&mut nodes[0].connect().await, &ann(hold(json!({}), None))).await;
    let mut second = nodes[1].connect().await;
    let refused = send(&mut second, &bob(hold(json!({}), Some(&asked)))).await;
    assert_eq!(refused.code(), -32602, "{}", refused.json());
    let changed = send(&mut second, &ann(hold(json!({ "size": 5 }), Some(&asked)))).await;
    assert_eq!(changed.code(), -32602, "other arguments: {}", changed.json());
    assert_eq!(held.resumed.load(Ordering::SeqCst), 0);
    let answered = send(&mut second, &ann(hold(json!({}), Some(&asked)))).await;
    assert_eq!(answered.text(), "xxxx");
    stop(nodes).await;
}

#[tokio::test]
async fn only_nodes_may_pass_a_call_on() {
    let (nodes, held) = with_held(wish).await;
    let mut client = nodes[0].connect().await;
    let asked = send(&mut client, &hold(json!({}), None)).await;
    let call = Request { path: "/cluster/call".into(), ..hold(json!({}), Some(&asked)) };
    assert_eq!(send(&mut client, &call).await.status, 404);
    let to = |secret: &[u8; 32], node: &str| {
        let sealed = Seal::new(secret).seal("call to", node.as_bytes());
        call.clone().header("sabir-node", &URL_SAFE_NO_PAD.encode(sealed))
    };
    let own = nodes[0].engine.settings().node.clone().unwrap();
    assert_eq!(send(&mut client, &to(&[8; 32], &own)).await.status, 404, "with another key");
    assert_eq!(send(&mut client, &to(&SECRET, "another")).await.status, 410);
    assert_eq!(send(&mut client, &to(&SECRET, &own)).await.status, 400, "the body is not sealed");
    assert_eq!(held.resumed.load(Ordering::SeqCst), 0);
    stop(nodes).await;
}
