//! Cancelled calls, and calls that take too long. No test sleeps.

use crate::{after_hello, limited, transcript, under};

#[test]
fn a_cancelled_call_is_aborted_and_its_late_result_is_dropped() {
    transcript(&after_hello(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":1}}}
        ! start 1
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"changed my mind"}}
        ! abort 1
        ~ 1 progress 1 2
        ~ 1 log emergency - "x"
        = 1 {"content":[]}
    "#,
    ));
}

#[test]
fn a_modern_call_is_cancelled_just_the_same() {
    transcript(
        r#"
        > {"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"t","_meta":@modern+{"progressToken":1,"io.modelcontextprotocol/logLevel":"debug"}}}
        ! start a
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}
        ! abort a
        ~ a progress 1 2
        ~ a log emergency - "x"
        = a asks {"inputRequests":{"r":{"method":"roots/list"}}}
    "#,
    );
}

#[test]
fn a_cancellation_that_comes_too_late_is_ignored() {
    transcript(&after_hello(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}
        ! start 1
        = 1 {"content":[]}
        < {"jsonrpc":"2.0","id":1,"result":{"content":[]}}
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}
    "#,
    ));
}

#[test]
fn a_cancellation_of_nothing_is_ignored_and_a_number_is_not_its_string() {
    transcript(&after_hello(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}
        ! start 1
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"1"}}
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":null}}
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}
        > {"jsonrpc":"2.0","method":"notifications/cancelled"}
        = 1 {"content":[]}
        < {"jsonrpc":"2.0","id":1,"result":{"content":[]}}
    "#,
    ));
}

#[test]
fn a_late_result_is_not_taken_for_that_of_a_new_call_with_the_same_id() {
    transcript(&after_hello(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}
        ! start old
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}
        ! abort old
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"u"}}
        ! start new
        = old {"content":[{"type":"text","text":"old"}]}
        = new {"content":[{"type":"text","text":"new"}]}
        < {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"new"}]}}
    "#,
    ));
}

#[test]
fn a_call_that_waits_for_its_client_is_cancelled_without_another_word() {
    transcript(&after_hello(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}
        ! start 1
        = 1 asks {"inputRequests":{"r":{"method":"roots/list"}}}
        < {"jsonrpc":"2.0","id":1,"method":"roots/list"}
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}
        ! abort 1
        > {"jsonrpc":"2.0","id":1,"result":{"roots":[]}}
        > {"jsonrpc":"2.0","id":2,"method":"ping"}
        < {"jsonrpc":"2.0","id":2,"result":{}}
    "#,
    ));
}

#[test]
fn a_slow_call_times_out_at_its_deadline_and_not_before() {
    transcript(&after_hello(
        r#"
        > {"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"t"}}
        ! start a
        + 29s
        + 999ms
        + 1ms
        ! abort a
        < {"jsonrpc":"2.0","id":"a","error":{"code":-32603,"message":"the call took too long"}}
        = a {"content":[]}
    "#,
    ));
}

#[test]
fn each_call_has_its_own_deadline_and_what_it_says_does_not_move_it() {
    transcript(&after_hello(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":1}}}
        ! start 1
        + 20s
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","_meta":@modern}}
        ! start 2
        ~ 1 progress 1
        < {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}
        + 10s
        ! abort 1
        < {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"…"}}
        + 20s
        ! abort 2
        < {"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"…"}}
    "#,
    ));
}

#[test]
fn a_call_without_a_deadline_may_take_as_long_as_it_likes() {
    under(
        limited(|limits| limits.call_time = None),
        &after_hello(
            r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}
        ! start 1
        + 100000m
        = 1 {"content":[]}
        < {"jsonrpc":"2.0","id":1,"result":{"content":[]}}
    "#,
        ),
    );
}

#[test]
fn a_deadline_beyond_all_time_is_none() {
    under(
        limited(|limits| {
            limits.call_time = Some(std::time::Duration::MAX);
            limits.question_time = Some(std::time::Duration::MAX);
            limits.grace = std::time::Duration::MAX;
        }),
        &after_hello(
            r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}
        ! start 1
        = 1 asks {"inputRequests":{"r":{"method":"roots/list"}}}
        < {"jsonrpc":"2.0","id":1,"method":"roots/list"}
        > {"jsonrpc":"2.0","id":1,"result":{"roots":[]}}
        ! start 1
        > ^D
        + 100000m
        = 1 {"content":[]}
        < {"jsonrpc":"2.0","id":1,"result":{"content":[]}}
        ! close
    "#,
        ),
    );
}

#[test]
fn a_handshake_cannot_be_cancelled() {
    use sabir_session::{CallKey, Input, Outcome, Output, Session, SessionKind, StreamId};
    use sabir_wire::decode;
    use sabir_wire::types::ServerResult;
    let mut session = Session::new(
        std::sync::Arc::new(crate::rules()),
        SessionKind::Stream,
        sabir_wire::Caller::local(),
    );
    let mut handle = |input| {
        let mut out = Vec::new();
        session.handle(std::time::Instant::now(), input, &mut out);
        out
    };
    let say = |text: &'static str| Input::Received {
        caller: sabir_wire::Caller::local(),
        stream: StreamId::default(),
        frame: decode(&bytes::Bytes::from_static(text.as_bytes()), 9),
    };
    let hello = handle(say(r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#));
    assert!(matches!(hello[..], [Output::Start(_)]));
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    assert!(handle(say(cancel)).is_empty());
    let outcome = Outcome::Done(ServerResult::Empty);
    let welcome = handle(Input::Finished { call: CallKey(1), outcome });
    assert!(matches!(welcome[..], [Output::Send { .. }]));
}
