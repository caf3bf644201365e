//! An editor for Claude Code, its handshake: `Claude Code Neovim MCP`, 2025-03-26.

use sabir_engine::Settings;
use sabir_session::{Dialect, SessionState, UnknownTool};
use sabir_testkit::{ConnectionPlayer, Event, House, Player as _, play};
use sabir_wire::Revision;
use sabir_wire::types::Implementation;
use serde_json::{Value, json};

use crate::playing;

pub(super) fn settings() -> Settings {
    Settings {
        server: Implementation {
            name: "Claude Code Neovim MCP".into(),
            version: "0.1.0".into(),
            ..Implementation::default()
        },
        dialect: Dialect {
            revision: Some(Revision::V2025_03_26),
            unknown_tool: UnknownTool::MethodNotFound,
            ..Dialect::default()
        },
        ..Settings::default()
    }
}

fn editor() -> ConnectionPlayer {
    playing(House::of(settings(), Vec::new()))
}

/// The client asks for a later revision than it gets.
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":"req-1","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"claude-code","version":"1.0.0"}}}"#;

fn welcome() -> Value {
    let mut editor = editor();
    editor.say(INITIALIZE.as_bytes());
    crate::answer(&mut editor)
}

#[test]
fn the_right_response_is_returned_upon_initialize() {
    let expected = json!({
        "jsonrpc": "2.0", "id": "req-1", "result": {
            "protocolVersion": "2025-03-26",
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "Claude Code Neovim MCP", "version": "0.1.0" },
        },
    });
    assert_eq!(welcome(), expected);
}

#[test]
fn the_protocol_version_is_2025_03_26() {
    assert_eq!(welcome()["result"]["protocolVersion"], "2025-03-26");
}

#[test]
fn the_capabilities_include_tools() {
    assert_eq!(welcome()["result"]["capabilities"]["tools"], json!({}));
}

#[test]
fn the_server_is_claude_code_neovim_mcp_0_1_0() {
    let server = &welcome()["result"]["serverInfo"];
    assert_eq!(
        (&server["name"], &server["version"]),
        (&json!("Claude Code Neovim MCP"), &json!("0.1.0"))
    );
}

#[test]
fn the_state_goes_from_waiting_over_initializing_to_ready_and_an_event_tells() {
    let mut editor = editor();
    let state = |editor: &ConnectionPlayer| editor.connection().session().state();
    let is_connected = |editor: &ConnectionPlayer| editor.house.engine.ready_clients() == 1;
    assert_eq!((state(&editor), is_connected(&editor)), (SessionState::Waiting, false));
    editor.say(INITIALIZE.as_bytes());
    assert_eq!((state(&editor), is_connected(&editor)), (SessionState::Initializing, false));
    assert_eq!(editor.event(), None);
    editor.say(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    assert_eq!((state(&editor), is_connected(&editor)), (SessionState::Ready, true));
    assert_eq!(editor.event(), Some(Event::Ready));
    let client = editor.connection().session().client().unwrap().text();
    assert_eq!(client, r#"{"name":"claude-code","version":"1.0.0"}"#);
}

#[test]
fn claude_initializes_says_that_it_is_there_and_lists_the_tools() {
    play(
        &mut editor(),
        &format!(
            r#"
        > {INITIALIZE}
        < {{"jsonrpc":"2.0","id":"req-1","result":"…"}}
        > {{"jsonrpc":"2.0","method":"notifications/initialized"}}
        ! ready
        > {{"jsonrpc":"2.0","method":"ide_connected","params":{{"pid":4711}}}}
        > {{"jsonrpc":"2.0","id":"req-2","method":"tools/list","params":{{}}}}
        < {{"jsonrpc":"2.0","id":"req-2","result":{{"tools":[]}}}}
    "#
        ),
    );
}
