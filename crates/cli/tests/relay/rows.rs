//! What crosses a relay, one row each.

use std::sync::Arc;
use std::time::Duration;

use sabir_client::{
    CallError, CallEvent, CallOptions, CallRequest, Client, ClientConfig, ClientEvent,
};
use sabir_client::{Events, HttpTarget, HttpTransport};
use sabir_wire::types::{
    ClientCapabilities, CompletionArgument, Level, Reference, SubscriptionFilter, Topic,
};
use sabir_wire::{CallTool, Complete, Era, Raw, Request, Revision};
use serde_json::{Value, json};

use super::{PATIENCE, raw, text};

/// A client in front of a relay in front of an upstream called `up`.
pub(crate) struct Setup {
    pub(crate) client: Client,
    pub(crate) events: Events,
    pub(crate) url: String,
    pub(crate) near: Revision,
    pub(crate) far: Revision,
}

type Checked = Result<(), String>;

/// A row: what crosses, and the first revision that has it.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    since: usize,
}

/// Rows by the index of the first revision that has them, in the order of [`Revision::ALL`].
pub(crate) const ROWS: [Row; 31] = [
    Row { name: "list of tools, with unknown members", since: 0 },
    Row { name: "tool by its prefixed name and by its bare name", since: 0 },
    Row { name: "result with text, unknown members and long integers", since: 0 },
    Row { name: "structured output", since: 2 },
    Row { name: "structured output that breaks its schema", since: 2 },
    Row { name: "failed tool", since: 0 },
    Row { name: "error with data", since: 0 },
    Row { name: "progress", since: 0 },
    Row { name: "log messages at the asked level", since: 0 },
    Row { name: "prompts", since: 0 },
    Row { name: "resources and templates", since: 0 },
    Row { name: "missing resource", since: 0 },
    Row { name: "`ui://` resources", since: 0 },
    Row { name: "`skill://` resources", since: 0 },
    Row { name: "completion", since: 0 },
    Row { name: "changed list of tools", since: 0 },
    Row { name: "changed list of prompts", since: 0 },
    Row { name: "changed list of resources", since: 0 },
    Row { name: "updated resource", since: 0 },
    Row { name: "trace context and unknown metadata", since: 0 },
    Row { name: "unknown notification", since: 0 },
    Row { name: "elicitation: form", since: 2 },
    Row { name: "elicitation: URL", since: 3 },
    Row { name: "sampling", since: 0 },
    Row { name: "sampling with tools", since: 3 },
    Row { name: "roots", since: 0 },
    Row { name: "several questions at once and in sequence", since: 2 },
    Row { name: "question to a client that cannot answer", since: 2 },
    Row { name: REFUSED, since: 0 },
    Row { name: "10 MB result", since: 0 },
    Row { name: "cancellation", since: 0 },
];

/// Clients of the modern era answer with results only.
const REFUSED: &str =
    "error instead of an answer (a modern upstream cannot be told: its call ends)";

impl Row {
    /// Checks it; `None` if a revision on the way does not have it.
    pub(crate) async fn check(&self, setup: &Setup) -> Option<Checked> {
        let is_unknown = setup.near.index().min(setup.far.index()) < self.since;
        if is_unknown || (self.name == REFUSED && setup.near.era() == Era::Modern) {
            return None;
        }
        let checked = tokio::time::timeout(PATIENCE, setup.check(self.name)).await;
        Some(checked.unwrap_or_else(|_| Err("no end".into())))
    }
}

impl Setup {
    async fn check(&self, row: &str) -> Checked {
        match row {
            "list of tools, with unknown members" => self.tools().await,
            "tool by its prefixed name and by its bare name" => self.names().await,
            "result with text, unknown members and long integers" => self.bytes().await,
            "structured output" => self.structured().await,
            "structured output that breaks its schema" => {
                let reply = self.call("up_broken", json!({})).await?;
                let kept = reply.structured.map(|value| value.text().to_owned());
                expect("structured content", kept.as_deref(), Some(r#"{"kept":true}"#))
            }
            "failed tool" => {
                let reply = self.call("up_fail", json!({})).await?;
                expect("failure", (reply.is_error, &*text(&reply)), (true, "on purpose"))
            }
            "error with data" => match self.client.call_tool("up_error", Raw::default()).await {
                Err(CallError::Rpc(error)) => {
                    let data = error.data.map(|data| data.text().to_owned());
                    let seen = (error.code, &*error.message, data.as_deref());
                    expect(
                        "error",
                        seen,
                        (-31999, "chosen", Some(r#"{"why":[1,18446744073709551615]}"#)),
                    )
                }
                other => Err(format!("not an error: {other:?}")),
            },
            "progress" => self.progress().await,
            "log messages at the asked level" => self.logs().await,
            "cancellation" => self.cancellation().await,
            "prompts" => {
                let listed = self.client.list_prompts().await.map_err(told)?;
                expect("prompt", listed.first().map(|one| &*one.name), Some("up_greet"))?;
                let reply =
                    self.client.get_prompt("up_greet", [("name", "Ann")]).await.map_err(told)?;
                let message = format!("{:?}", reply.messages);
                holds("message", &message, "Greet Ann")
            }
            "resources and templates" => self.resources().await,
            "missing resource" => self.missing().await,
            "`ui://` resources" => self.rewritten("ui://page", "ui://up/page").await,
            "`skill://` resources" => {
                self.rewritten("skill://s/SKILL.md", "skill://up/s/SKILL.md").await
            }
            "completion" => self.completion().await,
            "changed list of tools" => self.list_changed(&Topic::Tools).await,
            "changed list of prompts" => self.list_changed(&Topic::Prompts).await,
            "changed list of resources" => self.list_changed(&Topic::Resources).await,
            "updated resource" => self.updated().await,
            "trace context and unknown metadata" => self.meta().await,
            "unknown notification" => self.unknown_notification().await,
            "10 MB result" => {
                let reply = self.call("up_big", json!({ "size": 10_000_000 })).await?;
                expect("length", text(&reply).len(), 10_000_000)
            }
            other => self.check_question(other).await,
        }
    }

    /// The rows in which the upstream asks.
    async fn check_question(&self, row: &str) -> Checked {
        match row {
            "elicitation: form" => {
                let reply = self.call("up_elicit", json!({ "word": "w7" })).await?;
                holds("answer", &text(&reply), r#"Who? \"w7\""#)
            }
            "elicitation: URL" => {
                let reply = self.call("up_visit", json!({})).await?;
                holds("answer", &text(&reply), r#""action":"accept""#)
            }
            "sampling" => {
                let reply = self.call("up_sample", json!({})).await?;
                holds("answer", &text(&reply), "test-model")
            }
            "sampling with tools" => {
                let reply = self.call("up_sample", json!({ "tool": true })).await?;
                holds("answer", &text(&reply), r#""name":"look_up""#)
            }
            "roots" => {
                let reply = self.call("up_roots", json!({})).await?;
                holds("answer", &text(&reply), "file:///project")
            }
            "several questions at once and in sequence" => {
                let reply = self.call("up_several", json!({})).await?;
                let answer = text(&reply);
                ["first", "second", "third"].iter().try_for_each(|word| {
                    holds("answers", &answer, &format!("{word}={{"))?;
                    holds("answers", &answer, &format!(r#""name":"{word}""#))
                })
            }
            "question to a client that cannot answer" => self.cannot_answer().await,
            REFUSED => self.refused().await,
            other => Err(format!("no such row: {other}")),
        }
    }

    async fn call(
        &self,
        name: &str,
        arguments: Value,
    ) -> Result<sabir_wire::types::ToolReply, String> {
        self.client.call_tool(name, raw(arguments)).await.map_err(told)
    }

    /// A call as its holder sees it.
    async fn start(&self, name: &str, options: CallOptions) -> Result<sabir_client::Call, String> {
        let request = CallTool { name: name.into(), ..CallTool::default() };
        let request = CallRequest::new(Request::CallTool(request)).with(options);
        self.client.start(request).await.map_err(told)
    }

    async fn tools(&self) -> Checked {
        let tools = self.client.list_tools().await.map_err(told)?;
        let echo = tools.iter().find(|tool| tool.name == "up_echo").ok_or("not listed")?;
        let unknown = echo.extra.get("x-unknown").map(Raw::text);
        expect("unknown member", unknown, Some("123456789012345678901234567890"))
    }

    async fn names(&self) -> Checked {
        for name in ["up_echo", "echo"] {
            let reply = self.call(name, json!({ "a": 1 })).await?;
            expect(name, &*text(&reply), r#"{"a":1}"#)?;
        }
        Ok(())
    }

    async fn bytes(&self) -> Checked {
        let arguments = Raw::parse(r#"{"z":1,"a":12345678901234567890123,"f":1.0}"#).unwrap();
        let request = CallTool {
            name: "up_echo".into(),
            arguments: Some(arguments.clone()),
            ..CallTool::default()
        };
        let reply = self.client.call(Request::CallTool(request)).await.map_err(told)?;
        let json = reply.json.text();
        holds("unknown member", json, r#""x-unknown":123456789012345678901234567890"#)?;
        holds("unknown member of content", json, r#""x-unknown":1e2"#)?;
        let reply: sabir_wire::types::ToolReply = reply.read().map_err(told)?;
        expect("text", &*text(&reply), arguments.text())
    }

    async fn structured(&self) -> Checked {
        let arguments = r#"{"z":1,"a":12345678901234567890123,"f":1.0}"#;
        let arguments = Raw::parse(arguments).unwrap();
        let reply = self.client.call_tool("up_echo", arguments.clone()).await.map_err(told)?;
        expect("structured content", reply.structured.as_ref(), Some(&arguments))
    }

    async fn progress(&self) -> Checked {
        let options = CallOptions { progress: true, ..CallOptions::default() };
        let mut call = self.start("up_progress", options).await?;
        let mut seen = Vec::new();
        loop {
            match call.next().await {
                CallEvent::Progress(progress) => seen.push(progress.progress),
                CallEvent::Done(Err(error)) => return Err(told(error)),
                CallEvent::Done(Ok(_)) => break,
                _ => {}
            }
        }
        expect("progress", seen.as_slice(), &[1.0, 2.0, 3.0])
    }

    async fn logs(&self) -> Checked {
        self.client.set_level(Level::Info).await.map_err(told)?;
        let options = CallOptions { log_level: Some(Level::Info), ..CallOptions::default() };
        let mut call = self.start("up_log", options).await?;
        let mut seen = Vec::new();
        loop {
            match call.next().await {
                CallEvent::Log(message) => seen.push(message.level),
                CallEvent::Done(Err(error)) => return Err(told(error)),
                CallEvent::Done(Ok(_)) => break,
                _ => {}
            }
        }
        expect("levels", seen.as_slice(), &[Level::Info, Level::Error])
    }

    async fn cancellation(&self) -> Checked {
        let count = || async {
            let reply = self.call("up_cancelled", json!({})).await?;
            text(&reply).parse::<usize>().map_err(told)
        };
        let before = count().await?;
        let call = self.start("up_wait", CallOptions::default()).await?;
        // It has to arrive before it can be cancelled.
        tokio::time::sleep(Duration::from_millis(100)).await;
        drop(call);
        loop {
            if count().await? > before {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn resources(&self) -> Checked {
        let listed = self.client.list_resources().await.map_err(told)?;
        expect("resource", listed.first().map(|one| &*one.uri), Some("fixture://item"))?;
        let templates = self.client.list_templates().await.map_err(told)?;
        let template = templates.first().map(|one| &*one.uri_template);
        expect("template", template, Some("fixture://item/{id}"))?;
        for uri in ["fixture://item", "fixture://item/7"] {
            let reply = self.client.read_resource(uri).await.map_err(told)?;
            let body = reply.contents.first().and_then(|one| one.body.as_text());
            expect("contents", body, Some(&*format!("contents of {uri}")))?;
        }
        Ok(())
    }

    async fn missing(&self) -> Checked {
        let code = match self.near.era() {
            Era::Legacy => -32002,
            Era::Modern => -32602,
        };
        match self.client.read_resource("fixture://item/missing").await {
            Err(CallError::Rpc(error)) => expect("code", error.code, code),
            other => Err(format!("not an error: {other:?}")),
        }
    }

    /// A resource whose URI our clients see with the name of the upstream.
    async fn rewritten(&self, own: &str, ours: &str) -> Checked {
        let listed = self.client.list_resources().await.map_err(told)?;
        expect("listed", listed.iter().any(|one| one.uri == ours), true)?;
        let reply = self.client.read_resource(ours).await.map_err(told)?;
        let contents = reply.contents.first().ok_or("no contents")?;
        let seen = (&*contents.uri, contents.body.as_text());
        expect("contents", seen, (ours, Some(&*format!("contents of {own}"))))
    }

    async fn completion(&self) -> Checked {
        for reference in [Reference::prompt("up_greet"), Reference::resource("fixture://item/{id}")]
        {
            let argument = match &reference {
                Reference::Prompt { .. } => "name",
                Reference::Resource { .. } => "id",
            };
            let (name, value) = (argument.into(), "abc".into());
            let argument = CompletionArgument { name, value, ..CompletionArgument::default() };
            let (given, extra) = Default::default();
            let complete = Complete { reference, argument, given, extra };
            let completion = self.client.complete(complete).await.map_err(told)?;
            expect("completion", completion.values.as_slice(), &["abc-completed".to_owned()])?;
        }
        Ok(())
    }

    async fn list_changed(&self, topic: &Topic) -> Checked {
        let kind = match topic {
            Topic::Tools => 0,
            Topic::Prompts => 1,
            _ => 2,
        };
        self.client.watch(SubscriptionFilter {
            tools_list_changed: kind == 0,
            prompts_list_changed: kind == 1,
            resources_list_changed: kind == 2,
            ..Default::default()
        });
        let count = self.listed(kind).await?;
        loop {
            // The subscription has to reach the relay first.
            self.call("up_grow", json!({ "kind": kind })).await?;
            let event = tokio::time::timeout(Duration::from_secs(1), self.events.next()).await;
            // A notice may be that of an earlier change.
            let is_changed = matches!(&event, Ok(ClientEvent::Changed(seen)) if seen == topic);
            if is_changed && self.listed(kind).await? > count {
                return Ok(());
            }
        }
    }

    /// How many tools, prompts or resources are listed.
    async fn listed(&self, kind: usize) -> Result<usize, String> {
        let listed = match kind {
            0 => self.client.list_tools().await.map(|all| all.len()),
            1 => self.client.list_prompts().await.map(|all| all.len()),
            _ => self.client.list_resources().await.map(|all| all.len()),
        };
        listed.map_err(told)
    }

    async fn updated(&self) -> Checked {
        let uri: Box<str> = "fixture://item".into();
        let resource_subscriptions = vec![uri.clone()];
        self.client.watch(SubscriptionFilter { resource_subscriptions, ..Default::default() });
        loop {
            // The subscription has to reach the upstream first.
            self.call("up_touch", json!({})).await?;
            let event = tokio::time::timeout(Duration::from_millis(200), self.events.next()).await;
            if matches!(&event, Ok(ClientEvent::Changed(Topic::Resource(seen))) if *seen == uri) {
                self.client.watch(SubscriptionFilter::default());
                return Ok(());
            }
        }
    }

    async fn meta(&self) -> Checked {
        let meta = r#"{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","x/y":9007199254740993}"#;
        let options =
            CallOptions { meta: Some(Raw::parse(meta).unwrap()), ..CallOptions::default() };
        let reply = self.start("up_meta", options).await?.result().await.map_err(told)?;
        let seen = text(&reply.read().map_err(told)?);
        holds("trace", &seen, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")?;
        holds("unknown member", &seen, r#""x/y":9007199254740993"#)
    }

    async fn unknown_notification(&self) -> Checked {
        let mut call = self.start("up_notify", CallOptions::default()).await?;
        let mut seen = None;
        loop {
            match call.next().await {
                CallEvent::Notification { method, params } => {
                    seen = Some((method, params.map(|params| params.text().to_owned())));
                }
                CallEvent::Done(_) => break,
                _ => {}
            }
        }
        let expected = ("notifications/x-fixture".to_owned(), Some(r#"{"x":1}"#.to_owned()));
        expect("notification", seen, Some(expected))
    }

    /// A client that refuses every question, even those of its declared capabilities.
    fn mute(&self, capabilities: ClientCapabilities) -> Result<Client, String> {
        let config = ClientConfig { capabilities, ..super::config(self.near) };
        let transport = HttpTransport::new(HttpTarget::new(&*self.url).map_err(told)?);
        Ok(Client::without_answers(Arc::new(transport), config))
    }

    async fn refused(&self) -> Checked {
        let mute = self.mute(ClientCapabilities::everything())?;
        let reply = mute.call_tool("up_sample", Raw::default()).await.map_err(told)?;
        let expected = match self.far.era() {
            Era::Legacy => r#"model: {"code":-32601,"message":"no questions are answered"}"#,
            Era::Modern => "the client refused sampling/createMessage: no questions are answered",
        };
        let is_over = self.far.era() == Era::Modern;
        expect("end", (reply.is_error, &*text(&reply)), (is_over, expected))
    }

    async fn cannot_answer(&self) -> Checked {
        let mute = self.mute(ClientCapabilities::default())?;
        match mute.call_tool("up_elicit", Raw::default()).await {
            Err(CallError::Rpc(error)) => {
                holds("error", &error.message, "elicitation")?;
                let is_modern = self.near.era() == Era::Modern;
                expect("code of the modern era", error.code == -32021, is_modern)
            }
            Ok(reply) if reply.is_error => holds("error", &text(&reply), "elicitation"),
            other => Err(format!("not an error: {other:?}")),
        }
    }
}

fn told(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn expect<T: PartialEq + std::fmt::Debug>(what: &str, seen: T, expected: T) -> Checked {
    if seen == expected { Ok(()) } else { Err(format!("{what}: {seen:?} instead of {expected:?}")) }
}

fn holds(what: &str, seen: &str, part: &str) -> Checked {
    if seen.contains(part) { Ok(()) } else { Err(format!("{what}: {part:?} is not in {seen:?}")) }
}
