//! The cost of a call over WebSocket, beside the same call on a kept-alive HTTP connection.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::client::Request;
use crate::frames::{Frame, Socket, TEXT};
use crate::server::{in_time, start};

/// Calls in one measurement, and measurements of each kind. The lowest counts: all others were
/// disturbed. On a busy machine there are more measurements.
const CALLS: usize = 500;
const ROUNDS: usize = 40;
const MOST_ROUNDS: usize = 400;

/// The maximum ratio of the costs.
const LIMIT: f64 = 1.2;

/// A client that sends the same bytes again and again, and knows how long the answer is: it costs
/// nothing but the system calls.
struct Repeater {
    stream: TcpStream,
    request: Vec<u8>,
    answer: Vec<u8>,
}

impl Repeater {
    /// Sends the first request, and learns how long its answer is.
    async fn new(mut stream: TcpStream, request: Vec<u8>) -> Self {
        stream.set_nodelay(true).unwrap();
        stream.write_all(&request).await.unwrap();
        let mut answer = vec![0; 4096];
        let length = in_time(stream.read(&mut answer)).await.unwrap();
        answer.truncate(length);
        assert!(String::from_utf8_lossy(&answer).contains("hello"), "{answer:?}");
        Self { stream, request, answer }
    }

    async fn measure(&mut self) -> Duration {
        let began = Instant::now();
        for _ in 0..CALLS {
            self.stream.write_all(&self.request).await.unwrap();
            self.stream.read_exact(&mut self.answer).await.unwrap();
        }
        began.elapsed()
    }
}

async fn http(address: SocketAddr, body: &str) -> Repeater {
    let request = format!(
        "POST /mcp HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\naccept: \
         application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: \
         tools/call\r\nmcp-name: echo\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    Repeater::new(TcpStream::connect(address).await.unwrap(), request.into_bytes()).await
}

#[tokio::test]
async fn a_call_over_websocket_costs_at_most_a_fifth_more_than_over_http() {
    let server = start().await;
    let body = Request::call(1, "echo", json!({ "text": "hello" })).body;
    let body = String::from_utf8(body).unwrap();
    let mut http = http(server.address, &body).await;
    let socket = Socket::open(server.address).await.into_stream();
    let mut websocket = Repeater::new(socket, Frame::new(TEXT, body.as_bytes()).to_bytes()).await;
    let (mut best_http, mut best_websocket) = (Duration::MAX, Duration::MAX);
    let mut ratio = f64::MAX;
    for round in 1..=MOST_ROUNDS {
        best_http = best_http.min(http.measure().await);
        best_websocket = best_websocket.min(websocket.measure().await);
        ratio = best_websocket.as_secs_f64() / best_http.as_secs_f64();
        if round >= ROUNDS && ratio <= LIMIT {
            break;
        }
    }
    let per_call = |best: Duration| best.as_secs_f64() * 1e6 / CALLS as f64;
    println!(
        "a call: {:.1} us over HTTP, {:.1} us over WebSocket, {ratio:.2} times as much",
        per_call(best_http),
        per_call(best_websocket)
    );
    assert!(ratio <= LIMIT, "{ratio:.2} times as much (limit {LIMIT})");
    drop((http, websocket));
    server.stop().await;
}
