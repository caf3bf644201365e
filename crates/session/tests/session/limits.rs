//! The limits of a client, at their edges; and the end of a session.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sabir_session::{Input, Output, Session, SessionKind, StreamId};
use sabir_wire::{Caller, decode};

use crate::{after_hello, limited, transcript, under};

#[test]
fn so_many_calls_at_once_and_not_one_more() {
    under(
        limited(|limits| limits.calls = 2),
        &after_hello(
            r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}
        ! start 1
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","_meta":@modern}}
        ! start 2
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"t"}}
        < {"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"…"}}
        = 1 {"content":[]}
        < {"jsonrpc":"2.0","id":1,"result":{"content":[]}}
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"t"}}
        ! start 3
    "#,
        ),
    );
}

#[test]
fn a_call_that_waits_for_its_client_counts_and_a_cancelled_one_does_not() {
    under(
        limited(|limits| limits.calls = 1),
        &after_hello(
            r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}
        ! start 1
        = 1 asks {"inputRequests":{"r":{"method":"roots/list"}}}
        < {"jsonrpc":"2.0","id":1,"method":"roots/list"}
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t"}}
        < {"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"…"}}
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}
        ! abort 1
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"t"}}
        ! start 3
    "#,
        ),
    );
}

#[test]
fn so_many_subscriptions_and_not_one_more() {
    under(
        limited(|limits| limits.subscriptions = 2),
        &after_hello(
            r#"
        > {"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"a:1"}}
        < {"jsonrpc":"2.0","id":1,"result":{}}
        > {"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"a:2"}}
        < {"jsonrpc":"2.0","id":2,"result":{}}
        > {"jsonrpc":"2.0","id":3,"method":"resources/subscribe","params":{"uri":"a:3"}}
        < {"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"…"}}
        > {"jsonrpc":"2.0","id":4,"method":"subscriptions/listen","params":{"notifications":{},"_meta":@modern}}
        < {"jsonrpc":"2.0","id":4,"error":{"code":-32603,"message":"…"}}
        > {"jsonrpc":"2.0","id":5,"method":"resources/unsubscribe","params":{"uri":"a:1"}}
        < {"jsonrpc":"2.0","id":5,"result":{}}
        > {"jsonrpc":"2.0","id":6,"method":"resources/subscribe","params":{"uri":"a:3"}}
        < {"jsonrpc":"2.0","id":6,"result":{}}
    "#,
        ),
    );
}

#[test]
fn a_resource_that_is_subscribed_to_already_needs_no_room() {
    under(
        limited(|limits| limits.subscriptions = 1),
        &after_hello(
            r#"
        > {"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"a:1"}}
        < {"jsonrpc":"2.0","id":1,"result":{}}
        > {"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"a:1"}}
        < {"jsonrpc":"2.0","id":2,"result":{}}
    "#,
        ),
    );
}

#[test]
fn a_listener_counts_with_all_its_resources() {
    under(
        limited(|limits| limits.subscriptions = 3),
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["a:1","a:2","a:3"]},"_meta":@modern}}
        < {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"…"}}
        > {"jsonrpc":"2.0","id":2,"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["a:1","a:2"]},"_meta":@modern}}
        < {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":"…"}
        > {"jsonrpc":"2.0","id":3,"method":"subscriptions/listen","params":{"notifications":{},"_meta":@modern}}
        < {"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"…"}}
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}
        > {"jsonrpc":"2.0","id":3,"method":"subscriptions/listen","params":{"notifications":{},"_meta":@modern}}
        < {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":"…"}
    "#,
    );
}

#[test]
fn subscriptions_that_come_together_do_not_slip_through() {
    let mut rules = limited(|limits| limits.subscriptions = 1);
    rules.dialect.revision = Some(sabir_wire::Revision::V2025_03_26);
    under(
        rules,
        r#"
        > [{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"a:1"}},{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"a:2"}}]
        < [{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"…"}},{"jsonrpc":"2.0","id":1,"result":{}}]
    "#,
    );
}

#[test]
fn listen_requests_that_still_run_count() {
    let config = Arc::new(limited(|limits| limits.subscriptions = 3));
    let mut session = Session::new(config, SessionKind::Stream, Caller::local());
    let mut listen = |id: u64| {
        let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
        let frame = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"subscriptions/listen","params":{{"notifications":{{"resourceSubscriptions":["a:{id}"]}},"_meta":{meta}}}}}"#
        );
        let (stream, caller) = (StreamId::default(), Caller::local());
        let input = Input::Received { stream, caller, frame: decode(&frame.into(), 9) };
        let mut out = Vec::new();
        session.handle(Instant::now(), input, &mut out);
        matches!(out.as_slice(), [Output::Start(_)])
    };
    assert!(listen(1));
    assert!(!listen(2), "each has the weight 2");
}

#[test]
fn a_client_that_leaves_with_nothing_running_is_gone_at_once() {
    transcript(&after_hello(
        r#"
        > ^D
        ! close
        > ^D
        + 60s
    "#,
    ));
}

#[test]
fn running_calls_may_finish_within_the_grace() {
    transcript(&after_hello(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}
        ! start 1
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t"}}
        ! start 2
        > ^D
        + 4s
        = 1 {"content":[]}
        < {"jsonrpc":"2.0","id":1,"result":{"content":[]}}
        + 1s
        ! abort 2
        < {"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"…"}}
        ! close
        = 2 {"content":[]}
    "#,
    ));
}

#[test]
fn the_last_call_that_ends_closes_the_conversation() {
    under(
        limited(|limits| limits.grace = Duration::from_secs(600)),
        &after_hello(
            r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}
        ! start 1
        > ^D
        = 1 {"content":[]}
        < {"jsonrpc":"2.0","id":1,"result":{"content":[]}}
        ! close
    "#,
        ),
    );
}

#[test]
fn a_deadline_before_the_end_of_the_grace_still_holds() {
    under(
        limited(|limits| limits.grace = Duration::from_secs(600)),
        &after_hello(
            r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}
        ! start 1
        > ^D
        + 30s
        ! abort 1
        < {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the call took too long"}}
        ! close
    "#,
        ),
    );
}

#[test]
fn no_grace_is_no_grace() {
    under(
        limited(|limits| limits.grace = Duration::ZERO),
        &after_hello(
            r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}
        ! start 1
        > ^D
        + 0s
        ! abort 1
        < {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"…"}}
        ! close
    "#,
        ),
    );
}

#[test]
fn a_server_that_stops_takes_nothing_new_but_lets_the_client_cancel() {
    transcript(&after_hello(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}
        ! start 1
        > ^D
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t"}}
        < {"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"the server is stopping"}}
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"t","_meta":@modern}}
        < {"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"the server is stopping"}}
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}
        ! abort 1
        ! close
    "#,
    ));
}

#[test]
fn a_question_may_still_be_answered_while_the_server_stops() {
    transcript(&after_hello(
        r#"
        > {"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"t"}}
        ! start c
        = c asks {"inputRequests":{"r":{"method":"roots/list"}}}
        < {"jsonrpc":"2.0","id":1,"method":"roots/list"}
        > ^D
        > {"jsonrpc":"2.0","id":1,"result":{"roots":[]}}
        ! start c
        = c {"content":[]}
        < {"jsonrpc":"2.0","id":"c","result":{"content":[]}}
        ! close
    "#,
    ));
}

#[test]
fn listeners_are_ended_with_grace_when_the_server_stops() {
    transcript(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":@modern}}
        < {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":"…"}
        > {"jsonrpc":"2.0","id":2,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":@modern}}
        < {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":"…"}
        > ^D
        < {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1},"requestId":1,"reason":"…"}}
        < {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":"…","io.modelcontextprotocol/subscriptionId":1}}}
        < {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":2},"requestId":2,"reason":"…"}}
        < {"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":"…","io.modelcontextprotocol/subscriptionId":2}}}
        ! close
        * tools
    "#,
    );
}
