//! Sessions, states and tasks are bound to the caller who got them (rows 27 to 29).

use std::net::SocketAddr;
use std::sync::Arc;

use sabir_registry::{Ask, Offer, Outcome, Pending, Source, TaskMode, ToolCall};
use sabir_wire::Raw;
use sabir_wire::types::{Content, Question, Tool, ToolReply};
use serde_json::{Value, json};

use crate::issuer::{Issuer, SigningKey, ec};
use crate::server::{Answer, send, start_serving};

fn done(text: &str) -> ToolReply {
    ToolReply { content: vec![Content::text(text)], ..ToolReply::default() }
}

/// Asks for the client's folders before it answers.
struct Asking;

impl Source for Asking {
    fn offer(&self) -> Offer {
        let schema = Raw::parse(r#"{"type":"object"}"#).unwrap();
        let tools = ["ask", "other"].map(|name| Tool::new(name, "d", schema.clone()));
        Offer { tools: tools.into(), ..Offer::default() }
    }

    fn call_tool(&self, call: ToolCall) -> Pending<ToolReply> {
        let kept = call.context.state.as_ref().map(|state| state.text().to_owned());
        Box::pin(async move {
            Ok(match kept {
                Some(kept) => Outcome::Done(done(&kept)),
                None => Outcome::NeedInput(Ask {
                    questions: vec![("where".into(), Question::roots())],
                    state: Raw::parse("\"of ann\"").ok(),
                    ..Ask::default()
                }),
            })
        })
    }
}

/// Becomes a task at once.
struct Long;

impl Source for Long {
    fn offer(&self) -> Offer {
        let schema = Raw::parse(r#"{"type":"object"}"#).unwrap();
        let tools = vec![Tool::new("long", "d", schema)];
        Offer { tools, task: TaskMode::Always.into(), ..Offer::default() }
    }

    fn call_tool(&self, _: ToolCall) -> Pending<ToolReply> {
        Box::pin(async { Ok(Outcome::Done(done("the result"))) })
    }
}

/// Two users of one issuer.
struct Users {
    key: SigningKey,
    issuer: Issuer,
    address: SocketAddr,
}

impl Users {
    async fn start() -> Self {
        let key = ec();
        let issuer = Issuer::start(std::slice::from_ref(&key)).await;
        let sources: Vec<Arc<dyn Source>> = vec![Arc::new(Asking), Arc::new(Long)];
        let address = start_serving(&[&issuer], sources, |_| ()).await;
        Self { key, issuer, address }
    }

    /// Sends a request of a user, each time with another token.
    async fn ask(&self, who: &str, method: &str, name: &str, mut params: Value) -> Answer {
        static LAST: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let nth = LAST.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let token = self.key.sign(&self.issuer.claims_with(json!({ "sub": who, "jti": nth })));
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {
                "roots": {}, "extensions": { "io.modelcontextprotocol/tasks": {} },
            },
        });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let lines = format!(
            "POST /mcp HTTP/1.1\ncontent-type: application/json\n\
             accept: application/json, text/event-stream\nmcp-protocol-version: 2026-07-28\n\
             mcp-method: {method}\nmcp-name: {name}\nauthorization: Bearer {token}"
        );
        send(self.address, &lines, &body.to_string()).await
    }
}

#[tokio::test]
async fn a_state_of_one_user_does_not_open_for_another() {
    let users = Users::start().await;
    let call = json!({ "name": "ask", "arguments": {} });
    let asked = users.ask("ann", "tools/call", "ask", call).await.json();
    let state = &asked["result"]["requestState"];
    assert!(state.is_string(), "{asked}");
    let retry = |name: &str| {
        json!({ "name": name, "arguments": {}, "requestState": state,
            "inputResponses": { "where": { "roots": [] } } })
    };
    for (who, tool) in [("bob", "ask"), ("ann", "other")] {
        let refused = users.ask(who, "tools/call", tool, retry(tool)).await.json();
        assert_eq!(refused["error"]["code"], -32602, "{who} {tool}: {refused}");
    }
    let answered = users.ask("ann", "tools/call", "ask", retry("ask")).await;
    assert_eq!(answered.text(), "\"of ann\"", "with a refreshed token: {answered:?}");
}

#[tokio::test]
async fn a_task_of_one_user_does_not_exist_for_another() {
    let users = Users::start().await;
    let call = json!({ "name": "long", "arguments": {} });
    let created = users.ask("ann", "tools/call", "long", call).await.json();
    let id = created["result"]["taskId"].as_str().unwrap_or_else(|| panic!("{created}"));
    let nowhere = "0".repeat(id.len());
    for method in ["tasks/get", "tasks/cancel", "tasks/update"] {
        let params = |id: &str| match method {
            "tasks/update" => json!({ "taskId": id, "inputResponses": {} }),
            _ => json!({ "taskId": id }),
        };
        let foreign = users.ask("bob", method, id, params(id)).await;
        let unknown = users.ask("bob", method, &nowhere, params(&nowhere)).await;
        assert!(foreign.json()["error"]["code"].is_i64(), "{method}: {foreign:?}");
        let without_id = |answer: &Answer, id: &str| answer.body.replace(id, "");
        assert_eq!(without_id(&foreign, id), without_id(&unknown, &nowhere), "{method}");
    }
    let own = users.ask("ann", "tasks/get", id, json!({ "taskId": id })).await.json();
    assert_eq!(own["result"]["taskId"], id, "{own}");
}
