//! A session belongs to its caller: rows 10, 25 and 26.

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::issuer::{Issuer, ec};
use crate::server::{send, start};

const LEGACY: &str = "POST /mcp HTTP/1.1\ncontent-type: application/json\n\
     accept: application/json, text/event-stream";

#[tokio::test]
async fn a_session_belongs_to_its_caller_not_to_a_token() {
    let key = ec();
    let issuer = Issuer::start(std::slice::from_ref(&key)).await;
    let address = start(&issuer).await;
    let token =
        |sub: &str, jti: u8| key.sign(&issuer.claims_with(json!({ "sub": sub, "jti": jti })));
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "t", "version": "1" },
    }});
    let lines = format!("{LEGACY}\nauthorization: Bearer {}", token("ann", 1));
    let opened = send(address, &lines, &hello.to_string()).await;
    let id = opened.header("mcp-session-id").unwrap_or_else(|| panic!("{opened:?}")).to_owned();
    let ping = json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" }).to_string();
    let with = |lines: &str, token: Option<String>| {
        let token = token.map(|token| format!("\nauthorization: Bearer {token}"));
        format!("{lines}\nmcp-session-id: {id}{}", token.unwrap_or_default())
    };
    let get = "GET /mcp HTTP/1.1\naccept: text/event-stream";
    let delete = "DELETE /mcp HTTP/1.1";
    let resume = "GET /mcp HTTP/1.1\naccept: text/event-stream\nlast-event-id: 0";
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string();
    let answer = json!({ "jsonrpc": "2.0", "id": 1, "result": {} }).to_string();
    let list = json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/list" }).to_string();
    for (lines, body) in [
        (LEGACY, &*ping),
        (LEGACY, &*note),
        (LEGACY, &*answer),
        (LEGACY, &*list),
        (LEGACY, &*hello.to_string()),
        (get, ""),
        (resume, ""),
        (delete, ""),
    ] {
        let foreign = send(address, &with(lines, Some(token("bob", 1))), body).await;
        assert_eq!(foreign.status, 404, "{lines} {body}");
        assert_eq!(send(address, &with(lines, None), body).await.status, 401, "{lines}");
    }
    let refreshed = send(address, &with(LEGACY, Some(token("ann", 2))), &ping).await;
    assert_eq!(refreshed.status, 200, "a refreshed token keeps the session: {refreshed:?}");
    assert_eq!(send(address, &with(delete, Some(token("ann", 3))), "").await.status, 204);
}

#[tokio::test]
async fn a_stream_of_the_first_transport_belongs_to_its_caller_too() {
    let key = ec();
    let issuer = Issuer::start(std::slice::from_ref(&key)).await;
    let address = start(&issuer).await;
    let token = |sub: &str| key.sign(&issuer.claims_with(json!({ "sub": sub })));
    let mut stream = TcpStream::connect(address).await.unwrap();
    let open = format!(
        "GET /sse HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\
         authorization: Bearer {}\r\n\r\n",
        token("ann")
    );
    stream.write_all(open.as_bytes()).await.unwrap();
    let mut read = Vec::new();
    let place = loop {
        assert!(stream.read_buf(&mut read).await.unwrap() > 0, "the stream ended");
        let text = String::from_utf8_lossy(&read).into_owned();
        let found = text.split_once("data: ").and_then(|(_, rest)| rest.split_once('\n'));
        if let Some((place, _)) = found {
            break place.trim().to_owned();
        }
    };
    let post = |token: Option<String>| {
        let token = token.map(|token| format!("\nauthorization: Bearer {token}"));
        let lines = format!(
            "POST {place} HTTP/1.1\ncontent-type: application/json{}",
            token.unwrap_or_default()
        );
        let ping = json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" }).to_string();
        async move { send(address, &lines, &ping).await.status }
    };
    assert_eq!(post(Some(token("bob"))).await, 404);
    assert_eq!(post(None).await, 401);
    assert_eq!(post(Some(token("ann"))).await, 202);
}
