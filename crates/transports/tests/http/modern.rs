//! Modern clients: one POST, one answer.

use serde_json::json;

use crate::client::Request;
use crate::server::start;

#[tokio::test]
async fn a_call_that_answers_at_once_is_answered_as_json() {
    let server = start().await;
    let mut client = server.connect().await;
    let response = client.send(&Request::call(1, "echo", json!({ "text": "salut" }))).await;
    assert_eq!(response.status, 200);
    assert_eq!(response.header("content-type"), Some("application/json"));
    assert_eq!(response.text(), "salut");
    assert_eq!(response.json()["id"], 1);
    assert_eq!(response.json()["result"]["resultType"], "complete");
    assert_eq!(response.header("mcp-session-id"), None);
    server.stop().await;
}
