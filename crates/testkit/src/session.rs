//! The state machine alone: no engine, no runtime, and a clock that the script moves.
//!
//! Requests that the engine answers at once (`initialize`, `ping`, `logging/setLevel`, subscriptions,
//! `server/discover`) are answered here at once. All others wait for the script.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use sabir_registry::Ask;
use sabir_session::{
    Call, CallKey, CallNotification, Input, Outcome, Output, Session, SessionConfig, SessionKind,
    StreamId,
};
use sabir_wire::types::{
    DiscoverResult, Implementation, InitializeResult, PromptReply, Questions, ResourceReply,
    ServerCapabilities, ServerResult, Topic,
};
use sabir_wire::{Caller, ErrorObject, Problem, Raw, Request, Revision, decode};

use crate::player::{CallNumber, Ending, Event, Player};
use crate::source::{ask, completion, read, tool_reply};

/// Plays against [`Session`].
pub struct SessionPlayer {
    /// The state machine.
    pub session: Session,
    /// The capabilities in `initialize` and `server/discover`.
    pub offered: ServerCapabilities,
    now: Instant,
    calls: HashMap<CallKey, Call>,
    heard: VecDeque<(Option<StreamId>, Bytes)>,
    events: VecDeque<Event>,
    flat: bool,
    config: Arc<SessionConfig>,
    is_resumed: bool,
}

/// How deep a message may be nested here.
const DEPTH: usize = 32;

impl SessionPlayer {
    /// A new connection of a client on a pipe.
    pub fn new(config: SessionConfig) -> Self {
        Self::of_kind(config, SessionKind::Stream)
    }

    /// The same, for a session of some other kind.
    pub fn of_kind(config: SessionConfig, kind: SessionKind) -> Self {
        let flat = config.dialect.flat_server_info;
        let config = Arc::new(config);
        Self {
            session: Session::new(config.clone(), kind, Caller::local()),
            offered: ServerCapabilities {
                tools: true,
                prompts: true,
                resources: true,
                completions: true,
                logging: true,
                subscribe: true,
                ..ServerCapabilities::default()
            }
            .with_list_changed(true),
            now: Instant::now(),
            calls: HashMap::new(),
            heard: VecDeque::new(),
            events: VecDeque::new(),
            flat,
            config,
            is_resumed: false,
        }
    }

    /// Saves and resumes the session after each input from now on: it must behave the same.
    #[must_use]
    pub fn resumed(mut self) -> Self {
        self.is_resumed = true;
        self
    }

    fn save_and_resume(&mut self) {
        let record = serde_json::to_string(&self.session.record(self.now));
        let record = record.expect("a record serializes");
        let record = serde_json::from_str(&record).expect("a record deserializes");
        self.session = Session::resume(self.config.clone(), record, self.now);
    }

    /// The client sends a frame on one of its streams.
    pub fn say_on(&mut self, stream: StreamId, frame: &[u8]) {
        let frame = decode(&Bytes::copy_from_slice(frame), DEPTH);
        self.handle(Input::Received { stream, caller: Caller::local(), frame });
    }

    /// The next frame of the server, and its stream.
    pub fn hear_on(&mut self) -> Option<(Option<StreamId>, Bytes)> {
        self.heard.pop_front()
    }

    /// Hands in any input.
    pub fn handle(&mut self, input: Input) {
        let mut out = Vec::new();
        self.session.handle(self.now, input, &mut out);
        if self.is_resumed {
            self.save_and_resume();
        }
        for output in out {
            match output {
                Output::Send { stream, frame, .. } => self.heard.push_back((stream, frame)),
                Output::Start(call) => self.start(call),
                Output::Abort(key) => self.events.push_back(Event::Abort(CallNumber(key.0))),
                Output::Ready(_) => self.events.push_back(Event::Ready),
                Output::Close => self.events.push_back(Event::Close),
                Output::Abandon(_)
                | Output::Watch(_)
                | Output::Unwatch(_)
                | Output::Notified { .. } => {}
            }
        }
    }

    /// The call of that number, as the engine would get it.
    pub fn call(&self, number: CallNumber) -> Option<&Call> {
        self.calls.get(&CallKey(number.0))
    }

    fn start(&mut self, call: Call) {
        let key = call.key;
        match self.at_once(&call) {
            Some(outcome) => self.handle(Input::Finished { call: key, outcome }),
            None => {
                self.events.push_back(Event::Start(CallNumber(key.0)));
                self.calls.insert(key, call);
            }
        }
    }

    fn at_once(&self, call: &Call) -> Option<Outcome> {
        let server =
            Implementation { name: "s".into(), version: "1".into(), ..Implementation::default() };
        Some(Outcome::Done(match &call.request {
            Request::Initialize(_) => {
                let result = InitializeResult {
                    revision: call.from.revision,
                    capabilities: self.offered.clone(),
                    server,
                    ..InitializeResult::default()
                };
                let result = if self.flat { result.flat() } else { result };
                ServerResult::InitializeResult(Box::new(result))
            }
            Request::Discover => ServerResult::DiscoverResult(Box::new(DiscoverResult {
                revisions: Revision::ALL.to_vec(),
                capabilities: self.offered.clone(),
                ..DiscoverResult::default()
            })),
            Request::Ping
            | Request::SetLevel(_)
            | Request::Subscribe(_)
            | Request::Unsubscribe(_) => ServerResult::Empty,
            Request::Listen(listen) => return Some(Outcome::Listening(listen.filter.clone())),
            _ => return None,
        }))
    }

    fn outcome(&self, key: CallKey, ending: Ending) -> Outcome {
        let request = self.calls.get(&key).map(|call| &call.request);
        match ending {
            Ending::Result(json) => Outcome::Done(match request {
                Some(Request::CallTool(_)) => tool_reply(&json).into(),
                Some(Request::GetPrompt(_)) => read::<PromptReply>(&json).into(),
                Some(Request::ReadResource(_)) => read::<ResourceReply>(&json).into(),
                Some(Request::Complete(_)) => completion(&json).into(),
                _ => ServerResult::Ready(Bytes::copy_from_slice(json.as_bytes())),
            }),
            Ending::Asks(json) => {
                let Ask { questions, state, takes_refusals, .. } = ask(&json);
                // The engine seals the state; here the text of the script is used as it is.
                let sealed = |state: Raw| state.read().unwrap_or_else(|_| state.text().to_owned());
                let state = state.map(sealed);
                let questions = Questions { questions, state, ..Questions::default() };
                Outcome::NeedInput { questions, takes_refusals }
            }
            Ending::Error { code, message } => {
                Outcome::Failed(Problem::Chosen(ErrorObject::new(code, message)))
            }
            Ending::Fails(reason) => Outcome::Failed(Problem::ToolFailed(reason.into())),
            Ending::Panics => panic!("a state machine has no calls that panic"),
        }
    }
}

impl Player for SessionPlayer {
    fn say(&mut self, frame: &[u8]) {
        self.say_on(StreamId::default(), frame);
    }

    fn end_input(&mut self) {
        self.handle(Input::Eof);
    }

    fn hear(&mut self) -> Option<Bytes> {
        self.heard.pop_front().map(|(_, frame)| frame)
    }

    fn event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn finish(&mut self, call: CallNumber, ending: Ending) {
        let key = CallKey(call.0);
        let outcome = self.outcome(key, ending);
        self.handle(Input::Finished { call: key, outcome });
    }

    fn note(&mut self, call: CallNumber, note: CallNotification) {
        self.handle(Input::Notified { call: CallKey(call.0), note });
    }

    fn change(&mut self, topic: Topic) {
        self.handle(Input::Changed(topic));
    }

    /// Wakes the session exactly at its deadline: a wrong deadline shows as a missed one.
    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(at) = self.session.wake_at().filter(|at| *at <= end) {
            let stuck = at <= self.now;
            self.now = self.now.max(at);
            self.handle(Input::Tick);
            let again = self.session.wake_at();
            assert!(!stuck || again != Some(at), "the session wants to be woken for ever");
        }
        self.now = end;
    }

    fn said_too_much(&mut self) -> Option<Bytes> {
        self.heard.front().map(|(_, frame)| frame.clone())
    }

    fn leave(&mut self) -> Vec<Bytes> {
        self.heard.drain(..).map(|(_, frame)| frame).collect()
    }
}
