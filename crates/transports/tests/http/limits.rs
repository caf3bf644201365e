//! Each limit at its edge, and raw invalid input: an HTTP response, never a hang, never a crash.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::client::{Client, MODERN, Request};
use crate::server::{Running, Wish, start};

fn sized(length: usize) -> Request {
    let empty = Request::call(1, "echo", json!({ "text": "" })).body.len();
    Request::call(1, "echo", json!({ "text": "x".repeat(length - empty) }))
}

#[tokio::test]
async fn a_body_may_be_as_long_as_the_limit_and_no_longer() {
    let wish = Wish::default().engine(|engine| engine.engine_limits.message_size = 100_000);
    let server = wish.start().await;
    let mut client = server.connect().await;
    assert_eq!(client.send(&sized(100_000)).await.status, 200);
    let response = client.send(&sized(100_001)).await;
    assert_eq!((response.status, response.code()), (413, -32600));
    // The same without an announced length.
    for (length, status) in [(100_000, 200), (100_001, 413)] {
        let mut client = server.connect().await;
        let request = sized(length).header("transfer-encoding", "chunked");
        let mut bytes = Request { body: Vec::new(), ..request.clone() }.bytes();
        let head = String::from_utf8(bytes.clone()).unwrap().replace("content-length: 0\r\n", "");
        bytes = head.into_bytes();
        for chunk in request.body.chunks(1000) {
            bytes.extend(format!("{:x}\r\n", chunk.len()).bytes());
            bytes.extend(chunk);
            bytes.extend(b"\r\n");
        }
        bytes.extend(b"0\r\n\r\n");
        client.write(&bytes).await;
        assert_eq!(client.response().await.status, status, "{length}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_client_that_sends_far_too_much_still_reads_the_answer() {
    let wish = Wish::default().engine(|engine| engine.engine_limits.message_size = 1000);
    let server = wish.start().await;
    let mut client = server.connect().await;
    let response = client.send(&sized(8 << 20)).await;
    assert_eq!((response.status, response.code()), (413, -32600));
    server.until(|stats| stats.connections == 0).await;
    server.stop().await;
}

#[tokio::test]
async fn a_head_that_is_too_long_is_431() {
    let server = Wish::default().http(|http| http.limits.head = 4000).start().await;
    let mut client = server.connect().await;
    let call = Request::call(1, "echo", json!({}));
    assert_eq!(client.send(&call.clone().header("x-long", &"x".repeat(3000))).await.status, 200);
    let response = client.send(&call.clone().header("x-long", &"x".repeat(5000))).await;
    assert_eq!((response.status, response.code()), (431, -32600));
    for header in ["x".repeat(1 << 20), "x".repeat(20_000)] {
        let mut client = server.connect().await;
        client.write(&call.clone().header("x-long", &header).bytes()).await;
        assert_eq!(client.head().await.status, 431);
    }
    server.stop().await;
}

#[tokio::test]
async fn a_body_that_takes_too_long_is_408() {
    let wish = Wish::default().http(|http| http.limits.body_time = Duration::from_millis(60));
    let server = wish.start().await;
    // No byte of the body; a part of it; one byte at a time.
    for begun in [0, 10, 1] {
        let mut client = server.connect().await;
        let bytes = Request::call(1, "echo", json!({})).bytes();
        let body = bytes.len() - Request::call(1, "echo", json!({})).body.len();
        client.write(&bytes[..body + begun]).await;
        let mut patience = Duration::from_secs(5);
        if begun == 1 {
            for byte in &bytes[body + begun..body + begun + 50] {
                // The server closes the connection at some point.
                drop(tokio::io::AsyncWriteExt::write_all(&mut client.stream, &[*byte]).await);
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            // The body was refused meanwhile, although each byte was in time.
            patience = Duration::from_millis(20);
        }
        let response = tokio::time::timeout(patience, client.response()).await.expect("no answer");
        assert_eq!((response.status, response.code()), (408, -32600));
    }
    server.until(|stats| stats.connections == 0).await;
    server.stop().await;
}

#[tokio::test]
async fn a_connection_without_a_request_is_closed() {
    let wish = Wish::default().http(|http| http.limits.idle = Duration::from_millis(60));
    let server = wish.start().await;
    // No request; half a head; one request, and then idle.
    let mut silent = server.connect().await;
    let mut half = server.connect().await;
    half.write(b"POST /mcp HT").await;
    let mut kept = server.connect().await;
    assert_eq!(kept.send(&Request::call(1, "echo", json!({}))).await.status, 200);
    let mut busy = server.connect().await;
    busy.write(&Request::call(1, "wait", json!({})).bytes()).await;
    assert!(silent.is_closed().await && half.is_closed().await && kept.is_closed().await);
    server.signals.gate.0.add_permits(1);
    assert_eq!(busy.response().await.text(), "waited", "a waiting request is not idle");
    server.until(|stats| stats.connections == 0).await;
    server.stop().await;
}

#[tokio::test]
async fn a_client_that_takes_nothing_is_given_up() {
    let wish = Wish::default().http(|http| http.limits.stall = Duration::from_millis(80));
    let server = wish.start().await;
    let mut client = server.connect().await;
    client.write(&Request::call(1, "big", json!({ "bytes": 16 << 20 })).bytes()).await;
    server.until(|stats| stats.connections == 1).await;
    server.until(|stats| stats.connections == 0).await;
    server.stop().await;
}

#[tokio::test]
async fn one_connection_more_than_allowed_waits_its_turn() {
    let server = Wish::default().http(|http| http.limits.connections = 2).start().await;
    let first = server.connect().await;
    let mut second = server.connect().await;
    let echo = Request::call(1, "echo", json!({}));
    assert_eq!(second.send(&echo).await.status, 200);
    let mut third = server.connect().await;
    third.write(&echo.bytes()).await;
    assert_eq!(second.send(&echo).await.status, 200);
    assert_eq!(server.watcher.stats().connections, 2);
    drop(first);
    assert_eq!(third.response().await.status, 200);
    server.stop().await;
}

/// Whether the server still serves.
async fn is_well(server: &Running) {
    let mut client = server.connect().await;
    let response = client.send(&Request::call(1, "echo", json!({ "text": "well" }))).await;
    assert_eq!(response.text(), "well");
}

#[tokio::test]
async fn bytes_that_are_no_http_get_400_or_a_closed_connection() {
    let server = start().await;
    for bytes in [
        &b"\0\0\0\0\r\n\r\n"[..],
        b"hello\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /mcp HTTP/1.1\r\nhost localhost\r\n\r\n",
        b"GET /mcp HTTP/1.1\r\nhost: localhost\r\nx\0y: 1\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: -1\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nx",
        b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: nonsense\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\ngarbage garbage garbage",
        b"GET /mcp HTTP/1.1\r\n\r\n",
        b"GET http://evil.example.com/mcp HTTP/1.1\r\nhost: localhost\r\n\r\n",
    ] {
        let mut client = server.connect().await;
        client.write(bytes).await;
        tokio::io::AsyncWriteExt::shutdown(&mut client.stream).await.unwrap();
        if bytes.starts_with(b"PRI") {
            continue;
        }
        if let Some(response) = client.try_head().await {
            assert!((400..500).contains(&response.status), "{bytes:?}: {}", response.status);
        }
    }
    is_well(&server).await;
    server.until(|stats| stats.requests == 0).await;
    server.stop().await;
}

#[tokio::test]
async fn a_hundred_thousand_headers_are_431() {
    let server = start().await;
    let mut client = server.connect().await;
    let mut bytes = b"POST /mcp HTTP/1.1\r\nhost: localhost\r\n".to_vec();
    for nth in 0..100_000 {
        bytes.extend(format!("x-{nth}: 1\r\n").bytes());
    }
    bytes.extend(b"\r\n");
    // The server may close the connection before everything is sent.
    let (mut read, mut write) = client.stream.into_split();
    let writer = tokio::spawn(async move {
        drop(tokio::io::AsyncWriteExt::write_all(&mut write, &bytes).await);
    });
    let mut answer = Vec::new();
    drop(tokio::io::AsyncReadExt::read_to_end(&mut read, &mut answer).await);
    assert!(answer.starts_with(b"HTTP/1.1 431"), "{:?}", String::from_utf8_lossy(&answer));
    writer.abort();
    client = server.connect().await;
    let many = (0..90).fold(Request::call(1, "echo", json!({})), |request, nth| {
        request.header(&format!("x-{nth}"), "1")
    });
    assert_eq!(client.send(&many).await.status, 200);
    is_well(&server).await;
    server.stop().await;
}

#[tokio::test]
async fn a_request_that_breaks_off_is_forgotten() {
    let server = start().await;
    let bytes = Request::call(1, "wait", json!({})).bytes();
    for cut in (0..bytes.len()).step_by(7) {
        let mut client = server.connect().await;
        client.write(&bytes[..cut]).await;
        drop(client);
    }
    server.until(|stats| stats.connections == 0 && stats.requests == 0).await;
    assert_eq!(server.signals.begun.load(Ordering::SeqCst), 0);
    is_well(&server).await;
    server.stop().await;
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_their_order() {
    let server = start().await;
    let mut client = server.connect().await;
    let mut bytes = Vec::new();
    for nth in 0..50 {
        bytes.extend(Request::call(nth, "echo", json!({ "text": nth.to_string() })).bytes());
    }
    bytes.extend(Request::post("{").bytes());
    bytes.extend(Request::call(50, "echo", json!({ "text": "50" })).bytes());
    client.write(&bytes).await;
    for nth in 0..50 {
        let response = client.response().await;
        assert_eq!((&response.json()["id"], response.text()), (&json!(nth), nth.to_string()));
    }
    assert_eq!(client.response().await.code(), -32700);
    assert_eq!(client.response().await.text(), "50");
    server.stop().await;
}

#[tokio::test]
async fn bodies_that_are_no_messages_get_a_json_rpc_error() {
    let server = start().await;
    let mut client = server.connect().await;
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let deep_params = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"a":{}{}}}}}"#,
        "[".repeat(1000),
        "]".repeat(1000),
    );
    let invalid = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\xff\"}".to_vec();
    for (body, code) in [
        (deep.into_bytes(), -32600),
        (deep_params.into_bytes(), -32600),
        (invalid, -32700),
        (b"\xef\xbb\xbf{}".to_vec(), -32700),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\"".to_vec(), -32700),
        (b"null".to_vec(), -32600),
        (b"\"text\"".to_vec(), -32600),
        (b"{}".to_vec(), -32600),
        (Vec::new(), -32700),
        (
            b"{\"jsonrpc\":\"2.0\",\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}".to_vec(),
            -32600,
        ),
    ] {
        for version in [None, Some(MODERN), Some("2025-11-25")] {
            let request = Request::post(body.clone());
            let request = match version {
                Some(version) => request.header("mcp-protocol-version", version),
                None => request,
            };
            let response = client.send(&request).await;
            let text = String::from_utf8_lossy(&body[..body.len().min(40)]).into_owned();
            assert_eq!((response.status, response.code()), (400, code), "{text} {version:?}");
            assert_eq!(response.header("content-type"), Some("application/json"));
        }
    }
    server.stop().await;
}

#[tokio::test]
async fn expect_100_continue_is_answered_before_the_body() {
    let server = start().await;
    let mut client = server.connect().await;
    let request = Request::call(1, "echo", json!({ "text": "x" })).header("expect", "100-continue");
    let bytes = request.bytes();
    let head = bytes.len() - request.body.len();
    client.write(&bytes[..head]).await;
    assert_eq!(client.head().await.status, 100);
    client.write(&bytes[head..]).await;
    assert_eq!(client.response().await.text(), "x");
    server.stop().await;
}

#[tokio::test]
async fn an_answer_is_never_held_back() {
    let server = start().await;
    let mut client: Client = server.connect().await;
    let echo = Request::call(1, "echo", json!({ "text": "x".repeat(20_000) }));
    client.send(&echo).await;
    let mut times = Vec::new();
    for _ in 0..50 {
        let began = Instant::now();
        client.send(&echo).await;
        times.push(began.elapsed());
    }
    times.sort_unstable();
    // Nagle and delayed acknowledgements would cost 40 ms each time; a busy machine, some of them.
    assert!(times[10] < Duration::from_millis(30), "{times:?}");
    server.stop().await;
}
