//! What is particular about HTTP: sessions, credentials, streams that never end.

use std::sync::Arc;
use std::time::Duration;

use sabir_client::{CallError, Client, HttpTarget, HttpTransport, OpenError};
use sabir_testkit::StandInServer;
use sabir_wire::{Era, Revision};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::support::{Robot, config};

fn client(target: HttpTarget, revision: Revision) -> Client {
    let mut config = config(revision);
    config.limits.message_size = 100_000;
    config.limits.probe_time = Duration::from_millis(500);
    config.limits.open_time = Duration::from_secs(2);
    config.limits.call_time = Some(Duration::from_secs(5));
    config.reconnect.first_wait = Duration::from_millis(5);
    Client::new(Arc::new(HttpTransport::new(target)), config, Arc::new(Robot::default()))
}

#[tokio::test]
async fn a_session_that_the_server_has_ended_is_replaced() {
    let mut server = StandInServer::start().await;
    let idle = Duration::from_millis(300);
    let address = server.http(|settings| settings.limits.session_idle = idle).await;
    let target = HttpTarget::new(format!("http://{address}/mcp")).unwrap();
    let mut config = config(Revision::NEWEST_LEGACY);
    config.limits.call_time = Some(Duration::from_secs(20));
    let client = Client::without_answers(Arc::new(HttpTransport::new(target)), config);
    client.call_tool("add", json!({ "a": 1, "b": 2 })).await.unwrap();
    // Its stream of notifications keeps the session alive; many servers drop it all the same.
    for _ in 0..3 {
        tokio::time::sleep(idle * 3).await;
        client.call_tool("add", json!({ "a": 1, "b": 2 })).await.unwrap();
    }
}

#[tokio::test]
async fn credentials_are_sent_and_their_absence_is_told() {
    let mut server = StandInServer::start().await;
    let address = server.token("secret").await;
    let target = HttpTarget::new(format!("http://{address}/mcp")).unwrap();
    let refused = client(target.clone(), Revision::NEWEST).open().await.unwrap_err();
    assert!(matches!(refused, OpenError::Unauthorized { status: 401, .. }), "{refused:?}");
    let target = target.with_header("Authorization", "Bearer secret").unwrap();
    for revision in [Revision::NEWEST, Revision::NEWEST_LEGACY] {
        let client = client(target.clone(), revision);
        assert_eq!(client.list_tools().await.unwrap().len(), 12);
    }
}

/// A server that answers every request with these bytes, then goes on for ever with the others.
async fn endless(head: &'static str, rest: &'static [u8]) -> HttpTarget {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut request = [0; 4096];
                let _ = socket.read(&mut request).await;
                let _ = socket.write_all(head.as_bytes()).await;
                while socket.write_all(rest).await.is_ok() {
                    tokio::task::yield_now().await;
                }
            });
        }
    });
    HttpTarget::new(format!("http://{address}/mcp")).unwrap()
}

#[tokio::test]
async fn bodies_and_streams_without_end_cost_bounded_time() {
    for (head, rest) in [
        ("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{\"a\":\"", &[b'x'; 4096][..]),
        ("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: ", &[b'x'; 4096]),
        ("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n", b": nothing\n\n"),
        ("HTTP/1.1 400 Bad Request\r\n\r\n", &[b'x'; 4096]),
        ("HTTP/1.1 200 OK\r\n", b"x: y\r\n"),
    ] {
        let client = client(endless(head, rest).await, Revision::NEWEST);
        let opened = tokio::time::timeout(Duration::from_secs(20), client.open()).await;
        assert!(opened.unwrap().is_err(), "{head:?}");
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_belongs_to_no_era() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let target = HttpTarget::new(format!("http://{address}/mcp")).unwrap();
    let client = client(target, Revision::NEWEST);
    let error = client.open().await.unwrap_err();
    assert!(
        matches!(&error, OpenError::Start(reason) if reason.contains("cannot connect")),
        "{error:?}"
    );
    // When it comes up, it is found.
    let mut server = StandInServer::start().await;
    server.http(|settings| settings.address = address).await;
    let tools = client.list_tools().await.unwrap();
    assert_eq!((tools.len(), client.server().unwrap().revision.era()), (12, Era::Modern));
    let unknown = client.call_tool("nope", json!({})).await.unwrap_err();
    assert!(matches!(unknown, CallError::Rpc(_)));
}
