//! All attacks at once, and normal clients among them.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{
    Client, health, hello, message_head, open_old_sse, read_request, request, session_header,
};
use crate::h2;
use crate::quiet::quiet_during;
use crate::server::{Server, word};

const CONFIGURATION: &str = r#"
[http]
sessions = 2000
body_time = "3s"
stall = "3s"
session_idle = "10s"
handshake_time = "3s"

[[articles]]
path = "content"

[[command]]
name = "nap"
run = ["sleep", "0.2"]
concurrency = 2

[[command]]
name = "take"
run = ["true"]
stdin = "json"
input_schema = { type = "object", properties = { list = { type = "array", uniqueItems = true } } }
"#;

type Attack = fn(SocketAddr);

/// Each attacks once, and leaves.
const ATTACKS: &[(&str, Attack)] = &[
    ("half a body", |address| {
        let mut client = Client::connect(address);
        let head = client.head("/mcp", "", 16_000_000);
        client.say(head.as_bytes());
        client.say(&vec![b' '; 3 << 20]);
        thread::sleep(Duration::from_millis(500));
    }),
    ("an unread answer", |address| {
        let mut client = Client::connect(address);
        let headers = "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: resources/read\r\nMcp-Name: \
                       file:///big\r\n";
        client.post(headers, &read_request("file:///big"));
        thread::sleep(Duration::from_millis(500));
    }),
    ("half a WebSocket message", |address| {
        let Some(mut client) = Client::websocket(address) else { return };
        client.say(&message_head(16_000_000));
        client.say(&vec![b' '; 3 << 20]);
        thread::sleep(Duration::from_millis(500));
    }),
    ("unread WebSocket answers", |address| {
        let Some(mut client) = Client::websocket(address) else { return };
        let _sent = (0..3).all(|_| client.message(&read_request("file:///big")));
        thread::sleep(Duration::from_millis(500));
    }),
    ("a batch", |address| {
        let mut client = Client::connect(address);
        let Some(id) = client.session("2025-03-26") else { return };
        let read = |id| request(id, "resources/read", &json!({ "uri": "file:///big" }));
        let parts: Vec<_> = (1..=20).map(read).collect();
        client.post(&session_header(&id), &format!("[{}]", parts.join(",")));
    }),
    ("a long name", |address| {
        let mut client = Client::connect(address);
        client.ask("", &hello(&"n".repeat(2_000_000), "2025-11-25"));
    }),
    ("handshakes", |address| {
        let mut client = Client::connect(address);
        for _ in 0..50 {
            client.ask("", &hello("x", "2025-11-25"));
        }
    }),
    ("silence", |address| {
        let silent: Vec<_> = (0..50).filter_map(|_| Client::try_connect(address).ok()).collect();
        thread::sleep(Duration::from_millis(300));
        drop(silent);
    }),
    ("calls of one who leaves", |address| {
        let mut client = Client::connect(address);
        let Some(id) = client.session("2025-06-18") else { return };
        let call = request(1, "tools/call", &json!({ "name": "nap", "arguments": {} }));
        for _ in 0..10 {
            Client::connect(address).post(&session_header(&id), &call);
        }
    }),
    ("an old stream that is not read", |address| {
        let mut client = Client::connect(address);
        let Some(path) = open_old_sse(&mut client) else { return };
        let mut poster = Client::connect(address);
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        poster.post_to(&path, &hello("old", "2024-11-05"));
        poster.post_to(&path, &ready.to_string());
        for number in 1..=20 {
            let read = json!({ "uri": "file:///big" });
            poster.post_to(&path, &request(number, "resources/read", &read));
        }
        thread::sleep(Duration::from_millis(300));
    }),
    ("a window of one byte", |address| {
        let mut client = Client::connect(address);
        client.say(&h2::begin());
        let headers = [
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "resources/read"),
            ("mcp-name", "file:///big"),
        ];
        let body = read_request("file:///big");
        for stream in 0..5 {
            let authority = address.to_string();
            client.say(&h2::post(2 * stream + 1, &authority, &headers, body.as_bytes()));
        }
        thread::sleep(Duration::from_millis(500));
    }),
    ("long arguments", |address| {
        let mut client = Client::connect(address);
        let Some(id) = client.session("2025-11-25") else { return };
        let list: Vec<_> = (0..50_000).map(|n| n.to_string()).collect();
        let call = json!({ "name": "take", "arguments": { "list": list } });
        client.ask(&session_header(&id), &request(1, "tools/call", &call));
    }),
    ("searches for misspelt words", |address| {
        let query: Vec<_> = (0..32).map(|n| misspelt(&word(n * 7))).collect();
        let call = json!({ "name": "search_articles", "arguments": { "query": query.join(" ") } });
        call_thrice(address, &call);
    }),
    ("20,000 equal headings", |address| {
        let call = json!({ "name": "get_article", "arguments": { "slug": "headings" } });
        call_thrice(address, &call);
    }),
    ("nonsense", |address| {
        let mut client = Client::connect(address);
        client.post("", &"[".repeat(100_000));
        client.say(b"POST /mcp HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n");
    }),
];

fn call_thrice(address: SocketAddr, call: &Value) {
    let mut client = Client::connect(address);
    let Some(id) = client.session("2025-06-18") else { return };
    for number in 1..=3 {
        client.ask(&session_header(&id), &request(number, "tools/call", call));
    }
}

fn misspelt(word: &str) -> String {
    let mut letters: Vec<_> = word.chars().collect();
    letters.swap(1, 2);
    letters.into_iter().collect()
}

/// A normal client that reads a small text, in both eras. Every answer is checked.
fn normal(address: SocketAddr, is_over: &AtomicBool, answers: &AtomicU64) -> Duration {
    let mut slowest = Duration::ZERO;
    while !is_over.load(Ordering::Relaxed) {
        let mut client = Client::connect(address);
        let Some(id) = client.session("2025-11-25") else { panic!("no session") };
        for number in 0..20 {
            let began = Instant::now();
            assert_eq!(client.read("text://small"), "small");
            let read = request(number, "resources/read", &json!({ "uri": "text://small" }));
            let answer = client.ask(&session_header(&id), &read).unwrap().json();
            assert_eq!(answer["result"]["contents"][0]["text"], "small", "{answer}");
            assert_eq!(answer["id"], number);
            slowest = slowest.max(began.elapsed());
            answers.fetch_add(2, Ordering::Relaxed);
            thread::sleep(Duration::from_millis(5));
        }
        let delete = format!("DELETE /mcp HTTP/1.1\r\nHost: x\r\n{}\r\n", session_header(&id));
        client.say(delete.replace("Host: x", &format!("Host: {address}")).as_bytes());
        assert_eq!(client.response().unwrap().status, 204);
    }
    slowest
}

fn seconds() -> u64 {
    std::env::var("SABIR_SIEGE_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(10)
}

#[test]
fn all_attacks_together_leave_normal_clients_alone_and_nothing_behind() {
    let mut server = Server::start(CONFIGURATION);
    let address = server.address;
    // A first round starts the threads and the supervisor, which stay.
    for (_, attack) in ATTACKS {
        attack(address);
    }
    thread::sleep(Duration::from_secs(2));
    let (files, threads, children) = (server.files(), server.threads(), server.children());
    let (is_over, answers, attacks) =
        (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let end = Instant::now() + Duration::from_secs(seconds());
    let slowest = thread::scope(|scope| {
        let clients: Vec<_> =
            (0..2).map(|_| scope.spawn(|| normal(address, &is_over, &answers))).collect();
        for nth in 0..8 {
            let attacks = &attacks;
            scope.spawn(move || {
                for (_, attack) in ATTACKS.iter().cycle().skip(nth) {
                    if Instant::now() >= end {
                        return;
                    }
                    attack(address);
                    attacks.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        while Instant::now() < end {
            assert_eq!(health(address), 200);
            thread::sleep(Duration::from_millis(200));
        }
        is_over.store(true, Ordering::Relaxed);
        clients.into_iter().map(|client| client.join().unwrap()).max().unwrap()
    });
    println!(
        "{} s: {} attacks, {} right answers to normal clients, the slowest pair in {slowest:?}",
        seconds(),
        attacks.into_inner(),
        answers.into_inner(),
    );
    server.check_peak("all attacks");
    server.check_rest("all attacks");
    // Sessions, streams, connections and programs are gone.
    let gone = Instant::now() + Duration::from_secs(30);
    loop {
        let (now, here, below) = (server.files(), server.threads(), server.children());
        if now <= files + 8 && here <= threads + 8 && below <= children {
            break;
        }
        assert!(
            Instant::now() < gone,
            "files: {files}, then {now}; threads: {threads}, then {here}; children: {children}, \
             then {below}"
        );
        thread::sleep(Duration::from_millis(250));
    }
    println!("open files: {files} before, {} after", server.files());
    println!("threads: {threads} before, {} after", server.threads());
    println!("children: {children} before, {} after", server.children());
    server.check_alive();
}

#[test]
fn each_attack_alone_leaves_a_quiet_client_alone() {
    let mut server = Server::start(CONFIGURATION);
    let address = server.address;
    let time = Duration::from_secs((seconds() / 60).clamp(1, 30));
    println!(
        "| attack | requests of a quiet client | p50 | p99 | longest | memory at the most | kept |"
    );
    println!("|---|---|---|---|---|---|---|");
    let none = quiet_during(&server, || thread::sleep(time));
    println!("| none | {} | | |", none.cells());
    for (name, attack) in ATTACKS {
        server.forget_peak();
        let waits = quiet_during(&server, || {
            let end = Instant::now() + time;
            let attacking = || {
                while Instant::now() < end {
                    attack(address);
                }
            };
            thread::scope(|threads| {
                (0..4).for_each(|_| drop(threads.spawn(attacking)));
            });
        });
        let (peak, kept) = (server.check_peak(name), server.check_rest(name));
        println!("| {name} | {} | {peak} MB | {kept} MB |", waits.cells());
        waits.check_longest(name);
        waits.check_beside(&none, name);
        server.check_alive();
    }
}
