//! The rules of WebSocket alone: certificates, and servers that violate the handshake or the
//! protocol.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use sabir_client::{
    CallError, Client, Grant, HttpTarget, InMemory, Keep as _, OAuth, OAuthSettings, OpenError,
};
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
    // Nothing is served at this path.
    let target = HttpTarget::new(format!("ws://{address}/elsewhere")).unwrap();
    let target = target.with_header("Authorization", "Bearer secret").unwrap();
    let missing = client(target, Revision::NEWEST).open().await.unwrap_err();
    assert!(matches!(missing, OpenError::Status { status: 404, .. }), "{missing:?}");
}

/// A server that demands another nonce so many times, answers the handshakes, and then does what
/// the test wants with a call.
async fn server(
    nonces: usize,
    act: impl AsyncFn(&mut WebSocketStream<TcpStream>) + 'static,
) -> HttpTarget {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::task::spawn_local(async move {
        for nonce in 0..nonces {
            let (mut socket, _) = listener.accept().await.unwrap();
            let _ = socket.read(&mut [0; 4096]).await;
            let head = format!(
                "HTTP/1.1 401 Unauthorized\r\nwww-authenticate: DPoP error=\"use_dpop_nonce\"\r\n\
                 dpop-nonce: n{nonce}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
            );
            socket.write_all(head.as_bytes()).await.unwrap();
        }
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

/// The error of a call to such a server.
async fn failure(act: impl AsyncFn(&mut WebSocketStream<TcpStream>) + 'static) -> CallError {
    tokio::task::LocalSet::new()
        .run_until(async {
            let client = client(server(0, act).await, Revision::NEWEST_LEGACY);
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

/// A key that a token is bound to, made for this test.
const KEY: &str = "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgaSx3G7kfWiYfBTaY6H0jCb3ybe9h\
    4vKjtsh7xfqdh7ihRANCAATbLWsQtW7aQhO8jdzkqOYVSHO85NI7nylspfozb1UJ13av+1cRSERU9+rVALzaoDmManRe\
    IuEqddkruMUNJaNT";

#[tokio::test]
async fn the_handshake_is_repeated_as_often_as_other_requests() {
    let kept = json!({ "tokens": {
        "metadata": { "issuer": "https://as.example" }, "client": { "client_id": "me" },
        "resource": "", "scopes": [], "access": "token", "issued": 0, "key": KEY,
    } });
    let keep = InMemory::default();
    keep.save(&serde_json::from_value(kept).unwrap()).await.unwrap();
    let opening = async {
        let target = server(2, async |_| {}).await;
        let settings = OAuthSettings::new(Grant::Code);
        let auth = OAuth::new(&target.url, target.http.clone(), settings, Arc::new(keep));
        let auth = Some(Arc::new(auth.unwrap()));
        client(HttpTarget { auth, ..target }, Revision::NEWEST_LEGACY).open().await
    };
    let opened = tokio::task::LocalSet::new().run_until(opening).await;
    assert!(opened.is_ok(), "{opened:?}");
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
