//! Who may call: tokens, pages, public addresses. Also other paths.

use std::time::Duration;

use sabir_engine::Engine;
use sabir_transports::http::{BindError, Server, Settings};
use serde_json::json;

use crate::client::Request;
use crate::legacy::get;
use crate::server::{Wish, start, token};

#[tokio::test]
async fn without_the_token_everything_but_the_health_check_is_401() {
    let server = Wish::default().http(|http| http.tokens = token("s3cret")).start().await;
    let mut client = server.connect().await;
    let requests = [
        Request::call(1, "echo", json!({})),
        Request::legacy(1, "initialize", json!({})),
        get("x"),
        Request::new("DELETE", "/mcp"),
        Request::new("GET", "/sse"),
        Request::new("POST", "/messages?sessionId=x"),
    ];
    for request in &requests {
        for (authorization, challenge) in [
            (None, "Bearer"),
            (Some("Bearer wrong"), "Bearer error=\"invalid_token\""),
            // No token at all.
            (Some("Basic s3cret"), "Bearer"),
            (Some("Bearer"), "Bearer"),
            (Some("Bearer "), "Bearer"),
        ] {
            let request = match authorization {
                Some(value) => request.clone().header("authorization", value),
                None => request.clone(),
            };
            let response = client.send(&request).await;
            assert_eq!(response.status, 401, "{request:?}");
            assert_eq!(response.header("www-authenticate"), Some(challenge));
            assert_eq!(response.code(), -32600);
        }
    }
    let authorized = requests[0].clone().header("authorization", "Bearer s3cret");
    assert_eq!(client.send(&authorized).await.status, 200);
    assert_eq!(client.send(&Request::new("GET", "/healthz")).await.status, 200);
    let in_query = Request { path: "/mcp?access_token=s3cret".into(), ..requests[0].clone() };
    assert_eq!(client.send(&in_query).await.status, 401, "a token in the query does not count");
    server.stop().await;
}

#[tokio::test]
async fn a_page_of_an_allowed_origin_can_do_all_that_a_client_can() {
    let origin = "https://app.example.com";
    let server = Wish::default().http(|http| http.origins = vec![origin.into()]).start().await;
    let mut client = server.connect().await;
    let asked = "content-type, mcp-protocol-version, Mcp-Param-Region, x-evil";
    let preflight = Request::new("OPTIONS", "/mcp")
        .header("origin", origin)
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", asked);
    let response = client.send(&preflight).await;
    assert_eq!((response.status, response.body.len()), (204, 0));
    assert_eq!(response.header("access-control-allow-origin"), Some(origin));
    let methods = response.header("access-control-allow-methods").unwrap();
    assert!(["GET", "POST", "DELETE"].iter().all(|method| methods.contains(method)));
    let headers = response.header("access-control-allow-headers").unwrap();
    for name in [
        "content-type",
        "authorization",
        "mcp-session-id",
        "mcp-protocol-version",
        "mcp-method",
        "mcp-name",
        "last-event-id",
        "Mcp-Param-Region",
    ] {
        assert!(headers.contains(name), "{name} in {headers}");
    }
    assert!(!headers.contains("x-evil"));
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {} });
    let hello = Request::legacy(1, "initialize", hello).header("origin", origin);
    let response = client.send(&hello).await;
    assert_eq!(response.header("access-control-allow-origin"), Some(origin));
    let exposed = response.header("access-control-expose-headers").unwrap();
    assert!(exposed.contains("mcp-session-id"));
    assert_eq!(response.header("vary"), Some("origin"));
    // A page must be able to read why it was refused.
    let refused = client.send(&get("x").header("origin", origin)).await;
    assert_eq!(refused.status, 404);
    assert_eq!(refused.header("access-control-allow-origin"), Some(origin));
    server.stop().await;
}

#[tokio::test]
async fn other_paths_and_methods_get_a_clean_answer() {
    let server = start().await;
    let mut client = server.connect().await;
    for (method, path, status) in [
        ("GET", "/", 404),
        ("GET", "/mcp/", 404),
        ("GET", "/.well-known/oauth-protected-resource", 404),
        ("GET", "/.well-known/oauth-authorization-server/mcp", 404),
        ("GET", "/mcp", 400),
        ("PUT", "/mcp", 405),
        ("PATCH", "/mcp", 405),
        ("BREW", "/mcp", 405),
        ("POST", "/healthz", 405),
        ("GET", "/healthz", 200),
    ] {
        let response = client.send(&Request::new(method, path)).await;
        assert_eq!(response.status, status, "{method} {path}");
        assert_eq!(response.header("content-type"), Some("application/json"));
        response.json();
        assert_eq!(response.header("allow").is_some(), status == 405);
    }
    let options = client.send(&Request::new("OPTIONS", "/mcp")).await;
    assert_eq!((options.status, options.body.len()), (204, 0));
    assert_eq!(options.header("allow"), Some("GET, POST, DELETE, OPTIONS"));
    let query = Request::call(1, "echo", json!({}));
    let query = Request { path: "/mcp?tenant=1".into(), ..query };
    assert_eq!(client.send(&query).await.status, 200);
    let call = Request::call(1, "echo", json!({}));
    for wrong in ["text/plain", "application/x-www-form-urlencoded"] {
        let response = client.send(&call.clone().with("content-type", wrong)).await;
        assert_eq!((response.status, response.code()), (415, -32600));
    }
    assert_eq!(client.send(&call.clone().without("content-type")).await.status, 415);
    assert_eq!(client.send(&call.clone().with("accept", "text/html")).await.status, 406);
    assert_eq!(client.send(&call.without("accept")).await.status, 200);
    server.stop().await;
}

#[tokio::test]
async fn an_address_that_others_can_reach_needs_a_token_and_tls_or_a_word() {
    let bind = async |change: fn(&mut Settings)| {
        let mut settings = Settings::new("0.0.0.0:0".parse().unwrap());
        change(&mut settings);
        Server::bind(Engine::new(sabir_engine::Settings::default()), settings).await
    };
    let refused = bind(|_| {}).await;
    assert!(matches!(refused, Err(BindError::Public(_))));
    assert!(bind(|settings| settings.allow_public = true).await.is_ok());
    let with_token = |settings: &mut Settings| settings.tokens = token("s3cret");
    assert!(matches!(bind(with_token).await, Err(BindError::Plain(_))), "without TLS");
    let behind_proxy = |settings: &mut Settings| {
        (settings.tokens, settings.behind_proxy) = (token("s3cret"), true);
    };
    assert!(bind(behind_proxy).await.is_ok());
    let both = |settings: &mut Settings| {
        (settings.tokens, settings.allow_public) = (token("s3cret"), true);
    };
    assert!(bind(both).await.is_err(), "`allow_public` does not allow tokens without TLS");
    let taken = start().await;
    let settings = Settings::new(taken.address);
    let second = Server::bind(taken.engine.clone(), settings).await;
    assert!(matches!(second, Err(BindError::System { .. })));
    taken.stop().await;
}

#[tokio::test]
async fn a_header_that_says_who_calls_must_be_there_once() {
    let server = start().await;
    let mut client = server.connect().await;
    for name in ["authorization", "mcp-session-id"] {
        let ping = Request::legacy(1, "ping", json!({})).header(name, "a").header(name, "a");
        let response = client.send(&ping).await;
        assert_eq!(response.status, 400, "{name}");
        assert!(response.json()["error"]["message"].as_str().unwrap().contains("duplicate"));
    }
    server.stop().await;
}

/// The head is sent first, and the body when the server may have refused the request already.
#[tokio::test]
async fn a_refusal_before_the_body_keeps_the_connection_or_announces_its_end() {
    let server = Wish::default().http(|http| http.tokens = token("s3cret")).start().await;
    for (request, status) in [
        (Request::call(1, "echo", json!({ "text": "x" })), 401),
        (Request::call(1, "echo", json!({ "text": "x" })).with("host", "evil.example"), 403),
        (Request { path: "/nowhere".into(), ..Request::post("{}") }, 404),
    ] {
        let bytes = request.bytes();
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
        let (head, body) = bytes.split_at(end);
        let mut client = server.connect().await;
        client.write(head).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        client.write(body).await;
        let response = client.response().await;
        assert_eq!(response.status, status);
        if response.header("connection") != Some("close") {
            client.write(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
            assert_eq!(client.response().await.status, 200, "closed after {status}");
        }
    }
    server.stop().await;
}
