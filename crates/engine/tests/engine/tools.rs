//! Tools: calls, arguments and results.

use std::sync::Arc;

use sabir_registry::{Offer, Outcome, Pending, Source, ToolCall};
use sabir_testkit::{Called, Ending, Event, House, Player as _, difference, play};
use sabir_wire::types::{Prompt, Tool, ToolReply};
use sabir_wire::{Problem, Raw};
use serde_json::{Value, json};

use crate::{after_greeting, after_hello, ask, player, playing, request, settings, transcript};

fn raw(value: Value) -> Raw {
    Raw::of(&value).unwrap()
}

/// A server with one tool that takes a number and promises an object with a number.
fn strict() -> House {
    let number = |name: &str| json!({ "type": "object", "properties": { name: { "type": "number" } }, "required": [name] });
    let tool = Tool {
        output_schema: Some(raw(number("out"))),
        ..Tool::new("t", "strict", raw(number("in")))
    };
    House::offering(settings(), Offer { tools: vec![tool], ..Offer::default() })
}

#[test]
fn a_result_that_breaks_the_output_schema_is_our_failure() {
    for wrong in [
        r#"{"content":[{"type":"text","text":"x"}]}"#,
        r#"{"content":[],"structuredContent":{}}"#,
        r#"{"content":[],"structuredContent":{"out":"x"}}"#,
        r#"{"content":[],"structuredContent":[1]}"#,
        r#"{"content":[],"structuredContent":null}"#,
    ] {
        for revision in ["2024-11-05", "2025-06-18", "2025-11-25"] {
            let script = format!(
                r#"
                > {{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t","arguments":{{"in":1}}}}}}
                ! start 1
                = 1 {wrong}
                < {{"jsonrpc":"2.0","id":1,"error":{{"code":-32603,"message":"…"}}}}
            "#
            );
            play(&mut playing(strict()), &after_greeting(revision, &script));
        }
    }
}

#[test]
fn a_result_that_keeps_the_promise_is_passed_on_and_a_failure_promises_nothing() {
    play(
        &mut playing(strict()),
        &after_hello(
            r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"in":1}}}
        ! start 1
        = 1 {"content":[],"structuredContent":{"out":1.5,"more":true}}
        < {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"{\"out\":1.5,\"more\":true}"}],"structuredContent":{"out":1.5,"more":true}}}
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","arguments":{"in":1}}}
        ! start 2
        = 2 {"content":[{"type":"text","text":"no"}],"isError":true}
        < {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"no"}],"isError":true}}
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"t","arguments":{"in":1}}}
        ! start 3
        = 3 fails no
        < {"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"no"}],"isError":true}}
        > {"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"t","arguments":{"in":1}}}
        ! start 4
        = 4 error -7 chosen
        < {"jsonrpc":"2.0","id":4,"error":{"code":-7,"message":"chosen"}}
    "#,
        ),
    );
}

#[test]
fn arguments_that_break_the_schema_never_reach_the_source() {
    let calls = [r#""arguments":{"in":"x"}"#, r#""arguments":{}"#, r#""x":1"#];
    for arguments in calls {
        let refused =
            ask(&mut playing(strict()), "tools/call", &format!(r#""name":"t",{arguments}"#));
        assert_eq!(refused["result"]["isError"], true, "{refused}");
        for (revision, is_error) in [
            ("2024-11-05", true),
            ("2025-03-26", true),
            ("2025-06-18", true),
            ("2025-11-25", false),
        ] {
            let answer = match is_error {
                true => r#""error":{"code":-32602,"message":"…"}"#,
                false => r#""result":{"content":[{"type":"text","text":"…"}],"isError":true}"#,
            };
            let script = format!(
                r#"
                > {{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t",{arguments}}}}}
                < {{"jsonrpc":"2.0","id":1,{answer}}}
            "#
            );
            play(&mut playing(strict()), &after_greeting(revision, &script));
        }
    }
}

#[test]
fn arguments_that_are_no_object_are_the_protocols_mistake_in_every_revision() {
    for arguments in ["7", "[]", r#""x""#] {
        let params = format!(r#""name":"t","arguments":{arguments}"#);
        assert_eq!(ask(&mut player(), "tools/call", &params)["error"]["code"], -32602);
        let script = format!(
            r#"
            > {{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{{params}}}}}
            < {{"jsonrpc":"2.0","id":1,"error":{{"code":-32602,"message":"…"}}}}
        "#
        );
        transcript(&after_hello(&script));
    }
}

#[test]
fn a_call_without_arguments_has_an_empty_object() {
    let mut player = player();
    player.say(request(1, "tools/call", r#""name":"t""#).as_bytes());
    let Some(Event::Start(call)) = player.event() else { panic!("no call") };
    let Some(Called::Tool(call)) = player.house.called(call) else { panic!("no tool") };
    assert_eq!(call.arguments.text(), "{}");
}

#[test]
fn numbers_order_and_unknown_fields_survive_the_way_in_and_out() {
    let text = r#"{"z":12345678901234567890123456789,"a":{"y":0.1000000000000000055511151231257827,"x":[9007199254740993,-0,1E5]},"é":"\u00e9"}"#;
    let mut player = player();
    player.say(request(1, "tools/call", &format!(r#""name":"t","arguments":{text}"#)).as_bytes());
    let Some(Event::Start(number)) = player.event() else { panic!("no call") };
    let Some(Called::Tool(call)) = player.house.called(number) else { panic!("no tool") };
    assert_eq!(call.arguments.text(), text);
    let result = format!(
        r#"{{"content":[{{"type":"text","text":"x"}}],"structuredContent":{text},"_meta":{text}}}"#
    );
    player.finish(number, Ending::Result(Raw::parse(result).unwrap()));
    let answer = String::from_utf8(player.hear().unwrap().to_vec()).unwrap();
    assert!(answer.contains(&format!(r#""structuredContent":{text}"#)), "{answer}");
    assert!(answer.contains(&text[1..text.len() - 1]), "{answer}");
    assert_eq!(answer.matches("12345678901234567890123456789").count(), 2, "{answer}");
}

#[test]
fn a_server_without_tools_does_not_know_the_methods_of_tools() {
    let prompt = Prompt { name: "p".into(), ..Prompt::default() };
    let only_prompts = || {
        let offer = Offer { prompts: vec![prompt.clone()], ..Offer::default() };
        playing(House::offering(settings(), offer))
    };
    for (method, params) in [("tools/list", ""), ("tools/call", r#""name":"t""#)] {
        let refused = ask(&mut only_prompts(), method, params);
        assert_eq!(refused["error"]["code"], -32601, "{method}: {refused}");
    }
    let found = ask(&mut only_prompts(), "server/discover", "");
    assert_eq!(found["result"]["capabilities"], json!({ "prompts": {} }));
}

#[test]
fn each_method_needs_its_capability() {
    let schema = raw(json!({ "type": "object" }));
    let offer = Offer { tools: vec![Tool::new("t", "d", schema)], ..Offer::default() };
    let mut player = playing(House::offering(settings(), offer));
    for (method, params) in [
        ("prompts/list", ""),
        ("prompts/get", r#""name":"p""#),
        ("resources/list", ""),
        ("resources/templates/list", ""),
        ("resources/read", r#""uri":"a:b""#),
        (
            "completion/complete",
            r#""ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":""}"#,
        ),
    ] {
        let refused = ask(&mut player, method, params);
        assert_eq!(refused["error"]["code"], -32601, "{method}: {refused}");
    }
}

#[test]
fn capabilities_are_declared_exactly_in_both_eras() {
    let all = json!({
        "logging": {}, "completions": {}, "prompts": { "listChanged": true },
        "resources": { "subscribe": true, "listChanged": true }, "tools": { "listChanged": true },
    });
    assert_eq!(ask(&mut player(), "server/discover", "")["result"]["capabilities"], all);
    for (revision, completions) in [("2024-11-05", false), ("2025-03-26", true)] {
        let mut player = player();
        let hello = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"{revision}"}}}}"#
        );
        player.say(hello.as_bytes());
        let welcome = crate::answer(&mut player);
        let mut expected = all.clone();
        if !completions {
            expected.as_object_mut().unwrap().remove("completions");
        }
        assert_eq!(welcome["result"]["capabilities"], expected, "{revision}");
    }
}

#[test]
fn a_tool_written_over_several_lines_is_listed_on_one() {
    let schema = Raw::parse("{\n  \"type\": \"object\",\n  \"properties\": {\n  }\n}\n").unwrap();
    let offer = Offer { tools: vec![Tool::new("t", "two\nlines", schema)], ..Offer::default() };
    let mut player = playing(House::offering(settings(), offer));
    player.say(request(1, "tools/list", "").as_bytes());
    let list = player.hear().unwrap();
    assert!(!list.contains(&b'\n'), "{list:?}");
    let list: Value = serde_json::from_slice(&list).unwrap();
    assert_eq!(list["result"]["tools"][0]["description"], "two\nlines");
}

/// A source that fails in every way before it has even begun.
struct Faulty;

impl Source for Faulty {
    fn offer(&self) -> Offer {
        let schema = Raw::parse(r#"{"type":"object"}"#).unwrap();
        let tool = |name: &str| Tool::new(name, "d", schema.clone());
        Offer { tools: vec![tool("at_once"), tool("later"), tool("fine")], ..Offer::default() }
    }

    fn call_tool(&self, call: ToolCall) -> Pending<ToolReply> {
        match &*call.name {
            "at_once" => panic!("before there is a future"),
            "later" => Box::pin(async {
                tokio::task::yield_now().await;
                std::panic::panic_any(7);
            }),
            _ => Box::pin(async { Ok(Outcome::Done(ToolReply::text("fine"))) }),
        }
    }
}

#[test]
fn a_panic_ends_one_call_with_an_internal_error_and_nothing_more() {
    let house = || House::of(settings(), vec![Arc::new(Faulty)]);
    let internal = json!({
        "jsonrpc": "2.0", "id": 1, "error": { "code": -32603, "message": "Internal error" },
    });
    let mut player = playing(house());
    for tool in ["at_once", "later", "at_once"] {
        let failed = ask(&mut player, "tools/call", &format!(r#""name":"{tool}""#));
        assert_eq!(difference(&internal, &failed), None, "{tool}: {failed}");
        let fine = ask(&mut player, "tools/call", r#""name":"fine""#);
        assert_eq!(fine["result"]["content"][0]["text"], "fine");
    }
}

#[test]
fn a_panic_does_not_disturb_the_calls_beside_it() {
    transcript(&after_hello(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}
        ! start 1
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"u"}}
        ! start 2
        > {"jsonrpc":"2.0","id":3,"method":"resources/read","params":{"uri":"memo:///a"}}
        ! start 3
        = 1 panics
        < {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"Internal error"}}
        = 3 panics
        < {"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"Internal error"}}
        = 2 {"content":[]}
        < {"jsonrpc":"2.0","id":2,"result":{"content":[]}}
    "#,
    ));
}

/// A source that is listed, but refuses calls.
struct Refusing;

impl Source for Refusing {
    fn offer(&self) -> Offer {
        let schema = Raw::parse(r#"{"type":"object"}"#).unwrap();
        Offer { tools: vec![Tool::new("gone", "d", schema)], ..Offer::default() }
    }

    fn call_tool(&self, call: ToolCall) -> Pending<ToolReply> {
        Box::pin(async move { Err(Problem::UnknownTool((&*call.name).into())) })
    }
}

#[test]
fn a_tool_that_its_source_does_not_know_any_more_is_unknown() {
    let mut player = playing(House::of(settings(), vec![Arc::new(Refusing)]));
    let refused = ask(&mut player, "tools/call", r#""name":"gone""#);
    assert_eq!(refused["error"], json!({ "code": -32602, "message": "Unknown tool: gone" }));
}
