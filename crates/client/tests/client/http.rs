//! The rules of HTTP alone: sessions, credentials, streams that never end.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sabir_client::{CallError, Client, HttpTarget, HttpTransport, OpenError};
use sabir_testkit::StandInServer;
use sabir_wire::{Era, Revision};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, broadcast};

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

/// A legacy server that forgets its first session when a tool is called in it, and refuses it with
/// this status. Counts handshakes and calls.
async fn forgetful(counts: Arc<[AtomicUsize; 2]>, status: &'static str) -> HttpTarget {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            tokio::spawn(answer_one(socket, counts.clone(), status));
        }
    });
    HttpTarget::new(format!("http://{address}/mcp")).unwrap()
}

/// The whole request, and its body.
async fn read_request(socket: &mut TcpStream) -> (String, Value) {
    let mut request = Vec::new();
    while !request.ends_with(b"}") && socket.read_buf(&mut request).await.is_ok_and(|n| n > 0) {
        if !request.starts_with(b"POST") && request.ends_with(b"\r\n\r\n") {
            break;
        }
    }
    let text = String::from_utf8(request).unwrap();
    let body = text.split_once("\r\n\r\n").unwrap().1;
    let body = serde_json::from_str(body).unwrap_or_default();
    (text, body)
}

async fn answer_one(mut socket: TcpStream, counts: Arc<[AtomicUsize; 2]>, refusal: &str) {
    let (text, body) = read_request(&mut socket).await;
    let result = match body["method"].as_str() {
        Some("initialize") => {
            counts[0].fetch_add(1, Ordering::SeqCst);
            Some(json!({
                "protocolVersion": Revision::NEWEST_LEGACY.date(), "capabilities": { "tools": {} },
                "serverInfo": { "name": "s", "version": "1" },
            }))
        }
        Some("tools/call") if text.contains("mcp-session-id: s1") => None,
        Some("tools/call") => {
            counts[1].fetch_add(1, Ordering::SeqCst);
            Some(json!({ "content": [] }))
        }
        _ => Some(json!({})),
    };
    let status = match (&result, text.starts_with("POST")) {
        (_, false) => "405 Method Not Allowed",
        (None, _) => refusal,
        _ => "200 OK",
    };
    let session = counts[0].load(Ordering::SeqCst);
    let error = json!({ "code": -32000, "message": "Bad Request: No valid session ID provided" });
    let answer = match &result {
        Some(result) => json!({ "jsonrpc": "2.0", "id": body["id"], "result": result }),
        None => json!({ "jsonrpc": "2.0", "id": null, "error": error }),
    };
    let answer = answer.to_string();
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\nmcp-session-id: s{session}\r\n\
         connection: close\r\ncontent-length: {}\r\n\r\n{answer}",
        answer.len()
    );
    let _ = socket.write_all(head.as_bytes()).await;
}

#[tokio::test]
async fn a_session_that_the_server_has_ended_is_replaced() {
    for status in ["404 Not Found", "400 Bad Request"] {
        let counts = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
        let client = client(forgetful(counts.clone(), status).await, Revision::NEWEST_LEGACY);
        client.open().await.unwrap();
        client.call_tool("t", json!({})).await.unwrap();
        let [handshakes, calls] = &*counts;
        let counted = (handshakes.load(Ordering::SeqCst), calls.load(Ordering::SeqCst));
        assert_eq!(counted, (2, 1), "{status}");
    }
}

/// A server that is replaced by one of the other era when it was called once, and again after every
/// second call.
async fn redeployed() -> HttpTarget {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let mut calls = 0;
        while let Ok((mut socket, _)) = listener.accept().await {
            let (text, body) = read_request(&mut socket).await;
            let is_modern = calls % 2 == 0;
            let is_known = text.to_lowercase().contains("mcp-method") == is_modern;
            let refuse = |code: i64, id: &Value| json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": "no" } });
            let result =
                |result: Value| json!({ "jsonrpc": "2.0", "id": body["id"], "result": result });
            let (status, said) = match body["method"].as_str() {
                Some("server/discover") if is_modern => (
                    "200 OK",
                    result(json!({
                        "resultType": "complete", "supportedVersions": [Revision::NEWEST.date()],
                        "capabilities": { "tools": {} }, "ttlMs": 0, "cacheScope": "private",
                    })),
                ),
                Some("initialize") if !is_modern => (
                    "200 OK",
                    result(json!({
                        "protocolVersion": Revision::NEWEST_LEGACY.date(),
                        "capabilities": { "tools": {} }, "serverInfo": { "name": "s", "version": "1" },
                    })),
                ),
                Some("tools/call") if is_known => {
                    calls += 1;
                    ("200 OK", result(json!({ "resultType": "complete", "content": [] })))
                }
                Some("notifications/initialized") => ("202 Accepted", json!({})),
                None => ("405 Method Not Allowed", json!({})),
                _ if is_modern => ("400 Bad Request", refuse(-32022, &body["id"])),
                _ => ("400 Bad Request", refuse(-32000, &Value::Null)),
            };
            let said = said.to_string();
            let answer = format!(
                "HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close\r\n\
                 content-length: {}\r\n\r\n{said}",
                said.len()
            );
            let _ = socket.write_all(answer.as_bytes()).await;
        }
    });
    HttpTarget::new(format!("http://{address}/mcp")).unwrap()
}

#[tokio::test]
async fn a_server_that_is_replaced_by_one_of_the_other_era_is_reached_again() {
    let client = client(redeployed().await, Revision::NEWEST);
    for era in [Era::Modern, Era::Legacy, Era::Modern] {
        client.call_tool("t", json!({})).await.unwrap();
        assert_eq!(client.server().unwrap().revision.era(), era);
    }
}

#[tokio::test]
async fn the_stream_of_notifications_is_opened_again_when_a_proxy_has_refused_it() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let mut opened = 0;
        while let Ok((mut socket, _)) = listener.accept().await {
            let (text, body) = read_request(&mut socket).await;
            opened += usize::from(text.starts_with("GET"));
            let greeting = json!({ "jsonrpc": "2.0", "id": body["id"], "result": {
                "protocolVersion": Revision::NEWEST_LEGACY.date(), "capabilities": { "tools": {} },
                "serverInfo": { "name": "s", "version": "1" },
            }});
            let changed = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
            let (status, kind, said) = match body["method"].as_str() {
                Some("initialize") => ("200 OK", "application/json", greeting.to_string()),
                None if opened == 1 => ("503 Service Unavailable", "text/plain", String::new()),
                None => ("200 OK", "text/event-stream", format!("data: {changed}\n\n")),
                Some(_) => ("202 Accepted", "text/plain", String::new()),
            };
            let answer = format!(
                "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\nconnection: close\r\n\
                 content-length: {}\r\n\r\n{said}",
                said.len()
            );
            let _ = socket.write_all(answer.as_bytes()).await;
        }
    });
    let target = HttpTarget::new(format!("http://{address}/mcp")).unwrap();
    let client = client(target, Revision::NEWEST_LEGACY);
    let events = client.events();
    client.open().await.unwrap();
    let changed =
        async { while !matches!(events.next().await, sabir_client::ClientEvent::Changed(_)) {} };
    tokio::time::timeout(Duration::from_secs(9), changed).await.unwrap();
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

/// A legacy server that opens its stream of notifications late, and asks on it in the middle of a
/// call. It drops a question for which there is no stream, as servers of the TypeScript SDK do.
async fn late_to_listen() -> HttpTarget {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (questions, _) = broadcast::channel(1);
    let answered = Arc::new(Notify::new());
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            tokio::spawn(ask_in_between(socket, questions.clone(), answered.clone()));
        }
    });
    HttpTarget::new(format!("http://{address}/mcp")).unwrap()
}

async fn ask_in_between(
    mut socket: TcpStream,
    questions: broadcast::Sender<String>,
    answered: Arc<Notify>,
) {
    let (text, body) = read_request(&mut socket).await;
    let answer = |status: &str, body: &str| {
        format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    let result = match body["method"].as_str() {
        Some("initialize") => json!({
            "protocolVersion": Revision::NEWEST_LEGACY.date(), "capabilities": { "tools": {} },
            "serverInfo": { "name": "s", "version": "1" },
        }),
        Some("tools/call") => {
            let question = json!({
                "jsonrpc": "2.0", "id": "q", "method": "elicitation/create",
                "params": { "message": "?", "requestedSchema": { "type": "object", "properties": {} } },
            });
            let _ = questions.send(format!("data: {question}\n\n"));
            answered.notified().await;
            json!({ "content": [] })
        }
        None if text.starts_with("GET") => {
            tokio::time::sleep(Duration::from_millis(200)).await;
            let mut asked = questions.subscribe();
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
            socket.write_all(head.as_bytes()).await.unwrap();
            while let Ok(event) = asked.recv().await {
                let _ = socket.write_all(event.as_bytes()).await;
            }
            return;
        }
        None if body["id"] == "q" => {
            answered.notify_one();
            return socket.write_all(answer("202 Accepted", "").as_bytes()).await.unwrap();
        }
        _ => json!({}),
    };
    let body = json!({ "jsonrpc": "2.0", "id": body["id"], "result": result }).to_string();
    let _ = socket.write_all(answer("200 OK", &body).as_bytes()).await;
}

#[tokio::test]
async fn the_first_call_waits_for_the_stream_on_which_it_may_be_asked() {
    let client = client(late_to_listen().await, Revision::NEWEST_LEGACY);
    client.call_tool("t", json!({})).await.unwrap();
}

/// A legacy server that closes the stream of each call at once. When the stream is resumed, it sends
/// these bytes, and from the given time on the result. Counts the times.
async fn polling(sent: &'static str, done: usize) -> (HttpTarget, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let resumed = Arc::new(AtomicUsize::new(0));
    let times = resumed.clone();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let (text, body) = read_request(&mut socket).await;
            let method = body["method"].as_str();
            let is_resumed = text.contains("last-event-id");
            let json = |id: &Value, result: Value| {
                json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string()
            };
            let (status, kind, said) = match method {
                Some("initialize") => (
                    "200 OK",
                    "application/json",
                    json(
                        &body["id"],
                        json!({
                            "protocolVersion": Revision::NEWEST_LEGACY.date(),
                            "capabilities": { "tools": {} }, "serverInfo": { "name": "s", "version": "1" },
                        }),
                    ),
                ),
                Some("tools/call") => {
                    ("200 OK", "text/event-stream", "id: 1\nretry: 50\ndata:\n\n".to_owned())
                }
                None if is_resumed && times.fetch_add(1, Ordering::SeqCst) < done => {
                    ("200 OK", "text/event-stream", sent.to_owned())
                }
                None if is_resumed => {
                    // The first call of the client, after the handshake.
                    let result = json(&json!(2), json!({ "content": [] }));
                    ("200 OK", "text/event-stream", format!("id: 2\ndata: {result}\n\n"))
                }
                None => ("405 Method Not Allowed", "text/plain", String::new()),
                Some(_) => ("202 Accepted", "text/plain", String::new()),
            };
            let head =
                format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\nconnection: close\r\n");
            let length = said.len();
            let answer = format!("{head}content-length: {length}\r\n\r\n{said}");
            let _ = socket.write_all(answer.as_bytes()).await;
        }
    });
    (HttpTarget::new(format!("http://{address}/mcp")).unwrap(), resumed)
}

#[tokio::test]
async fn a_stream_that_brings_nothing_is_not_resumed_for_ever() {
    let (target, resumed) = polling("", usize::MAX).await;
    let failed = client(target, Revision::NEWEST_LEGACY).call_tool("t", json!({})).await;
    assert!(matches!(failed, Err(CallError::Lost(_))), "{failed:?}");
    assert_eq!(resumed.load(Ordering::SeqCst), 5);
    // A server that makes its clients poll sends comments.
    let (target, resumed) = polling(": wait\n\n", 9).await;
    client(target, Revision::NEWEST_LEGACY).call_tool("t", json!({})).await.unwrap();
    assert_eq!(resumed.load(Ordering::SeqCst), 10);
}

/// A server that answers every request with the first bytes, then repeats the others for ever.
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
    // Once the server is up, the client connects.
    let mut server = StandInServer::start().await;
    server.http(|settings| settings.address = address).await;
    let tools = client.list_tools().await.unwrap();
    assert_eq!((tools.len(), client.server().unwrap().revision.era()), (12, Era::Modern));
    let unknown = client.call_tool("nope", json!({})).await.unwrap_err();
    assert!(matches!(unknown, CallError::Rpc(_)));
}
