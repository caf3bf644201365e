//! A connection begins with our own reader and is handed over to hyper at the first request that is
//! not plain. Both must read the same requests.

use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, TestRunner};
use sabir_transports::http::fuzzing::plain_as_hyper;
use serde_json::{Value, json};

use crate::client::Request;
use crate::server::{Wish, start, token};

/// The first request: a head, possibly with an oddity, and a body.
#[derive(Clone, Debug)]
struct Odd {
    target: &'static str,
    request: Request,
    /// Lines that are added.
    more: Vec<&'static str>,
    /// A header that is left out.
    without: Option<&'static str>,
    is_upper: bool,
    line_end: &'static str,
    /// Added to the announced length.
    length_off: isize,
    /// Where to pause.
    cut: usize,
}

impl Odd {
    fn bytes(&self) -> Vec<u8> {
        let mut head = self.target.to_owned() + self.line_end;
        let mut line = |name: &str, value: &str| {
            let name = if self.is_upper { name.to_ascii_uppercase() } else { name.to_owned() };
            head += &format!("{name}: {value}{}", self.line_end);
        };
        for (name, value) in &self.request.headers {
            if Some(name.as_str()) != self.without {
                line(name, value);
            }
        }
        if self.without != Some("content-length") {
            line(
                "content-length",
                &(self.request.body.len() as isize + self.length_off).to_string(),
            );
        }
        for more in &self.more {
            head += more;
            head += self.line_end;
        }
        head += self.line_end;
        let mut bytes = head.into_bytes();
        bytes.extend(&self.request.body);
        bytes
    }
}

/// A call that is answered with a stream.
fn progress(arguments: Value) -> Request {
    let meta = json!({ "progressToken": "token" });
    Request::modern(
        1,
        "tools/call",
        json!({ "name": "progress", "arguments": arguments, "_meta": meta }),
    )
}

fn requests() -> impl Strategy<Value = Request> {
    let call = |name: &str, arguments| Request::call(1, name, arguments);
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" } });
    let requests = [
        call("echo", json!({ "text": "x" })),
        call("echo", json!({ "text": "x".repeat(20_000) })),
        call("big", json!({ "bytes": 5000 })),
        call("fail", json!({})),
        call("nothing", json!({})),
        progress(json!({ "steps": 2 })),
        call("echo", json!({ "text": 1 })).with("mcp-name", "other"),
        Request::modern(1, "tools/list", json!({})),
        Request::legacy(1, "initialize", hello),
        Request::legacy(1, "tools/list", json!({})),
        Request::note("notifications/initialized", json!({})),
        Request::post("{"),
        Request::post(""),
    ];
    select(requests.to_vec())
}

/// Other request lines.
const TARGETS: &[&str] = &[
    "POST /mcp HTTP/1.0",
    "GET /mcp HTTP/1.1",
    "DELETE /mcp HTTP/1.1",
    "POST /mcp?a=b HTTP/1.1",
    "POST /mcp/ HTTP/1.1",
    "POST http://localhost/mcp HTTP/1.1",
    "POST http://evil.example.com/mcp HTTP/1.1",
    "post /mcp HTTP/1.1",
    "POST  /mcp  HTTP/1.1",
];

/// Other header lines.
const LINES: &[&str] = &[
    "connection: keep-alive",
    "Connection: Keep-Alive",
    "connection: close",
    "connection: upgrade",
    "upgrade: h2c",
    "transfer-encoding: chunked",
    "transfer-encoding: identity",
    "content-length: 3",
    "content-length: +3",
    "content-length: 3, 3",
    "content-length:",
    "origin: http://localhost",
    "origin: http://evil.example.com",
    "host: evil.example.com",
    "host: localhost",
    "accept: text/html",
    "content-type: text/plain",
    "mcp-method: tools/call",
    "mcp-name: other",
    "mcp-session-id: unknown",
    "mcp-protocol-version: 2025-06-18",
    "authorization: Bearer token",
    "x: y",
    "x:\tä \t",
    "x:",
    "x : y",
    "two words: 1",
    " folded",
    "x",
    ": y",
];

/// Headers that may be missing.
const LEFT_OUT: &[&str] =
    &["host", "content-type", "accept", "content-length", "mcp-method", "mcp-name"];

const USUAL: &str = "POST /mcp HTTP/1.1";

fn odd() -> impl Strategy<Value = Odd> {
    let target = prop_oneof![4 => Just(USUAL), 1 => select(TARGETS)];
    let more = proptest::collection::vec(select(LINES), 0..3);
    let without = prop_oneof![4 => Just(None), 1 => select(LEFT_OUT).prop_map(Some)];
    let line_end = prop_oneof![6 => Just("\r\n"), 1 => Just("\n")];
    let length_off = prop_oneof![8 => Just(0), 1 => -2..3_isize];
    let cut = prop_oneof![3 => Just(0), 1 => any::<usize>()];
    (target, requests(), more, without, any::<bool>(), line_end, length_off, cut).prop_map(
        |(target, request, more, without, is_upper, line_end, length_off, cut)| Odd {
            target,
            request,
            more,
            without,
            is_upper,
            line_end,
            length_off,
            cut,
        },
    )
}

/// Gives both readers the same bytes: on a new connection, and after plain requests.
fn compare(odd: &Odd) {
    let bytes = odd.bytes();
    let (begin, rest) = bytes.split_at(odd.cut % bytes.len());
    let after = Request::call(2, "echo", json!({ "text": "after" })).bytes();
    plain_as_hyper(&[begin, rest, &after]);
    let before = odd.request.bytes();
    plain_as_hyper(&[&before, &before, begin, rest, &after]);
}

/// Requests with one oddity that are plain otherwise.
fn single() -> Vec<Odd> {
    let plain = Odd {
        target: USUAL,
        request: Request::call(1, "echo", json!({ "text": "x" })),
        more: Vec::new(),
        without: None,
        is_upper: false,
        line_end: "\r\n",
        length_off: 0,
        cut: 0,
    };
    let mut all = vec![plain.clone()];
    all.extend(TARGETS.iter().map(|target| Odd { target, ..plain.clone() }));
    all.extend(LINES.iter().map(|line| Odd { more: vec![line], ..plain.clone() }));
    all.extend(LEFT_OUT.iter().map(|name| Odd { without: Some(name), ..plain.clone() }));
    all
}

#[test]
fn the_plain_reader_answers_as_hyper_does() {
    for odd in single() {
        compare(&odd);
    }
    let mut runner = TestRunner::new(Config { cases: 300, ..Config::default() });
    let ran = runner.run(&odd(), |odd| {
        compare(&odd);
        Ok(())
    });
    ran.unwrap();
}

#[tokio::test]
async fn a_request_may_come_in_pieces() {
    let server = start().await;
    for length in [10, 9000, 70_000] {
        let text = "x".repeat(length);
        let bytes = Request::call(1, "echo", json!({ "text": text })).bytes();
        for cut in [1, 100, bytes.len() - length, bytes.len() - 1] {
            let mut client = server.connect().await;
            for _ in 0..3 {
                client.write(&bytes[..cut]).await;
                tokio::time::sleep(Duration::from_millis(2)).await;
                client.write(&bytes[cut..]).await;
                assert_eq!(client.response().await.text(), text);
            }
        }
    }
    server.stop().await;
}

#[tokio::test]
async fn a_head_that_is_nearly_the_same_is_read_anew() {
    let token = token("secret");
    let server = Wish::default().http(|http| http.tokens = token).start().await;
    let echo = |length: usize| {
        let call = Request::call(1, "echo", json!({ "text": "x".repeat(length) }));
        call.header("authorization", "Bearer secret")
    };
    let mut client = server.connect().await;
    for length in [1, 1, 10, 1000, 20_000, 0, 3] {
        assert_eq!(client.send(&echo(length)).await.text(), "x".repeat(length));
        let fail = Request::call(1, "fail", json!({})).header("authorization", "Bearer secret");
        assert_eq!(client.send(&fail).await.text(), "it failed");
        let list = Request::modern(1, "tools/list", json!({}));
        let list = list.header("authorization", "Bearer secret");
        assert!(client.send(&list).await.json()["result"]["tools"].is_array());
    }
    for (request, status) in [
        (echo(1).with("authorization", "Bearer secres"), 401),
        (echo(1).with("mcp-name", "ecko"), 400),
        (echo(1).with("mcp-name", "ech\u{f6}"), 400),
        (echo(1).with("mcp-name", ""), 400),
        (echo(1).with("mcp-name", " echo "), 200),
        (echo(1).with("mcp-name", "echo\nx: y"), 200),
        (echo(1).with("mcp-name", "echo\norigin: http://evil.example.com"), 403),
        (echo(1).with("mcp-method", "tools/cale"), 400),
        (echo(1).with("host", "evil.com:8"), 403),
        (echo(1).with("accept", "application/json, text/event-strean"), 406),
        (echo(1).header("content-length", "5"), 400),
        (echo(1).header("x", "y"), 200),
        (echo(1).without("mcp-name"), 400),
    ] {
        // After a valid request, and before another.
        let mut client = server.connect().await;
        for _ in 0..2 {
            assert_eq!(client.send(&echo(1)).await.status, 200);
        }
        let response = client.send(&request).await;
        assert_eq!(response.status, status, "{request:?}");
        if status != 400 || response.header("connection") != Some("close") {
            assert_eq!(client.send(&echo(2)).await.text(), "xx", "{request:?}");
        }
    }
    server.stop().await;
}

#[tokio::test]
async fn an_answer_does_not_wait_for_the_rest_of_the_next_request() {
    let server = start().await;
    let echo = Request::call(1, "echo", json!({ "text": "x" })).bytes();
    // In the middle of the head, and of the body.
    for cut in [20, echo.len() - 3] {
        let mut client = server.connect().await;
        client.write(&[&echo, &echo, &echo[..cut]].concat()).await;
        assert_eq!(client.response().await.text(), "x");
        assert_eq!(client.response().await.text(), "x");
        client.write(&echo[cut..]).await;
        assert_eq!(client.response().await.text(), "x");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_stream_in_between_does_not_disturb_what_was_asked_with_it() {
    let server = start().await;
    let mut client = server.connect().await;
    let mut bytes = Vec::new();
    for nth in 0..3 {
        bytes.extend(Request::call(nth, "echo", json!({ "text": "before" })).bytes());
    }
    bytes.extend(progress(json!({ "steps": 3, "pad": "x".repeat(20_000) })).bytes());
    bytes.extend(Request::call(4, "echo", json!({ "text": "after" })).bytes());
    client.write(&bytes).await;
    for _ in 0..3 {
        assert_eq!(client.response().await.text(), "before");
    }
    let stream = client.response().await;
    assert_eq!(stream.events().last().unwrap().json()["id"], 1);
    assert_eq!(client.response().await.text(), "after");
    server.stop().await;
}
