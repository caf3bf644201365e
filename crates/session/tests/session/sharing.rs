//! A session that two nodes serve.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use sabir_session::{
    ElicitationIds, Input, Outcome, Output, Session, SessionConfig, SessionKind, SessionRecord,
    SessionState, StreamId,
};
use sabir_wire::types::ServerResult;
use sabir_wire::{Caller, Id, Request, Revision, decode};

use crate::rules;

/// A node's part of the session. All requests succeed at once.
struct Node(Session);

impl Node {
    fn open() -> Self {
        let kind = SessionKind::LegacyHttp(Revision::NEWEST_LEGACY);
        let mut node = Self(Session::new(Arc::new(rules()), kind, Caller::anonymous()));
        node.say(r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}"#);
        node
    }

    /// The session that another node resumes from the record.
    fn resumed(record: &SessionRecord) -> Self {
        let record = serde_json::to_string(record).unwrap();
        let record = serde_json::from_str(&record).unwrap();
        Self(Session::resume(Arc::new(rules()), record, Instant::now()))
    }

    fn say(&mut self, text: &str) -> Vec<Output> {
        let frame = decode(&Bytes::copy_from_slice(text.as_bytes()), 9);
        let caller = Caller::anonymous();
        self.handle(Input::Received { stream: StreamId(1), caller, frame })
    }

    fn handle(&mut self, input: Input) -> Vec<Output> {
        let mut out = Vec::new();
        self.0.handle(Instant::now(), input, &mut out);
        let calls = out.iter().filter_map(|output| match output {
            Output::Start(call) => Some((call.key, call.request.clone())),
            _ => None,
        });
        for (call, request) in calls.collect::<Vec<_>>() {
            let result = match request {
                Request::Initialize(_) => ServerResult::InitializeResult(Box::default()),
                Request::CallTool(_) => continue,
                _ => ServerResult::Empty,
            };
            out.extend(self.handle(Input::Finished { call, outcome: Outcome::Done(result) }));
        }
        out
    }

    fn subscribe(&mut self, method: &str, uri: &str) {
        self.say(&format!(
            r#"{{"jsonrpc":"2.0","id":"{uri}","method":"resources/{method}","params":{{"uri":"{uri}"}}}}"#
        ));
    }

    fn shared(&self) -> SessionRecord {
        self.0.shared(Instant::now()).unwrap()
    }

    fn watched(&self) -> Vec<Box<str>> {
        self.0.watched()
    }
}

const READY: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

#[test]
fn a_handshake_may_end_on_another_node() {
    let mut first = Node::open();
    assert!(!first.shared().is_ready());
    let mut second = Node::resumed(&first.shared());
    assert_eq!(second.0.changes(), 0);
    second.say(READY);
    assert!(second.shared().is_ready() && second.0.changes() > 0);
    let before = first.0.changes();
    let mut out = Vec::new();
    first.0.adopt(second.shared(), &mut out);
    assert_eq!(first.0.state(), SessionState::Ready);
    assert!(matches!(out.as_slice(), [Output::Ready(_)]));
    assert_eq!(first.0.changes(), before, "adopted changes are in the record");
}

#[test]
fn calls_stay_where_they_run() {
    let mut first = Node::open();
    first.say(READY);
    first.say(r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"t"}}"#);
    assert!(first.0.is_running(&Id::from(7)));
    let second = Node::resumed(&first.shared());
    assert_eq!(second.0.running(), 0);
    let mut ended = first;
    ended.handle(Input::Eof);
    assert!(ended.0.shared(Instant::now()).is_none(), "a node that stops ends no session");
}

#[test]
fn two_changes_at_the_same_time_are_joined() {
    let mut first = Node::open();
    first.say(READY);
    for uri in ["a:1", "a:2"] {
        first.subscribe("subscribe", uri);
    }
    let base = first.shared();
    let mut second = Node::resumed(&base);
    first.subscribe("subscribe", "a:3");
    first.subscribe("unsubscribe", "a:1");
    second.subscribe("subscribe", "a:4");
    second.subscribe("unsubscribe", "a:2");
    second
        .say(r#"{"jsonrpc":"2.0","id":9,"method":"logging/setLevel","params":{"level":"error"}}"#);
    let joined = first.shared().merged(&base, &second.shared());
    let other = second.shared().merged(&base, &first.shared());
    for joined in [&joined, &other] {
        let node = Node::resumed(joined);
        assert_eq!(node.watched(), ["a:3", "a:4"].map(Box::<str>::from));
        let text = serde_json::to_string(joined).unwrap();
        assert!(text.contains("\"error\""), "{text}");
    }
    let mut out = Vec::new();
    first.0.adopt(joined, &mut out);
    let changed: Vec<_> = out.iter().map(|output| format!("{output:?}")).collect();
    assert_eq!(changed, ["Watch(\"a:4\")", "Unwatch(\"a:2\")"]);
}

#[test]
fn the_id_of_a_question_begins_with_the_name_of_its_node() {
    let form = r#"{"method":"elicitation/create","params":{"mode":"form","message":"who?","requestedSchema":{"type":"object","properties":{}}}}"#;
    let config = SessionConfig { elicitation_ids: ElicitationIds::of_node("n3"), ..rules() };
    let script = crate::after_hello(&format!(
        r#"
        > {{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{{"name":"t"}}}}
        ! start c
        = c asks {{"inputRequests":{{"who":{form}}}}}
        < {{"jsonrpc":"2.0","id":"n3-1","method":"elicitation/create","params":"…"}}
        > {{"jsonrpc":"2.0","id":"n3-1","result":{{"action":"decline"}}}}
        ! start c
    "#
    ));
    sabir_testkit::play(&mut sabir_testkit::SessionPlayer::new(config), &script);
}
