//! An editor for Claude Code, its tools: an empty registry that is filled while clients are there.

use std::sync::Arc;

use sabir_registry::{Offer, Outcome, Pending, Source, ToolCall};
use sabir_testkit::{ConnectionPlayer, House, Player as _, play};
use sabir_wire::types::{Tool, ToolReply};
use sabir_wire::{Problem, Raw};
use serde_json::json;

use super::seed_002::settings;
use crate::playing;

type Handler = fn(&Raw) -> Result<String, String>;

/// The result of `register_tool(name, schema, handler)`: the text or the failure of a handler
/// becomes content.
struct Registered {
    tool: Tool,
    handler: Handler,
}

impl Source for Registered {
    fn offer(&self) -> Offer {
        Offer { tools: vec![self.tool.clone()], ..Offer::default() }
    }

    fn call_tool(&self, call: ToolCall) -> Pending<ToolReply> {
        let result = (self.handler)(&call.arguments).map_err(|e| Problem::ToolFailed(e.into()));
        Box::pin(async { result.map(|text| Outcome::Done(ToolReply::text(text))) })
    }
}

fn editor() -> ConnectionPlayer {
    playing(House::of(settings(), Vec::new()))
}

fn register_tool(editor: &ConnectionPlayer, name: &str, handler: Handler) {
    let schema = Raw::of(&json!({ "type": "object", "properties": {} })).unwrap();
    let tool = Tool::new(name, "An editor's tool", schema);
    editor.house.engine.registry().add(Arc::new(Registered { tool, handler })).unwrap();
}

const HELLO: &str = r#"
        > {"jsonrpc":"2.0","id":"req-1","method":"initialize","params":{"protocolVersion":"2025-11-25"}}
        < {"jsonrpc":"2.0","id":"req-1","result":"…"}
        > {"jsonrpc":"2.0","method":"notifications/initialized"}
        ! ready
"#;

#[test]
fn an_empty_registry_lists_an_empty_array() {
    let script = r#"
        > {"jsonrpc":"2.0","id":"req-2","method":"tools/list","params":{}}
        < {"jsonrpc":"2.0","id":"req-2","result":{"tools":[]}}
    "#;
    play(&mut editor(), &format!("{HELLO}{script}"));
}

#[test]
fn a_call_of_a_tool_that_is_not_registered_is_an_error() {
    let script = r#"
        > {"jsonrpc":"2.0","id":"req-3","method":"tools/call","params":{"name":"toolName","arguments":{}}}
        < {"jsonrpc":"2.0","id":"req-3","error":{"code":-32601,"message":"Tool not found: toolName"}}
    "#;
    play(&mut editor(), &format!("{HELLO}{script}"));
}

#[test]
fn a_tool_that_is_registered_is_listed_and_called_and_its_result_is_wrapped() {
    let mut editor = editor();
    play(&mut editor, HELLO);
    register_tool(&editor, "openFile", |arguments| Ok(format!("opened {}", arguments.text())));
    play(
        &mut editor,
        r#"
        > {"jsonrpc":"2.0","id":"req-2","method":"tools/list"}
        < {"jsonrpc":"2.0","id":"req-2","result":{"tools":[{"name":"openFile","description":"An editor's tool","inputSchema":{"type":"object","properties":{}}}]}}
        > {"jsonrpc":"2.0","id":"req-3","method":"tools/call","params":{"name":"openFile","arguments":{"path":"a"}}}
        < {"jsonrpc":"2.0","id":"req-3","result":{"content":[{"type":"text","text":"opened {\"path\":\"a\"}"}]}}
    "#,
    );
}

#[test]
fn a_handlers_failure_is_wrapped_with_is_error() {
    let mut editor = editor();
    register_tool(&editor, "saveDocument", |_| Err("read-only file".into()));
    let script = r#"
        > {"jsonrpc":"2.0","id":"req-3","method":"tools/call","params":{"name":"saveDocument"}}
        < {"jsonrpc":"2.0","id":"req-3","result":{"content":[{"type":"text","text":"read-only file"}],"isError":true}}
    "#;
    play(&mut editor, &format!("{HELLO}{script}"));
}

#[test]
fn tools_come_and_go_while_clients_are_there_and_they_are_told() {
    let mut editor = editor();
    editor.house.engine.registry().allow_changes();
    play(&mut editor, HELLO);
    register_tool(&editor, "openFile", |_| Ok(String::new()));
    let told = r#"< {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    play(&mut editor, told);
    let registry = editor.house.engine.registry();
    let id = registry.provider_of_tool("openFile").unwrap();
    assert!(registry.remove(id).is_some());
    play(&mut editor, told);
    editor.say(br#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
    assert_eq!(crate::answer(&mut editor)["result"], json!({ "tools": [] }));
}
