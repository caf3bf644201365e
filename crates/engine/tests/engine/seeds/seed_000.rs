//! A COBOL program behind stdio: `cobol-mcp-server`, 2025-11-25, three tools.

use std::sync::Arc;

use sabir_engine::Settings;
use sabir_registry::{Offer, Outcome, Pending, Source, ToolCall};
use sabir_session::{Dialect, MissingMethod, RequireReady};
use sabir_testkit::{ConnectionPlayer, House, Player as _, play};
use sabir_wire::types::{Implementation, Tool, ToolReply};
use sabir_wire::{Raw, Revision};
use serde_json::{Value, json};

use crate::playing;

fn settings() -> Settings {
    Settings {
        server: Implementation {
            name: "cobol-mcp-server".into(),
            version: "1.0.0".into(),
            ..Implementation::default()
        },
        dialect: Dialect {
            revision: Some(Revision::V2025_11_25),
            require_ready: Some(RequireReady::None),
            missing_method: MissingMethod::ParseError,
            ..Dialect::default()
        },
        ..Settings::default()
    }
}

/// Replaces the programs that do the work.
struct Cobol;

impl Source for Cobol {
    fn offer(&self) -> Offer {
        let tool = |name: &str, description: &str, properties: Value| {
            let required: Vec<&String> = properties.as_object().unwrap().keys().collect();
            let schema =
                json!({ "type": "object", "properties": properties, "required": required });
            Tool::new(name, description, Raw::of(&schema).unwrap())
        };
        let number = || json!({ "type": "number" });
        Offer {
            tools: vec![
                tool("add", "Adds two numbers", json!({ "a": number(), "b": number() })),
                tool("format_currency", "Formats an amount", json!({ "amount": number() })),
                tool("validate_date", "Checks a date", json!({ "date": { "type": "string" } })),
            ],
            ..Offer::default()
        }
    }

    fn call_tool(&self, call: ToolCall) -> Pending<ToolReply> {
        let arguments: Value = call.arguments.read().unwrap();
        let reply = match (&*call.name, &arguments["a"], &arguments["b"], &arguments["date"]) {
            ("add", a, b, _) => {
                let sum = a.as_f64().unwrap() + b.as_f64().unwrap();
                ToolReply::text(format!("The sum of {a} and {b} is {sum}"))
            }
            ("format_currency", ..) => ToolReply::text("$1,234,567.89"),
            (_, _, _, date) if date == "20240229" => ToolReply::text("20240229 is a valid date"),
            _ => ToolReply::failed("Invalid date: there is no such day"),
        };
        Box::pin(async { Ok(Outcome::Done(reply)) })
    }
}

fn server() -> ConnectionPlayer {
    playing(House::of(settings(), vec![Arc::new(Cobol)]))
}

#[track_caller]
fn transcript(script: &str) {
    play(&mut server(), script);
}

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;

fn welcome() -> Value {
    let mut server = server();
    server.say(INITIALIZE.as_bytes());
    crate::answer(&mut server)
}

#[test]
fn each_method_is_routed_to_its_own_handler() {
    transcript(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"initialize"}
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"…","…":"…"}}
        > {"jsonrpc":"2.0","method":"notifications/initialized"}
        ! ready
        > {"jsonrpc":"2.0","id":2,"method":"ping"}
        < {"jsonrpc":"2.0","id":2,"result":{}}
        > {"jsonrpc":"2.0","id":3,"method":"tools/list"}
        < {"jsonrpc":"2.0","id":3,"result":{"tools":"…"}}
        > {"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"add","arguments":{"a":1,"b":2}}}
        < {"jsonrpc":"2.0","id":4,"result":{"content":"…"}}
    "#,
    );
}

#[test]
fn initialize_answers_with_the_protocol_version_2025_11_25() {
    assert_eq!(welcome()["result"]["protocolVersion"], "2025-11-25");
}

#[test]
fn the_initialize_response_names_the_server_cobol_mcp_server() {
    let welcome = welcome();
    assert_eq!(welcome["result"]["serverInfo"]["name"], "cobol-mcp-server");
    assert!(welcome["result"]["serverInfo"]["version"].is_string());
}

#[test]
fn the_capabilities_are_tools_and_nothing_else() {
    assert_eq!(welcome()["result"]["capabilities"], json!({ "tools": {} }));
}

#[test]
fn the_initialize_response_echoes_the_id() {
    assert_eq!(welcome()["id"], 1);
}

#[test]
fn initialized_produces_no_output() {
    let mut server = server();
    server.say(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    assert_eq!(server.hear(), None);
    server.say(INITIALIZE.as_bytes());
    assert!(server.hear().is_some());
    server.say(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    assert_eq!(server.hear(), None);
}

#[test]
fn ping_is_answered_with_an_empty_object_and_its_id() {
    let mut server = server();
    server.say(br#"{"jsonrpc":"2.0","id":"p-1","method":"ping"}"#);
    assert_eq!(server.hear().unwrap(), r#"{"jsonrpc":"2.0","id":"p-1","result":{}}"#);
}

#[test]
fn an_unknown_method_is_minus_32601_with_its_id() {
    transcript(
        r#"
        > {"jsonrpc":"2.0","id":9,"method":"no/such"}
        < {"jsonrpc":"2.0","id":9,"error":{"code":-32601,"message":"…"}}
    "#,
    );
}

#[test]
fn malformed_input_and_a_missing_method_are_minus_32700() {
    transcript(
        r#"
        > {"jsonrpc":"2.0","id":1,"method
        < {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"…"}}
        > not json at all
        < {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"…"}}
        > {"jsonrpc":"2.0","id":5}
        < {"jsonrpc":"2.0","id":5,"error":{"code":-32700,"message":"…"}}
        > {"jsonrpc":"2.0","params":{}}
        < {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"…"}}
    "#,
    );
}

#[test]
fn tools_list_has_a_route() {
    let mut server = server();
    server.say(br#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
    let list = crate::answer(&mut server);
    let tools = list["result"]["tools"].as_array().unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["add", "format_currency", "validate_date"]);
    assert_eq!(tools[0]["inputSchema"]["required"], json!(["a", "b"]));
}

#[test]
fn tools_call_has_a_route_by_the_name_in_its_params() {
    transcript(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":2,"b":40}}}
        < {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"The sum of 2 and 40 is 42"}]}}
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"format_currency","arguments":{"amount":1234567.89}}}
        < {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"$1,234,567.89"}]}}
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"validate_date","arguments":{"date":"20240229"}}}
        < {"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"20240229 is a valid date"}]}}
    "#,
    );
}

#[test]
fn bad_arguments_and_invalid_dates_are_results_with_is_error() {
    transcript(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":"x","b":1}}}
        < {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"…"}],"isError":true}}
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"add","arguments":{}}}
        < {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"…"}],"isError":true}}
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"validate_date","arguments":{"date":"20230229"}}}
        < {"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"Invalid date: there is no such day"}],"isError":true}}
    "#,
    );
}

#[test]
fn every_response_says_jsonrpc_2_0() {
    let mut server = server();
    for ask in [
        INITIALIZE,
        "nonsense",
        r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":3,"method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","id":4,"method":"nope"}"#,
        r#"{"jsonrpc":"2.0","id":5}"#,
        r#"{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"nope"}}"#,
    ] {
        server.say(ask.as_bytes());
        assert_eq!(crate::answer(&mut server)["jsonrpc"], "2.0", "{ask}");
    }
}

#[test]
fn the_server_goes_on_after_every_kind_of_message_and_before_any_handshake() {
    let ping = "> {\"jsonrpc\":\"2.0\",\"id\":\"p\",\"method\":\"ping\"}\n< {\"jsonrpc\":\"2.0\",\"id\":\"p\",\"result\":{}}";
    for said in [
        "> nonsense\n< \"…\"",
        "> {}\n< \"…\"",
        "> []\n< \"…\"",
        "> {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"nope\"}\n< \"…\"",
        "> {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"nope\"}}\n< \"…\"",
        "> {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}",
        "> {\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}",
    ] {
        transcript(&format!("{said}\n{ping}\n{said}\n{ping}\n> ^D\n! close"));
    }
}
