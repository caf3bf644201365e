//! Each value of each `[dialect]` setting that the others do not show.

use sabir_session::{
    CallKey, Dialect, Input, MissingMethod, NullId, Outcome, ToolFailure, UnknownTool,
};
use sabir_testkit::{Event, Player as _, SessionPlayer, difference};
use sabir_wire::{Problem, Revision};
use serde_json::{Value, json};

use crate::{after_greeting, after_hello, speaking, transcript, under};

/// The answer to a legacy client of `revision` whose call of a tool has this outcome.
fn answered(dialect: Dialect, revision: Revision, outcome: Outcome) -> Value {
    let mut player = SessionPlayer::new(speaking(dialect));
    sabir_testkit::play(&mut player, &after_greeting(revision, "{}", ""));
    player.say(br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}"#);
    let Some(Event::Start(number)) = player.event() else { panic!("no call") };
    player.handle(Input::Finished { call: CallKey(number.0), outcome });
    serde_json::from_slice(&player.hear().unwrap()).unwrap()
}

#[track_caller]
fn check(dialect: Dialect, problem: Problem, expected: Value) {
    let answer = answered(dialect, Revision::V2025_11_25, Outcome::Failed(problem));
    assert_eq!(difference(&expected, &answer), None, "{answer}");
}

#[test]
fn an_unknown_tool_is_invalid_params_or_method_not_found_or_a_result() {
    let unknown = || Problem::UnknownTool("x".into());
    let error = |code: i64, message: &str| json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": code, "message": message } });
    check(Dialect::default(), unknown(), error(-32602, "Unknown tool: x"));
    let dialect = Dialect { unknown_tool: UnknownTool::MethodNotFound, ..Dialect::default() };
    check(dialect, unknown(), error(-32601, "Tool not found: x"));
    let dialect = Dialect { unknown_tool: UnknownTool::Result, ..Dialect::default() };
    let result = json!({ "content": [{ "type": "text", "text": "…" }], "isError": true });
    check(dialect, unknown(), json!({ "jsonrpc": "2.0", "id": 1, "result": result }));
}

#[test]
fn a_failed_tool_is_a_result_or_an_internal_error_with_the_reason() {
    let failed = || Problem::ToolFailed("the disk is full".into());
    let result =
        json!({ "content": [{ "type": "text", "text": "the disk is full" }], "isError": true });
    check(Dialect::default(), failed(), json!({ "jsonrpc": "2.0", "id": 1, "result": result }));
    let dialect = || Dialect { tool_failure: ToolFailure::InternalError, ..Dialect::default() };
    let error = json!({ "code": -32603, "message": "the disk is full" });
    let expected = json!({ "jsonrpc": "2.0", "id": 1, "error": error });
    check(dialect(), failed(), expected.clone());
    // The same if the tool reports the failure in its result.
    under(
        speaking(dialect()),
        &after_hello(&format!(
            r#"
        > {{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t"}}}}
        ! start 1
        = 1 {{"content":[{{"type":"text","text":"the disk is full"}}],"isError":true}}
        < {expected}
        > {{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"t"}}}}
        ! start 2
        = 2 {{"content":[{{"type":"text","text":"fine"}}]}}
        < {{"jsonrpc":"2.0","id":2,"result":{{"content":[{{"type":"text","text":"fine"}}]}}}}
    "#
        )),
    );
}

#[test]
fn a_missing_method_is_an_invalid_request_or_a_parse_error() {
    let script = |code: i64| {
        format!(
            r#"
        > {{"jsonrpc":"2.0","id":7}}
        < {{"jsonrpc":"2.0","id":7,"error":{{"code":{code},"message":"…"}}}}
        > {{"jsonrpc":"2.0","id":7,"params":{{}}}}
        < {{"jsonrpc":"2.0","id":7,"error":{{"code":{code},"message":"…"}}}}
        > {{"jsonrpc":"2.0"}}
        < {{"jsonrpc":"2.0","id":null,"error":{{"code":{code},"message":"…"}}}}
        > {{"jsonrpc":"2.0","id":7,"result":{{}}}}
        > {{"jsonrpc":"2.0","id":8,"method":"ping"}}
        < {{"jsonrpc":"2.0","id":8,"result":{{}}}}
    "#
        )
    };
    transcript(&script(-32600));
    let dialect = Dialect { missing_method: MissingMethod::ParseError, ..Dialect::default() };
    under(speaking(dialect), &script(-32700));
}

#[test]
fn a_null_id_is_refused_or_answered() {
    let dialect = Dialect { null_id: NullId::Answer, ..Dialect::default() };
    under(
        speaking(dialect),
        &after_hello(
            r#"
        > {"jsonrpc":"2.0","id":null,"method":"ping"}
        < {"jsonrpc":"2.0","id":null,"result":{}}
        > {"jsonrpc":"2.0","id":null,"method":"nope"}
        < {"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"…"}}
        > {"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"t"}}
        ! start a
        > {"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"t"}}
        ! start b
        = b {"content":[]}
        < {"jsonrpc":"2.0","id":null,"result":{"content":[]}}
        = a {"content":[]}
        < {"jsonrpc":"2.0","id":null,"result":{"content":[]}}
    "#,
        ),
    );
}

#[test]
fn arguments_that_break_the_schema_are_what_the_revision_says() {
    let broken = || Outcome::Failed(Problem::Arguments("`a` is missing".into()));
    for revision in [Revision::V2024_11_05, Revision::V2025_03_26, Revision::V2025_06_18] {
        let answer = answered(Dialect::default(), revision, broken());
        assert_eq!(answer["error"]["code"], -32602, "{revision}: {answer}");
    }
    let answer = answered(Dialect::default(), Revision::V2025_11_25, broken());
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    assert!(answer["result"]["content"][0]["text"].as_str().unwrap().contains("`a` is missing"));
}

#[test]
fn a_missing_resource_has_the_code_of_the_revision() {
    let missing = || Outcome::Failed(Problem::UnknownResource("a:b".into()));
    let expected = json!({
        "jsonrpc": "2.0", "id": 1,
        "error": { "code": -32002, "message": "…", "data": { "uri": "a:b" } },
    });
    for revision in [Revision::V2024_11_05, Revision::V2025_11_25] {
        let answer = answered(Dialect::default(), revision, missing());
        assert_eq!(difference(&expected, &answer), None, "{revision}: {answer}");
    }
}
