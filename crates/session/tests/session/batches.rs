//! Batches, which one revision demands and the others do not know.

use sabir_session::Dialect;
use sabir_testkit::{Player as _, SessionPlayer};
use sabir_wire::{Era, Revision};

use crate::{after_greeting, rules, speaking, transcript, under};

fn batching(script: &str) -> String {
    after_greeting(Revision::V2025_03_26, "{}", script)
}

#[test]
fn the_answers_to_a_batch_are_sent_together_when_all_are_there() {
    transcript(&batching(
        r#"
        > [{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}},{"jsonrpc":"2.0","id":2,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/progress"},{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"u"}}]
        ! start 1
        ! start 3
        = 3 {"content":[]}
        = 1 {"content":[]}
        < [{"jsonrpc":"2.0","id":2,"result":{}},{"jsonrpc":"2.0","id":3,"result":{"content":[]}},{"jsonrpc":"2.0","id":1,"result":{"content":[]}}]
    "#,
    ));
}

#[test]
fn a_batch_of_one_is_answered_by_a_batch_of_one() {
    transcript(&batching(
        r#"
        > [{"jsonrpc":"2.0","id":1,"method":"ping"}]
        < [{"jsonrpc":"2.0","id":1,"result":{}}]
    "#,
    ));
}

#[test]
fn a_batch_without_requests_is_not_answered() {
    transcript(&batching(
        r#"
        > [{"jsonrpc":"2.0","method":"notifications/progress"},{"jsonrpc":"2.0","id":7,"result":{}},{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}}]
        > {"jsonrpc":"2.0","id":1,"method":"ping"}
        < {"jsonrpc":"2.0","id":1,"result":{}}
    "#,
    ));
}

#[test]
fn what_is_wrong_in_a_batch_is_answered_in_its_place() {
    transcript(&batching(
        r#"
        > [1,{"jsonrpc":"2.0","id":1,"method":"nope"},{"jsonrpc":"2.0","id":2},{"jsonrpc":"2.0","id":3,"method":"ping"}]
        < [{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"…"}},{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"…"}},{"jsonrpc":"2.0","id":2,"error":{"code":-32600,"message":"…"}},{"jsonrpc":"2.0","id":3,"result":{}}]
        > []
        < {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"…"}}
        > [1,
        < {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"…"}}
    "#,
    ));
}

#[test]
fn an_id_that_stands_twice_in_a_batch_is_answered_once() {
    transcript(&batching(
        r#"
        > [{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}},{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}]
        ! start 1
        = 1 {"content":[]}
        < [{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"…"}},{"jsonrpc":"2.0","id":1,"result":{"content":[]}}]
        > [{"jsonrpc":"2.0","id":1,"method":"nope"},{"jsonrpc":"2.0","id":1,"method":"nope"},{"jsonrpc":"2.0","id":1}]
        < [{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"…"}},{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"…"}},{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"…"}}]
    "#,
    ));
}

#[test]
fn an_answer_that_waits_for_its_batch_keeps_its_id_in_use() {
    transcript(&batching(
        r#"
        > [{"jsonrpc":"2.0","id":1,"method":"nope"},{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t"}}]
        ! start 2
        > {"jsonrpc":"2.0","id":1,"method":"ping"}
        < {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"…"}}
        = 2 {"content":[]}
        < [{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"…"}},{"jsonrpc":"2.0","id":2,"result":{"content":[]}}]
        > {"jsonrpc":"2.0","id":1,"method":"ping"}
        < {"jsonrpc":"2.0","id":1,"result":{}}
    "#,
    ));
}

#[test]
fn a_call_cancelled_in_a_batch_is_left_out_of_the_answers() {
    transcript(&batching(
        r#"
        > [{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}},{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"u"}}]
        ! start 1
        ! start 2
        = 1 {"content":[]}
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}
        ! abort 2
        < [{"jsonrpc":"2.0","id":1,"result":{"content":[]}}]
        > [{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"t"}}]
        ! start 3
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}
        ! abort 3
    "#,
    ));
}

#[test]
fn a_call_in_a_batch_that_takes_too_long_does_not_hold_it_back_for_ever() {
    transcript(&batching(
        r#"
        > [{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}},{"jsonrpc":"2.0","id":2,"method":"ping"}]
        ! start 1
        + 30s
        ! abort 1
        < [{"jsonrpc":"2.0","id":2,"result":{}},{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"…"}}]
    "#,
    ));
}

#[test]
fn a_handshake_does_not_stand_in_a_batch() {
    let pinned = Dialect { revision: Some(Revision::V2025_03_26), ..Dialect::default() };
    under(
        speaking(pinned),
        r#"
        > [{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26"}},{"jsonrpc":"2.0","id":2,"method":"ping"}]
        < [{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"…"}},{"jsonrpc":"2.0","id":2,"result":{}}]
    "#,
    );
}

#[test]
fn a_modern_request_does_not_stand_in_a_batch() {
    transcript(&batching(
        r#"
        > [{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{},"_meta":@modern}},{"jsonrpc":"2.0","id":2,"method":"ping"},{"jsonrpc":"2.0","id":3,"method":"tools/list","params":{"_meta":@modern}}]
        < [{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"…"}},{"jsonrpc":"2.0","id":3,"error":{"code":-32600,"message":"…"}},{"jsonrpc":"2.0","id":2,"result":{}}]
    "#,
    ));
}

#[test]
fn every_other_revision_refuses_a_batch_whole() {
    let others = Revision::ALL.into_iter().filter(|revision| *revision != Revision::V2025_03_26);
    for revision in others.filter(|revision| revision.era() == Era::Legacy) {
        let mut player = SessionPlayer::new(rules());
        let hello = format!(
            r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{revision}"}}}}"#
        );
        player.say(hello.as_bytes());
        player.hear().unwrap();
        player.say(br#"[{"jsonrpc":"2.0","id":1,"method":"tools/list"}]"#);
        let answer = String::from_utf8(player.hear().unwrap().to_vec()).unwrap();
        assert!(answer.contains("-32600") && answer.starts_with('{'), "{revision}: {answer}");
        assert_eq!((player.hear(), player.event()), (None, None), "{revision}");
    }
    // Nor before any handshake.
    transcript(
        r#"
        > [{"jsonrpc":"2.0","id":1,"method":"ping"}]
        < {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"…"}}
    "#,
    );
}

#[test]
fn notifications_and_questions_of_a_batch_do_not_wait_for_it() {
    transcript(&after_greeting(
        Revision::V2025_03_26,
        r#"{"roots":{}}"#,
        r#"
        > [{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":"p"}}}]
        ! start 1
        ~ 1 progress 1 2
        < {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":1,"total":2}}
        = 1 asks {"inputRequests":{"r":{"method":"roots/list"}}}
        < {"jsonrpc":"2.0","id":1,"method":"roots/list"}
        > [{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}]
        ! start 1
        = 1 {"content":[]}
        < [{"jsonrpc":"2.0","id":1,"result":{"content":[]}}]
    "#,
    ));
}
