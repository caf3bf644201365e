//! WebSocket: the handshake, both eras, and the rules of RFC 6455 in the manner of Autobahn's
//! cases.

use std::time::Duration;

use serde_json::{Value, json};

use crate::frames::{BINARY, CLOSE, CONTINUATION, Frame, PING, PONG, Socket, TEXT};
use crate::server::{Running, Wish, in_time, start, token};

fn request(id: u64, method: &str, params: Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

fn ping(id: u64) -> String {
    request(id, "ping", json!({}))
}

fn call(id: u64, tool: &str, arguments: Value) -> String {
    request(id, "tools/call", json!({ "name": tool, "arguments": arguments }))
}

/// The end of every case: the server still answers others, and nothing is left of the client.
async fn check_gone(server: Running) {
    server.until(|stats| stats.connections == 0 && stats.streams == 0).await;
    let mut other = Socket::open(server.address).await;
    other.text(&ping(1)).await;
    assert_eq!(other.json().await["result"], json!({}));
    drop(other);
    server.stop().await;
}

/// Sends raw frames and expects a close frame with `code`.
async fn check_failed(frames: &[Frame], code: u16) {
    let server = Wish::default().engine(|engine| engine.engine_limits.message_size = 4096);
    let server = server.start().await;
    let mut socket = Socket::open(server.address).await;
    for frame in frames {
        socket.send(frame).await;
    }
    assert_eq!(socket.close_code().await, Some(code), "{frames:?}");
    drop(socket);
    check_gone(server).await;
}

/// Sends raw frames and expects them to be one valid request.
async fn check_heard(frames: &[Frame]) {
    let server = start().await;
    let mut socket = Socket::open(server.address).await;
    for frame in frames {
        socket.send(frame).await;
    }
    let mut pongs = frames.iter().filter(|frame| frame.opcode() == PING);
    loop {
        let frame = socket.frame().await.unwrap();
        if frame.opcode() != PONG {
            assert_eq!(frame.json()["result"], json!({}), "{frames:?}");
            break;
        }
        assert_eq!(Some(&frame.payload), pongs.next().map(|ping| &ping.payload));
    }
    assert_eq!(pongs.next(), None, "every ping is answered, in order");
    drop(socket);
    check_gone(server).await;
}

#[tokio::test]
async fn one_socket_serves_both_eras_and_changes() {
    let server = start().await;
    let mut socket = Socket::open(server.address).await;
    assert_eq!(socket.header("sec-websocket-protocol"), Some("mcp"));
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "c", "version": "1" } });
    socket.text(&request(1, "initialize", hello)).await;
    assert_eq!(socket.json().await["result"]["protocolVersion"], "2025-11-25");
    socket.text(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    socket.text(&call(2, "echo", json!({ "text": "é\n" }))).await;
    assert_eq!(socket.json().await["result"]["content"][0]["text"], "é\n");
    let modern = json!({ "name": "echo", "arguments": { "text": "m" }, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "c", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    } });
    socket.text(&request(3, "tools/call", modern)).await;
    let answer = socket.json().await;
    assert_eq!(answer["result"]["content"][0]["text"], "m", "{answer}");
    assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
    server.signals.has_extra.store(true, std::sync::atomic::Ordering::SeqCst);
    server.signals.announce();
    assert_eq!(socket.json().await["method"], "notifications/tools/list_changed");
    // An invalid JSON-RPC message is answered, as on every stream.
    socket.text("{").await;
    assert_eq!(socket.json().await["error"]["code"], -32700);
    drop(socket);
    check_gone(server).await;
}

#[tokio::test]
async fn answers_come_when_they_are_ready_and_not_in_order() {
    let server = start().await;
    let mut socket = Socket::open(server.address).await;
    socket.text(&call(1, "wait", json!({}))).await;
    server
        .signals
        .until(|signals| signals.begun.load(std::sync::atomic::Ordering::SeqCst) == 1)
        .await;
    socket.text(&ping(2)).await;
    assert_eq!(socket.json().await["id"], 2);
    server.signals.gate.0.add_permits(1);
    assert_eq!(socket.json().await["id"], 1);
    drop(socket);
    check_gone(server).await;
}

#[tokio::test]
async fn a_client_that_goes_away_cancels_its_calls() {
    for abrupt in [true, false] {
        let server = start().await;
        let mut socket = Socket::open(server.address).await;
        socket.text(&call(1, "wait", json!({}))).await;
        let begun = |count: &std::sync::atomic::AtomicUsize| {
            count.load(std::sync::atomic::Ordering::SeqCst) == 1
        };
        server.signals.until(|signals| begun(&signals.begun)).await;
        if !abrupt {
            socket.send(&Frame::close(1000, b"")).await;
            assert_eq!(socket.close_code().await, Some(1000));
        }
        drop(socket);
        server.signals.until(|signals| begun(&signals.dropped)).await;
        check_gone(server).await;
    }
}

#[tokio::test]
async fn a_long_message_goes_through_both_ways() {
    let server = start().await;
    let mut socket = Socket::open(server.address).await;
    let text = "ä".repeat(5 << 19);
    socket.text(&call(1, "echo", json!({ "text": text }))).await;
    let answer = in_time(socket.json()).await;
    assert_eq!(answer["result"]["content"][0]["text"].as_str(), Some(text.as_str()));
    drop(socket);
    check_gone(server).await;
}

#[tokio::test]
async fn a_message_of_exactly_the_limit_is_heard_and_one_byte_more_is_1009() {
    let limit = 4096;
    let fitting = |length: usize| format!("{:>length$}", ping(1));
    let server = Wish::default().engine(|engine| engine.engine_limits.message_size = limit);
    let server = server.start().await;
    let mut socket = Socket::open(server.address).await;
    socket.text(&fitting(limit)).await;
    assert_eq!(socket.json().await["result"], json!({}));
    socket.text(&fitting(limit + 1)).await;
    assert_eq!(socket.close_code().await, Some(1009));
    drop(socket);
    check_gone(server).await;
    // Only announced in the header.
    check_failed(&[Frame::announced(TEXT, 1 << 40)], 1009).await;
    // In fragments, each within the limit.
    let piece = vec![b' '; 3000];
    check_failed(&[Frame::part(TEXT, &piece), Frame::part(CONTINUATION, &piece)], 1009).await;
}

#[tokio::test]
async fn fragments_make_one_message_and_pings_may_come_in_between() {
    let text = ping(1);
    let (first, rest) = text.as_bytes().split_at(9);
    let last = Frame::new(CONTINUATION, rest);
    check_heard(&[Frame::part(TEXT, first), last.clone()]).await;
    check_heard(&[Frame::part(TEXT, b""), Frame::part(CONTINUATION, first), last.clone()]).await;
    check_heard(&[
        Frame::part(TEXT, first),
        Frame::new(PING, b"one"),
        Frame::new(PING, &[7; 125]),
        Frame::new(PONG, b"nobody asked"),
        last,
    ])
    .await;
    let bytes: Vec<_> = text.as_bytes().chunks(1).collect();
    let mut frames = vec![Frame::part(TEXT, bytes[0])];
    frames.extend(bytes[1..bytes.len() - 1].iter().map(|byte| Frame::part(CONTINUATION, byte)));
    frames.push(Frame::new(CONTINUATION, bytes[bytes.len() - 1]));
    check_heard(&frames).await;
}

#[tokio::test]
async fn a_letter_may_be_split_between_fragments() {
    let server = start().await;
    let mut socket = Socket::open(server.address).await;
    let text = call(1, "echo", json!({ "text": "€" }));
    let at = text.find('€').unwrap() + 1;
    let (first, rest) = text.as_bytes().split_at(at);
    socket.send(&Frame::part(TEXT, first)).await;
    socket.send(&Frame::new(CONTINUATION, rest)).await;
    assert_eq!(socket.json().await["result"]["content"][0]["text"], "€");
    drop(socket);
    check_gone(server).await;
}

#[tokio::test]
async fn a_violation_of_the_protocol_is_1002() {
    let text = ping(1);
    let text = text.as_bytes();
    for frames in [
        vec![Frame::new(PING, &[0; 126])],
        vec![Frame::part(PING, b"")],
        vec![Frame::part(CLOSE, b"")],
        vec![Frame::new(CONTINUATION, text)],
        vec![Frame::part(CONTINUATION, text)],
        vec![Frame::part(TEXT, b"{"), Frame::new(TEXT, text)],
        vec![Frame::part(TEXT, b"{"), Frame::new(BINARY, text)],
        vec![Frame::new(TEXT, text).unmasked()],
        vec![Frame::new(CLOSE, b"\x03")],
    ] {
        check_failed(&frames, 1002).await;
    }
    for opcode in (0x3..=0x7).chain(0xb..=0xf) {
        check_failed(&[Frame::new(opcode, b"")], 1002).await;
    }
    for reserved in [0x40, 0x20, 0x10] {
        check_failed(&[Frame::new(reserved | TEXT, text)], 1002).await;
    }
    for code in [0, 999, 1004, 1005, 1006, 1016, 1100, 2000, 2999] {
        check_failed(&[Frame::close(code, b"")], 1002).await;
    }
}

#[tokio::test]
async fn text_that_is_not_utf8_is_1007_and_bytes_are_1003() {
    let bad = b"\"\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5\xed\xa0\x80\"";
    check_failed(&[Frame::new(TEXT, bad)], 1007).await;
    // Before the message is complete.
    check_failed(&[Frame::part(TEXT, b"\""), Frame::part(CONTINUATION, b"\xf4\x90\x80\x80")], 1007)
        .await;
    check_failed(&[Frame::part(TEXT, b"\xe2\x82"), Frame::new(CONTINUATION, b"")], 1007).await;
    check_failed(&[Frame::close(1000, b"\xff")], 1007).await;
    check_failed(&[Frame::new(BINARY, ping(1).as_bytes())], 1003).await;
}

#[tokio::test]
async fn a_close_is_answered_with_its_code() {
    for (frame, code) in [
        (Frame::new(CLOSE, b""), None),
        (Frame::close(1000, b"done"), Some(1000)),
        (Frame::close(1001, b""), Some(1001)),
        (Frame::close(3000, b""), Some(3000)),
        (Frame::close(4999, &[b'x'; 123]), Some(4999)),
    ] {
        let server = start().await;
        let mut socket = Socket::open(server.address).await;
        socket.send(&frame).await;
        // Frames after a close are ignored.
        socket.send(&Frame::new(TEXT, ping(1).as_bytes())).await;
        assert_eq!(socket.close_code().await, code);
        drop(socket);
        check_gone(server).await;
    }
}

#[tokio::test]
async fn a_client_that_does_not_answer_pings_is_closed_and_one_that_does_is_not() {
    let server = Wish::default().http(|http| http.ping = Duration::from_millis(100)).start().await;
    let mut alive = Socket::open(server.address).await;
    for _ in 0..4 {
        let frame = alive.frame().await.unwrap();
        assert_eq!(frame.opcode(), PING);
        alive.send(&Frame::new(PONG, &frame.payload)).await;
    }
    alive.send(&Frame::close(1000, b"")).await;
    let mut silent = Socket::open(server.address).await;
    assert_eq!(silent.close_code().await, Some(1011));
    drop((alive, silent));
    check_gone(server).await;
}

#[tokio::test]
async fn a_server_that_stops_says_1001_and_lets_calls_finish() {
    let server = start().await;
    let mut socket = Socket::open(server.address).await;
    socket.text(&call(1, "wait", json!({}))).await;
    let signals = server.signals.clone();
    signals.until(|signals| signals.begun.load(std::sync::atomic::Ordering::SeqCst) == 1).await;
    let stopped = server.stopping();
    tokio::task::yield_now().await;
    signals.gate.0.add_permits(1);
    assert_eq!(socket.json().await["id"], 1);
    assert_eq!(socket.close_code().await, Some(1001));
    in_time(stopped).await.unwrap();
}

#[tokio::test]
async fn sockets_count_as_connections_and_a_stop_waits_for_none_that_is_mute() {
    let server = Wish::default().http(|http| http.limits.connections = 2).start().await;
    let first = Socket::open(server.address).await;
    let mut second = Socket::open(server.address).await;
    server.until(|stats| stats.connections == 2 && stats.streams == 2).await;
    let third = tokio::time::timeout(Duration::from_millis(200), Socket::open(server.address));
    assert!(third.await.is_err(), "a third must wait");
    drop(first);
    let mut third = in_time(Socket::open(server.address)).await;
    third.text(&ping(1)).await;
    assert_eq!(third.json().await["result"], json!({}));
    second.text(&ping(1)).await;
    // Neither answers the closing handshake.
    server.stop().await;
}

#[tokio::test]
async fn a_handshake_must_be_right() {
    let server = start().await;
    for (change, status) in [
        (("sec-websocket-version", Some("8")), 426),
        (("sec-websocket-version", None), 426),
        (("sec-websocket-key", None), 400),
        (("sec-websocket-key", Some("short")), 400),
        (("connection", Some("keep-alive")), 400),
        (("sec-websocket-protocol", Some("graphql-ws")), 400),
        (("origin", Some("https://evil.example.com")), 403),
        (("host", Some("evil.example.com")), 403),
        (("upgrade", None), 400), // a bare GET of the endpoint, which has no session
        (("upgrade", Some("h2c")), 400),
    ] {
        let refused = Socket::try_open(server.address, "/mcp", &[change]).await;
        assert_eq!(refused.err(), Some(status), "{change:?}");
    }
    for (path, changes) in [
        ("/mcp", vec![("sec-websocket-protocol", None)]),
        ("/mcp?x=1", vec![("sec-websocket-protocol", Some("other, mcp"))]),
        ("/mcp", vec![("origin", Some("http://localhost:3000"))]),
        ("/mcp", vec![("sec-websocket-extensions", Some("permessage-deflate"))]),
        ("/mcp", vec![("connection", Some("keep-alive, Upgrade"))]),
    ] {
        let mut socket = Socket::try_open(server.address, path, &changes).await.unwrap();
        let protocol = changes.contains(&("sec-websocket-protocol", None));
        assert_eq!(socket.header("sec-websocket-protocol"), (!protocol).then_some("mcp"));
        assert_eq!(socket.header("sec-websocket-extensions"), None);
        socket.text(&ping(1)).await;
        assert_eq!(socket.json().await["result"], json!({}));
    }
    assert_eq!(Socket::try_open(server.address, "/", &[]).await.err(), Some(404));
    server.stop().await;
}

#[tokio::test]
async fn the_token_is_checked_before_the_upgrade() {
    let ide = "x-claude-code-ide-authorization";
    let server = Wish::default().http(|http| {
        http.tokens = token("s3cret");
        http.token_header = Some(ide.into());
    });
    let server = server.start().await;
    for changes in [
        vec![],
        vec![("authorization", Some("Bearer wrong"))],
        vec![("authorization", Some("s3cret"))],
        vec![(ide, Some("wrong"))],
        vec![(ide, Some("Bearer s3cret"))],
        vec![(ide, Some("s3cret")), ("authorization", Some("Bearer wrong"))],
    ] {
        let refused = Socket::try_open(server.address, "/mcp", &changes).await;
        assert_eq!(refused.err(), Some(401), "{changes:?}");
    }
    for change in [("authorization", Some("Bearer s3cret")), (ide, Some("s3cret"))] {
        let mut socket = Socket::try_open(server.address, "/mcp", &[change]).await.unwrap();
        socket.text(&ping(1)).await;
        assert_eq!(socket.json().await["result"], json!({}));
    }
    server.stop().await;
}

#[tokio::test]
async fn a_port_of_its_own_serves_nothing_else() {
    let server = Wish::default().http(|http| http.only_websocket = true).start().await;
    for path in ["/", "/mcp"] {
        let mut socket = Socket::try_open(server.address, path, &[]).await.unwrap();
        socket.text(&ping(1)).await;
        assert_eq!(socket.json().await["result"], json!({}));
    }
    assert_eq!(Socket::try_open(server.address, "/other", &[]).await.err(), Some(404));
    let mut client = server.connect().await;
    let post = crate::client::Request::call(1, "echo", json!({}));
    let response = client.send(&post).await;
    assert_eq!((response.status, response.header("upgrade")), (426, Some("websocket")));
    for (path, status) in [("/mcp", 426), ("/sse", 404), ("/healthz", 200)] {
        let response = client.send(&crate::client::Request::new("GET", path)).await;
        assert_eq!(response.status, status, "{path}");
    }
    server.stop().await;
    let server = Wish::default().http(|http| http.websocket = false).start().await;
    assert_eq!(Socket::try_open(server.address, "/mcp", &[]).await.err(), Some(400));
    server.stop().await;
}

/// Pongs between its fragments do not extend its time.
#[tokio::test]
async fn a_message_that_does_not_come_to_its_end_is_1008() {
    let server = Wish::default().http(|http| {
        http.limits.body_time = Duration::from_millis(300);
        http.ping = Duration::from_secs(60);
    });
    let server = server.start().await;
    let mut socket = Socket::open(server.address).await;
    socket.send(&Frame::part(TEXT, &[b' '; 40_000])).await;
    for _ in 0..8 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        socket.send(&Frame::new(PONG, b"still here")).await;
    }
    assert_eq!(socket.close_code().await, Some(1008));
    drop(socket);
    check_gone(server).await;
}

#[tokio::test]
async fn pings_are_not_counted_as_parts_of_a_message() {
    let server = Wish::default().http(|http| http.limits.body_time = Duration::from_millis(100));
    let server = server.start().await;
    let mut socket = Socket::open(server.address).await;
    // More bytes than are free, in whole frames, for longer than a message may take.
    for _ in 0..30 {
        for _ in 0..20 {
            socket.send(&Frame::new(PONG, &[b'x'; 100])).await;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    socket.text(&ping(1)).await;
    assert_eq!(socket.json().await["result"], json!({}));
    drop(socket);
    check_gone(server).await;
}

#[tokio::test]
async fn many_that_come_and_go_leave_nothing_behind() {
    let server = start().await;
    for round in 0..4 {
        let mut sockets = Vec::new();
        for _ in 0..50 {
            let mut socket = Socket::open(server.address).await;
            socket.text(&ping(1)).await;
            sockets.push(socket);
        }
        for (nth, mut socket) in sockets.into_iter().enumerate() {
            assert_eq!(socket.json().await["result"], json!({}));
            match (nth + round) % 4 {
                0 => socket.send(&Frame::close(1000, b"")).await,
                1 => socket.send(&Frame::part(TEXT, b"{\"half\":")).await,
                2 => socket.send(&Frame::new(TEXT, b"\xff")).await,
                _ => {}
            }
        }
        server.until(|stats| stats.connections == 0).await;
    }
    check_gone(server).await;
}
