//! Progress and log messages, and the clients that get them.

use sabir_wire::Revision;

use crate::{after_greeting, after_hello, transcript};

#[test]
fn progress_is_told_with_the_token_of_the_request_and_its_type() {
    for token in ["7", r#""seven""#, "0", "-1", r#""3f0e9c1c-5d0b-4a59-8d2b-000000000000""#] {
        transcript(&after_hello(&format!(
            r#"
            > {{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t","_meta":{{"progressToken":{token}}}}}}}
            ! start 1
            ~ 1 progress 0.5 1 half way
            < {{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":0.5,"total":1,"message":"half way"}}}}
            = 1 {{"content":[]}}
            < {{"jsonrpc":"2.0","id":1,"result":{{"content":[]}}}}
        "#
        )));
    }
}

#[test]
fn progress_always_grows() {
    transcript(&after_hello(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":1}}}
        ! start 1
        ~ 1 progress 0 100
        < {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":0,"total":100}}
        ~ 1 progress 50 100
        < {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":50,"total":100}}
        ~ 1 progress 50 100 again
        ~ 1 progress 49.9 100
        ~ 1 progress NaN 100
        ~ 1 progress 50.1
        < {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":50.1}}
    "#,
    ));
}

#[test]
fn progress_goes_on_growing_when_a_call_begins_again() {
    transcript(&after_hello(
        r#"
        > {"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"t","_meta":{"progressToken":1}}}
        ! start c
        ~ c progress 5
        < {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":5}}
        = c asks {"inputRequests":{"r":{"method":"roots/list"}}}
        < {"jsonrpc":"2.0","id":1,"method":"roots/list"}
        > {"jsonrpc":"2.0","id":1,"result":{"roots":[]}}
        ! start c
        ~ c progress 1
        ~ c progress 6
        < {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":6}}
    "#,
    ));
}

#[test]
fn no_progress_without_a_token_and_none_after_the_end() {
    transcript(&after_hello(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}
        ! start 1
        ~ 1 progress 1 2
        = 1 {"content":[]}
        < {"jsonrpc":"2.0","id":1,"result":{"content":[]}}
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":1}}}
        ! start 2
        = 2 {"content":[]}
        < {"jsonrpc":"2.0","id":2,"result":{"content":[]}}
        ~ 2 progress 1 2
        ~ 2 log emergency - "x"
    "#,
    ));
}

#[test]
fn two_calls_have_each_their_own_progress() {
    transcript(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":@modern+{"progressToken":"a"}}}
        ! start 1
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","_meta":@modern+{"progressToken":"b"}}}
        ! start 2
        ~ 1 progress 9
        < {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"a","progress":9}}
        ~ 2 progress 1
        < {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"b","progress":1}}
    "#,
    );
}

#[test]
fn the_first_revision_has_no_message_in_its_progress() {
    transcript(&after_greeting(
        Revision::V2024_11_05,
        "{}",
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":1}}}
        ! start 1
        ~ 1 progress 1 2 half
        < {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1,"total":2}}
    "#,
    ));
}

const LEVELS: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

#[test]
fn a_legacy_client_gets_what_its_level_lets_through() {
    for (least, level) in LEVELS.iter().enumerate() {
        let mut script = format!(
            r#"
            > {{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{{"level":"{level}"}}}}
            < {{"jsonrpc":"2.0","id":1,"result":{{}}}}
            > {{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"t"}}}}
            ! start 2
        "#
        );
        for (nth, said) in LEVELS.iter().enumerate() {
            script += &format!("~ 2 log {said} db {{\"n\":12345678901234567890}}\n");
            if nth >= least {
                script += &format!(
                    "< {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{{\"level\":\"{said}\",\"logger\":\"db\",\"data\":{{\"n\":12345678901234567890}}}}}}\n"
                );
            }
        }
        transcript(&after_hello(&script));
    }
}

#[test]
fn a_level_applies_to_calls_that_begin_after_it_and_is_info_before_any() {
    transcript(&after_hello(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}
        ! start 1
        ~ 1 log debug - "x"
        ~ 1 log info - "x"
        < {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}
    "#,
    ));
}

#[test]
fn a_modern_request_gets_no_log_unless_it_asks_for_one() {
    transcript(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":@modern}}
        ! start 1
        ~ 1 log emergency - "x"
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","_meta":@modern+{"io.modelcontextprotocol/logLevel":"warning"}}}
        ! start 2
        ~ 2 log notice - "x"
        ~ 2 log warning - "x"
        < {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"warning","data":"x"}}
        ~ 1 log emergency - "x"
        = 2 {"content":[]}
        < {"jsonrpc":"2.0","id":2,"result":"…"}
        ~ 2 log emergency - "x"
    "#,
    );
}
