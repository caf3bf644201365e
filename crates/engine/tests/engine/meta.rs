//! The metadata of requests and results.

use sabir_testkit::{Called, ConnectionPlayer, Event, Player as _, play};
use serde_json::json;

use crate::{after_hello, ask, player};

fn begun(player: &mut ConnectionPlayer) -> Called {
    let Some(Event::Start(call)) = player.event() else { panic!("no call") };
    player.house.called(call).unwrap().clone()
}

const META: &str = r#""traceparent":"00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01","tracestate":"a=b","baggage":"c=d","com.example/n":12345678901234567890"#;

#[test]
fn the_trace_context_reaches_the_source_in_both_eras() {
    let modern = r#","io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"roots":{}},"io.modelcontextprotocol/clientInfo":{"name":"m","version":"2"}"#;
    for (era, name) in [("", "c"), (modern, "m")] {
        let mut player = player();
        play(&mut player, &after_hello(""));
        for (method, params) in [
            ("tools/call", r#""name":"t""#),
            ("prompts/get", r#""name":"p""#),
            ("resources/read", r#""uri":"memo:///a""#),
        ] {
            let id = method.len();
            let call = format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{params},"_meta":{{{META}{era}}}}}}}"#
            );
            player.say(call.as_bytes());
            let called = begun(&mut player);
            let context = called.context();
            let trace = context.trace();
            assert_eq!(
                trace.traceparent.unwrap(),
                "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"
            );
            assert_eq!(
                (trace.tracestate.unwrap(), trace.baggage.unwrap()),
                ("a=b".into(), "c=d".into())
            );
            assert!(context.meta.as_ref().unwrap().text().contains(":12345678901234567890"));
            let client = context.client.as_ref().unwrap().text();
            assert!(client.contains(&format!(r#""name":"{name}""#)), "{client}");
            assert!(context.capabilities.roots);
        }
    }
}

#[test]
fn a_modern_request_may_leave_out_who_asks_and_the_source_sees_nobody() {
    let mut player = player();
    play(&mut player, &after_hello(""));
    player.say(br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#);
    let called = begun(&mut player);
    let context = called.context();
    assert!(context.client.is_none(), "the handshake's name is not the request's");
    assert!(!context.capabilities.roots);
}

#[test]
fn who_answers_is_in_every_modern_result_and_in_no_legacy_one() {
    let server = json!({ "name": "s", "version": "1" });
    let mut player = player();
    for method in [
        "server/discover",
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
    ] {
        let result = ask(&mut player, method, "")["result"].clone();
        assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"], server, "{method}");
        assert_eq!(result["resultType"], "complete", "{method}");
    }
    play(
        &mut player,
        &after_hello(
            r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}
        ! start 1
        = 1 {"content":[],"_meta":{"com.example/a":1}}
        < {"jsonrpc":"2.0","id":1,"result":{"content":[],"_meta":{"com.example/a":1}}}
        > {"jsonrpc":"2.0","id":2,"method":"prompts/get","params":{"name":"p"}}
        ! start 2
        = 2 {"messages":[],"_meta":{"com.example/a":1}}
        < {"jsonrpc":"2.0","id":2,"result":{"messages":[],"_meta":{"com.example/a":1}}}
    "#,
        ),
    );
}
