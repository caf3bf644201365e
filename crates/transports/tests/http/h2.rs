//! HTTP/2 without TLS, with hyper's own client.

use std::sync::atomic::Ordering;

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::client::Request;
use crate::server::{Running, start};

async fn connect(server: &Running) -> SendRequest<Full<Bytes>> {
    let stream = TcpStream::connect(server.address).await.unwrap();
    let (sender, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    sender
}

pub(crate) async fn send(
    sender: &SendRequest<Full<Bytes>>,
    request: &Request,
) -> hyper::Response<Incoming> {
    let uri = format!("http://localhost{}", request.path);
    let mut builder = hyper::Request::builder().method(request.method.as_str()).uri(uri);
    for (name, value) in request.headers.iter().filter(|(name, _)| name != "host") {
        builder = builder.header(name, value);
    }
    let body = Full::new(Bytes::from(request.body.clone()));
    sender.clone().send_request(builder.body(body).unwrap()).await.unwrap()
}

pub(crate) async fn json(response: hyper::Response<Incoming>) -> Value {
    let body = response.into_body().collect().await.unwrap().to_bytes();
    serde_json::from_slice(&body).unwrap()
}

#[tokio::test]
async fn many_calls_share_a_connection_and_none_waits_for_another() {
    let server = start().await;
    let sender = connect(&server).await;
    let slow = {
        let sender = sender.clone();
        tokio::spawn(async move {
            json(send(&sender, &Request::call(0, "wait", json!({}))).await).await
        })
    };
    server.signals.until(|signals| signals.begun.load(Ordering::SeqCst) == 1).await;
    for nth in 1..20 {
        let echo = Request::call(nth, "echo", json!({ "text": "x".repeat(nth * 3000) }));
        let answer = json(send(&sender, &echo).await).await;
        assert_eq!(answer["id"], nth);
        assert_eq!(answer["result"]["content"][0]["text"].as_str().unwrap().len(), nth * 3000);
    }
    assert_eq!(server.watcher.stats().connections, 1);
    server.signals.gate.0.add_permits(1);
    assert_eq!(slow.await.unwrap()["result"]["content"][0]["text"], "waited");
    drop(sender);
    server.stop().await;
}

#[tokio::test]
async fn a_stream_that_is_reset_cancels_its_call_and_no_other() {
    let server = start().await;
    let sender = connect(&server).await;
    let request = Request::modern(
        1,
        "subscriptions/listen",
        json!({ "notifications": { "toolsListChanged": true } }),
    );
    let mut listening = send(&sender, &request).await;
    assert_eq!(listening.headers()["content-type"], "text/event-stream");
    assert!(listening.body_mut().frame().await.is_some());
    let unwanted = {
        let sender = sender.clone();
        tokio::spawn(async move { send(&sender, &Request::call(2, "wait", json!({}))).await })
    };
    server.signals.until(|signals| signals.begun.load(Ordering::SeqCst) == 1).await;
    unwanted.abort();
    server.signals.until(|signals| signals.dropped.load(Ordering::SeqCst) == 1).await;
    assert_eq!(server.watcher.stats().streams, 1);
    drop(listening);
    server.until(|stats| stats.streams == 0 && stats.requests == 0).await;
    drop(sender);
    server.stop().await;
}

#[tokio::test]
async fn a_name_that_is_not_ours_is_refused_here_too() {
    let server = start().await;
    let sender = connect(&server).await;
    let request = hyper::Request::builder()
        .uri("http://evil.example.com/healthz")
        .body(Full::new(Bytes::new()))
        .unwrap();
    let response = sender.clone().send_request(request).await.unwrap();
    assert_eq!(response.status(), 403);
    drop(sender);
    server.stop().await;
}
