//! Connections that are kept: when they are used again, and when not.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sabir_outbound::{Limits, Redirects};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Barrier, Notify};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::server::{Server, get, local, text};

/// How long anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn answer(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

async fn listen() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    (listener, url)
}

async fn read_request(socket: &mut TcpStream) {
    let mut request = [0; 4096];
    assert!(socket.read(&mut request).await.unwrap() > 0);
}

/// The server writes these bytes to the first connection while that is idle, and may close it. The
/// second request must get its own answer.
async fn second_request_after(last_words: &'static str, closes: bool) {
    let (listener, url) = listen().await;
    let (begin, done) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (begun, is_done) = (begin.clone(), done.clone());
    let server = tokio::spawn(async move {
        let (mut first, _) = listener.accept().await.unwrap();
        read_request(&mut first).await;
        first.write_all(answer("one").as_bytes()).await.unwrap();
        begun.notified().await;
        first.write_all(last_words.as_bytes()).await.unwrap();
        let first = (!closes).then_some(first);
        is_done.notify_one();
        let (mut second, _) = listener.accept().await.unwrap();
        read_request(&mut second).await;
        second.write_all(answer("two").as_bytes()).await.unwrap();
        drop(first);
    });
    let client = local(Redirects::Never);
    let limits = Limits::default();
    assert_eq!(get(&client, &url, &limits).await.unwrap(), "one");
    begin.notify_one();
    done.notified().await;
    // The runtime notices it when it next polls for events.
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(get(&client, &url, &limits).await.unwrap(), "two");
    server.await.unwrap();
}

#[tokio::test]
async fn a_request_is_not_lost_on_a_connection_that_the_server_has_closed() {
    second_request_after("", true).await;
}

/// The server may have handled the request.
#[tokio::test]
async fn a_request_that_was_sent_is_not_sent_again() {
    let (listener, url) = listen().await;
    let accepted = Arc::new(AtomicUsize::new(0));
    let counted = accepted.clone();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            read_request(&mut socket).await;
            socket.write_all(answer("one").as_bytes()).await.unwrap();
            read_request(&mut socket).await;
        }
    });
    let client = local(Redirects::Never);
    assert_eq!(get(&client, &url, &Limits::default()).await.unwrap(), "one");
    let error = get(&client, &url, &Limits::default()).await.unwrap_err();
    assert!(!error.is_unsent(), "{error}");
    assert_eq!(accepted.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn bytes_that_arrive_between_two_requests_are_not_the_next_answer() {
    second_request_after("HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\npoison", false).await;
}

#[tokio::test]
async fn bytes_behind_an_answer_are_not_the_next_answer() {
    let (listener, url) = listen().await;
    tokio::spawn(async move {
        let mut open = Vec::new();
        for words in [answer("one") + &answer("poison"), answer("two")] {
            let (mut socket, _) = listener.accept().await.unwrap();
            read_request(&mut socket).await;
            socket.write_all(words.as_bytes()).await.unwrap();
            open.push(socket);
        }
        std::future::pending::<()>().await;
    });
    let client = local(Redirects::Never);
    for expected in ["one", "two"] {
        assert_eq!(get(&client, &url, &Limits::default()).await.unwrap(), expected);
    }
}

#[tokio::test]
async fn a_connection_whose_body_was_not_read_is_not_used_again() {
    let server = Server::start(|_| text(&"x".repeat(1 << 20))).await;
    let client = local(Redirects::Never);
    for connections in [1, 2] {
        let request = http::Request::get(server.url("/")).body(bytes::Bytes::new()).unwrap();
        let response = client.send(request, &Limits::default()).await.unwrap();
        drop(response);
        assert_eq!(server.connections.load(Ordering::SeqCst), connections);
    }
    // An empty body need not be read.
    let server = Server::start(|_| text("")).await;
    for _ in 0..2 {
        let request = http::Request::get(server.url("/")).body(bytes::Bytes::new()).unwrap();
        drop(client.send(request, &Limits::default()).await.unwrap());
    }
    assert_eq!(server.connections.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn of_many_idle_connections_thirty_two_are_kept() {
    const ALL: usize = 40;
    let (listener, url) = listen().await;
    let (barrier, open) = (Arc::new(Barrier::new(ALL)), Arc::new(AtomicUsize::new(0)));
    let counted = open.clone();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let (barrier, open) = (barrier.clone(), counted.clone());
            open.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(async move {
                read_request(&mut socket).await;
                barrier.wait().await;
                socket.write_all(answer("ok").as_bytes()).await.unwrap();
                while socket.read(&mut [0; 64]).await.is_ok_and(|read| read > 0) {}
                open.fetch_sub(1, Ordering::SeqCst);
            });
        }
    });
    let client = local(Redirects::Never);
    let mut requests = JoinSet::new();
    for _ in 0..ALL {
        let (client, url) = (client.clone(), url.clone());
        requests.spawn(async move { get(&client, &url, &Limits::default()).await.unwrap() });
    }
    requests.join_all().await;
    let is_so = async {
        while open.load(Ordering::SeqCst) != 32 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, is_so).await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(open.load(Ordering::SeqCst), 32);
}

/// How long an idle connection is kept, by a clock that jumps ahead while the sockets are quiet.
async fn idle_time(is_closed_by_server: bool) -> Duration {
    let (listener, url) = listen().await;
    let (begin, done) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (begun, is_done) = (begin.clone(), done.clone());
    tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        read_request(&mut socket).await;
        socket.write_all(answer("one").as_bytes()).await.unwrap();
        begun.notified().await;
        if is_closed_by_server {
            socket.shutdown().await.unwrap();
        }
        assert_eq!(socket.read(&mut [0; 64]).await.unwrap(), 0);
        is_done.notify_one();
    });
    let client = local(Redirects::Never);
    assert_eq!(get(&client, &url, &Limits::default()).await.unwrap(), "one");
    tokio::time::pause();
    let start = Instant::now();
    begin.notify_one();
    done.notified().await;
    start.elapsed()
}

#[tokio::test]
async fn an_idle_connection_that_the_server_closes_is_closed_here_too() {
    assert!(idle_time(true).await < Duration::from_secs(30));
}

#[tokio::test]
async fn an_idle_connection_is_closed_after_a_minute() {
    let kept = idle_time(false).await;
    assert!((50..80).contains(&kept.as_secs()), "{kept:?}");
}
