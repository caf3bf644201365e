use std::sync::atomic::Ordering;
use std::time::Duration;

use sabir_outbound::{Addresses, HttpClient, Limits, PlainHttp, Policy, Redirects};

use crate::server::{Server, get, local, raw_server, text};

#[tokio::test]
async fn a_name_that_resolves_to_this_machine_is_refused_before_it_is_connected_to() {
    let server = Server::start(|_| text("secret")).await;
    let client =
        HttpClient::new(Policy { plain_http: PlainHttp::Allowed, ..Policy::default() }).unwrap();
    let url = format!("http://localhost:{}/", server.port);
    let error = get(&client, &url, &Limits::default()).await.unwrap_err();
    assert!(error.to_string().contains("it is not a public address"), "{error}");
    assert!(error.is_unsent());
    assert_eq!(server.connections.load(Ordering::SeqCst), 0);
    let client = HttpClient::new(Policy {
        plain_http: PlainHttp::Allowed,
        addresses: Addresses::PublicAndLoopback,
        ..Policy::default()
    });
    assert_eq!(get(&client.unwrap(), &url, &Limits::default()).await.unwrap(), "secret");
}

#[tokio::test]
async fn connections_are_reused() {
    let server = Server::start(|_| text("ok")).await;
    let client = local(Redirects::Never);
    for _ in 0..5 {
        assert_eq!(get(&client, &server.url("/"), &Limits::default()).await.unwrap(), "ok");
    }
    assert_eq!(server.connections.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_server_that_is_not_there_is_a_connect_error() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let client = local(Redirects::Never);
    let url = format!("http://127.0.0.1:{port}/");
    let error = get(&client, &url, &Limits::default()).await.unwrap_err();
    assert!(error.is_unsent());
    assert!(error.to_string().starts_with("cannot connect to `127.0.0.1`: "), "{error}");
}

#[tokio::test]
async fn a_silent_server_is_a_time_out_and_the_request_may_have_happened() {
    let port = raw_server(Vec::new()).await;
    let limits = Limits { head: Duration::from_millis(50), ..Limits::default() };
    let url = format!("http://127.0.0.1:{port}/");
    let error = get(&local(Redirects::Never), &url, &limits).await.unwrap_err();
    assert_eq!(error.to_string(), "no response within 50 ms");
    assert!(!error.is_unsent());
}

#[tokio::test]
async fn a_head_without_end_is_an_error() {
    let mut head = b"HTTP/1.1 200 OK\r\n".to_vec();
    for nth in 0..60 {
        head.extend_from_slice(format!("x-{nth}: {}\r\n", "y".repeat(2000)).as_bytes());
    }
    let port = raw_server(head).await;
    let url = format!("http://127.0.0.1:{port}/");
    let error = get(&local(Redirects::Never), &url, &Limits::default()).await.unwrap_err();
    assert!(error.to_string().contains("message head is too large"), "{error}");
}
