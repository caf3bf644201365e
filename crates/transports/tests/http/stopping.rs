//! A graceful stop: no connection is accepted, running calls may finish, streams end properly.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::net::TcpStream;

use crate::client::Request;
use crate::legacy::{call, get, session};
use crate::server::{Wish, in_time, start};

#[tokio::test]
async fn running_calls_of_both_eras_finish() {
    let server = start().await;
    let (mut legacy, id) = session(&server, "2025-11-25").await;
    legacy.write(&call(&id, 1, "wait", json!({})).bytes()).await;
    let mut modern = server.connect().await;
    modern.write(&Request::call(2, "wait", json!({})).bytes()).await;
    server.signals.until(|signals| signals.begun.load(Ordering::SeqCst) == 2).await;
    let mut idle = server.connect().await;
    assert_eq!(idle.send(&Request::new("GET", "/healthz")).await.status, 200);
    let (address, signals) = (server.address, server.signals.clone());
    let stopped = server.stopping();
    assert!(idle.is_closed().await, "an idle connection is closed at once");
    assert!(TcpStream::connect(address).await.is_err(), "no connection is accepted");
    signals.gate.0.add_permits(2);
    assert_eq!(legacy.response().await.text(), "waited");
    assert_eq!(modern.response().await.text(), "waited");
    in_time(stopped).await.unwrap();
}

#[tokio::test]
async fn a_call_that_does_not_finish_is_answered_at_the_end_of_the_grace() {
    let grace = Duration::from_millis(100);
    let server = Wish::default().engine(|engine| engine.limits.grace = grace).start().await;
    let (mut legacy, id) = session(&server, "2025-11-25").await;
    legacy.write(&call(&id, 1, "wait", json!({})).bytes()).await;
    let mut modern = server.connect().await;
    modern.write(&Request::call(2, "wait", json!({})).bytes()).await;
    server.signals.until(|signals| signals.begun.load(Ordering::SeqCst) == 2).await;
    let signals = server.signals.clone();
    let began = Instant::now();
    let stopped = server.stopping();
    assert_eq!(modern.response().await.code(), -32603);
    assert_eq!(legacy.response().await.code(), -32603);
    in_time(stopped).await.unwrap();
    assert!(began.elapsed() >= grace);
    signals.until(|signals| signals.dropped.load(Ordering::SeqCst) == 2).await;
}

#[tokio::test]
async fn streams_of_sessions_end() {
    let server = start().await;
    let (mut client, id) = session(&server, "2025-11-25").await;
    let mut pending = Vec::new();
    client.open(&get(&id)).await;
    client.event(&mut pending).await.unwrap();
    let mut old = server.connect().await;
    old.open(&Request::new("GET", "/sse").header("accept", "text/event-stream")).await;
    let mut pending_old = Vec::new();
    old.event(&mut pending_old).await.unwrap();
    let watcher = server.watcher.clone();
    let stopped = server.stopping();
    assert_eq!(client.event(&mut pending).await, None);
    assert_eq!(old.event(&mut pending_old).await, None);
    in_time(stopped).await.unwrap();
    assert_eq!(watcher.stats().sessions, 0);
}

#[tokio::test]
async fn a_client_that_does_not_read_cannot_hold_up_the_stop() {
    let grace = Duration::from_millis(50);
    let server = Wish::default().engine(|engine| engine.limits.grace = grace).start().await;
    let mut client = server.connect().await;
    client.write(&Request::call(1, "big", json!({ "bytes": 16 << 20 })).bytes()).await;
    server.until(|stats| stats.connections == 1).await;
    server.stop().await;
    drop(client);
}

#[tokio::test]
async fn a_request_that_was_half_sent_is_told_that_it_came_too_late() {
    let server = start().await;
    let echo = Request::call(1, "echo", json!({ "text": "x" })).bytes();
    let (half, rest) = echo.split_at(echo.len() - 5);
    let (mut first, mut second) = (server.connect().await, server.connect().await);
    second.write(&echo).await;
    assert_eq!(second.response().await.status, 200);
    first.write(half).await;
    second.write(half).await;
    server.until(|stats| stats.requests == 2).await;
    let stopped = server.stopping();
    tokio::time::sleep(Duration::from_millis(50)).await;
    for mut client in [first, second] {
        client.write(rest).await;
        assert_eq!(client.response().await.status, 503);
        assert!(client.is_closed().await);
    }
    in_time(stopped).await.unwrap();
}
