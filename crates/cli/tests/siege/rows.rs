//! One attack each.

use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{
    Client, health, hello, message_head, open_old_sse, read_request, request, session_header,
};
use crate::h2;
use crate::quiet::quiet_during;
use crate::server::{BIG, BUDGET, MB, SLACK, Server, memory};

const MODERN_BIG: &str =
    "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: resources/read\r\nMcp-Name: file:///big\r\n";

fn batch_of_reads(count: u64) -> String {
    let read = |id| request(id, "resources/read", &json!({ "uri": "file:///big" }));
    let parts: Vec<_> = (1..=count).map(read).collect();
    format!("[{}]", parts.join(","))
}

#[test]
fn a_batch_of_long_answers_is_cut_and_stops_nobody() {
    let mut server = Server::start("");
    let address = server.address;
    let waits = quiet_during(&server, || {
        let attacks: Vec<_> = (0..4)
            .map(|_| {
                thread::spawn(move || {
                    let mut client = Client::connect(address);
                    let id = client.session("2025-03-26").unwrap();
                    let response = client.ask(&session_header(&id), &batch_of_reads(100)).unwrap();
                    let answers = response.json();
                    let answers = answers.as_array().unwrap();
                    assert_eq!(answers.len(), 100);
                    let refused = answers.iter().filter(|answer| answer["error"].is_object());
                    assert!(refused.count() >= 99, "8 MB do not fit into a batch");
                    assert!(response.body.len() < 5 << 20);
                    // One more part is one too many.
                    let response = client.ask(&session_header(&id), &batch_of_reads(101)).unwrap();
                    assert_eq!(response.status, 400);
                })
            })
            .collect();
        attacks.into_iter().for_each(|attack| attack.join().unwrap());
    });
    waits.check("batches");
    server.check_peak("batches");
    server.check_rest("batches");
    server.check_alive();
}

#[test]
fn a_client_with_a_long_name_is_kept_small() {
    let mut server = Server::start("");
    let body = hello(&"n".repeat(15_000_000), "2025-11-25");
    let mut client = Client::connect(server.address);
    let mut last = String::new();
    for _ in 0..30 {
        let response = client.ask("", &body).unwrap();
        assert_eq!(response.status, 200);
        last = response.header("mcp-session-id").unwrap();
    }
    let long = "u".repeat(100_000);
    let subscribe = request(1, "resources/subscribe", &json!({ "uri": format!("text://{long}") }));
    let refused = client.ask(&session_header(&last), &subscribe).unwrap().json();
    assert!(refused["error"].is_object(), "{refused}");
    let id = json!({ "jsonrpc": "2.0", "id": long, "method": "ping" });
    let refused = client.ask(&session_header(&last), &id.to_string()).unwrap();
    assert!(refused.json()["error"]["message"].as_str().unwrap().contains("too long"));
    server.check_peak("30 names of 15 MB");
    server.check_rest("30 names of 15 MB");
    server.check_alive();
}

#[test]
fn an_old_client_that_does_not_read_is_told_to() {
    let mut server = Server::start("");
    let mut stream = Client::connect(server.address);
    let path = open_old_sse(&mut stream).unwrap();
    let mut poster = Client::connect(server.address);
    assert_eq!(poster.post_to(&path, &hello("old", "2024-11-05")), Some(202));
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string();
    assert_eq!(poster.post_to(&path, &ready), Some(202));
    let mut ids = 1..;
    let mut ask = || {
        let read = request(ids.next().unwrap(), "resources/read", &json!({ "uri": "file:///big" }));
        poster.post_to(&path, &read).unwrap()
    };
    // 503 if the answers on their way have used up the memory before.
    let is_refusal = |status: u16| matches!(status, 429 | 503);
    // The first answers fill the buffers of the system; then the memory of the server stays in use.
    let end = Instant::now() + Duration::from_secs(50);
    let mut row = 0;
    while row < 20 {
        let status = ask();
        assert!(Instant::now() < end, "never refused: the last status was {status}");
        row = if is_refusal(status) { row + 1 } else { 0 };
    }
    let refused = (0..200).filter(|_| is_refusal(ask())).count();
    println!("old SSE: {refused} of 200 refused");
    assert!(refused > 180, "{refused}");
    // It has its share of the memory, and others have the rest.
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        let text = Client::connect(server.address).read("file:///big");
        if text.len() == BIG {
            break;
        }
        assert!(Instant::now() < end, "nothing is left for others: {text}");
        thread::sleep(Duration::from_millis(200));
    }
    server.check_peak("old SSE");
    drop(stream);
    server.check_rest("old SSE");
    server.check_alive();
}

#[test]
fn an_answer_that_nobody_takes_over_http_2_ends_its_connection() {
    let mut server = Server::start("[http]\nstall = \"1s\"\nidle = \"5m\"\n");
    let mut client = Client::connect(server.address);
    client.say(&h2::begin());
    let headers = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "resources/read"),
        ("mcp-name", "text://small"),
    ];
    let authority = server.address.to_string();
    let body = read_request("text://small");
    for stream in 0..20 {
        client.say(&h2::post(2 * stream + 1, &authority, &headers, body.as_bytes()));
    }
    // Without the limit the connection would be open for ever.
    let mut taken = Vec::new();
    let began = Instant::now();
    let end = client.stream.read_to_end(&mut taken);
    assert!(end.is_ok() || began.elapsed() < Duration::from_secs(50), "{end:?}");
    assert!(taken.len() < 20_000, "{}", taken.len());
    println!("HTTP/2 with a window of a byte: closed after {:?}", began.elapsed());
    server.check_alive();
}

#[test]
fn handshakes_that_are_not_completed_shut_nobody_out() {
    let mut server = Server::start("[http]\nsessions = 500\n");
    let mut normal = Client::connect(server.address);
    let id = normal.session("2025-11-25").unwrap();
    for _ in 0..20 {
        let mut client = Client::connect(server.address);
        for _ in 0..100 {
            assert_eq!(client.ask("", &hello("x", "2025-11-25")).unwrap().status, 200);
        }
    }
    let mut other = Client::connect(server.address);
    assert!(other.session("2025-06-18").is_some(), "there is no room for a new client");
    let ping = request(5, "ping", &json!({}));
    assert_eq!(normal.ask(&session_header(&id), &ping).unwrap().status, 200);
    server.check_alive();
}

#[test]
fn half_sent_bodies_take_what_the_budget_has_and_no_more() {
    let mut server = Server::start("");
    let address = server.address;
    let mut clients = Vec::new();
    let waits = quiet_during(&server, || {
        let piece = vec![b' '; 1 << 20];
        for _ in 0..40 {
            let mut client = Client::connect(address);
            let head = client.head("/mcp", "", 16_000_000);
            client.say(head.as_bytes());
            client.stream.set_write_timeout(Some(Duration::from_secs(5))).unwrap();
            // The connection of a refused client is closed.
            let _sent = (0..12).all(|_| client.say(&piece));
            clients.push(client);
        }
    });
    waits.check("half-sent bodies");
    assert_eq!(health(address), 200);
    server.check_peak("40 half-sent bodies of 12 MB");
    drop(clients);
    server.check_rest("40 half-sent bodies of 12 MB");
    server.check_alive();
}

#[test]
fn answers_that_nobody_reads_take_what_the_budget_has_and_no_more() {
    let mut server = Server::start("");
    let address = server.address;
    let mut clients = Vec::new();
    let waits = quiet_during(&server, || {
        for _ in 0..60 {
            let mut client = Client::connect(address);
            client.post(MODERN_BIG, &read_request("file:///big"));
            clients.push(client);
        }
        thread::sleep(Duration::from_secs(2));
    });
    waits.check("unread answers");
    server.check_peak("60 unread answers of 8 MB");
    // Some were refused, and told why; the others get all of it.
    let mut whole = 0;
    for client in &mut clients {
        let response = client.response().unwrap();
        match response.json()["result"]["contents"][0]["text"].as_str() {
            Some(text) => whole += usize::from(text.len() == BIG),
            None => assert!(String::from_utf8_lossy(&response.body).contains("no memory left")),
        }
    }
    println!("unread answers: {whole} of 60 were whole");
    assert!((4..60).contains(&whole), "{whole}");
    drop(clients);
    server.check_rest("60 unread answers of 8 MB");
    server.check_alive();
}

#[test]
fn half_sent_heads_take_what_the_budget_has_and_no_more() {
    let mut server = Server::start("");
    let address = server.address;
    let mut clients = Vec::new();
    let waits = quiet_during(&server, || {
        let head = format!("GET /mcp HTTP/1.1\r\nHost: localhost\r\nX-A: {}", "a".repeat(60_000));
        for _ in 0..3000 {
            let Ok(mut client) = Client::try_connect(address) else { break };
            // The connection of a refused client is closed.
            let _sent = client.say(head.as_bytes());
            clients.push(client);
        }
    });
    println!("half-sent heads: {}", clients.len());
    waits.check("half-sent heads");
    assert_eq!(health(address), 200);
    server.check_peak("3000 half-sent heads of 60 KB");
    drop(clients);
    server.check_rest("3000 half-sent heads of 60 KB");
    server.check_alive();
}

#[test]
fn half_sent_websocket_messages_take_what_the_budget_has_and_no_more() {
    let mut server = Server::start("");
    let address = server.address;
    let mut clients = Vec::new();
    let waits = quiet_during(&server, || {
        let piece = vec![b' '; 1 << 20];
        for _ in 0..40 {
            let mut client = Client::websocket(address).unwrap();
            client.say(&message_head(16_000_000));
            client.stream.set_write_timeout(Some(Duration::from_secs(5))).unwrap();
            // The connection of a refused client is closed.
            let _sent = (0..12).all(|_| client.say(&piece));
            clients.push(client);
        }
    });
    waits.check("half-sent WebSocket messages");
    assert_eq!(health(address), 200);
    server.check_peak("40 half-sent WebSocket messages of 12 MB");
    drop(clients);
    server.check_rest("40 half-sent WebSocket messages of 12 MB");
    server.check_alive();
}

/// The buffers of a WebSocket stay as large as its longest message, as long as it is open.
#[test]
fn websockets_that_are_open_keep_what_the_budget_has_and_no_more() {
    let mut server = Server::start("");
    let address = server.address;
    let mut clients = Vec::new();
    let long = " ".repeat(12_000_000) + &request(1, "ping", &json!({}));
    let mut served = 0;
    for _ in 0..20 {
        let mut client = Client::websocket(address).unwrap();
        client.stream.set_write_timeout(Some(Duration::from_secs(5))).unwrap();
        let mut begin = [0; 2];
        let is_sent = client.message(&long);
        let is_answered = is_sent && client.stream.read_exact(&mut begin).is_ok();
        served += usize::from(is_answered && begin[0] == 0x81);
        clients.push(client);
    }
    println!("WebSocket messages of 12 MB: {served} of 20 were answered");
    assert!((2..20).contains(&served), "{served}");
    server.check_peak("20 open WebSockets");
    drop(clients);
    server.check_rest("20 open WebSockets");
    server.check_alive();
}

#[test]
fn answers_that_no_websocket_reads_take_what_the_budget_has_and_no_more() {
    let mut server = Server::start("");
    let address = server.address;
    let mut clients = Vec::new();
    let waits = quiet_during(&server, || {
        for _ in 0..60 {
            let mut client = Client::websocket(address).unwrap();
            let _sent = (0..3).all(|_| client.message(&read_request("file:///big")));
            clients.push(client);
        }
        thread::sleep(Duration::from_secs(2));
    });
    waits.check("unread WebSocket answers");
    server.check_peak("180 unread WebSocket answers of 8 MB");
    drop(clients);
    server.check_rest("180 unread WebSocket answers of 8 MB");
    server.check_alive();
}

#[test]
fn a_pipe_that_nobody_reads_stops_the_work() {
    let server = Server::start("");
    let mut child = Command::new(env!("CARGO_BIN_EXE_sabir"))
        .args(["serve", "--stdio"])
        .current_dir(server.folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let writing = thread::spawn(move || {
        let line = read_request("file:///big") + "\n";
        // Blocks when the server reads no more, and fails when it has ended.
        let _ = (0..1000).try_for_each(|_| pipe.write_all(line.as_bytes()));
        pipe
    });
    thread::sleep(Duration::from_secs(8));
    let most = memory(child.id(), "VmHWM");
    println!("a pipe without a reader: {} MB at the most", most / MB);
    assert_eq!(child.try_wait().unwrap(), None);
    child.kill().unwrap();
    child.wait().unwrap();
    drop(writing.join().unwrap());
    assert!(most > 0 && most <= BUDGET + SLACK, "{} MB", most / MB);
}

#[test]
fn silent_connections_leave_files_for_others_and_for_programs() {
    let configuration = "[[command]]\nname = \"hi\"\nrun = [\"echo\", \"hi\"]\n";
    let mut server = Server::start_with(configuration, Some(256));
    let said = server.said();
    assert!(said.contains("connections: at most 192 (the limit of open files is 256)"), "{said}");
    let silent: Vec<_> =
        (0..250).filter_map(|_| Client::try_connect(server.address).ok()).collect();
    thread::sleep(Duration::from_millis(500));
    let mut client = Client::connect(server.address);
    let id = client.session("2025-11-25").unwrap();
    let call = request(7, "tools/call", &json!({ "name": "hi", "arguments": {} }));
    let answer = client.ask(&session_header(&id), &call).unwrap().json();
    assert_eq!(answer["result"]["content"][0]["text"], "hi", "{answer}");
    assert!(server.files() < 230, "{} open files", server.files());
    drop(silent);
    server.check_alive();
}

/// The tokens of two callers, and a tool that takes a second and is busy with one call at a time.
fn two_callers(tool: &str) -> String {
    format!(
        "[[token]]\nname = \"ann\"\nenv = \"ANN\"\n[[token]]\nname = \"bob\"\nenv = \
         \"BOB\"\n{tool}concurrency = 1\n"
    )
}

/// One call beside forty of another caller.
fn call_beside_others(server: &Server, tool: &str, arguments: &Value) {
    let call = |token| {
        let mut client = Client::connect(server.address);
        client.token = Some(token);
        let id = client.session("2025-11-25").unwrap();
        let call = json!({ "name": tool, "arguments": arguments });
        client.post(&session_header(&id), &request(7, "tools/call", &call));
        client
    };
    // A program that was just started has no tools for a while.
    let end = Instant::now() + Duration::from_secs(60);
    let is_served = |answer: &Value| {
        answer["result"]["content"].is_array() && answer["result"]["isError"] != true
    };
    while !is_served(&call("bob-token").response().unwrap().json()) {
        assert!(Instant::now() < end, "there is no tool `{tool}`");
        thread::sleep(Duration::from_millis(100));
    }
    let greedy: Vec<_> = (0..40).map(|_| call("ann-token")).collect();
    let began = Instant::now();
    let answer = call("bob-token").response().unwrap().json();
    assert!(is_served(&answer), "{answer}");
    println!("{tool}: one call beside 40 of another caller: {:?}", began.elapsed());
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    drop(greedy);
}

#[test]
fn one_caller_does_not_fill_the_queue_of_a_command_for_others() {
    let nap = "[[command]]\nname = \"nap\"\nrun = [\"sleep\", \"1\"]\n";
    call_beside_others(&Server::start(&two_callers(nap)), "nap", &json!({}));
}

#[test]
fn one_caller_does_not_fill_the_queue_of_an_upstream_for_others() {
    let run = [env!("CARGO_BIN_EXE_relay-fixture"), "stdio", "2025-11-25"];
    let up = format!("[[upstream]]\nname = \"up\"\nrun = {run:?}\n");
    call_beside_others(&Server::start(&two_callers(&up)), "up_echo", &json!({ "waitMs": 1000 }));
}

#[test]
fn the_output_of_programs_takes_what_the_budget_has_and_no_more() {
    let much = "[[command]]\nname = \"much\"\nrun = [\"sh\", \"-c\", \"yes | head -c 16000000\"]\n\
        max_output = \"32MB\"\nconcurrency = 12\n";
    let mut server = Server::start(much);
    let address = server.address;
    let call = move || {
        let mut client = Client::connect(address);
        let id = client.session("2025-11-25").unwrap();
        let call = json!({ "name": "much", "arguments": {} });
        let answer = client.ask(&session_header(&id), &request(7, "tools/call", &call)).unwrap();
        let is_refused = String::from_utf8_lossy(&answer.body).contains("no memory left");
        let text = answer.json()["result"]["content"][0]["text"].as_str().map(str::len);
        assert!(is_refused || text == Some(15_999_999), "{text:?}");
        is_refused
    };
    let calls: Vec<_> = (0..12).map(|_| thread::spawn(call)).collect();
    let refused = calls.into_iter().map(|call| call.join().unwrap());
    let refused = refused.filter(|is_refused| *is_refused).count();
    println!("12 programs that print 16 MB: {refused} were stopped");
    assert!(refused >= 1, "none was stopped");
    server.check_peak("12 programs that print 16 MB");
    server.check_rest("12 programs that print 16 MB");
    server.check_alive();
}

#[test]
fn a_call_and_a_batch_end_when_their_legacy_client_has_left() {
    let configuration = "[[command]]\nname = \"late\"\nrun = [\"sh\", \"-c\", \"sleep 6; touch late\"]\n\
        [[command]]\nname = \"part\"\nrun = [\"sh\", \"-c\", \"sleep 0.2; echo >> parts\"]\n\
        concurrency = 1\n";
    let server = Server::start(configuration);
    let call =
        |id: u64, tool: &str| request(id, "tools/call", &json!({ "name": tool, "arguments": {} }));
    let parts: Vec<_> = (1..=100).map(|id| call(id, "part")).collect();
    for (revision, body) in
        [("2025-06-18", call(7, "late")), ("2025-03-26", format!("[{}]", parts.join(",")))]
    {
        let mut client = Client::connect(server.address);
        let id = client.session(revision).unwrap();
        client.post(&session_header(&id), &body);
        thread::sleep(Duration::from_millis(500));
        client.stream.shutdown(Shutdown::Both).unwrap();
    }
    thread::sleep(Duration::from_secs(10));
    assert!(!server.folder.path().join("late").exists(), "the program went on");
    let done = std::fs::read(server.folder.path().join("parts")).map_or(0, |lines| lines.len());
    thread::sleep(Duration::from_secs(1));
    let later = std::fs::read(server.folder.path().join("parts")).map_or(0, |lines| lines.len());
    println!("a batch of 100 whose client has left: {later} parts were run");
    assert!(later == done && done < 50, "the batch went on: {done}, then {later}");
}

#[test]
fn long_arguments_are_checked_beside_other_clients() {
    let configuration = "[[command]]\nname = \"take\"\nrun = [\"true\"]\nstdin = \"json\"\ninput_schema = { type = \
        \"object\", properties = { list = { type = \"array\", uniqueItems = true, items = { type = \
        \"string\" } } } }\n";
    let mut server = Server::start(configuration);
    let address = server.address;
    let waits = quiet_during(&server, || {
        let mut client = Client::connect(address);
        let id = client.session("2025-11-25").unwrap();
        let list: Vec<_> = (0..20_000).map(|n| n.to_string()).chain([7.to_string()]).collect();
        let arguments = json!({ "name": "take", "arguments": { "list": list } });
        for _ in 0..3 {
            let answer = client.ask(&session_header(&id), &request(7, "tools/call", &arguments));
            let answer = answer.unwrap().json();
            assert!(answer.to_string().contains("unique"), "{answer}");
        }
    });
    waits.check("long arguments");
    server.check_alive();
}
