//! Dialects: the deviations of the seed deployments, over real HTTP.

use sabir_session::{Dialect, MissingMethod, NullId, RequireReady, ToolFailure, UnknownTool};
use sabir_wire::Revision;
use serde_json::json;

use crate::client::Request;
use crate::legacy::call;
use crate::server::{Running, Wish};

async fn start(dialect: Dialect) -> Running {
    Wish::default().engine(|engine| engine.dialect = dialect).start().await
}

fn knowledge_base() -> Dialect {
    Dialect {
        revision: Some(Revision::V2024_11_05),
        tool_failure: ToolFailure::InternalError,
        require_ready: Some(RequireReady::None),
        flat_server_info: true,
        ..Dialect::default()
    }
}

fn relay() -> Dialect {
    Dialect {
        revision: Some(Revision::V2025_03_26),
        unknown_tool: UnknownTool::Result,
        require_ready: Some(RequireReady::Tools),
        missing_method: MissingMethod::InvalidRequest,
        null_id: NullId::Answer,
        ..Dialect::default()
    }
}

#[tokio::test]
async fn seed_001_needs_no_session() {
    let server = start(knowledge_base()).await;
    let mut client = server.connect().await;
    let hello = client.send(&Request::legacy("test-id-123", "initialize", json!({}))).await;
    let result = hello.json()["result"].clone();
    assert_eq!(hello.json()["id"], "test-id-123");
    assert_eq!(result["protocolVersion"], "2024-11-05");
    assert!(result["name"].is_string() && result["version"].is_string());
    assert!(result["capabilities"]["tools"].is_object());
    let ready = client.send(&Request::note("notifications/initialized", json!({}))).await;
    assert_eq!((ready.status, ready.body.len()), (202, 0));
    let list = client.send(&Request::legacy(1, "tools/list", json!({}))).await;
    assert!(list.json()["result"]["tools"].as_array().unwrap().len() > 3);
    let echo = json!({ "name": "echo", "arguments": { "text": "x" } });
    assert_eq!(client.send(&Request::legacy(1, "tools/call", echo)).await.text(), "x");
    for (method, params, code) in [
        ("tools/call", json!({ "arguments": {} }), -32602),
        ("tools/call", json!({ "name": "nonexistent_tool" }), -32602),
        ("tools/call", json!({ "name": "fail" }), -32603),
        ("unknown/method", json!({}), -32601),
    ] {
        let response = client.send(&Request::legacy(1, method, params)).await;
        assert_eq!((response.status, response.code()), (200, code), "{method}");
    }
    let unknown = client.send(&Request::legacy(1, "unknown/method", json!({}))).await;
    assert!(unknown.json()["error"]["message"].as_str().unwrap().contains("unknown/method"));
    // A legacy client is not mistaken for a modern one.
    let modern = client.send(&Request::call(1, "echo", json!({}))).await;
    assert_eq!(modern.status, 400);
    server.stop().await;
}

#[tokio::test]
async fn seed_004_needs_a_session_for_tools_only() {
    let server = start(relay()).await;
    let mut client = server.connect().await;
    for method in ["ping", "tools/list"] {
        assert_eq!(client.send(&Request::legacy(1, method, json!({}))).await.status, 200);
    }
    let echo = json!({ "name": "echo", "arguments": { "text": "x" } });
    assert_eq!(client.send(&Request::legacy(1, "tools/call", echo)).await.status, 400);
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {} });
    let response = client.send(&Request::legacy(1, "initialize", hello)).await;
    assert_eq!(response.json()["result"]["protocolVersion"], "2025-03-26");
    let id = response.header("mcp-session-id").unwrap().to_owned();
    assert_eq!(id.len(), 32);
    let early = client.send(&call(&id, 1, "echo", json!({}))).await;
    assert_eq!(early.code(), -32600);
    let ready = Request::note("notifications/initialized", json!({}));
    let response = client.send(&ready.header("mcp-session-id", &id)).await;
    assert_eq!((response.status, response.body.len()), (202, 0));
    assert_eq!(client.send(&call(&id, 1, "echo", json!({ "text": "x" }))).await.text(), "x");
    let unknown = client.send(&call(&id, 1, "nope", json!({}))).await;
    assert_eq!(unknown.json()["result"]["isError"], true);
    // A message with an id, even null, is a request.
    let null = Request::message(&json!({ "jsonrpc": "2.0", "id": null, "method": "ping" }));
    let response = client.send(&null.header("mcp-session-id", &id)).await;
    assert_eq!(response.json(), json!({ "jsonrpc": "2.0", "id": null, "result": {} }));
    for (body, code) in [("{", -32700), (r#"{"jsonrpc":"2.0","id":1}"#, -32600)] {
        let response = client.send(&Request::post(body).header("mcp-session-id", &id)).await;
        assert_eq!((response.status, response.code()), (400, code));
    }
    let gone = client.send(&call(&"x".repeat(32), 1, "echo", json!({}))).await;
    assert_eq!(gone.status, 404);
    let delete = Request::new("DELETE", "/mcp").header("mcp-session-id", &id);
    assert_eq!(client.send(&delete).await.status, 204);
    assert_eq!(client.send(&call(&id, 1, "echo", json!({}))).await.status, 404);
    server.stop().await;
}

#[tokio::test]
async fn a_modern_only_deployment_tells_a_legacy_client_what_it_speaks() {
    let dialect = Dialect { revision: Some(Revision::NEWEST), ..Dialect::default() };
    let server = start(dialect).await;
    let mut client = server.connect().await;
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {} });
    let response = client.send(&Request::legacy(1, "initialize", hello)).await;
    assert_eq!((response.status, response.code()), (400, -32022));
    assert_eq!(response.json()["error"]["data"]["supported"], json!(["2026-07-28"]));
    assert_eq!(response.header("mcp-session-id"), None);
    assert_eq!(server.watcher.stats().sessions, 0);
    assert_eq!(client.send(&Request::call(1, "echo", json!({}))).await.status, 200);
    server.stop().await;
}
