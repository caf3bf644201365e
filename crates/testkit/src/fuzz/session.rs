//! Arbitrary operations on a session, and an observer that checks the rules of the specification.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use sabir_session::{
    CallKey, Dialect, ElicitationIds, Input, Limits, MessageKind, NullId, Output, RequireReady,
    Session, SessionConfig, SessionKind, SessionState, StreamId,
};
use sabir_wire::{Caller, Incoming, Malformed, Message, Raw, Revision, decode};
use serde_json::{Value, json};

use super::DEPTH;
use super::operations::{Choices, frame, note, outcome, topic};

/// Bytes are operations. For any operations the rules of JSON-RPC hold, and a session that is saved and
/// resumed before each of them behaves as one that is not. The first bytes choose how the session is
/// set up.
pub fn session(bytes: &[u8]) {
    assert_eq!(run(bytes, true), run(bytes, false), "a resumed session does something else");
}

/// Runs the operations, and returns the outputs of the session after each.
fn run(bytes: &[u8], is_resumed: bool) -> Vec<String> {
    let mut choices = Choices(bytes);
    let rules = rules(&mut choices);
    let standings = [
        SessionKind::Stream,
        SessionKind::Stream,
        SessionKind::LegacyHttp(Revision::UNNAMED),
        SessionKind::ModernHttp,
    ];
    let standing = *choices.of(&standings);
    let mut observer = Observer::new(Arc::new(rules), standing, is_resumed);
    while !choices.is_empty() {
        observer.step(&mut choices);
    }
    observer.done
}

/// Texts of a client, one per line, where clients choose the text: names, versions, ids, tokens, URIs.
/// For any texts the rules of JSON-RPC hold, a session can be saved and resumed, and it stays small.
pub fn client_words(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let mut words = text.lines().map(Value::from);
    let mut word = || words.next().unwrap_or_default();
    let info = json!({ "name": word(), "version": word(), "title": word() });
    let experimental = json!({ (text.lines().last().unwrap_or_default()): { "x": word() } });
    let capabilities = json!({ "experimental": experimental, "elicitation": {} });
    let modern = json!({
        "io.modelcontextprotocol/protocolVersion": Revision::V2026_07_28.date(),
        "io.modelcontextprotocol/clientInfo": info,
        "io.modelcontextprotocol/clientCapabilities": capabilities,
        "progressToken": word(),
    });
    let arguments = json!({ "a": word() });
    let (uri, name, id) = (word(), word(), word());
    let calls = [
        (
            "initialize",
            json!({ "protocolVersion": word(), "clientInfo": info, "capabilities": capabilities }),
        ),
        ("notifications/initialized", json!({})),
        ("resources/subscribe", json!({ "uri": uri })),
        (
            "tools/call",
            json!({ "name": name, "arguments": arguments, "_meta": { "progressToken": word() } }),
        ),
        ("tools/call", json!({ "name": name, "arguments": arguments, "_meta": modern })),
        ("logging/setLevel", json!({ "level": word() })),
        ("notifications/cancelled", json!({ "requestId": id, "reason": word() })),
        ("resources/unsubscribe", json!({ "uri": uri })),
    ];
    let rules = Arc::new(rules(&mut Choices(&[])));
    let mut observer = Observer::new(rules, SessionKind::Stream, true);
    for (nth, (method, params)) in calls.iter().enumerate() {
        let mut message = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        if !method.starts_with("notifications/") {
            // The word is the id of one request only: an id in use is refused.
            message["id"] = if nth == 3 { id.clone() } else { json!(nth) };
        }
        observer.receive(message.to_string().as_bytes());
    }
    // Requests are kept while they run. Afterwards little is left.
    observer.pass(Duration::from_secs(120));
    let record = serde_json::to_string(&observer.session.record(observer.now));
    let size = record.expect("a record serializes").len();
    assert!(size <= MAX_RECORD, "a session keeps {size} bytes of its client's words");
}

/// The bytes of a client's texts that a session may keep here, as JSON.
const MAX_RECORD: usize = 8 << 10;

const MAX_CALLS: usize = 3;

fn rules(choices: &mut Choices<'_>) -> SessionConfig {
    let pins = [None, None, Some(Revision::V2025_03_26), Some(Revision::V2026_07_28)];
    let ready = [None, Some(RequireReady::Tools), Some(RequireReady::All)];
    let null = [NullId::Refuse, NullId::Answer];
    let mut limits = Limits::default();
    limits.calls = MAX_CALLS;
    limits.call_time = Some(Duration::from_secs(30));
    limits.question_time = Some(Duration::from_secs(60));
    limits.subscriptions = 3;
    SessionConfig {
        dialect: Dialect {
            revision: *choices.of(&pins),
            require_ready: *choices.of(&ready),
            null_id: *choices.of(&null),
            ..Dialect::default()
        },
        limits,
        server: Raw::empty_object(),
        elicitation_ids: ElicitationIds::new("page"),
    }
}

struct Observer {
    config: Arc<SessionConfig>,
    session: Session,
    /// It is saved and resumed before each input.
    is_resumed: bool,
    /// Its outputs after each, and its next deadline.
    done: Vec<String>,
    began: Instant,
    /// The resources that the session has reported as watched.
    watched: Vec<Box<str>>,
    now: Instant,
    /// Requests that were not answered, by the text of their ids.
    open: HashMap<String, usize>,
    /// How many answers without an id the current frame may have.
    nameless: usize,
    /// How many of them the batches in flight may have.
    batched: usize,
    /// Calls that were started and have not ended, and the last progress of each.
    running: BTreeMap<CallKey, f64>,
    is_closed: bool,
}

impl Observer {
    fn new(config: Arc<SessionConfig>, kind: SessionKind, is_resumed: bool) -> Self {
        let now = Instant::now();
        Self {
            session: Session::new(config.clone(), kind, Caller::local()),
            config,
            is_resumed,
            done: Vec::new(),
            began: now,
            watched: Vec::new(),
            now,
            open: HashMap::new(),
            nameless: 0,
            batched: 0,
            running: BTreeMap::new(),
            is_closed: false,
        }
    }

    fn step(&mut self, choices: &mut Choices<'_>) {
        let keys: Vec<CallKey> = self.running.keys().copied().collect();
        match choices.byte() % 8 {
            0..=3 => self.receive(&frame(choices)),
            4 | 5 if !keys.is_empty() => {
                let call = *choices.of(&keys);
                self.running.remove(&call);
                self.handle(Input::Finished { call, outcome: outcome(choices) });
            }
            // Also late, or for an unknown call.
            4 | 5 => {
                let call = CallKey(u64::from(choices.byte() % 8));
                self.handle(Input::Finished { call, outcome: outcome(choices) });
            }
            6 => {
                let call = match choices.byte() % 4 {
                    0 => CallKey(u64::from(choices.byte() % 8)),
                    _ if keys.is_empty() => CallKey(1),
                    _ => *choices.of(&keys),
                };
                self.note(call, choices);
            }
            _ => match choices.byte() % 8 {
                0 => self.handle(Input::Eof),
                1..=3 => self.handle(Input::Changed(topic(choices))),
                4 | 5 => self.handle(Input::Gone(StreamId(u64::from(choices.byte() % 2)))),
                _ => self.pass(Duration::from_secs(u64::from(choices.byte() % 64))),
            },
        }
    }

    /// Hands an input to the session, or to one that goes on from its record.
    fn take(&mut self, input: Input) -> Vec<Output> {
        if self.is_resumed {
            self.save_and_resume();
        }
        let mut out = Vec::new();
        self.session.handle(self.now, input, &mut out);
        let wakes = self.session.wake_at().map(|at| at.saturating_duration_since(self.began));
        self.done.push(format!("{out:?}, then at {wakes:?}"));
        out
    }

    /// The session goes on as another one, from its record.
    fn save_and_resume(&mut self) {
        let record = self.session.record(self.now);
        let json = serde_json::to_string(&record).expect("a record serializes");
        let record = serde_json::from_str(&json).expect("a record deserializes");
        let resumed = Session::resume(self.config.clone(), record, self.now);
        assert_eq!(resumed.wake_at(), self.session.wake_at(), "another deadline");
        self.session = resumed;
    }

    fn receive(&mut self, bytes: &[u8]) {
        let frame = decode(&Bytes::copy_from_slice(bytes), DEPTH);
        match &frame {
            Ok(Incoming::One(message)) => self.expect(Ok(message)),
            Ok(Incoming::Batch(parts)) => {
                parts.iter().for_each(|part| self.expect(part.as_ref()));
                // It may be refused whole, now; its parts are answered together, perhaps later.
                self.batched += std::mem::replace(&mut self.nameless, 1);
            }
            Err(malformed) => self.expect(Err(malformed)),
        }
        self.handle(Input::Received {
            stream: StreamId::default(),
            caller: Caller::local(),
            frame,
        });
        self.nameless = 0;
    }

    /// Notes the requests that may be answered, with their ids. Responses and notifications may not.
    fn expect(&mut self, message: Result<&Message, &Malformed>) {
        let id = match message {
            Ok(Message::Request { id, .. }) => Some(id),
            Err(Malformed { id, answerable: true, .. }) => id.as_ref(),
            _ => return,
        };
        match id {
            // Where a dialect accepts null ids, their answers cannot be told apart.
            Some(id) if id.is_null() => *self.open.entry(id.to_string()).or_default() += 1,
            // A second request with the same id is refused, so one answer is expected.
            Some(id) => drop(self.open.insert(id.to_string(), 1)),
            None => {}
        }
        // Without an id, or with one in use, the answer has no id.
        self.nameless += 1;
    }

    fn note(&mut self, call: CallKey, choices: &mut Choices<'_>) {
        let note = note(choices);
        let out = self.take(Input::Notified { call, note });
        for output in &out {
            let Output::Send { frame, .. } = output else { panic!("a note led to {output:?}") };
            let message = read(frame);
            assert!(message.get("id").is_none() && message["method"].is_string(), "{message}");
            let progress = message["params"]["progress"].as_f64();
            if let (Some(progress), Some(last)) = (progress, self.running.get_mut(&call)) {
                assert!(progress > *last, "progress went from {last} to {progress}");
                *last = progress;
            }
        }
        assert!(out.len() <= 1);
    }

    /// Wakes the session at its deadline, and not before.
    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(at) = self.session.wake_at().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.handle(Input::Tick);
            assert!(self.session.wake_at().is_none_or(|next| next > at), "woken for ever");
        }
        self.now = end;
    }

    fn handle(&mut self, input: Input) {
        for output in self.take(input) {
            match output {
                Output::Send { frame, kind, .. } => {
                    let message = read(&frame);
                    check_kind(kind, &message);
                    self.said(&message, false);
                }
                Output::Start(call) => {
                    assert!(!self.is_closed, "a call began after the end");
                    self.running.entry(call.key).or_insert(f64::NEG_INFINITY);
                }
                Output::Abort(call) => drop(self.running.remove(&call)),
                Output::Ready(_) => assert!(!self.is_closed),
                Output::Watch(uri) => self.watched.push(uri),
                Output::Unwatch(uri) => {
                    let at = self.watched.iter().position(|watched| *watched == uri);
                    drop(self.watched.remove(at.expect("unwatched, but never watched")));
                }
                Output::Abandon(_) | Output::Notified { .. } => {}
                Output::Close => assert!(!std::mem::replace(&mut self.is_closed, true)),
            }
        }
        self.watched.sort();
        assert_eq!(self.watched, self.session.watched(), "a watch was not reported");
        assert!(self.session.running() <= MAX_CALLS, "more calls than the limit");
        assert!(self.session.watched().len() <= 3, "more subscriptions than the limit");
    }

    fn said(&mut self, message: &Value, in_batch: bool) {
        if let Value::Array(answers) = message {
            assert!(!answers.is_empty() && !in_batch, "an empty batch, or one in another");
            return answers.iter().for_each(|answer| self.said(answer, true));
        }
        assert_eq!(message["jsonrpc"], "2.0");
        let is_answer = message.get("result").is_some() != message.get("error").is_some();
        assert!(is_answer != message["method"].is_string(), "{message} is not one thing");
        if !is_answer {
            let is_question = message.get("id").is_some();
            let has_greeted = self.session.state() != SessionState::Waiting;
            assert!(!is_question || has_greeted, "{message} is asked of a modern client");
            return;
        }
        let is_nameless = message.get("id").is_none_or(Value::is_null);
        let budget = if in_batch { &mut self.batched } else { &mut self.nameless };
        if is_nameless && message.get("error").is_some() && *budget > 0 {
            *budget -= 1;
            return;
        }
        let id = message.get("id").unwrap_or(&Value::Null).to_string();
        let open = self.open.get_mut(&id).filter(|open| **open > 0);
        *open.unwrap_or_else(|| panic!("{message} answers nothing")) -= 1;
    }
}

/// Transports go by the kind, and do not look into the message.
fn check_kind(kind: MessageKind, message: &Value) {
    let code = message["error"]["code"].as_i64();
    let is_called = message.get("method").is_some();
    let is_right = match kind {
        MessageKind::Answer(said) => !is_called && code == said,
        MessageKind::Refusal(said) => !is_called && code == Some(said),
        MessageKind::Question => is_called && message.get("id").is_some(),
        MessageKind::Notification => is_called && message.get("id").is_none(),
    };
    assert!(is_right, "{message} is said to be {kind:?}");
}

fn read(frame: &Bytes) -> Value {
    assert!(!frame.contains(&b'\n') && !frame.contains(&b'\r'), "line break in {frame:?}");
    serde_json::from_slice(frame).unwrap_or_else(|error| panic!("{frame:?}: {error}"))
}
