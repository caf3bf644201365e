//! What is particular about WebSocket: certificates, and servers that break the handshake or the
//! rules.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use sabir_client::{CallError, Client, HttpTarget, OpenError};
use sabir_outbound::{HttpClient, Policy};
use sabir_testkit::{StandInServer, TlsFront};
use sabir_wire::Revision;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use crate::support::{Robot, config};

fn client(target: HttpTarget, revision: Revision) -> Client {
    let mut config = config(revision);
    config.limits.message_size = 100_000;
    config.reconnect.attempts = 1;
    Client::new(target.transport(), config, Arc::new(Robot::default()))
}

/// A client of `wss://localhost` that trusts the certificates of `trusted`, too.
fn secure(port: u16, trusted: Option<&TlsFront>, revision: Revision) -> Client {
    let roots = trusted.map(|front| front.certificate.clone()).into_iter().collect();
    let http = HttpClient::new(Policy { roots, ..Policy::trusting() }).unwrap();
    let target = HttpTarget::new(format!("wss://localhost:{port}/mcp")).unwrap();
    client(HttpTarget { http, ..target }, revision)
}

#[tokio::test]
async fn the_certificate_of_a_wss_server_must_be_trusted_and_have_the_name() {
    let mut server = StandInServer::start().await;
    let address = server.http(|_| {}).await;
    let front = TlsFront::start("localhost", address).await;
    for revision in [Revision::NEWEST, Revision::NEWEST_LEGACY] {
        let client = secure(front.port, Some(&front), revision);
        assert_eq!(client.list_tools().await.unwrap().len(), 12, "{revision}");
        let text = "ä".repeat(20_000);
        let reply = client.call_tool("echo", json!({ "text": text })).await.unwrap();
        assert!(format!("{:?}", reply.content).contains(&text), "{revision}");
    }
    let error = secure(front.port, None, Revision::NEWEST).open().await.unwrap_err();
    let untrusted = |reason: &str| reason.contains("invalid peer certificate");
    assert!(matches!(&error, OpenError::Start(reason) if untrusted(reason)), "{error:?}");
    let other = TlsFront::start("other.example", address).await;
    let error = secure(other.port, Some(&other), Revision::NEWEST).open().await.unwrap_err();
    let wrong_name = |reason: &str| reason.contains("certificate not valid for name");
    assert!(matches!(&error, OpenError::Start(reason) if wrong_name(reason)), "{error:?}");
    // A server without TLS.
    let error = secure(address.port(), None, Revision::NEWEST).open().await.unwrap_err();
    assert!(matches!(error, OpenError::Start(_)), "{error:?}");
}

#[tokio::test]
async fn plain_ws_leaves_this_machine_for_nowhere_and_credentials_are_sent() {
    let target = HttpTarget::new("ws://example.com/mcp").unwrap();
    assert!(matches!(target.check(), Err(OpenError::Impossible(_))));
    let error = client(target, Revision::NEWEST).open().await.unwrap_err();
    assert!(matches!(error, OpenError::Impossible(_)), "{error:?}");
    let mut server = StandInServer::start().await;
    let address = server.token("secret").await;
    let target = HttpTarget::new(format!("ws://{address}/mcp")).unwrap();
    let refused = client(target.clone(), Revision::NEWEST).open().await.unwrap_err();
    assert!(matches!(refused, OpenError::Unauthorized { status: 401, .. }), "{refused:?}");
    let target = target.with_header("Authorization", "Bearer secret").unwrap();
    assert_eq!(client(target, Revision::NEWEST).list_tools().await.unwrap().len(), 12);
    // There is no endpoint.
    let target = HttpTarget::new(format!("ws://{address}/elsewhere")).unwrap();
    let target = target.with_header("Authorization", "Bearer secret").unwrap();
    let missing = client(target, Revision::NEWEST).open().await.unwrap_err();
    assert!(matches!(missing, OpenError::Status { status: 404, .. }), "{missing:?}");
}

/// A server that answers the handshakes, and then does what the test wants with a call.
async fn server(act: impl AsyncFn(&mut WebSocketStream<TcpStream>) + 'static) -> HttpTarget {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::task::spawn_local(async move {
        let (socket, _) = listener.accept().await.unwrap();
        let mut socket = tokio_tungstenite::accept_async(socket).await.unwrap();
        while let Some(Ok(message)) = socket.next().await {
            let message: Value = serde_json::from_str(message.to_text().unwrap()).unwrap();
            let result = match message["method"].as_str() {
                Some("initialize") => json!({
                    "protocolVersion": Revision::NEWEST_LEGACY.date(),
                    "capabilities": { "tools": {} },
                    "serverInfo": { "name": "s", "version": "1" },
                }),
                Some("tools/call") => {
                    act(&mut socket).await;
                    continue;
                }
                _ => continue,
            };
            let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
            socket.send(Message::text(answer.to_string())).await.unwrap();
        }
    });
    HttpTarget::new(format!("ws://{address}/")).unwrap()
}

/// What a call of such a server ends with.
async fn failure(act: impl AsyncFn(&mut WebSocketStream<TcpStream>) + 'static) -> CallError {
    tokio::task::LocalSet::new()
        .run_until(async {
            let client = client(server(act).await, Revision::NEWEST_LEGACY);
            let called = client.call_tool("t", json!({}));
            tokio::time::timeout(Duration::from_secs(30), called).await.unwrap().unwrap_err()
        })
        .await
}

#[tokio::test]
async fn a_call_ends_with_the_connection_and_its_reason() {
    let closed = failure(async |socket| {
        let frame = CloseFrame { code: CloseCode::Away, reason: "back at noon".into() };
        socket.close(Some(frame)).await.unwrap();
    });
    let closed = closed.await;
    assert!(matches!(&closed, CallError::Lost(r) if r.contains("back at noon")), "{closed:?}");
    let dropped = failure(async |socket| socket.get_mut().shutdown().await.unwrap()).await;
    assert!(matches!(dropped, CallError::Lost(_)), "{dropped:?}");
    // One byte more than the limit of the client.
    let long = failure(async |socket| {
        socket.send(Message::text(" ".repeat(100_001))).await.unwrap();
    });
    let long = long.await;
    assert!(matches!(long, CallError::Lost(_) | CallError::TooLong(_)), "{long:?}");
}

#[tokio::test]
async fn a_server_that_does_not_know_our_key_is_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let _ = socket.read(&mut [0; 4096]).await;
            let head = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\n\
                        upgrade: websocket\r\nsec-websocket-accept: c2FiaXI=\r\n\r\n";
            let _ = socket.write_all(head.as_bytes()).await;
        }
    });
    let target = HttpTarget::new(format!("ws://{address}/")).unwrap();
    let error = client(target, Revision::NEWEST).open().await.unwrap_err();
    let wrong_key = |reason: &str| reason.contains("does not fit our key");
    assert!(matches!(&error, OpenError::Invalid(reason) if wrong_key(reason)), "{error:?}");
}
