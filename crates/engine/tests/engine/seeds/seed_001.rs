//! A knowledge base: `asdlc-knowledge-base`, 2024-11-05, as far as it does not need HTTP.

use std::sync::Arc;

use sabir_engine::Settings;
use sabir_registry::{Offer, Outcome, Pending, Source, ToolCall};
use sabir_session::{Dialect, RequireReady, ToolFailure};
use sabir_testkit::{ConnectionPlayer, House, Player as _, play};
use sabir_wire::types::{Implementation, Tool, ToolReply};
use sabir_wire::{ErrorObject, Problem, Raw, Revision};
use serde_json::{Value, json};

use crate::playing;

/// Replaces the articles.
struct Articles;

impl Source for Articles {
    fn offer(&self) -> Offer {
        let category = json!({ "type": "string", "enum": ["concepts", "patterns", "practices"] });
        let tool = |name: &str, description: &str, schema: Value| {
            Tool::new(name, description, Raw::of(&schema).unwrap())
        };
        Offer {
            tools: vec![
                tool(
                    "list_articles",
                    "List all articles",
                    json!({ "type": "object", "properties": {
                        "category": category, "limit": { "type": "number" },
                    } }),
                ),
                tool(
                    "get_article",
                    "Get the full content of an article",
                    json!({
                        "type": "object",
                        "properties": { "slug": { "type": "string" } },
                        "required": ["slug"],
                    }),
                ),
                tool(
                    "search_articles",
                    "Search articles",
                    json!({
                        "type": "object",
                        "properties": {
                            "query": { "type": "string" },
                            "include_content": { "type": "boolean", "default": false },
                        },
                        "required": ["query"],
                    }),
                ),
            ],
            ..Offer::default()
        }
    }

    fn call_tool(&self, call: ToolCall) -> Pending<ToolReply> {
        let arguments: Value = call.arguments.read().unwrap();
        let answer = match (&*call.name, arguments["slug"].as_str()) {
            ("get_article", Some("context-engineering")) => Ok(ToolReply::text("# Context")),
            ("get_article", slug) => {
                let error = ErrorObject::new(-32602, "Article not found");
                Err(Problem::Chosen(error.with_data(&json!({ "slug": slug }))))
            }
            ("search_articles", _) => Err(Problem::ToolFailed("the index is broken".into())),
            _ => Ok(ToolReply::text("[]")),
        };
        Box::pin(async { answer.map(Outcome::Done) })
    }
}

fn server() -> ConnectionPlayer {
    let settings = Settings {
        server: Implementation {
            name: "asdlc-knowledge-base".into(),
            version: "1.0.0".into(),
            ..Implementation::default()
        },
        dialect: Dialect {
            revision: Some(Revision::V2024_11_05),
            require_ready: Some(RequireReady::None),
            tool_failure: ToolFailure::InternalError,
            flat_server_info: true,
            ..Dialect::default()
        },
        ..Settings::default()
    };
    playing(House::of(settings, vec![Arc::new(Articles)]))
}

#[track_caller]
fn transcript(script: &str) {
    play(&mut server(), script);
}

#[test]
fn initialize_returns_server_info_with_capabilities() {
    for params in [r#","params":{"clientInfo":{"name":"test-client","version":"1.0.0"}}"#, ""] {
        let mut server = server();
        let ask = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"initialize"{params}}}"#);
        server.say(ask.as_bytes());
        let result = crate::answer(&mut server)["result"].clone();
        assert_eq!(result["name"], "asdlc-knowledge-base");
        assert_eq!(result["version"], "1.0.0");
        assert_eq!(result["protocolVersion"], "2024-11-05");
        assert_eq!(result["capabilities"], json!({ "tools": {} }));
    }
}

#[test]
fn tools_list_returns_all_three_definitions() {
    let mut server = server();
    server.say(br#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
    let tools = crate::answer(&mut server)["result"]["tools"].clone();
    let names: Vec<_> = tools.as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["list_articles", "get_article", "search_articles"]);
    assert_eq!(tools[2]["inputSchema"]["properties"]["include_content"]["default"], false);
}

#[test]
fn tools_call_is_routed_to_the_implementation() {
    transcript(
        r##"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_article","arguments":{"slug":"context-engineering"}}}
        < {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"# Context"}]}}
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"get_article","arguments":{"slug":"none"}}}
        < {"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"Article not found","data":{"slug":"none"}}}
    "##,
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
fn invalid_params_are_minus_32602_and_so_is_an_unknown_tool() {
    transcript(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}
        < {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"…"}}
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"get_article","arguments":{}}}
        < {"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"…"}}
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"list_articles","arguments":{"category":"jokes"}}}
        < {"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"…"}}
        > {"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"nope"}}
        < {"jsonrpc":"2.0","id":4,"error":{"code":-32602,"message":"…"}}
    "#,
    );
}

#[test]
fn a_tool_that_fails_is_minus_32603_with_the_reason() {
    transcript(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search_articles","arguments":{"query":"x"}}}
        < {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the index is broken"}}
    "#,
    );
}

#[test]
fn notifications_get_no_response() {
    transcript(
        r#"
        > {"jsonrpc":"2.0","method":"notifications/initialized"}
        > {"jsonrpc":"2.0","method":"tools/list"}
        > {"jsonrpc":"2.0","method":"unknown/method"}
    "#,
    );
}

#[test]
fn every_response_says_jsonrpc_2_0_and_has_the_id_of_its_request() {
    for id in ["1", "\"abc\"", "0"] {
        let mut server = server();
        for method in ["initialize", "tools/list", "unknown/method"] {
            let ask = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}"}}"#);
            server.say(ask.as_bytes());
            let answer = crate::answer(&mut server);
            assert_eq!(answer["jsonrpc"], "2.0");
            assert_eq!(answer["id"].to_string(), id);
        }
    }
}
