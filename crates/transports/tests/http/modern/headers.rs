//! Headers that repeat parts of the body.

use serde_json::json;

use crate::client::Request;
use crate::server::start;

#[tokio::test]
async fn r9_the_name_is_compared_for_prompts_and_resources_too() {
    let server = start().await;
    let mut client = server.connect().await;
    let prompt = Request::modern(
        1,
        "prompts/get",
        json!({ "name": "greet", "arguments": { "who": "you" } }),
    );
    let resource = Request::modern(1, "resources/read", json!({ "uri": "test://note" }));
    for (request, encoded) in
        [(prompt, "=?base64?Z3JlZXQ=?="), (resource, "=?base64?dGVzdDovL25vdGU=?=")]
    {
        assert_eq!(client.send(&request).await.status, 200);
        assert_eq!(client.send(&request.clone().with("mcp-name", encoded)).await.status, 200);
        let padded = client.send(&request.clone().with("mcp-name", &format!("  {encoded} "))).await;
        assert_eq!(padded.status, 200);
        for wrong in ["other", "=?base64?b3RoZXI=?=", "=?base64?Z3JlZXQ?=", "=?base64?%%?="] {
            let response = client.send(&request.clone().with("mcp-name", wrong)).await;
            assert_eq!((response.status, response.code()), (400, -32020), "{wrong}");
        }
        let missing = client.send(&request.without("mcp-name")).await;
        assert_eq!((missing.status, missing.code()), (400, -32020));
    }
    server.stop().await;
}

#[tokio::test]
async fn r10_mirrored_arguments_are_compared() {
    let server = start().await;
    let mut client = server.connect().await;
    let arguments = json!({
        "region": "Zürich", "count": 3, "dry": false, "where": { "zone": "a b" },
    });
    let good = Request::call(1, "mirror", arguments)
        .header("Mcp-Param-Region", "=?base64?WsO8cmljaA==?=")
        .header("MCP-PARAM-COUNT", "3")
        .header("mcp-param-dry", "false")
        .header("mcp-param-zone", "a b");
    assert_eq!(client.send(&good).await.status, 200);
    for (name, value) in [
        ("Mcp-Param-Region", Some("Zurich")),
        ("Mcp-Param-Region", None),
        ("Mcp-Param-Count", Some("4")),
        ("Mcp-Param-Dry", Some("true")),
        ("Mcp-Param-Zone", Some("=?base64?YSBj?=")),
    ] {
        let bad = match value {
            Some(value) => good.clone().with(name, value),
            None => good.clone().without(name),
        };
        let response = client.send(&bad).await;
        assert_eq!((response.status, response.code()), (400, -32020), "{name}: {value:?}");
    }
    let absent = Request::call(1, "mirror", json!({ "region": null }));
    assert_eq!(client.send(&absent).await.status, 200);
    let uncalled = absent.header("mcp-param-region", "x");
    assert_eq!(client.send(&uncalled).await.code(), -32020);
    server.stop().await;
}

#[tokio::test]
async fn r11_characters_that_no_header_may_hold_are_a_mismatch() {
    let server = start().await;
    let mut client = server.connect().await;
    let request = Request::call(1, "mirror", json!({ "region": "é" }));
    let response = client.send(&request.header("mcp-param-region", "é")).await;
    assert_eq!((response.status, response.code()), (400, -32020));
    let method = Request::call(1, "echo", json!({})).with("mcp-method", "tools/cäll");
    assert_eq!(client.send(&method).await.code(), -32020);
    server.stop().await;
}
