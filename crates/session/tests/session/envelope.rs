//! JSON-RPC: valid and invalid messages, and their answers.

use sabir_testkit::{Player as _, SessionPlayer};

use crate::{after_hello, rules, transcript};

#[test]
fn an_id_comes_back_exactly_as_it_was_written() {
    for id in ["1", "0", "-7", "-0", r#""1""#, r#""""#, r#""é\n""#, "18446744073709551616"] {
        let mut player = SessionPlayer::new(rules());
        player.say(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#).as_bytes());
        let answer = player.hear().unwrap();
        let expected = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
        assert_eq!(answer, expected.as_bytes());
    }
}

#[test]
fn what_is_not_json_is_a_parse_error_and_the_conversation_goes_on() {
    transcript(
        r#"
        > {"jsonrpc":"2.0","id":1,
        < {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"…"}}
        > nonsense
        < {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"…"}}
        > {"jsonrpc":"2.0","id":1,"method":"ping"} {}
        < {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"…"}}
        > {"jsonrpc":"2.0","id":1,"method":"ping"}
        < {"jsonrpc":"2.0","id":1,"result":{}}
    "#,
    );
}

#[test]
fn what_is_not_utf_8_is_a_parse_error() {
    let mut player = SessionPlayer::new(rules());
    player.say(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}");
    assert!(String::from_utf8_lossy(&player.hear().unwrap()).contains("-32700"));
}

#[test]
fn what_is_json_but_no_message_is_an_invalid_request() {
    transcript(
        r#"
        > 7
        < {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"…"}}
        > "ping"
        < {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"…"}}
        > {}
        < {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"…"}}
        > {"jsonrpc":"2.0","id":7}
        < {"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"…"}}
        > {"jsonrpc":"1.0","id":7,"method":"ping"}
        < {"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"…"}}
        > {"id":7,"method":"ping"}
        < {"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"…"}}
        > {"jsonrpc":"2.0","id":7,"method":7}
        < {"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"…"}}
        > {"jsonrpc":"2.0","id":7,"method":"ping","result":{}}
        < {"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"…"}}
    "#,
    );
}

#[test]
fn an_id_that_is_neither_string_nor_integer_is_refused() {
    transcript(
        r#"
        > {"jsonrpc":"2.0","id":1.5,"method":"ping"}
        < {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"…"}}
        > {"jsonrpc":"2.0","id":{},"method":"ping"}
        < {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"…"}}
        > {"jsonrpc":"2.0","id":true,"method":"ping"}
        < {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"…"}}
        > {"jsonrpc":"2.0","id":null,"method":"ping"}
        < {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"…"}}
    "#,
    );
}

#[test]
fn an_error_that_answers_nothing_has_no_id_where_the_schema_has_none() {
    transcript(&after_hello(
        r#"
        > nonsense
        < {"jsonrpc":"2.0","error":{"code":-32700,"message":"…"}}
        > {"jsonrpc":"2.0","id":null,"method":"ping"}
        < {"jsonrpc":"2.0","error":{"code":-32600,"message":"…"}}
    "#,
    ));
}

#[test]
fn nor_has_it_one_for_a_client_that_was_heard_to_be_modern() {
    transcript(
        r#"
        > nonsense
        < {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"…"}}
        > {"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":@modern}}
        < {"jsonrpc":"2.0","id":1,"result":"…"}
        > nonsense
        < {"jsonrpc":"2.0","error":{"code":-32700,"message":"…"}}
        > {"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}
        < {"jsonrpc":"2.0","id":2,"result":"…"}
        > nonsense
        < {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"…"}}
    "#,
    );
}

#[test]
fn a_response_is_never_answered_however_wrong() {
    for response in [
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":null}"#,
        r#"{"jsonrpc":"2.0","id":null,"result":{}}"#,
        r#"{"jsonrpc":"2.0","result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"no"}}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}"#,
        r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"no"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":"text"}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":null}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"m"}}"#,
        r#"{"jsonrpc":"2.0","id":1.5,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":[1],"result":{}}"#,
        r#"{"jsonrpc":"1.0","id":1,"result":{}}"#,
        r#"{"id":1,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{},"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"id":2,"result":{}}"#,
        r#"{"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}"#,
    ] {
        silent(response);
    }
    silent(&format!(r#"{{"jsonrpc":"2.0","id":1,"result":{}{}}}"#, "[".repeat(99), "]".repeat(99)));
}

#[test]
fn a_notification_is_never_answered_however_wrong() {
    for notification in [
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/unknown","params":{"a":1}}"#,
        r#"{"jsonrpc":"2.0","method":"ide_connected","params":{"pid":7}}"#,
        r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"t"}}"#,
        r#"{"jsonrpc":"2.0","method":"ping"}"#,
        r#"{"jsonrpc":"2.0","method":"initialize","params":7}"#,
        r#"{"jsonrpc":"1.0","method":"notifications/initialized"}"#,
        r#"{"method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1.5}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":[1]}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/x","params":{},"params":{}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/x","method":"notifications/y"}"#,
    ] {
        silent(notification);
    }
    let (open, close) = ("[".repeat(99), "]".repeat(99));
    silent(&format!(r#"{{"jsonrpc":"2.0","method":"notifications/x","params":{open}{close}}}"#));
}

#[track_caller]
fn silent(frame: &str) {
    let mut player = SessionPlayer::new(rules());
    player.say(frame.as_bytes());
    assert_eq!(player.hear(), None, "{frame} was answered");
    assert_eq!(player.event(), None, "{frame} had an effect");
}

#[test]
fn a_field_that_stands_twice_is_refused_with_the_id() {
    transcript(
        r#"
        > {"jsonrpc":"2.0","id":7,"method":"ping","params":{},"params":{}}
        < {"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"…"}}
        > {"jsonrpc":"2.0","id":7,"id":8,"method":"ping"}
        < {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"…"}}
    "#,
    );
}

#[test]
fn a_request_that_is_nested_too_deep_is_refused_with_its_id() {
    // The player lets messages be 32 deep; the envelope is one of them.
    let nested = |depth: usize| {
        let (open, close) = ("[".repeat(depth - 3), "]".repeat(depth - 3));
        format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"t","arguments":{{"a":{open}{close}}}}}}}"#
        )
    };
    transcript(&format!("> {}\n! start 7\n= 7 {{\"content\":[]}}\n< \"…\"", nested(32)));
    transcript(&format!(
        "> {}\n< {}",
        nested(33),
        r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"…"}}"#
    ));
}

#[test]
fn an_unknown_method_is_not_found_and_bad_params_are_invalid() {
    transcript(&after_hello(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/cal"}
        < {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found: tools/cal"}}
        > {"jsonrpc":"2.0","id":2,"method":""}
        < {"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"…"}}
        > {"jsonrpc":"2.0","id":3,"method":"tasks/none"}
        < {"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":"…"}}
        > {"jsonrpc":"2.0","id":4,"method":"tools/call"}
        < {"jsonrpc":"2.0","id":4,"error":{"code":-32602,"message":"…"}}
        > {"jsonrpc":"2.0","id":5,"method":"tools/call","params":[]}
        < {"jsonrpc":"2.0","id":5,"error":{"code":-32602,"message":"…"}}
        > {"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"t","arguments":"x"}}
        < {"jsonrpc":"2.0","id":6,"error":{"code":-32602,"message":"…"}}
        > {"jsonrpc":"2.0","id":7,"method":"resources/read","params":{}}
        < {"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"…"}}
        > {"jsonrpc":"2.0","id":8,"method":"logging/setLevel","params":{"level":"loud"}}
        < {"jsonrpc":"2.0","id":8,"error":{"code":-32602,"message":"…"}}
        > {"jsonrpc":"2.0","id":9,"method":"completion/complete","params":{"ref":{"type":"ref/tool","name":"t"},"argument":{"name":"a","value":""}}}
        < {"jsonrpc":"2.0","id":9,"error":{"code":-32602,"message":"…"}}
    "#,
    ));
}

#[test]
fn a_notification_sent_as_a_request_is_a_method_that_does_not_exist() {
    transcript(&after_hello(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"notifications/initialized"}
        < {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"…"}}
        > {"jsonrpc":"2.0","id":2,"method":"notifications/cancelled","params":{"requestId":1}}
        < {"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"…"}}
    "#,
    ));
}

#[test]
fn params_may_be_absent_or_null_and_arguments_too() {
    transcript(&after_hello(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/list"}
        ! start 1
        = 1 {"tools":[]}
        < {"jsonrpc":"2.0","id":1,"result":{"tools":[]}}
        > {"jsonrpc":"2.0","id":2,"method":"tools/list","params":null}
        ! start 2
        = 2 {"tools":[]}
        < {"jsonrpc":"2.0","id":2,"result":{"tools":[]}}
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"t","arguments":null}}
        ! start 3
        = 3 {"content":[]}
        < {"jsonrpc":"2.0","id":3,"result":{"content":[]}}
    "#,
    ));
}

#[test]
fn an_id_in_use_is_refused_without_it_and_the_first_request_is_answered() {
    transcript(&after_hello(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}
        ! start 1
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"u"}}
        < {"jsonrpc":"2.0","error":{"code":-32600,"message":"…"}}
        > {"jsonrpc":"2.0","id":1}
        < {"jsonrpc":"2.0","error":{"code":-32600,"message":"…"}}
        > {"jsonrpc":"1.0","id":1,"method":"ping"}
        < {"jsonrpc":"2.0","error":{"code":-32600,"message":"…"}}
        > {"jsonrpc":"2.0","id":"1","method":"ping"}
        < {"jsonrpc":"2.0","id":"1","result":{}}
        = 1 {"content":[]}
        < {"jsonrpc":"2.0","id":1,"result":{"content":[]}}
        > {"jsonrpc":"2.0","id":1,"method":"ping"}
        < {"jsonrpc":"2.0","id":1,"result":{}}
    "#,
    ));
}

#[test]
fn requests_run_at_once_and_are_answered_as_they_end() {
    transcript(&after_hello(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t"}}
        > {"jsonrpc":"2.0","id":3,"method":"ping"}
        ! start 1
        ! start 2
        < {"jsonrpc":"2.0","id":3,"result":{}}
        = 2 {"content":[]}
        < {"jsonrpc":"2.0","id":2,"result":{"content":[]}}
        = 1 error -1 no
        < {"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}
    "#,
    ));
}
