//! `sabir serve --http`: the address, the tokens, the log, and the signal that stops it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use crate::{command, folder_with, sabir, seen};

/// A server on a free port.
pub(crate) struct Server {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) child: Child,
    pub(crate) address: String,
    /// The lines on standard error after the address.
    pub(crate) lines: Receiver<String>,
}

impl Server {
    pub(crate) fn start(file: &str, env: &[(&str, &str)], args: &[&str]) -> Self {
        let folder = folder_with(&format!("[server]\nname = \"port\"\n{file}"));
        Self::start_in(folder, env, args)
    }

    /// The same in a folder that has a file.
    pub(crate) fn start_in(folder: tempfile::TempDir, env: &[(&str, &str)], args: &[&str]) -> Self {
        let args = [&["serve", "--http", "127.0.0.1:0"], args].concat();
        let mut command = command(folder.path(), &args);
        command.envs(env.iter().copied()).stdin(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        let url = line.trim().strip_prefix("serving `port` on ").expect(&line);
        let address = url.split("://").nth(1).unwrap().strip_suffix("/mcp").unwrap().to_owned();
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            said.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        Self { folder, child, address, lines }
    }

    pub(crate) fn post(&self, head: &str, body: &str) -> String {
        self.request("POST", head, body)
    }

    pub(crate) fn request(&self, method: &str, head: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let (address, length) = (&self.address, body.len());
        write!(
            stream,
            "{method} /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nAccept: \
             application/json, text/event-stream\r\nConnection: close\r\nContent-Length: \
             {length}\r\n{head}\r\n{body}"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Stops the server, and returns the rest of its standard error.
    pub(crate) fn stop(mut self) -> Vec<String> {
        self.end()
    }

    /// The same, and its folder stays.
    pub(crate) fn end(&mut self) -> Vec<String> {
        let pid = self.child.id().to_string();
        let kill = std::process::Command::new("kill").args(["-TERM", &pid]).status();
        assert!(kill.unwrap().success());
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
        self.lines.iter().collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have exited.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const DISCOVER: &str = r#"{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
const HEAD: &str = "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: server/discover\r\n";
const HELLO: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
const PING: &str = r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;

#[track_caller]
pub(crate) fn assert_status(answer: &str, status: u16) {
    assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
}

#[test]
fn both_eras_are_answered_and_a_signal_stops_it() {
    let server = Server::start("", &[], &[]);
    let modern = server.post(HEAD, DISCOVER);
    assert_status(&modern, 200);
    assert!(modern.contains(r#""supportedVersions":["2026-07-28""#), "{modern}");
    let legacy = server.post("", HELLO);
    assert!(legacy.to_lowercase().contains("mcp-session-id: "), "{legacy}");
    server.stop();
}

#[test]
fn a_token_is_required_in_every_request() {
    let server = Server::start("", &[], &["--token", "open-sesame"]);
    let refused = server.post(HEAD, DISCOVER);
    assert_status(&refused, 401);
    assert!(refused.to_lowercase().contains("www-authenticate: bearer"), "{refused}");
    let head = format!("{HEAD}Authorization: Bearer open-sesame\r\n");
    assert_status(&server.post(&head, DISCOVER), 200);
}

#[test]
fn who_is_not_let_in_is_in_the_log() {
    let server = Server::start("", &[("SABIR_TOKEN", "open-sesame")], &[]);
    assert_status(&server.post(HEAD, DISCOVER), 401);
    let foreign =
        format!("{HEAD}Authorization: Bearer open-sesame\r\nOrigin: http://a.example\r\n");
    assert_status(&server.post(&foreign, DISCOVER), 403);
    let said = server.stop().join("\n");
    for status in ["401 Unauthorized", "403 Forbidden"] {
        let line = format!("refused a request to \"/mcp\" from 127.0.0.1: {status}");
        assert!(said.contains(&line), "{said}");
    }
    assert!(!said.contains("sesame"), "{said}");
}

const TOKENS: &str = r#"
[[token]]
name = "ann"
env = "ANN_TOKEN"
scopes = ["notes:read", "notes:write"]

[[token]]
name = "bob"
env = "BOB_TOKEN"

[[command]]
name = "hello"
run = ["echo", "hello"]
"#;
const SECRETS: &[(&str, &str)] = &[("ANN_TOKEN", "secret-of-ann"), ("BOB_TOKEN", "secret-of-bob")];
const ANN: &str = "Authorization: Bearer secret-of-ann\r\n";
const BOB: &str = "Authorization: Bearer secret-of-bob\r\n";

#[test]
fn each_named_token_is_accepted_and_no_other() {
    let server = Server::start(TOKENS, SECRETS, &["--token", "secret-of-eve"]);
    for (token, status) in [
        (ANN, 200),
        (BOB, 200),
        ("Authorization: Bearer secret-of-eve\r\n", 200),
        ("Authorization: Bearer secret-of-an\r\n", 401),
        ("Authorization: Bearer ann\r\n", 401),
        ("", 401),
    ] {
        assert_status(&server.post(&format!("{HEAD}{token}"), DISCOVER), status);
    }
}

#[test]
fn a_legacy_session_belongs_to_its_caller() {
    let server = Server::start(TOKENS, SECRETS, &[]);
    let hello = server.post(ANN, HELLO);
    assert_status(&hello, 200);
    let session = hello.lines().find(|line| line.to_lowercase().starts_with("mcp-session-id:"));
    let session = format!("{}\r\nMCP-Protocol-Version: 2025-06-18\r\n", session.unwrap().trim());
    let (ann, bob) = (format!("{ANN}{session}"), format!("{BOB}{session}"));
    let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    assert_status(&server.post(&ann, ready), 202);

    assert_status(&server.post(&bob, PING), 404);
    assert_status(&server.request("GET", &bob, ""), 404);
    assert_status(&server.request("DELETE", &bob, ""), 404);
    assert_status(&server.post(&session, PING), 401);

    assert_status(&server.post(&ann, PING), 200);
    let deleted = server.request("DELETE", &ann, "");
    assert!(deleted.starts_with("HTTP/1.1 20"), "{deleted}");
    assert_status(&server.post(&ann, PING), 404);
}

/// The call of a tool, and its headers.
fn call(tool: &str) -> (String, String) {
    let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let params = format!(r#"{{"name":"{tool}","arguments":{{}},"_meta":{meta}}}"#);
    (
        format!(
            "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\n{ANN}"
        ),
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#),
    )
}

#[test]
fn the_log_has_one_line_per_call_and_no_token() {
    let server = Server::start(TOKENS, SECRETS, &["--log", "info"]);
    let (head, body) = call("hello");
    assert_status(&server.post(&head, &body), 200);
    server.post(&head, &body);
    // A list is not a call.
    assert_status(&server.post(&format!("{HEAD}{ANN}"), DISCOVER), 200);
    let said = server.stop();
    let calls: Vec<_> = said.iter().filter(|line| line.contains("tools/call")).collect();
    assert_eq!(calls.len(), 2, "{said:?}");
    for part in ["tools/call hello: ok, ", " 5 B ", "ann@token", "2026-07-28"] {
        assert!(calls[0].contains(part), "{said:?}");
    }
    let said = said.join("\n");
    assert!(!said.contains("secret-of") && !said.contains("server/discover"), "{said}");
}

#[test]
fn each_request_that_is_not_let_in_is_logged_without_its_token() {
    let server = Server::start(TOKENS, SECRETS, &[]);
    assert_status(&server.post(HEAD, DISCOVER), 401);
    let stranger = format!("{HEAD}Authorization: Bearer secret-of-a-stranger\r\n");
    assert_status(&server.post(&stranger, DISCOVER), 401);
    let page = format!("{HEAD}{ANN}Origin: https://elsewhere.example\r\n");
    assert_status(&server.post(&page, DISCOVER), 403);
    assert_status(&server.post(&format!("{HEAD}{ANN}"), DISCOVER), 200);
    let said = server.stop();
    let lines = |status: &str| {
        let line = format!("refused a request to \"/mcp\" from 127.0.0.1: {status}");
        said.iter().filter(|said| said.contains(&line)).count()
    };
    assert_eq!((lines("401"), lines("403")), (2, 1), "{said:?}");
    assert!(!said.join("\n").contains("secret-of"), "{said:?}");
}

#[test]
fn a_path_that_nothing_else_is_served_at_can_be_the_endpoint() {
    let free = folder_with("[http]\nendpoint = \"/sse\"\nold_sse = false\n");
    assert!(sabir(free.path(), &["check"]).status.success());
}

#[test]
fn calls_are_not_logged_by_default() {
    let server = Server::start(TOKENS, SECRETS, &[]);
    let (head, body) = call("hello");
    assert_status(&server.post(&head, &body), 200);
    let said = server.stop().join("\n");
    assert!(!said.contains("hello"), "{said}");
}

#[test]
fn tokens_are_checked_with_their_place() {
    let check = |file: &str, expected: &str| {
        let folder = folder_with(file);
        let mut command = command(folder.path(), &["check"]);
        command
            .envs(SECRETS.iter().copied())
            .envs([("SPACE", "a b"), ("ANN_AGAIN", "secret-of-ann")]);
        let output = command.env_remove("NO_TOKEN").output().unwrap();
        assert_eq!(seen(&output), format!("exit 3\nstderr:\nerror: {expected}"));
        assert!(!seen(&output).contains("secret-of"), "{}", seen(&output));
    };
    let two = |name: &str, env: &str| {
        format!(
            "[[token]]\nname = \"ann\"\nenv = \"ANN_TOKEN\"\n[[token]]\nname = \"{name}\"\nenv = \
             \"{env}\"\n"
        )
    };
    check(
        &two("ann", "BOB_TOKEN"),
        "duplicate token name `ann`\n  --> sabir.toml:5\n  hint: give each token its own name",
    );
    check(
        &two("bob", "ANN_AGAIN"),
        "token `bob` is the same as token `ann`\n  --> sabir.toml:6\n  hint: give each \
         caller a token of its own",
    );
    check(
        &two("bob", "NO_TOKEN"),
        "environment variable `NO_TOKEN` is not set\n  --> sabir.toml:6\n  hint: `openssl rand \
         -hex 32` prints a token",
    );
    check(
        &two("bob", "SPACE"),
        "invalid token in `SPACE` (expected printable ASCII characters without spaces)\n  --> \
         sabir.toml:6\n  hint: `openssl rand -hex 32` prints a token",
    );
    check(
        &two("b b", "BOB_TOKEN"),
        "invalid name or scope `b b` of `name` (expected printable ASCII characters without spaces)\n  \
         --> sabir.toml:5",
    );
    check(
        &format!("{}scopes = [\"a\", \"\"]\n", two("bob", "BOB_TOKEN")),
        "invalid name or scope `` of `scopes` (expected printable ASCII characters without spaces)\n  --> \
         sabir.toml:7",
    );
    check(
        "[http]\ntoken_env = \"ANN_TOKEN\"\n[[token]]\nname = \"token\"\nenv = \"BOB_TOKEN\"\n",
        "duplicate token name `token`\n  --> sabir.toml:4\n  hint: give each token its own name",
    );
}

#[test]
fn a_public_address_needs_authentication_or_a_flag() {
    let folder = folder_with("");
    assert_eq!(
        seen(&sabir(folder.path(), &["serve", "--http", "0.0.0.0:0"])),
        "exit 1\nstderr:\nerror: refusing to listen on 0.0.0.0:0: it is reachable from other hosts \
         and no authentication is configured\n  hint: require a --token, or add --allow-public"
    );
}

#[test]
fn an_invalid_address_in_the_file_is_reported() {
    let folder = folder_with("[listen]\nhttp = \"localhost\"\n");
    assert_eq!(
        seen(&sabir(folder.path(), &["check"])),
        "exit 3\nstderr:\nerror: invalid address `localhost` of `http` (expected e.g. \
         \"127.0.0.1:7331\", \"localhost:7331\" or \"7331\")\n  --> sabir.toml:2"
    );
}

impl Server {
    /// The answer to a GET.
    fn get(&self, path: &str, head: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let host = if head.contains("Host:") { "" } else { "Host: localhost\r\n" };
        write!(stream, "GET {path} HTTP/1.1\r\n{host}Connection: close\r\n{head}\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

#[test]
fn metrics_are_for_callers_and_have_no_made_up_names() {
    let server = Server::start(TOKENS, SECRETS, &[]);
    for tool in ["hello", "made-up"] {
        let (head, body) = call(tool);
        assert_status(&server.post(&head, &body), 200);
    }
    assert_status(&server.get("/metrics", ""), 401);
    let metrics = server.get("/metrics", ANN);
    assert_status(&metrics, 200);
    assert!(metrics.contains("content-type: text/plain; version=0.0.4"), "{metrics}");
    assert!(metrics.contains("gen_ai_tool_name=\"hello\",mcp_protocol_version"), "{metrics}");
    assert!(!metrics.contains("made-up"), "{metrics}");
    // The console is served only on a terminal.
    assert_status(&server.get("/", ANN), 404);
}

#[test]
fn readiness_has_reasons_for_callers() {
    let server = Server::start("", &[], &[]);
    assert!(server.get("/readyz", "").ends_with("{\"status\":\"ready\"}"));
    let broken = "[[upstream]]\nname = \"gone\"\nrun = [\"/nonexistent\"]\n";
    let server = Server::start(&format!("{TOKENS}{broken}"), SECRETS, &["--log", "off"]);
    assert_status(&server.get("/healthz", ""), 200);
    let stranger = server.get("/readyz", "");
    assert_status(&stranger, 503);
    assert!(stranger.ends_with("{\"status\":\"failed\"}"), "{stranger}");
    let caller = server.get("/readyz", ANN);
    assert!(caller.contains("\"state\":\"failed\""), "{caller}");
    assert!(caller.contains("program not found: /nonexistent"), "{caller}");
}

#[test]
fn the_console_needs_its_token_and_a_page_of_its_own() {
    let server = Server::start("", &[("SABIR_CONSOLE_TOKEN", "open-it")], &["--console", "always"]);
    assert_status(&server.get("/", ""), 200);
    let state = "/console/api/state";
    let right = "Authorization: Bearer open-it\r\n";
    assert_status(&server.get(state, right), 200);
    assert_status(&server.get(state, ""), 401);
    assert_status(&server.get(state, "Authorization: Bearer open-i\r\n"), 401);
    let own = format!("{right}Host: 127.0.0.1:1\r\nOrigin: http://127.0.0.1:1\r\n");
    let own = server.get(state, &own);
    assert_status(&own, 200);
    assert!(!own.to_lowercase().contains("access-control"), "{own}");
    for foreign in [
        "Origin: http://127.0.0.1:2\r\n",
        "Origin: null\r\n",
        "Sec-Fetch-Site: cross-site\r\n",
        "Host: evil.example\r\n",
    ] {
        assert_status(&server.get(state, &format!("{right}{foreign}")), 403);
    }
    let folder = folder_with("");
    assert_eq!(
        seen(&sabir(folder.path(), &["serve", "--http", "0.0.0.0:0", "--console", "always"])),
        "exit 2\nstderr:\nerror: cannot serve the console on 0.0.0.0:0 (expected a loopback address)"
    );
}

#[test]
fn the_console_of_an_open_server_remembers_calls_from_when_it_is_opened() {
    let server = Server::start("", &[("SABIR_CONSOLE_TOKEN", "open-it")], &[]);
    let line = format!("  console: http://{}/#token=open-it", server.address);
    assert!(server.lines.iter().take(3).any(|said| said == line));
    assert_status(&server.get("/", ""), 200);
    let right = "Authorization: Bearer open-it\r\n";
    let (head, body) = call("hello");
    server.post(&head, &body);
    // The call before was not remembered, but was counted.
    assert_status(&server.get("/console/api/calls/1", right), 404);
    server.post(&head, &body);
    let second = server.get("/console/api/calls/2", right);
    assert!(second.contains("\"name\":\"hello\""), "{second}");
    let closed = Server::start(TOKENS, SECRETS, &[]);
    assert_status(&closed.get("/", ANN), 404);
}

#[test]
fn the_log_can_be_json_with_arguments_at_debug_only() {
    for (level, has_arguments) in [("info", false), ("debug", true)] {
        let args = ["--log", level, "--log-format", "json"];
        let server = Server::start(TOKENS, SECRETS, &args);
        let (head, body) = call("hello");
        let long = format!("\"arguments\":{{\"x\":\"{}\"}}", "y".repeat(1000));
        server.post(&head, &body.replace("\"arguments\":{}", &long));
        let said = server.stop();
        let line = said.iter().find(|line| line.contains("tools/call")).expect("a line");
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!((&line["tool"], &line["caller"]), (&"hello".into(), &"ann@token".into()));
        let arguments = line["arguments"].as_str().map(str::len);
        assert_eq!(arguments, has_arguments.then_some(200));
        assert!(!said.join("").contains("secret-of"), "{said:?}");
    }
}

#[test]
fn a_wrong_level_or_part_of_the_log_is_refused() {
    let folder = folder_with("");
    let said = |filter: &str| seen(&sabir(folder.path(), &["check", "--log", filter]));
    assert!(said("loud").contains("unknown level `loud` (expected off, error, warn,"));
    assert!(said("sabir::nothing=debug").contains("unknown part `sabir::nothing` (expected"));
}

/// The status of a GET.
fn status_of(address: &str, path: &str, head: &str) -> u16 {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{head}\r\n")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

#[test]
fn the_console_can_have_a_listener_of_its_own() {
    let env = [("SABIR_CONSOLE_TOKEN", "open-it")];
    let server = Server::start("", &env, &["--console", "127.0.0.1:0"]);
    let line = server.lines.iter().find(|line| line.starts_with("console: ")).unwrap();
    let own = line.strip_prefix("console: http://").unwrap();
    let own = own.strip_suffix("/#token=open-it").expect(&line);
    assert_ne!(own, server.address);
    let (state, right) = ("/console/api/state", "Authorization: Bearer open-it\r\n");
    assert_eq!(status_of(own, "/", ""), 200);
    assert_eq!(status_of(own, state, ""), 401);
    assert_eq!(status_of(own, state, right), 200);
    // A page that the browser loaded with TLS is of the same host; another port is another page.
    let origin = |origin: &str| format!("{right}Origin: {origin}\r\n");
    assert_eq!(status_of(own, state, &origin(&format!("https://{own}"))), 200);
    assert_eq!(status_of(own, state, &origin(&format!("http://{}", server.address))), 403);
    // The other listener has no console, and its metrics.
    assert_eq!(status_of(&server.address, "/", ""), 404);
    assert_eq!(status_of(&server.address, state, right), 404);
    assert_eq!(status_of(&server.address, "/metrics", ""), 200);
    server.stop();
    let folder = folder_with("");
    let shown = seen(&sabir(folder.path(), &["serve", "--console", "0.0.0.0:0"]));
    assert!(
        shown.starts_with("exit 2") && shown.contains("expected a loopback address"),
        "{shown}"
    );
}
