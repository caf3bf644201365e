//! A connection that is as broad as we can make it: every method, every kind of content, errors,
//! notifications, questions and the end.

use std::collections::HashMap;
use std::sync::Arc;

use sabir_registry::Offer;
use sabir_session::SessionKind;
use sabir_testkit::{ConnectionPlayer, House, Player as _, StandIn};
use sabir_wire::types::{Resource, Tool, Topic};
use sabir_wire::{Raw, Revision};
use serde_json::{Value, json};

/// All messages that we sent, each with the method of the request that it answers.
pub(crate) struct Recording {
    pub(crate) said: Vec<(Option<String>, Value)>,
    player: ConnectionPlayer,
    asked: HashMap<String, String>,
    next_id: u64,
    /// The members that are added to the params of each request.
    meta: Option<Value>,
}

impl Recording {
    fn new(meta: Option<Value>) -> Self {
        let mut settings = House::settings();
        settings.instructions = Some("Ask politely.".into());
        settings.server.title = Some("Server".into());
        settings.server.description = Some("A server".into());
        settings.server.website_url = Some("https://example.com".into());
        settings.server.icons = StandIn::icons();
        settings.engine_limits.page_size = 5;
        let any = Raw::parse(r#"{"type":"object"}"#).unwrap();
        let resource =
            Resource { uri: "memo:///s".into(), name: "s".into(), ..Resource::default() };
        let offer = Offer {
            tools: vec![Tool::new("scripted", "d", any)],
            resources: vec![resource],
            updates: true,
            changes: true,
            ..Offer::default()
        };
        let house = House::offering(settings, offer);
        house.engine.registry().add(Arc::new(StandIn)).unwrap();
        let player =
            ConnectionPlayer::with(house, SessionKind::Stream, sabir_wire::Caller::local());
        Self { said: Vec::new(), player, asked: HashMap::new(), next_id: 0, meta }
    }

    /// With a client of some legacy revision that can do everything.
    pub(crate) fn legacy(revision: Revision) -> Self {
        let mut recording = Self::new(None);
        recording.ask(
            "initialize",
            json!({
                "protocolVersion": revision.date(),
                "capabilities": all_abilities(),
                "clientInfo": { "name": "c", "version": "1" },
            }),
        );
        recording.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        recording.ask("ping", json!({}));
        recording.ask("logging/setLevel", json!({ "level": "debug" }));
        recording.ask("logging/setLevel", json!({ "level": "loud" }));
        recording.both_eras();
        recording.ask("resources/subscribe", json!({ "uri": "memo:///s" }));
        recording.changes();
        recording.ask("resources/unsubscribe", json!({ "uri": "memo:///s" }));
        recording.ask("resources/subscribe", json!({ "uri": "memo:///none" }));
        recording.ask("server/discover", json!({}));
        recording.ask("initialize", json!({}));
        if revision.features().batches {
            let batch = r#"[{"jsonrpc":"2.0","id":"a","method":"ping"},{"jsonrpc":"2.0","id":"b","method":"nope"}]"#;
            recording.say(batch);
        }
        recording.refused_and_forgotten_questions();
        recording.end();
        recording
    }

    /// With a modern client, whose capabilities change between requests.
    pub(crate) fn modern() -> Self {
        let meta = |abilities: Value| {
            json!({
                "io.modelcontextprotocol/protocolVersion": Revision::NEWEST.date(),
                "io.modelcontextprotocol/clientCapabilities": abilities,
                "io.modelcontextprotocol/logLevel": "debug",
                "io.modelcontextprotocol/clientInfo": { "name": "c", "version": "1" },
            })
        };
        let mut recording = Self::new(Some(meta(all_abilities())));
        recording.ask("server/discover", json!({}));
        let filter = json!({
            "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true,
            "resourceSubscriptions": ["memo:///s"],
        });
        recording.ask("subscriptions/listen", json!({ "notifications": filter }));
        recording.ask("subscriptions/listen", json!({ "notifications": {} }));
        recording.both_eras();
        recording.changes();
        for method in ["initialize", "ping", "logging/setLevel", "resources/subscribe"] {
            recording.ask(method, json!({ "level": "info", "uri": "memo:///a" }));
        }
        recording.meta = Some(meta(json!({})));
        for tool in ["ask_name", "ask_all", "ask_page", "ask_tools"] {
            recording.ask("tools/call", json!({ "name": tool }));
        }
        let version = json!({
            "io.modelcontextprotocol/protocolVersion": "v999",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        recording.meta = Some(version);
        recording.ask("tools/list", json!({}));
        recording.end();
        recording
    }

    fn both_eras(&mut self) {
        for list in ["tools/list", "prompts/list", "resources/list", "resources/templates/list"] {
            let mut next = self.ask(list, json!({}))["result"]["nextCursor"].clone();
            while next.is_string() {
                next = self.ask(list, json!({ "cursor": next }))["result"]["nextCursor"].clone();
            }
            self.ask(list, json!({ "cursor": "unknown" }));
        }
        let add = |a: Value| json!({ "name": "add", "arguments": { "a": a, "b": 2 } });
        self.ask("tools/call", add(json!(1)));
        self.ask("tools/call", add(json!("x")));
        self.ask("tools/call", json!({ "name": "echo", "arguments": { "a": 1, "b": [{}] } }));
        self.ask("tools/call", json!({ "name": "noisy", "_meta": { "progressToken": "p" } }));
        self.ask("tools/call", json!({ "name": "noisy", "_meta": { "progressToken": 7 } }));
        for tool in ["count", "everything", "fail", "broken", "nope"] {
            self.ask("tools/call", json!({ "name": tool }));
        }
        for tool in ["ask_name", "ask_all", "ask_model", "ask_page", "ask_tools"] {
            self.ask("tools/call", json!({ "name": tool }));
        }
        self.ask("prompts/get", json!({ "name": "greeting", "arguments": { "name": "Ada" } }));
        self.ask("prompts/get", json!({ "name": "greeting" }));
        self.ask("prompts/get", json!({ "name": "nope" }));
        for uri in ["memo:///a", "memo:///x/1", "memo:///x/none", "memo:///none"] {
            self.ask("resources/read", json!({ "uri": uri }));
        }
        let complete = |reference: Value, name: &str| json!({ "ref": reference, "argument": { "name": name, "value": "A" } });
        let prompt = json!({ "type": "ref/prompt", "name": "greeting" });
        self.ask("completion/complete", complete(prompt.clone(), "name"));
        self.ask("completion/complete", complete(prompt, "nope"));
        let template = json!({ "type": "ref/resource", "uri": "memo:///x/{id}" });
        self.ask("completion/complete", complete(template, "id"));
        self.ask("nope", json!({}));
        self.ask("tools/call", json!({}));
        for wrong in [
            "nonsense",
            r#"{"jsonrpc":"2.0","id":"w1"}"#,
            r#"{"jsonrpc":"1.0","id":"w2","method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
            "[]",
        ] {
            self.say(wrong);
        }
    }

    fn changes(&mut self) {
        for topic in
            [Topic::Tools, Topic::Prompts, Topic::Resources, Topic::Resource("memo:///s".into())]
        {
            self.player.change(topic);
            self.hear();
        }
    }

    /// A client that refuses a question, and one that does not answer: the question is cancelled.
    fn refused_and_forgotten_questions(&mut self) {
        for waits in [false, true] {
            self.request("tools/call", json!({ "name": "ask_model" }));
            self.hear();
            if waits {
                self.player.pass(std::time::Duration::from_secs(900));
            } else {
                let id = self.last_question();
                let no = json!({ "code": -1, "message": "no" });
                let refusal = json!({ "jsonrpc": "2.0", "id": id, "error": no });
                self.player.say(refusal.to_string().as_bytes());
            }
            self.hear();
        }
    }

    fn last_question(&self) -> Option<Value> {
        let (_, last) = self.said.last()?;
        last.get("method").and_then(|_| last.get("id")).cloned()
    }

    fn end(&mut self) {
        // One call is still running.
        self.request("tools/call", json!({ "name": "scripted" }));
        self.player.end_input();
        self.player.pass(std::time::Duration::from_secs(6));
        self.hear();
    }

    /// Sends a request, answers the questions that it causes, and returns its answer.
    fn ask(&mut self, method: &str, params: Value) -> Value {
        let mut id = self.request(method, params.clone());
        self.hear();
        loop {
            let answered =
                self.said.iter().rev().find(|(_, message)| {
                    message["id"] == json!(id) && message.get("method").is_none()
                });
            if let Some((_, answer)) = answered.cloned() {
                let Some(params) = retry(&params, &answer) else { return answer };
                id = self.request(method, params);
                self.hear();
                continue;
            }
            let open: Vec<_> = self.said.iter().rev().take_while(|(_, m)| is_question(m)).collect();
            let answers: Vec<_> = open.iter().map(|(_, question)| reply(question)).collect();
            if answers.is_empty() {
                return Value::Null;
            }
            for answer in answers {
                self.player.say(answer.to_string().as_bytes());
            }
            self.hear();
        }
    }

    /// Sends a request, and returns its id.
    fn request(&mut self, method: &str, mut params: Value) -> String {
        self.next_id += 1;
        let id = format!("r{}", self.next_id);
        if let Some(meta) = &self.meta {
            let mut all = meta.clone();
            if let Some(own) = params.get("_meta").and_then(Value::as_object) {
                all.as_object_mut().unwrap().extend(own.clone());
            }
            params["_meta"] = all;
        }
        self.asked.insert(id.clone(), method.to_owned());
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.player.say(request.to_string().as_bytes());
        id
    }

    fn say(&mut self, frame: &str) {
        self.player.say(frame.as_bytes());
        self.hear();
    }

    fn hear(&mut self) {
        while let Some(frame) = self.player.hear() {
            let message: Value = serde_json::from_slice(&frame).unwrap();
            let asked = message["id"].as_str().and_then(|id| self.asked.get(id)).cloned();
            self.said.push((asked, message));
        }
    }
}

fn all_abilities() -> Value {
    json!({ "elicitation": { "form": {}, "url": {} }, "sampling": { "tools": {} }, "roots": {} })
}

fn is_question(message: &Value) -> bool {
    message.get("method").is_some() && message.get("id").is_some()
}

/// The client's answer to a question.
fn answer(method: &str) -> Value {
    match method {
        "elicitation/create" => json!({ "action": "accept", "content": { "name": "Ada" } }),
        "roots/list" => json!({ "roots": [{ "uri": "file:///a" }] }),
        _ => json!({
            "role": "assistant", "content": { "type": "text", "text": "Paris" }, "model": "m",
        }),
    }
}

fn reply(question: &Value) -> Value {
    let answer = answer(question["method"].as_str().unwrap());
    json!({ "jsonrpc": "2.0", "id": question["id"], "result": answer })
}

/// The same request with the answers to its questions; `None` without questions.
fn retry(params: &Value, message: &Value) -> Option<Value> {
    let result = &message["result"];
    if result["resultType"] != "input_required" {
        return None;
    }
    let asked = result["inputRequests"].as_object()?;
    let answers = asked
        .iter()
        .map(|(key, question)| (key.clone(), answer(question["method"].as_str().unwrap())));
    let mut params = params.clone();
    params["inputResponses"] = answers.collect::<serde_json::Map<_, _>>().into();
    if let Some(state) = result.get("requestState") {
        params["requestState"] = state.clone();
    }
    Some(params)
}
