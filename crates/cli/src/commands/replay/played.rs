//! One client of a recording, played.

use std::collections::HashMap;
use std::time::Duration;

use sabir_client::{Head, RawLink};
use sabir_observe::{Difference, Event, Rules, differences};
use sabir_wire::mirror::encode_value;
use sabir_wire::{Era, Method, Revision};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::renamed::Renamed;

/// A client, and the messages that it has received.
pub(super) struct Played {
    number: u64,
    link: RawLink,
    /// Messages that arrived before they were expected.
    arrived: Vec<Value>,
    /// The requests without an answer, for people, by id.
    requests: HashMap<String, String>,
    /// The ids of the server's questions now, by those of the recording.
    questions: HashMap<String, Value>,
    /// The revision of the legacy era that was agreed on.
    revision: Option<Revision>,
    /// Why nothing more arrives.
    failure: Option<String>,
}

/// How the messages of a server are told apart.
#[derive(PartialEq)]
enum Kind {
    Answer,
    Question,
    Notification,
}

fn kind(message: &Value) -> Kind {
    match (message.get("method"), message.get("id")) {
        (Some(_), Some(_)) => Kind::Question,
        (Some(_), None) => Kind::Notification,
        // A batch has the answers to all of its requests.
        (None, _) => Kind::Answer,
    }
}

impl Played {
    pub(super) fn new(number: u64, link: RawLink) -> Self {
        Self {
            number,
            link,
            arrived: Vec::new(),
            requests: HashMap::new(),
            questions: HashMap::new(),
            revision: None,
            failure: None,
        }
    }

    /// Sends a message of the client. Returns whether it was a request.
    pub(super) fn send(&mut self, event: &Event, renamed: &Renamed) -> bool {
        let raw = match (&event.message, &event.text) {
            (Some(message), _) => message.text().to_owned(),
            (None, text) => text.clone().unwrap_or_default(),
        };
        let mut message: Value = serde_json::from_str(&raw).unwrap_or_default();
        let mut is_changed = renamed.apply(&mut message);
        let id = message.get("id").map(Value::to_string);
        let is_request = message.get("method").is_some();
        if let (false, Some(id)) = (is_request, &id)
            && let Some(now) = self.questions.remove(id)
        {
            message["id"] = now;
            is_changed = true;
        }
        if let (true, Some(id)) = (is_request, &id) {
            self.requests.insert(id.clone(), title(&message));
        }
        let head = self.head(&message, event);
        // Unchanged, it is sent as it was written.
        let frame = if is_changed { message.to_string() } else { raw };
        self.link.send(frame, head);
        is_request && id.is_some()
    }

    /// The headers that repeat parts of a message.
    fn head(&self, message: &Value, event: &Event) -> Head {
        let params = &message["params"];
        let own = params["_meta"]["io.modelcontextprotocol/protocolVersion"].as_str();
        let revision = own.and_then(Revision::parse).or(self.revision);
        let method = message["method"].as_str();
        let name = match method {
            Some("tools/call" | "prompts/get") => params["name"].as_str(),
            Some("resources/read") => params["uri"].as_str(),
            Some(method) if method.starts_with("tasks/") => params["taskId"].as_str(),
            _ => None,
        };
        let mirrored = event.headers.iter().filter(|(name, _)| name.starts_with("mcp-param-"));
        Head {
            revision,
            method: method.map(Method::named),
            name: name.map(|name| encode_value(name).into_owned()),
            mirrored: mirrored.map(|(name, value)| (name.clone(), value.clone())).collect(),
        }
    }

    /// Waits for a message of the server, and compares it with the recorded one. `None` for a
    /// notification: their number depends on time.
    pub(super) async fn expect(
        &mut self,
        event: &Event,
        renamed: &mut Renamed,
        rules: &Rules,
        timeout: Duration,
    ) -> Option<(String, Vec<Difference>)> {
        let mut recorded: Value = event.message.as_ref()?.read().ok()?;
        let kind = kind(&recorded);
        if kind == Kind::Notification {
            return None;
        }
        let what = self.what(&recorded);
        let Some(mut now) = self.find(&recorded, Instant::now() + timeout).await else {
            let why = self.failure.clone();
            let why = why.unwrap_or_else(|| format!("no answer within {timeout:?}"));
            let difference = Difference {
                path: String::new(),
                before: Some(recorded),
                after: Some(json!({ "failed": why })),
            };
            return Some((what, vec![difference]));
        };
        if kind == Kind::Question {
            let id = recorded["id"].to_string();
            self.questions.insert(id, now["id"].take());
            recorded["id"].take();
        } else {
            self.agree(&now);
            self.requests.remove(&recorded["id"].to_string());
        }
        sort_batch(&mut recorded);
        sort_batch(&mut now);
        renamed.learn(&recorded, &now);
        renamed.apply(&mut recorded);
        Some((what, differences(&recorded, &now, rules)))
    }

    /// Remembers the revision that a handshake has settled.
    fn agree(&mut self, answer: &Value) {
        let agreed = answer["result"]["protocolVersion"].as_str().and_then(Revision::parse);
        self.revision = agreed.filter(|agreed| agreed.era() == Era::Legacy).or(self.revision);
    }

    async fn find(&mut self, recorded: &Value, deadline: Instant) -> Option<Value> {
        loop {
            let found = self.arrived.iter().position(|now| is_counterpart(recorded, now));
            if let Some(at) = found {
                return Some(self.arrived.remove(at));
            }
            match tokio::time::timeout_at(deadline, self.link.next()).await {
                Ok(Some(Ok(frame))) => {
                    let message = serde_json::from_slice::<Value>(&frame).unwrap_or_default();
                    if kind(&message) != Kind::Notification {
                        self.arrived.push(message);
                    }
                }
                Ok(Some(Err(failure))) => {
                    self.failure = Some(failure);
                    return None;
                }
                Ok(None) => {
                    self.failure.get_or_insert_with(|| "the connection has ended".to_owned());
                    return None;
                }
                Err(_) => return None,
            }
        }
    }

    /// Messages of the server that are not in the recording. An answer to a request whose answer was
    /// not recorded does not count: its client had left, or cancelled it.
    pub(super) fn unexpected(&self) -> impl Iterator<Item = (String, Difference)> {
        let is_open = |message: &Value| self.requests.contains_key(&message["id"].to_string());
        let is_unwanted = move |message: &&Value| {
            kind(message) == Kind::Answer && (message.is_array() || is_open(message))
        };
        self.arrived.iter().filter(move |message| !is_unwanted(message)).map(|message| {
            let after = Some(message.clone());
            let difference = Difference { path: String::new(), before: None, after };
            (self.what(message), difference)
        })
    }

    /// A message of the server, for people.
    fn what(&self, message: &Value) -> String {
        let number = self.number;
        let id = message["id"].to_string();
        match (kind(message), self.requests.get(&id)) {
            (Kind::Answer, Some(request)) => format!("client {number}, {request} (id {id}):"),
            (Kind::Answer, None) => format!("client {number}, answer:"),
            _ => format!("client {number}, question {}:", title(message)),
        }
    }
}

/// Whether a message corresponds to the recorded message.
fn is_counterpart(recorded: &Value, now: &Value) -> bool {
    match kind(recorded) {
        Kind::Answer if recorded.is_array() => now.is_array(),
        Kind::Answer => kind(now) == Kind::Answer && recorded.get("id") == now.get("id"),
        _ => kind(now) == Kind::Question && recorded["method"] == now["method"],
    }
}

/// The answers of a batch come in any order.
fn sort_batch(message: &mut Value) {
    if let Value::Array(answers) = message {
        answers.sort_by_cached_key(|answer| answer["id"].to_string());
    }
}

fn title(message: &Value) -> String {
    let method = message["method"].as_str().unwrap_or_default();
    let params = &message["params"];
    match params["name"].as_str().or(params["uri"].as_str()) {
        Some(name) => format!("{method} `{name}`"),
        None => method.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answers_of_a_batch_are_compared_by_their_ids() {
        let mut batch = json!([{ "id": 2 }, { "id": "a" }, { "id": 1 }]);
        sort_batch(&mut batch);
        assert_eq!(batch, json!([{ "id": "a" }, { "id": 1 }, { "id": 2 }]));
    }
}
