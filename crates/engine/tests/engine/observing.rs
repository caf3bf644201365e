//! The events for observers, and their order.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use sabir_engine::{Admission, CallEnd, Connection, Ending, Engine, ObservedCall, Observer};
use sabir_engine::{Oversee, OverseenCall, Settings, TransportKind};
use sabir_registry::{Offer, Outcome, Pending, Source, ToolCall};
use sabir_session::{CallNotification, SessionKind, StreamId};
use sabir_wire::types::{Tool, ToolReply};
use sabir_wire::{Caller, Code, ErrorObject, Problem, Raw};

use crate::settings;

/// Reports once, and fails.
struct Failing;

impl Source for Failing {
    fn offer(&self) -> Offer {
        let schema = Raw::parse(r#"{"type":"object"}"#).unwrap();
        Offer { tools: vec![Tool::new("failing", "d", schema)], ..Offer::default() }
    }

    fn call_tool(&self, call: ToolCall) -> Pending<ToolReply> {
        Box::pin(async move {
            call.context.call.progress(1.0, None, None);
            let json = r#"{"resultType":"complete","content":[],"isError":true}"#;
            Ok(Outcome::Relayed(Raw::parse(json).unwrap()))
        })
    }
}

#[derive(Default)]
struct Ear(Mutex<Vec<String>>);

impl Ear {
    fn hear(&self, text: String) {
        self.0.lock().unwrap().push(text);
    }
}

impl Observer for Ear {
    fn began(&self, call: &ObservedCall) {
        assert_eq!(call.transport, TransportKind::Pipe);
        let (name, arguments) = (call.name.as_deref(), call.arguments.as_ref().map(Raw::text));
        let number = call.number;
        self.hear(format!("{number} begins: {name:?} {} {arguments:?}", call.is_offered));
    }

    fn noted(&self, number: u64, note: &CallNotification) {
        assert!(matches!(note, CallNotification::Progress { .. }));
        self.hear(format!("{number} reports"));
    }

    fn ended(&self, call: &ObservedCall, ending: &Ending<'_>) {
        self.hear(format!("{} ends: {}", call.number, ending.outcome.text()));
    }

    fn answered(&self, number: u64, response: &Bytes) {
        let is_error = response.windows(9).any(|part| part == br#""isError""#);
        self.hear(format!("{number} is answered {is_error}"));
    }
}

#[test]
fn observers_hear_of_every_request_from_its_begin_to_its_answer() {
    let ear = Arc::new(Ear::default());
    let engine = Engine::observed(settings(), vec![ear.clone()]);
    engine.registry().add(Arc::new(Failing)).unwrap();
    let mut connection = Connection::new(&engine, SessionKind::Stream, Caller::local());
    for name in ["failing", "unknown"] {
        let call = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{name}","arguments":{{"a":1}},"_meta":{{"progressToken":1}}}}}}"#
        );
        connection.receive(StreamId::default(), Caller::local(), &call.into());
    }
    let expected = [
        r#"1 begins: Some("failing") true Some("{\"a\":1}")"#,
        "1 ends: tool error",
        "1 reports",
        "1 is answered true",
        r#"2 begins: Some("unknown") false Some("{\"a\":1}")"#,
        "2 ends: Unknown tool: unknown",
        "2 is answered false",
    ];
    assert_eq!(*ear.0.lock().unwrap(), expected);
}

/// Takes a short password, and refuses it.
struct Login;

impl Source for Login {
    fn offer(&self) -> Offer {
        let schema =
            r#"{"type":"object","properties":{"password":{"type":"string","maxLength":8}}}"#;
        let schema = Raw::parse(schema).unwrap();
        Offer { tools: vec![Tool::new("login", "d", schema)], ..Offer::default() }
    }

    fn call_tool(&self, call: ToolCall) -> Pending<ToolReply> {
        let refused = format!("refused: {}", call.arguments.text());
        let error = ErrorObject::new(Code::INVALID_PARAMS, refused);
        Box::pin(async move { Err(Problem::Chosen(error)) })
    }
}

#[test]
fn the_observed_outcome_quotes_no_argument_and_the_response_does() {
    let ear = Arc::new(Ear::default());
    let engine = Engine::observed(settings(), vec![ear.clone()]);
    engine.registry().add(Arc::new(Login)).unwrap();
    for (password, expected) in
        [("a long SECRET", "Invalid arguments"), ("SECRET", "Invalid params")]
    {
        let mut connection = Connection::new(&engine, SessionKind::Stream, Caller::local());
        let call = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"login","arguments":{{"password":"{password}"}}}}}}"#
        );
        connection.receive(StreamId::default(), Caller::local(), &call.into());
        let response = connection.next_frame().unwrap();
        let response = String::from_utf8_lossy(&response.text);
        assert!(response.contains("SECRET"), "{response}");
        let heard = std::mem::take(&mut *ear.0.lock().unwrap());
        assert!(heard[1].ends_with(&format!("ends: {expected}")), "{heard:?}");
    }
}

/// Writes down how calls ended.
#[derive(Debug, Default)]
struct Auditor(Mutex<Vec<(String, usize)>>);

impl Oversee for Auditor {
    fn admit(&self, _call: &OverseenCall) -> Admission {
        Admission::Decided(Ok(()))
    }

    fn ended(&self, _call: &OverseenCall, end: &CallEnd) {
        self.0.lock().unwrap().push((end.outcome.to_string(), end.bytes));
    }
}

#[test]
fn an_overseer_hears_that_a_relayed_call_has_failed() {
    let auditor = Arc::new(Auditor::default());
    let settings = Settings { overseer: Some(auditor.clone()), ..settings() };
    let engine = Engine::new(settings);
    engine.registry().add(Arc::new(Failing)).unwrap();
    let mut connection = Connection::new(&engine, SessionKind::Stream, Caller::local());
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"failing"}}"#;
    connection.receive(StreamId::default(), Caller::local(), &call.into());
    assert_eq!(*auditor.0.lock().unwrap(), [("tool error".to_owned(), 0)]);
}
