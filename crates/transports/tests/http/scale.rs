//! Many clients at once, and their cost. On one thread, so that every byte can be counted.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use allocation_counter::measure;
use serde_json::json;
use tokio::runtime::{Builder, Runtime};

use crate::client::{Client, Request};
use crate::legacy::{get, session};
use crate::server::{Running, Wish, in_time, start};

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// Opens sessions over one connection, many requests at a time.
async fn open_sessions(client: &mut Client, count: usize) -> Vec<String> {
    const AT_ONCE: usize = 100;
    let hello = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": { "sampling": {}, "elicitation": {}, "roots": { "listChanged": true } },
        "clientInfo": { "name": "a-client-with-a-name", "version": "12.34.56" },
    });
    let hello = Request::legacy(0, "initialize", hello).bytes().repeat(AT_ONCE);
    let mut ids = Vec::new();
    while ids.len() < count {
        client.write(&hello).await;
        let mut ready = Vec::new();
        for _ in 0..AT_ONCE {
            let response = client.response().await;
            let id = response.header("mcp-session-id").unwrap().to_owned();
            let note = Request::note("notifications/initialized", json!({}));
            ready.extend(note.header("mcp-session-id", &id).bytes());
            ids.push(id);
        }
        client.write(&ready).await;
        for _ in 0..AT_ONCE {
            assert_eq!(client.response().await.status, 202);
        }
    }
    ids
}

#[test]
fn ten_thousand_idle_sessions_cost_little_and_all_time_out() {
    const SESSIONS: usize = 10_000;
    let runtime = runtime();
    let server = runtime.block_on(start());
    let mut client = runtime.block_on(server.connect());
    // Warm up: some tables grow only once.
    runtime.block_on(open_sessions(&mut client, 100));
    let opened = measure(|| {
        drop(runtime.block_on(open_sessions(&mut client, SESSIONS)));
    });
    let each = opened.bytes_current / SESSIONS as i64;
    println!("an idle session costs {each} bytes");
    assert!(each <= 2048, "an idle session costs {each} bytes");
    assert_eq!(server.engine.ready_clients(), SESSIONS + 100);
    runtime.block_on(async {
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(31 * 60)).await;
        server.until(|stats| stats.sessions == 0).await;
        assert_eq!(server.engine.ready_clients(), 0);
        tokio::time::resume();
        drop(client);
        server.until(|stats| stats.connections == 0).await;
        server.stop().await;
    });
}

#[test]
fn a_session_that_was_busy_gives_back_what_it_needed() {
    let runtime = runtime();
    let wish = Wish::default().http(|http| http.limits.replay_time = Duration::from_millis(20));
    let server = runtime.block_on(wish.start());
    let (mut client, id) = runtime.block_on(session(&server, "2025-11-25"));
    let mut use_it = || {
        runtime.block_on(async {
            for nth in 0..100 {
                let meta = json!({ "progressToken": nth });
                let arguments = json!({ "steps": 20, "pause": true });
                let params = json!({ "name": "progress", "arguments": arguments, "_meta": meta });
                let call = Request::legacy(nth, "tools/call", params);
                let response = client.send(&call.header("mcp-session-id", &id)).await;
                assert!(response.events().len() >= 21);
            }
            // Until no events are kept for clients that may resume.
            tokio::time::sleep(Duration::from_millis(60)).await;
        });
    };
    use_it();
    let used = measure(use_it);
    assert!(used.bytes_current.abs() < 4096, "{used:?}");
    runtime.block_on(server.stop());
}

/// Clients that all behave differently, some of them badly.
async fn crowd(server: &Running) -> Vec<Client> {
    let mut staying = Vec::new();
    for nth in 0..1000 {
        let mut client = server.connect().await;
        match nth % 10 {
            // Requests much and reads nothing. No answer is so long that the pool writes it: only
            // this thread is measured.
            0 => {
                let (bytes, times) = if nth % 500 == 0 { (100_000, 50) } else { (100, 5) };
                let big = Request::call(1, "big", json!({ "bytes": bytes }));
                client.write(&big.bytes().repeat(times)).await;
            }
            // Listens, and disconnects.
            1 | 2 => {
                let filter = json!({ "notifications": { "toolsListChanged": true } });
                let listen = Request::modern(1, "subscriptions/listen", filter);
                assert_eq!(client.open(&listen).await.status, 200);
                continue;
            }
            // Listens, and stays.
            3 => {
                let filter = json!({ "notifications": { "toolsListChanged": true } });
                let listen = Request::modern(1, "subscriptions/listen", filter);
                assert_eq!(client.open(&listen).await.status, 200);
            }
            // Waits for a call, and disconnects.
            4 => {
                client.write(&Request::call(1, "wait", json!({})).bytes()).await;
                server.signals.until(|s| s.begun.load(Ordering::SeqCst) > nth / 10).await;
                continue;
            }
            // Stops in the middle of a request.
            5 => client.write(b"POST /mcp HTTP/1.1\r\nhost: local").await,
            // Opens a session with a stream, and disconnects or stays.
            6 | 7 => {
                let (mut client, id) = session(server, "2025-11-25").await;
                assert_eq!(client.open(&get(&id)).await.status, 200);
                if nth % 10 == 7 {
                    staying.push(client);
                }
                continue;
            }
            _ => {
                let echo = Request::call(1, "echo", json!({ "text": "x" }));
                assert_eq!(client.send(&echo).await.text(), "x");
            }
        }
        staying.push(client);
    }
    staying
}

#[test]
fn a_thousand_clients_slow_and_vanishing_delay_nobody_and_leave_nothing() {
    let runtime = runtime();
    let wish = Wish::default().http(|http| {
        http.limits.session_idle = Duration::from_secs(2);
        http.limits.replay_time = Duration::from_millis(50);
    });
    let server = runtime.block_on(wish.start());
    let tasks = runtime.block_on(async {
        let health = Request::new("GET", "/healthz");
        assert_eq!(server.connect().await.send(&health).await.status, 200);
        server.until(|stats| stats.connections == 0).await;
        runtime.metrics().num_alive_tasks()
    });
    let crowded = || {
        runtime.block_on(async {
            let before = server.signals.dropped.load(Ordering::SeqCst);
            server.signals.begun.store(0, Ordering::SeqCst);
            let crowd = crowd(&server).await;
            let stats = server.watcher.stats();
            assert!(stats.streams >= 200 && stats.connections >= 600, "{stats:?}");
            // Other clients are not delayed.
            let mut client = server.connect().await;
            let mut longest = Duration::ZERO;
            for _ in 0..100 {
                let began = Instant::now();
                let echo = Request::call(1, "echo", json!({ "text": "x" }));
                assert_eq!(client.send(&echo).await.text(), "x");
                longest = longest.max(began.elapsed());
            }
            assert!(longest < Duration::from_millis(250), "a client waited {longest:?}");
            // The calls and streams of disconnected clients have ended.
            server.signals.until(|s| s.dropped.load(Ordering::SeqCst) == before + 100).await;
            server.until(|stats| stats.streams == 200).await;
            drop((crowd, client));
            server.until(|stats| stats.connections == 0 && stats.sessions == 0).await;
            let stats = server.watcher.stats();
            assert_eq!((stats.requests, stats.streams), (0, 0));
            in_time(async {
                while runtime.metrics().num_alive_tasks() > tasks {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            })
            .await;
        });
    };
    crowded();
    let again = measure(crowded);
    assert!(again.bytes_current.abs() < 100_000, "memory is not freed: {again:?}");
    runtime.block_on(server.stop());
}

#[test]
fn an_answer_at_once_takes_few_allocations() {
    let runtime = runtime();
    let server = runtime.block_on(start());
    let (mut legacy, id) = runtime.block_on(session(&server, "2025-11-25"));
    let modern = Request::call(1, "echo", json!({ "text": "x".repeat(50) })).bytes();
    let old = crate::legacy::call(&id, 1, "echo", json!({ "text": "x".repeat(50) })).bytes();
    for (name, request) in [("modern", modern), ("legacy", old)] {
        let mut buffer = vec![0; 4096];
        let mut ask = |times: usize| {
            runtime.block_on(async {
                for _ in 0..times {
                    legacy.write(&request).await;
                    let mut read = 0;
                    while !buffer[..read].ends_with(b"}") {
                        let rest = &mut buffer[read..];
                        read +=
                            tokio::io::AsyncReadExt::read(&mut legacy.stream, rest).await.unwrap();
                    }
                }
            });
        };
        ask(10);
        let used = measure(|| ask(100));
        let each = used.count_total as f64 / 100.0;
        println!("{name}: {each} allocations, {} bytes a call", used.bytes_total / 100);
        assert!(each <= 64.0, "{name}: {each} allocations a call");
        assert!(used.bytes_current.abs() < 10_000, "{name}: {used:?}");
    }
    drop(legacy);
    runtime.block_on(server.stop());
}
