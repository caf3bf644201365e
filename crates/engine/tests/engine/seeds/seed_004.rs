//! A relay with sessions: always 2025-03-26. Its three parts, as far as they do not need HTTP:
//! messages, sessions, dispatch.

use sabir_engine::Settings;
use sabir_session::{Dialect, NullId, RequireReady, SessionState, UnknownTool};
use sabir_testkit::{ConnectionPlayer, House, Player as _, play};
use sabir_wire::{Incoming, MalformedKind, Message, Method, Revision, decode};
use serde_json::json;

use crate::playing;

fn settings() -> Settings {
    Settings {
        dialect: Dialect {
            revision: Some(Revision::V2025_03_26),
            require_ready: Some(RequireReady::Tools),
            null_id: NullId::Answer,
            unknown_tool: UnknownTool::Result,
            ..Dialect::default()
        },
        ..House::settings()
    }
}

fn relay() -> ConnectionPlayer {
    playing(House::of(settings(), Vec::new()))
}

#[track_caller]
fn transcript(script: &str) {
    play(&mut relay(), script);
}

mod messages {
    use super::*;

    fn read(text: &'static str) -> Result<Message, MalformedKind> {
        match decode(&bytes::Bytes::from_static(text.as_bytes()), 64) {
            Ok(Incoming::One(message)) => Ok(message),
            Ok(Incoming::Batch(_)) => panic!("a batch"),
            Err(malformed) => Err(malformed.kind),
        }
    }

    #[test]
    fn a_message_with_a_number_as_its_id_is_a_request() {
        let message = read(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
        assert!(matches!(message, Ok(Message::Request { method: Method::Ping, .. })));
    }

    #[test]
    fn a_message_with_a_string_as_its_id_is_a_request() {
        let message = read(r#"{"jsonrpc":"2.0","id":"abc","method":"ping"}"#).unwrap();
        assert!(matches!(message, Message::Request { id, .. } if id == "abc".into()));
    }

    #[test]
    fn a_message_with_a_null_id_is_a_request() {
        let message = read(r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#).unwrap();
        assert!(matches!(message, Message::Request { id, .. } if id.is_null()));
        transcript(
            r#"
            > {"jsonrpc":"2.0","id":null,"method":"ping"}
            < {"jsonrpc":"2.0","id":null,"result":{}}
        "#,
        );
    }

    #[test]
    fn a_message_without_an_id_is_a_notification() {
        let message = read(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        assert!(matches!(message, Ok(Message::Notification { method: Method::Initialized, .. })));
    }

    #[test]
    fn params_are_kept_and_may_be_absent() {
        let message = read(r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"b":1,"a":2}}"#);
        let Ok(Message::Request { params: Some(params), .. }) = message else {
            panic!("no params")
        };
        assert_eq!(params.text(), r#"{"b":1,"a":2}"#);
        let message = read(r#"{"jsonrpc":"2.0","id":1,"method":"x"}"#);
        assert!(matches!(message, Ok(Message::Request { params: None, .. })));
    }

    #[test]
    fn malformed_json_is_a_parse_error() {
        assert!(matches!(read("{not json"), Err(MalformedKind::Syntax(_))));
        transcript(
            r#"
            > {not json
            < {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"…"}}
        "#,
        );
    }

    #[test]
    fn a_missing_method_is_an_invalid_request_with_its_id() {
        assert_eq!(read(r#"{"jsonrpc":"2.0","id":1}"#), Err(MalformedKind::NoMethod));
        transcript(
            r#"
            > {"jsonrpc":"2.0","id":1}
            < {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"…"}}
        "#,
        );
    }

    #[test]
    fn a_method_that_is_no_string_and_an_unknown_version_are_invalid_requests() {
        transcript(
            r#"
            > {"jsonrpc":"2.0","id":1,"method":7}
            < {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"…"}}
            > {"jsonrpc":"1.0","id":2,"method":"ping"}
            < {"jsonrpc":"2.0","id":2,"error":{"code":-32600,"message":"…"}}
        "#,
        );
    }

    #[test]
    fn a_result_and_an_error_are_never_both_there() {
        let mut relay = relay();
        for ask in [
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":2,"method":"nope"}"#,
        ] {
            relay.say(ask.as_bytes());
            let answer = crate::answer(&mut relay);
            assert!(answer.get("result").is_some() != answer.get("error").is_some(), "{answer}");
        }
    }
}

mod sessions {
    use super::*;

    const INITIALIZE: &[u8] = br#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"claude-code","version":"1.0"}}}"#;
    const INITIALIZED: &[u8] = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

    #[test]
    fn a_new_session_is_not_ready() {
        assert_eq!(relay().connection().session().state(), SessionState::Waiting);
    }

    #[test]
    fn a_session_records_the_revision_and_the_client() {
        let mut relay = relay();
        relay.say(INITIALIZE);
        let session = relay.connection().session();
        assert_eq!(session.revision(), Revision::V2025_03_26);
        assert_eq!(session.client().unwrap().text(), r#"{"name":"claude-code","version":"1.0"}"#);
    }

    #[test]
    fn a_session_is_marked_ready_by_initialized_and_by_nothing_else() {
        let mut relay = relay();
        relay.say(INITIALIZED);
        assert_eq!(relay.connection().session().state(), SessionState::Waiting);
        relay.say(INITIALIZE);
        assert_eq!(relay.connection().session().state(), SessionState::Initializing);
        relay.say(INITIALIZED);
        assert_eq!(relay.connection().session().state(), SessionState::Ready);
        relay.say(INITIALIZED);
        assert_eq!(relay.connection().session().state(), SessionState::Ready);
    }

    #[test]
    fn sessions_of_one_server_know_nothing_of_each_other() {
        let mut first = relay();
        first.say(INITIALIZE);
        first.say(INITIALIZED);
        let engine = first.house.engine.clone();
        let second = sabir_engine::Connection::new(
            &engine,
            sabir_session::SessionKind::Stream,
            sabir_wire::Caller::local(),
        );
        assert_eq!(second.session().state(), SessionState::Waiting);
        assert!(second.session().client().is_none());
        assert_eq!(engine.ready_clients(), 1);
    }

    #[test]
    fn a_session_that_is_removed_is_gone() {
        let mut relay = relay();
        let engine = relay.house.engine.clone();
        relay.say(INITIALIZE);
        relay.say(INITIALIZED);
        assert_eq!(engine.ready_clients(), 1);
        relay.end_input();
        assert_eq!(relay.connection().session().state(), SessionState::Closed);
        drop(relay);
        assert_eq!(engine.ready_clients(), 0);
    }

    #[test]
    fn sessions_come_and_go_on_many_threads_at_once() {
        let engine = sabir_engine::Engine::new(settings());
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let standing = sabir_session::SessionKind::Stream;
                        let mut one = sabir_engine::Connection::new(
                            &engine,
                            standing,
                            sabir_wire::Caller::local(),
                        );
                        let stream = sabir_session::StreamId::default();
                        one.receive(
                            stream,
                            sabir_wire::Caller::local(),
                            &bytes::Bytes::from_static(INITIALIZE),
                        );
                        one.receive(
                            stream,
                            sabir_wire::Caller::local(),
                            &bytes::Bytes::from_static(INITIALIZED),
                        );
                        assert_eq!(one.session().state(), SessionState::Ready);
                        assert!(engine.ready_clients() >= 1);
                    }
                });
            }
        });
        assert_eq!(engine.ready_clients(), 0);
    }
}

mod dispatch {
    use super::*;

    #[test]
    fn initialize_answers_2025_03_26_whatever_is_asked() {
        for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "1.0"] {
            let mut relay = relay();
            let ask = format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"{version}"}}}}"#
            );
            relay.say(ask.as_bytes());
            let result = crate::answer(&mut relay)["result"].clone();
            assert_eq!(result["protocolVersion"], "2025-03-26", "{version}");
            assert_eq!(result["capabilities"], json!({ "tools": {} }));
            assert!(result["serverInfo"]["name"].is_string());
        }
    }

    #[test]
    fn ping_works_without_a_session() {
        transcript(
            r#"
            > {"jsonrpc":"2.0","id":1,"method":"ping"}
            < {"jsonrpc":"2.0","id":1,"result":{}}
        "#,
        );
    }

    #[test]
    fn tools_list_works_without_a_session() {
        transcript(
            r#"
            > {"jsonrpc":"2.0","id":1,"method":"tools/list"}
            < {"jsonrpc":"2.0","id":1,"result":{"tools":[]}}
        "#,
        );
    }

    #[test]
    fn tools_call_needs_a_session_that_is_ready() {
        transcript(
            r#"
            > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}
            < {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"…"}}
            > {"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-03-26"}}
            < {"jsonrpc":"2.0","id":2,"result":"…"}
            > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"t"}}
            < {"jsonrpc":"2.0","id":3,"error":{"code":-32600,"message":"…"}}
            > {"jsonrpc":"2.0","method":"notifications/initialized"}
            ! ready
            > {"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"t"}}
            < {"jsonrpc":"2.0","id":4,"result":{"content":[{"type":"text","text":"…"}],"isError":true}}
        "#,
        );
    }

    #[test]
    fn an_unknown_method_is_minus_32601() {
        transcript(
            r#"
            > {"jsonrpc":"2.0","id":1,"method":"unknown/method"}
            < {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"…"}}
        "#,
        );
    }

    #[test]
    fn a_cancellation_of_nothing_and_an_unknown_notification_do_nothing() {
        transcript(
            r#"
            > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}
            > {"jsonrpc":"2.0","method":"notifications/unknown"}
            > {"jsonrpc":"2.0","id":1,"method":"ping"}
            < {"jsonrpc":"2.0","id":1,"result":{}}
        "#,
        );
    }

    #[test]
    fn a_call_without_a_name_is_minus_32602() {
        transcript(
            r#"
            > {"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-03-26"}}
            < {"jsonrpc":"2.0","id":2,"result":"…"}
            > {"jsonrpc":"2.0","method":"notifications/initialized"}
            ! ready
            > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"arguments":{}}}
            < {"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"…"}}
            > {"jsonrpc":"2.0","id":4,"method":"tools/call"}
            < {"jsonrpc":"2.0","id":4,"error":{"code":-32602,"message":"…"}}
        "#,
        );
    }

    #[test]
    fn batches_are_received_as_the_revision_demands() {
        transcript(
            r#"
            > [{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"tools/list"}]
            < [{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":2,"result":{"tools":[]}}]
        "#,
        );
    }
}
