//! Addresses that send too much, and clients behind proxies.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use sabir_budget::Rate;
use sabir_transports::http::{Authenticate, Authenticating, Denied, Settings};
use sabir_wire::Caller;
use serde_json::json;

use crate::callers::{named, of, record};
use crate::client::{Client, Request};
use crate::server::{Running, Wish};

/// So slow that nothing is refilled during a test.
fn at_most(burst: u32) -> Option<Rate> {
    Some(Rate { calls: 1, period: Duration::from_secs(3600), burst })
}

async fn start(change: impl FnOnce(&mut Settings)) -> Running {
    Wish::default()
        .http(|http| {
            http.tokens = vec![named("ann", "a1")];
            change(http);
        })
        .start()
        .await
}

fn echo(token: &str) -> Request {
    of(Request::call(1, "echo", json!({ "text": "x" })), token)
}

#[tokio::test]
async fn many_bad_tokens_are_answered_429_and_a_good_one_goes_on() {
    let server = start(|http| http.limits.refusals = at_most(5)).await;
    let mut attacker = server.connect().await;
    for nth in 0..5 {
        assert_eq!(attacker.send(&echo(&format!("bad{nth}"))).await.status, 401);
    }
    // By hyper, and by our own reader on a new connection, for every method and path.
    let mut fresh = server.connect().await;
    for client in [&mut attacker, &mut fresh] {
        for request in [
            echo("bad"),
            Request::call(1, "echo", json!({})),
            of(Request::new("GET", "/mcp"), "bad"),
        ] {
            let answer = client.send(&request).await;
            assert_eq!(answer.status, 429, "{request:?}");
            assert!(answer.header("retry-after").unwrap().parse::<u64>().unwrap() > 0);
            assert_eq!(answer.code(), -32600);
        }
        assert_eq!(client.send(&echo("a1")).await.text(), "x", "a known caller is served");
    }
    // A split body: the answer is sent when all of it is read.
    let bytes = echo("bad").bytes();
    let mut slow = server.connect().await;
    let (head, rest) = bytes.split_at(bytes.len() - 10);
    slow.write(head).await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    slow.write(rest).await;
    assert_eq!(slow.response().await.status, 429);
    assert_eq!(slow.send(&echo("a1")).await.text(), "x");
    drop((attacker, fresh, slow));
    server.stop().await;
}

#[tokio::test]
async fn bad_tokens_of_probes_are_counted_and_probes_without_tokens_are_not() {
    let server = start(|http| http.limits.refusals = at_most(3)).await;
    let mut client = server.connect().await;
    let probe = || Request::new("GET", "/readyz");
    for _ in 0..5 {
        assert_eq!(client.send(&probe()).await.status, 200);
    }
    for nth in 0..3 {
        assert_eq!(client.send(&of(probe(), &format!("bad{nth}"))).await.status, 200);
    }
    assert_eq!(client.send(&of(probe(), "bad")).await.status, 429);
    assert_eq!(client.send(&of(probe(), "a1")).await.status, 200);
    drop(client);
    server.stop().await;
}

#[tokio::test]
async fn a_flood_of_requests_is_answered_429_if_the_operator_says_so() {
    let server = start(|http| http.limits.requests = at_most(3)).await;
    let mut client = server.connect().await;
    for _ in 0..2 {
        assert_eq!(client.send(&echo("a1")).await.text(), "x");
    }
    // A request in two pieces is counted once.
    let bytes = echo("a1").bytes();
    let (head, rest) = bytes.split_at(bytes.len() - 10);
    client.write(head).await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    client.write(rest).await;
    assert_eq!(client.response().await.text(), "x");
    assert_eq!(client.send(&echo("a1")).await.status, 429);
    assert_eq!(client.send(&Request::new("GET", "/healthz")).await.status, 429);
    drop(client);
    server.stop().await;
}

#[tokio::test]
async fn clients_behind_a_trusted_proxy_are_counted_by_their_own_addresses() {
    for is_trusted in [true, false] {
        let server = start(|http| {
            http.limits.refusals = at_most(2);
            if is_trusted {
                http.trusted_proxies.push("127.0.0.0/8".parse().unwrap());
            }
        })
        .await;
        let from = |address: &str| echo("bad").header("x-forwarded-for", address);
        let mut proxy = server.connect().await;
        for _ in 0..2 {
            assert_eq!(proxy.send(&from("192.0.2.1")).await.status, 401);
        }
        assert_eq!(proxy.send(&from("192.0.2.1")).await.status, 429);
        let spoofed = proxy.send(&from("192.0.2.9, 192.0.2.1")).await.status;
        assert_eq!(spoofed, 429, "the proxy wrote the last one");
        let other = if is_trusted { 401 } else { 429 };
        assert_eq!(proxy.send(&from("192.0.2.2")).await.status, other);
        drop(proxy);
        server.stop().await;
    }
}

#[tokio::test]
async fn sources_learn_where_a_call_comes_from() {
    let mut settings = Settings::default();
    settings.trusted_proxies.push("127.0.0.1/32".parse().unwrap());
    let (source, server) = record(settings).await;
    let address = server.address();
    tokio::spawn(server.run(std::future::pending()));
    let mut client = Client::connect(address).await;
    let who = || Request::call(1, "who", json!({}));
    client.send(&who()).await;
    client.send(&who().header("forwarded", "for=192.0.2.7;proto=https")).await;
    // Not plain: hyper reads it.
    client
        .send(&who().header("x-forwarded-for", "192.0.2.8").header("origin", "http://localhost"))
        .await;
    let seen: Vec<_> = source.callers.lock().unwrap().iter().map(Caller::address).collect();
    let expected = ["127.0.0.1", "192.0.2.7", "192.0.2.8"];
    assert_eq!(seen, expected.map(|address| address.parse::<IpAddr>().ok()));
}

/// Refuses all credentials, and recognizes one of them.
struct Closed;

impl Authenticate for Closed {
    fn authenticate(&self, _: Option<&[u8]>) -> Authenticating {
        Box::pin(async { Err(Denied::Invalid("closed")) })
    }

    fn recognizes(&self, authorization: Option<&[u8]>) -> bool {
        authorization == Some(b"Bearer seen")
    }
}

#[tokio::test]
async fn an_authenticator_says_whom_it_has_seen() {
    let server = start(|http| {
        http.authenticate = Some(Arc::new(Closed));
        http.limits.refusals = at_most(1);
    })
    .await;
    let mut client = server.connect().await;
    assert_eq!(client.send(&echo("x")).await.status, 401);
    assert_eq!(client.send(&echo("x")).await.status, 429);
    assert_eq!(client.send(&echo("seen")).await.status, 401, "it is checked");
    drop(client);
    server.stop().await;
}
