//! A client in memory, for tests of a server without a transport.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use sabir::Server;
//! use serde_json::json;
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Greet {
//!     name: String,
//! }
//!
//! let server = Server::new("greeter", "1.0.0")
//!     .tool("greet", "Greets somebody", async |Greet { name }| format!("Hello, {name}!"));
//!
//! let mut client = sabir::test::connect(server)?;
//! let reply = client.call_tool("greet", json!({ "name": "Ann" })).await.unwrap();
//! assert_eq!(reply.text(), "Hello, Ann!");
//! # Ok(())
//! # }
//! ```

use std::sync::Arc;

use bytes::Bytes;
use sabir_engine::{Connection, Engine};
use sabir_registry::BadOffer;
use sabir_session::{SessionKind, StreamId};
use sabir_wire::{Caller, Era, ErrorObject, Revision};
use serde_json::{Map, Value, json};

use crate::server::Server;

/// Checks a server and returns a client of it, which speaks the newest revision.
pub fn connect<S>(server: Server<S>) -> Result<Client, BadOffer>
where
    S: Clone + Send + Sync + 'static,
{
    Ok(Client {
        engine: server.build()?,
        connection: None,
        revision: Revision::NEWEST,
        caller: Caller::local(),
        answer: None,
        notifications: Vec::new(),
        last_id: 0,
    })
}

type Answer = Box<dyn FnMut(&str, &Value) -> Value + Send>;

/// A client in memory. Requests go through the same checks as on any transport.
pub struct Client {
    engine: Arc<Engine>,
    /// Opened with the first request.
    connection: Option<Connection>,
    revision: Revision,
    caller: Caller,
    answer: Option<Answer>,
    notifications: Vec<Value>,
    last_id: u64,
}

/// The result of a request, as JSON.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply(pub Value);

impl Reply {
    /// The texts of the reply: of a tool's content, a prompt's messages or a resource's contents.
    pub fn text(&self) -> String {
        let parts = ["content", "messages", "contents"].into_iter();
        let parts = parts.filter_map(|key| self.0[key].as_array()).flatten();
        let texts =
            parts.filter_map(|part| part["text"].as_str().or(part["content"]["text"].as_str()));
        texts.collect::<Vec<_>>().join("\n")
    }

    /// Whether a tool says that it failed.
    pub fn is_error(&self) -> bool {
        self.0["isError"] == true
    }
}

impl Client {
    /// Sets the revision that the client speaks. Legacy ones begin with a handshake.
    #[must_use]
    pub fn revision(mut self, revision: Revision) -> Self {
        self.revision = revision;
        self
    }

    /// Sets who makes the requests. Without it, the user of this machine does.
    #[must_use]
    pub fn caller(mut self, caller: Caller) -> Self {
        self.caller = caller;
        self
    }

    /// Declares that the client can be asked anything, and answers by a function of the question's
    /// method and params.
    ///
    /// ```
    /// # use sabir::Server;
    /// # use serde_json::json;
    /// # fn main() -> Result<(), sabir::BadOffer> {
    /// # let server = Server::new("s", "1");
    /// let client = sabir::test::connect(server)?
    ///     .answer(|_, _| json!({ "action": "accept", "content": { "sure": true } }));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn answer(mut self, answer: impl FnMut(&str, &Value) -> Value + Send + 'static) -> Self {
        self.answer = Some(Box::new(answer));
        self
    }

    /// Calls a tool.
    pub async fn call_tool(&mut self, name: &str, arguments: Value) -> Result<Reply, ErrorObject> {
        self.request("tools/call", json!({ "name": name, "arguments": arguments })).await.map(Reply)
    }

    /// Gets a prompt. Its arguments are strings.
    pub async fn get_prompt(&mut self, name: &str, arguments: Value) -> Result<Reply, ErrorObject> {
        self.request("prompts/get", json!({ "name": name, "arguments": arguments }))
            .await
            .map(Reply)
    }

    /// Reads a resource.
    pub async fn read_resource(&mut self, uri: &str) -> Result<Reply, ErrorObject> {
        self.request("resources/read", json!({ "uri": uri })).await.map(Reply)
    }

    /// Lists the tools.
    pub async fn list_tools(&mut self) -> Result<Vec<Value>, ErrorObject> {
        self.list("tools/list", "tools").await
    }

    /// Lists the prompts.
    pub async fn list_prompts(&mut self) -> Result<Vec<Value>, ErrorObject> {
        self.list("prompts/list", "prompts").await
    }

    /// Lists the resources.
    pub async fn list_resources(&mut self) -> Result<Vec<Value>, ErrorObject> {
        self.list("resources/list", "resources").await
    }

    /// Makes any request whose params are an object, and answers the questions that it causes.
    pub async fn request(&mut self, method: &str, params: Value) -> Result<Value, ErrorObject> {
        if self.connection.is_none() {
            self.open().await?;
        }
        let mut params = params;
        loop {
            let mut result = self.exchange(method, &params).await?;
            if result["resultType"] != "input_required" {
                return Ok(result);
            }
            let questions = result["inputRequests"].as_object().cloned().unwrap_or_default();
            let answers = questions.into_iter().map(|(key, asked)| (key, self.reply_to(&asked)));
            params["inputResponses"] = Value::Object(answers.collect());
            if let Some(state) = result.get_mut("requestState") {
                params["requestState"] = state.take();
            }
        }
    }

    /// Takes the notifications that have arrived, in their order.
    pub fn take_notifications(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.notifications)
    }

    async fn list(&mut self, method: &str, of: &str) -> Result<Vec<Value>, ErrorObject> {
        let (mut all, mut params) = (Vec::new(), json!({}));
        loop {
            let mut page = self.request(method, params.clone()).await?;
            all.extend(page[of].as_array_mut().map(std::mem::take).unwrap_or_default());
            match page.get_mut("nextCursor") {
                Some(cursor) => params["cursor"] = cursor.take(),
                None => return Ok(all),
            }
        }
    }

    async fn open(&mut self) -> Result<(), ErrorObject> {
        self.engine.start().await;
        let opened = Connection::new(&self.engine, SessionKind::Stream, self.caller.clone());
        self.connection = Some(opened);
        if self.revision.era() == Era::Legacy {
            let params = json!({
                "protocolVersion": self.revision,
                "clientInfo": { "name": "test", "version": "1" },
                "capabilities": self.capabilities(),
            });
            self.exchange("initialize", &params).await?;
            self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        }
        Ok(())
    }

    fn capabilities(&self) -> Value {
        match self.answer {
            None => json!({}),
            Some(_) => json!({
                "roots": {}, "sampling": { "tools": {} }, "elicitation": { "form": {}, "url": {} },
            }),
        }
    }

    fn send(&mut self, message: &Value) {
        if let Some(connection) = &mut self.connection {
            let frame = Bytes::from(message.to_string());
            connection.receive(StreamId::default(), self.caller.clone(), &frame);
        }
    }

    /// Sends one request and returns its result.
    async fn exchange(&mut self, method: &str, params: &Value) -> Result<Value, ErrorObject> {
        self.last_id += 1;
        let id = self.last_id;
        let mut params = params.clone();
        let meta = Map::from_iter([("progressToken".to_owned(), json!(id))]);
        let meta =
            params.as_object_mut().map(|params| params.entry("_meta").or_insert(meta.into()));
        if let Some(meta) = meta.filter(|_| self.revision.era() == Era::Modern) {
            meta["io.modelcontextprotocol/protocolVersion"] = json!(self.revision);
            meta["io.modelcontextprotocol/clientCapabilities"] = json!(self.capabilities());
            meta["io.modelcontextprotocol/clientInfo"] = json!({ "name": "test", "version": "1" });
        }
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        while let Some(connection) = &mut self.connection {
            let wait = connection.wait();
            connection.advance();
            connection.run();
            let mut arrived = Vec::new();
            while let Some(frame) = connection.next_frame() {
                arrived.push(serde_json::from_slice(&frame.text).unwrap_or(Value::Null));
            }
            if connection.is_closed() && arrived.is_empty() {
                break;
            }
            let is_quiet = arrived.is_empty();
            for message in arrived {
                if let Some(response) = self.take_message(id, message) {
                    return response;
                }
            }
            if is_quiet {
                wait.happened().await;
            }
        }
        Err(ErrorObject::new(-32603, "the connection was closed"))
    }

    /// Handles a message; returns the response to the request `id`.
    fn take_message(&mut self, id: u64, mut message: Value) -> Option<Result<Value, ErrorObject>> {
        if message.get("method").is_none() {
            if message["id"] != id {
                return None;
            }
            let error = message.get_mut("error").map(Value::take);
            let error = error.map(|error| serde_json::from_value(error).map_err(|e| e.to_string()));
            return Some(match error {
                None => Ok(message["result"].take()),
                Some(Ok(error)) => Err(error),
                Some(Err(reason)) => Err(ErrorObject::new(-32603, reason)),
            });
        }
        if message.get("id").is_some() {
            let result = self.reply_to(&message);
            self.send(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }));
        } else {
            self.notifications.push(message);
        }
        None
    }

    fn reply_to(&mut self, question: &Value) -> Value {
        let method = question["method"].as_str().unwrap_or_default();
        self.answer.as_mut().map_or(json!({}), |answer| answer(method, &question["params"]))
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("revision", &self.revision).finish_non_exhaustive()
    }
}
