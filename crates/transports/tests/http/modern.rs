//! Modern clients: one POST, one answer. Each test is a rule of the specification.

mod headers; // what is repeated in headers
mod listening; // listeners, and logs

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};

use crate::client::{MODERN, Request};
use crate::server::{Wish, start};

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

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

#[tokio::test]
async fn a_call_that_only_takes_long_is_answered_as_json_too() {
    let server = start().await;
    let mut client = server.connect().await;
    client.write(&Request::call("a", "wait", json!({})).bytes()).await;
    server.signals.until(|signals| signals.begun.load(Ordering::SeqCst) == 1).await;
    server.signals.gate.0.add_permits(1);
    let response = client.response().await;
    assert_eq!(response.header("content-type"), Some("application/json"));
    assert_eq!((response.status, response.text().as_str()), (200, "waited"));
    server.stop().await;
}

#[tokio::test]
async fn a_long_silence_is_broken_by_a_stream_that_is_kept_alive() {
    let wish = Wish::default().http(|http| http.keep_alive = Duration::from_millis(20));
    let server = wish.start().await;
    let mut client = server.connect().await;
    let head = client.open(&Request::call(1, "wait", json!({}))).await;
    assert_eq!(head.status, 200);
    assert_eq!(head.header("content-type"), Some("text/event-stream"));
    assert_eq!(head.header("x-accel-buffering"), Some("no"));
    let mut pending = Vec::new();
    for _ in 0..3 {
        assert!(client.event(&mut pending).await.unwrap().is_comment);
    }
    server.signals.gate.0.add_permits(1);
    let answer = loop {
        let event = client.event(&mut pending).await.unwrap();
        if !event.is_comment {
            break event;
        }
    };
    assert_eq!(answer.json()["result"]["content"][0]["text"], "waited");
    assert_eq!(client.event(&mut pending).await, None);
    server.stop().await;
}

#[tokio::test]
async fn r1_a_foreign_origin_alone_is_403_on_every_path() {
    let server = start().await;
    let mut client = server.connect().await;
    for (method, path) in [
        ("POST", "/mcp"),
        ("GET", "/mcp"),
        ("DELETE", "/mcp"),
        ("OPTIONS", "/mcp"),
        ("GET", "/healthz"),
        ("GET", "/sse"),
        ("POST", "/messages"),
        ("GET", "/nowhere"),
    ] {
        let request = Request::new(method, path).header("origin", "http://evil.example.com");
        let response = client.send(&request).await;
        assert_eq!(response.status, 403, "{method} {path}");
        assert_eq!(response.header("access-control-allow-origin"), None);
        assert_eq!(response.json().get("id"), None);
    }
    let good = Request::call(1, "echo", json!({})).header("origin", "http://localhost:5173");
    let response = client.send(&good).await;
    assert_eq!(response.status, 200);
    let allowed = response.header("access-control-allow-origin");
    assert_eq!(allowed, Some("http://localhost:5173"));
    let absent = Request::call(1, "echo", json!({}));
    assert_eq!(client.send(&absent).await.status, 200);
    let rebound = absent.with("host", "evil.example.com");
    assert_eq!(client.send(&rebound).await.status, 403);
    server.stop().await;
}

#[tokio::test]
async fn r2_a_notification_is_202_without_a_body_and_a_bad_one_is_4xx() {
    let server = start().await;
    let mut client = server.connect().await;
    let note = Request::note("notifications/cancelled", json!({ "requestId": 1 }))
        .header("mcp-protocol-version", MODERN);
    let response = client.send(&note).await;
    assert_eq!((response.status, response.body.len()), (202, 0));
    let bad = Request::post(r#"{"jsonrpc":"1.0","method":"notifications/cancelled"}"#)
        .header("mcp-protocol-version", MODERN);
    assert_eq!(client.send(&bad).await.status, 400);
    server.stop().await;
}

#[tokio::test]
async fn r3_an_invalid_message_is_refused_and_no_id_is_invented() {
    let server = start().await;
    let mut client = server.connect().await;
    for (body, code) in [
        (r#"[{"jsonrpc":"2.0","id":1,"method":"tools/list"}]"#, -32600),
        ("[]", -32600),
        (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":null,"method":"tools/list","params":{}}"#, -32600),
        ("{", -32700),
        ("", -32700),
        ("nonsense", -32700),
        ("7", -32600),
        ("\u{feff}{}", -32700),
    ] {
        let request = Request::post(body)
            .header("mcp-protocol-version", MODERN)
            .header("mcp-method", "tools/list");
        let response = client.send(&request).await;
        assert_eq!((response.status, response.code()), (400, code), "{body}");
        assert_eq!(response.json().get("id"), None, "{body}");
    }
    let bad_id = Request::post(r#"{"jsonrpc":"2.0","id":1.5,"method":"tools/list"}"#)
        .header("mcp-protocol-version", MODERN);
    assert_eq!(client.send(&bad_id).await.code(), -32600);
    server.stop().await;
}

#[tokio::test]
async fn r4_a_modern_request_without_the_version_header_is_a_mismatch() {
    let server = start().await;
    let mut client = server.connect().await;
    let request = Request::call(5, "echo", json!({})).without("mcp-protocol-version");
    let response = client.send(&request).await;
    assert_eq!((response.status, response.code()), (400, -32020));
    assert_eq!(response.json()["id"], 5);
    server.stop().await;
}

fn versioned(header: &str, body: &str) -> Request {
    let meta = json!({ VERSION: body, CAPABILITIES: {} });
    Request::legacy(1, "tools/list", json!({ "_meta": meta }))
        .header("mcp-protocol-version", header)
        .header("mcp-method", "tools/list")
}

#[tokio::test]
async fn r5_a_version_that_is_not_served_is_told_with_those_that_are() {
    let server = start().await;
    let mut client = server.connect().await;
    for version in ["v999.0.0", "2025-11-25"] {
        let response = client.send(&versioned(version, version)).await;
        assert_eq!((response.status, response.code()), (400, -32022), "{version}");
        let data = &response.json()["error"]["data"];
        assert_eq!(data["requested"], version);
        assert_eq!(data["supported"], json!([MODERN]));
    }
    server.stop().await;
}

#[tokio::test]
async fn a_mismatch_outranks_a_version_that_is_not_served() {
    let server = start().await;
    let mut client = server.connect().await;
    for (header, body) in [(MODERN, "v999.0.0"), ("v999.0.0", MODERN), ("2025-11-25", MODERN)] {
        let response = client.send(&versioned(header, body)).await;
        assert_eq!((response.status, response.code()), (400, -32020), "{header} {body}");
    }
    let both = versioned("v999.0.0", "v999.0.0").without("mcp-method");
    assert_eq!(client.send(&both).await.code(), -32020);
    server.stop().await;
}

#[tokio::test]
async fn r6_a_client_that_disconnects_cancels() {
    let wish = Wish::default().http(|http| http.keep_alive = Duration::from_millis(20));
    let server = wish.start().await;
    // Before the first message, and in the middle of a stream.
    for (nth, is_streaming) in [(1, false), (2, true)] {
        let mut client = server.connect().await;
        client.write(&Request::call(1, "wait", json!({})).bytes()).await;
        server.signals.until(|signals| signals.begun.load(Ordering::SeqCst) == nth).await;
        if is_streaming {
            assert_eq!(client.head().await.header("content-type"), Some("text/event-stream"));
        }
        drop(client);
        server.signals.until(|signals| signals.dropped.load(Ordering::SeqCst) == nth).await;
    }
    server.until(|stats| stats.connections == 0 && stats.streams == 0 && stats.requests == 0).await;
    server.stop().await;
}

#[tokio::test]
async fn r7_progress_is_told_on_the_stream_of_its_request_only() {
    let server = start().await;
    let mut clients = Vec::new();
    for token in 0..8 {
        let mut client = server.connect().await;
        let params = json!({
            "name": "progress",
            "arguments": { "steps": 5, "pause": true },
            "_meta": { "progressToken": token },
        });
        client.write(&Request::modern(1, "tools/call", params).bytes()).await;
        clients.push(client);
    }
    for (token, client) in clients.iter_mut().enumerate() {
        let response = client.response().await;
        assert_eq!(response.header("content-type"), Some("text/event-stream"));
        let events = response.events();
        let (answer, notes) = events.split_last().unwrap();
        let mut last = 0.0;
        for note in notes {
            assert_eq!(note.method(), "notifications/progress");
            assert_eq!(note.id, None, "a modern stream cannot be resumed");
            let params = &note.json()["params"];
            assert_eq!(params["progressToken"], token);
            assert!(params["progress"].as_f64().unwrap() > last);
            last = params["progress"].as_f64().unwrap();
        }
        assert_eq!(notes.len(), 5);
        assert_eq!(answer.json()["result"]["content"][0]["text"], "arrived");
    }
    server.stop().await;
}

#[tokio::test]
async fn r21_nothing_is_told_without_a_token_and_all_of_it_even_if_it_is_over_at_once() {
    let server = start().await;
    let mut client = server.connect().await;
    let silent = Request::call(1, "progress", json!({}));
    let response = client.send(&silent).await;
    assert_eq!(response.header("content-type"), Some("application/json"));
    let meta = json!({ "progressToken": "token" });
    let params = json!({ "name": "progress", "arguments": {}, "_meta": meta });
    let response = client.send(&Request::modern(1, "tools/call", params)).await;
    assert_eq!(response.header("content-type"), Some("text/event-stream"));
    assert_eq!(response.events().len(), 4);
    server.stop().await;
}

#[tokio::test]
async fn r8_no_request_is_ever_sent_to_the_client() {
    let server = start().await;
    let mut client = server.connect().await;
    for (tool, capabilities) in
        [("ask", json!({ "elicitation": {} })), ("sample", json!({ "sampling": {} }))]
    {
        let params = json!({ "name": tool, "arguments": {} });
        let first = Request::modern_with(1, "tools/call", params.clone(), capabilities.clone());
        let response = client.send(&first).await;
        assert_eq!(response.header("content-type"), Some("application/json"));
        assert_eq!(response.json()["result"]["resultType"], "input_required");
        assert!(response.json()["result"]["inputRequests"]["q"]["method"].is_string());
        let mut again = params;
        again["inputResponses"] = json!({ "q": { "action": "accept", "content": {} } });
        let second = Request::modern_with(2, "tools/call", again, capabilities);
        assert_eq!(client.send(&second).await.json()["result"]["resultType"], "complete");
    }
    server.stop().await;
}

#[tokio::test]
async fn r12_a_modern_client_has_no_get_no_delete_and_no_session() {
    let server = start().await;
    let mut client = server.connect().await;
    for method in ["GET", "DELETE"] {
        let request = Request::new(method, "/mcp")
            .header("mcp-protocol-version", MODERN)
            .header("accept", "text/event-stream");
        let response = client.send(&request).await;
        assert_eq!(response.status, 405, "{method}");
        assert!(response.header("allow").unwrap().contains("POST"));
    }
    let response = client
        .send(
            &Request::call(1, "echo", json!({ "text": "x" }))
                .header("mcp-session-id", "no-such-session")
                .header("last-event-id", "p1-1"),
        )
        .await;
    assert_eq!((response.status, response.text().as_str()), (200, "x"));
    assert_eq!(response.header("mcp-session-id"), None);
    server.stop().await;
}

#[tokio::test]
async fn r13_metadata_that_is_missing_or_of_the_wrong_type_is_400() {
    let server = start().await;
    let mut client = server.connect().await;
    for meta in [
        Value::Null,
        json!({}),
        json!({ VERSION: MODERN }),
        json!({ CAPABILITIES: {} }),
        json!({ VERSION: MODERN, CAPABILITIES: [] }),
        json!({ VERSION: 7, CAPABILITIES: {} }),
        json!({ VERSION: MODERN, CAPABILITIES: {}, "progressToken": {} }),
        json!({ VERSION: MODERN, CAPABILITIES: {}, "io.modelcontextprotocol/logLevel": "loud" }),
        json!({ VERSION: MODERN, CAPABILITIES: {}, "io.modelcontextprotocol/clientInfo": "x" }),
    ] {
        let mut params = json!({});
        if !meta.is_null() {
            params["_meta"] = meta.clone();
        }
        let request = Request::legacy(9, "tools/list", params)
            .header("mcp-protocol-version", MODERN)
            .header("mcp-method", "tools/list");
        let response = client.send(&request).await;
        assert_eq!((response.status, response.code()), (400, -32602), "{meta}");
        assert_eq!(response.json()["id"], 9);
    }
    server.stop().await;
}

#[tokio::test]
async fn r14_an_unknown_method_is_404_and_so_are_those_of_the_legacy_era() {
    let server = start().await;
    let mut client = server.connect().await;
    for method in [
        "no/such",
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
    ] {
        let params = json!({ "uri": "test://note", "level": "info" });
        let request = Request::modern("x", method, params).without("mcp-name");
        let response = client.send(&request).await;
        assert_eq!((response.status, response.code()), (404, -32601), "{method}");
        assert_eq!(response.json()["id"], "x");
    }
    // An error of the call itself is not an HTTP error.
    let unknown_tool = client.send(&Request::call(1, "no-such-tool", json!({}))).await;
    assert_eq!((unknown_tool.status, unknown_tool.code()), (200, -32602));
    server.stop().await;
}

#[tokio::test]
async fn r15_nothing_is_remembered_between_two_requests_of_a_connection() {
    let server = start().await;
    let mut client = server.connect().await;
    let able = json!({ "elicitation": {} });
    for _ in 0..3 {
        let params = json!({ "name": "ask", "arguments": {} });
        let asked = Request::modern_with(1, "tools/call", params.clone(), able.clone());
        assert_eq!(client.send(&asked).await.json()["result"]["resultType"], "input_required");
        let unable = Request::modern_with(1, "tools/call", params, json!({}));
        assert_eq!(client.send(&unable).await.code(), -32021);
        let meta = json!({ "io.modelcontextprotocol/logLevel": "debug" });
        let logs = Request::modern(2, "tools/call", json!({ "name": "logs", "_meta": meta }));
        assert_eq!(client.send(&logs).await.events().len(), 3);
        let silent = Request::modern(3, "tools/call", json!({ "name": "logs" }));
        assert_eq!(client.send(&silent).await.text(), "logged");
    }
    server.stop().await;
}

#[tokio::test]
async fn r16_a_missing_capability_is_400_and_named() {
    let server = start().await;
    let mut client = server.connect().await;
    for (tool, needed) in
        [("ask", json!({ "elicitation": {} })), ("sample", json!({ "sampling": {} }))]
    {
        let response = client.send(&Request::call(4, tool, json!({}))).await;
        assert_eq!((response.status, response.code()), (400, -32021), "{tool}");
        assert_eq!(response.json()["error"]["data"]["requiredCapabilities"], needed);
        assert_eq!(response.json()["id"], 4);
    }
    server.stop().await;
}

#[tokio::test]
async fn a_tool_that_fails_or_panics_harms_nobody_else() {
    let server = start().await;
    let mut client = server.connect().await;
    let failed = client.send(&Request::call(1, "fail", json!({}))).await;
    assert_eq!(failed.json()["result"]["isError"], true);
    let panicked = client.send(&Request::call(2, "panic", json!({}))).await;
    assert_eq!((panicked.status, panicked.code()), (200, -32603));
    assert_eq!(client.send(&Request::call(3, "echo", json!({}))).await.status, 200);
    server.stop().await;
}

#[tokio::test]
async fn discovery_is_answered_without_a_word_before() {
    let server = start().await;
    let mut client = server.connect().await;
    let response = client.send(&Request::modern("probe", "server/discover", json!({}))).await;
    assert_eq!(response.status, 200);
    let versions = &response.json()["result"]["supportedVersions"];
    assert!(versions.as_array().unwrap().contains(&json!(MODERN)));
    server.stop().await;
}

#[tokio::test]
async fn the_era_is_told_by_the_metadata_never_by_the_method_header() {
    let server = start().await;
    let mut client = server.connect().await;
    // Seen in the wild: legacy requests with the modern header for the method.
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {} });
    let hello = Request::legacy(1, "initialize", hello).header("mcp-method", "initialize");
    let response = client.send(&hello).await;
    let id = response.header("mcp-session-id").unwrap().to_owned();
    let ping = Request::legacy(2, "ping", json!({}))
        .header("mcp-session-id", &id)
        .header("mcp-method", "something/else");
    assert_eq!(client.send(&ping).await.json()["result"], json!({}));
    // And a handshake whose header already names what the client hopes for.
    let hopeful = json!({ "protocolVersion": MODERN, "capabilities": {} });
    let hopeful = Request::legacy(1, "initialize", hopeful).header("mcp-protocol-version", MODERN);
    let response = client.send(&hopeful).await;
    assert_eq!(response.json()["result"]["protocolVersion"], "2025-11-25");
    server.stop().await;
}
