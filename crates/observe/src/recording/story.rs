//! A recording as text, call by call: each request and its revision, its translation on the way to
//! an upstream and back, and the time of every step.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io;

use serde_json::Value;

use super::difference::{Rules, cut, differences};
use super::{Event, EventKind, Recording};

/// The stories of a recording, in the order of their requests. With `only`, that of one call.
pub fn stories(recording: Recording, only: Option<u64>) -> io::Result<Vec<String>> {
    let events = recording.collect::<io::Result<Vec<_>>>()?;
    let mut teller = Teller::default();
    for event in &events {
        // Which request a call belongs to is certain once it is answered.
        if let (EventKind::Answer, Some(id)) = (event.event, &event.id) {
            teller.answers.insert(event.call, id.to_string());
        }
    }
    events.iter().for_each(|event| teller.take(event));
    let wanted = |request: &&Request| only.is_none_or(|call| request.calls.contains(&call));
    let mut told: Vec<_> = teller.requests.iter().filter(wanted).map(Request::tell).collect();
    if events.last().is_some_and(|event| event.event == EventKind::Full) {
        told.push("The recording ends here: it reached its limit, or was cut.\n".to_owned());
    }
    Ok(told)
}

#[derive(Default)]
struct Teller {
    links: HashMap<u64, Link>,
    requests: Vec<Request>,
    /// The ids of the requests that calls answer.
    answers: HashMap<u64, String>,
    /// Requests without an answer, by link and id.
    open: HashMap<(u64, String), usize>,
    /// The requests of calls, by number.
    calls: HashMap<u64, usize>,
    /// The requests of calls, by link and key.
    keys: HashMap<(u64, u64), usize>,
    /// Requests to upstreams without an answer, by link and id.
    relayed: HashMap<(u64, String), Relayed>,
    /// Questions to clients without an answer, by link and id.
    asked: HashMap<(u64, String), (usize, u64)>,
}

/// One end of the server.
struct Link {
    /// For people.
    title: String,
    is_client: bool,
    revision: Option<String>,
}

struct Relayed {
    request: usize,
    at: u64,
}

/// A request of a client, and its steps.
struct Request {
    link: u64,
    at: u64,
    message: Value,
    calls: Vec<u64>,
    /// Microseconds since the request, and the event.
    steps: Vec<(u64, String)>,
    /// The result of an upstream.
    given: Option<Value>,
    outcome: Option<String>,
    answered: Option<u64>,
    upstream_time: u64,
    client_time: u64,
}

impl Teller {
    fn take(&mut self, event: &Event) {
        match event.event {
            EventKind::Open => self.open(event),
            EventKind::Call => self.call(event),
            EventKind::End => {
                if let Some(at) = self.calls.get(&event.call) {
                    self.requests[*at].outcome.clone_from(&event.outcome);
                }
            }
            EventKind::Received | EventKind::Sent => {
                let message = event.message.as_ref().and_then(|raw| raw.read::<Value>().ok());
                match message {
                    Some(Value::Array(batch)) => {
                        batch.iter().for_each(|message| self.message(event, message));
                    }
                    Some(message) => self.message(event, &message),
                    None => {}
                }
            }
            EventKind::Stderr => self.wrote(event),
            _ => {}
        }
    }

    /// Adds a line to all calls that wait for the program that wrote it.
    fn wrote(&mut self, event: &Event) {
        let line = event.text.as_deref().unwrap_or_default();
        let what = format!("{} writes: {}", self.title(event.link), cut(line));
        let waiting = self.relayed.iter().filter(|((link, _), _)| *link == event.link);
        for (_, relayed) in waiting {
            self.requests[relayed.request].step(event.at, what.clone());
        }
    }

    fn open(&mut self, event: &Event) {
        let is_client = event.peer.as_deref() == Some("client");
        let transport = event.transport.as_deref().unwrap_or("?");
        let title = match is_client {
            true => format!(
                "client {} ({transport}, {})",
                event.link,
                event.caller.as_deref().unwrap_or("?")
            ),
            false => format!("upstream `{}` ({transport})", event.name.as_deref().unwrap_or("?")),
        };
        self.links.insert(event.link, Link { title, is_client, revision: None });
    }

    fn message(&mut self, event: &Event, message: &Value) {
        let Some(link) = self.links.get_mut(&event.link) else { return };
        if let Some(revision) = revision_of(message) {
            link.revision = Some(revision.to_owned());
        }
        let (is_client, is_in) = (link.is_client, event.event == EventKind::Received);
        let id = message.get("id").map(Value::to_string);
        let is_request = message.get("method").is_some();
        match (is_client, is_in, is_request, id) {
            (true, true, true, Some(id)) => self.asked_by_client(event, message, id),
            (true, false, true, Some(id)) => self.asks_client(event, message, id),
            (true, true, false, Some(id)) => self.client_answers(event, id),
            (true, false, false, Some(id)) => self.answer(event, message, id),
            (false, false, true, Some(id)) => self.relay(event, message, id),
            (false, true, false, Some(id)) => self.upstream_answers(event, message, id),
            (false, true, true, Some(id)) => self.upstream_asks(event, message, &id),
            _ => {}
        }
    }

    fn asked_by_client(&mut self, event: &Event, message: &Value, id: String) {
        self.open.insert((event.link, id), self.requests.len());
        self.requests.push(Request {
            link: event.link,
            at: event.at,
            message: message.clone(),
            calls: Vec::new(),
            steps: Vec::new(),
            given: None,
            outcome: None,
            answered: None,
            upstream_time: 0,
            client_time: 0,
        });
    }

    /// Finds the request of a call: by the id of its answer, else the oldest that fits.
    fn call(&mut self, event: &Event) {
        let known = self.keys.get(&(event.link, event.key)).copied();
        let by_id = self.answers.get(&event.call);
        let by_id = by_id.and_then(|id| self.open.get(&(event.link, id.clone())).copied());
        let fits = |request: &Request| {
            request.link == event.link
                && request.calls.is_empty()
                && request.message["method"].as_str() == event.method.as_deref()
        };
        let Some(at) = known.or(by_id).or_else(|| self.requests.iter().position(fits)) else {
            return;
        };
        self.keys.insert((event.link, event.key), at);
        self.calls.insert(event.call, at);
        let request = &mut self.requests[at];
        request.calls.push(event.call);
        let again = if request.calls.len() > 1 { " again, with the answers" } else { "" };
        let client = event.client.as_ref().map(|client| {
            let text = |name: &str| client[name].as_str().unwrap_or_default().to_owned();
            format!("{} {}", text("name"), text("version"))
        });
        let client = client.unwrap_or_else(|| "a client without a name".to_owned());
        let revision = event.revision.as_deref().unwrap_or("?");
        let what =
            format!("sabir begins call {}{again} ({client}, revision {revision})", event.call);
        request.step(event.at, what);
    }

    fn asks_client(&mut self, event: &Event, message: &Value, id: String) {
        let waits = |at: &usize| self.requests[*at].link == event.link;
        let Some(at) = self.open.values().copied().filter(waits).max() else { return };
        self.asked.insert((event.link, id), (at, event.at));
        let what = format!("sabir asks the client: {}", title(message));
        self.requests[at].step(event.at, what);
    }

    fn client_answers(&mut self, event: &Event, id: String) {
        if let Some((at, since)) = self.asked.remove(&(event.link, id)) {
            let request = &mut self.requests[at];
            request.client_time += event.at.saturating_sub(since);
            request.step(event.at, "the client answers".to_owned());
        }
    }

    fn answer(&mut self, event: &Event, message: &Value, id: String) {
        let Some(at) = self.open.remove(&(event.link, id)) else { return };
        let request = &mut self.requests[at];
        request.answered = Some(event.at);
        request.step(event.at, format!("sabir answers: {}", summary(message)));
        if let Some(given) = request.given.take() {
            request.translated(&given, message, &["result", "error"]);
        }
    }

    fn relay(&mut self, event: &Event, message: &Value, id: String) {
        let Some(at) = self.calls.get(&event.call).copied() else { return };
        self.relayed.insert((event.link, id), Relayed { request: at, at: event.at });
        let what = format!("-> {}: {}", self.title(event.link), title(message));
        let request = &mut self.requests[at];
        request.step(event.at, what);
        let asked = request.message.clone();
        request.translated(&asked, message, &["params"]);
    }

    fn upstream_answers(&mut self, event: &Event, message: &Value, id: String) {
        let Some(relayed) = self.relayed.remove(&(event.link, id)) else { return };
        let took = event.at.saturating_sub(relayed.at);
        let title = self.title(event.link);
        let request = &mut self.requests[relayed.request];
        request.upstream_time += took;
        let what = format!("<- {title}: {}, after {}", summary(message), millis(took));
        request.step(event.at, what);
        request.given = Some(message.clone());
    }

    /// A question names no call: it is shown if only one call waits.
    fn upstream_asks(&mut self, event: &Event, message: &Value, _id: &str) {
        let waiting = self.relayed.iter().filter(|((link, _), _)| *link == event.link);
        let waiting: Vec<_> = waiting.map(|(_, relayed)| relayed.request).collect();
        if let [at] = waiting[..] {
            let what = format!("{} asks: {}", self.title(event.link), title(message));
            self.requests[at].step(event.at, what);
        }
    }

    fn title(&self, link: u64) -> String {
        match self.links.get(&link) {
            Some(Link { title, revision: Some(revision), .. }) => format!("{title}, {revision}"),
            Some(link) => link.title.clone(),
            None => format!("link {link}"),
        }
    }
}

impl Request {
    fn step(&mut self, at: u64, what: String) {
        self.steps.push((at.saturating_sub(self.at), what));
    }

    /// Adds how these members of a message differ from those of the message that it was made of.
    fn translated(&mut self, from: &Value, to: &Value, members: &[&str]) {
        let at = self.steps.last().map_or(0, |(at, _)| *at);
        for member in members {
            let (Some(before), Some(after)) = (from.get(member), to.get(member)) else { continue };
            for difference in differences(before, after, &Rules::default()) {
                self.steps.push((at, format!("   translated: {member}.{difference}")));
            }
        }
    }

    fn tell(&self) -> String {
        let mut text = String::new();
        let calls: Vec<_> = self.calls.iter().map(ToString::to_string).collect();
        let outcome = self.outcome.as_deref().unwrap_or("not answered");
        let total = self.answered.map(|at| at.saturating_sub(self.at));
        let took = total.map_or_else(|| "no answer".to_owned(), millis);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}: {outcome}, {took}", title(&self.message));
        let (link, at, calls) = (self.link, millis(self.at), calls.join(", "));
        let _ = writeln!(text, "  client {link}, {at} after the beginning, call {calls}");
        for (at, what) in &self.steps {
            let _ = writeln!(text, "  {:>12}  {what}", millis(*at));
        }
        if let Some(total) = total {
            let own = total.saturating_sub(self.upstream_time + self.client_time);
            let _ = write!(text, "  time: sabir and its own sources {}", millis(own));
            for (who, time) in [("upstream", self.upstream_time), ("client", self.client_time)] {
                if time > 0 {
                    let _ = write!(text, ", {who} {}", millis(time));
                }
            }
            text.push('\n');
        }
        text
    }
}

fn millis(micros: u64) -> String {
    format!("{}.{:03} ms", micros / 1000, micros % 1000)
}

/// The method of a request, and the name in it.
fn title(message: &Value) -> String {
    let method = message["method"].as_str().unwrap_or("?");
    let params = &message["params"];
    let name = params["name"].as_str().or(params["uri"].as_str()).or(params["message"].as_str());
    match name {
        Some(name) => format!("{method} {}", cut(name)),
        None => method.to_owned(),
    }
}

/// A short summary of an answer.
fn summary(message: &Value) -> String {
    match (&message["error"], &message["result"]) {
        (Value::Object(error), _) => {
            let code = error.get("code").map(ToString::to_string).unwrap_or_default();
            let text = error.get("message").and_then(Value::as_str).unwrap_or_default();
            format!("error {code}, {}", cut(text))
        }
        (_, result) if result["isError"] == true => "a tool error".to_owned(),
        (_, result) if result["resultType"] == "input_required" => "questions".to_owned(),
        (_, result) => format!("a result of {} bytes", result.to_string().len()),
    }
}

/// The revision that a message names.
fn revision_of(message: &Value) -> Option<&str> {
    let meta = &message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
    meta.as_str().or_else(|| message["result"]["protocolVersion"].as_str())
}
