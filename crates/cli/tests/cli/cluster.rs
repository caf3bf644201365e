//! `[cluster]`: sessions that survive the process, however it ends.

use std::process::Stdio;

use serde_json::{Value, json};

use crate::http::{Server, assert_status};
use crate::{command, folder_with, sabir, seen};

const KEY: &str = "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=";
const FILE: &str = "[seal]\nkey_env = \"CLUSTER_KEY\"\n[cluster]\nfile = \"sessions.redb\"\n\
                    [[command]]\nname = \"say\"\nrun = [\"echo\", \"{text}\"]\n\
                    input = { text = \"string\" }\n";

fn post(server: &Server, session: &str, message: &Value) -> String {
    let head = match session {
        "" => String::new(),
        session => format!("Mcp-Session-Id: {session}\r\n"),
    };
    server.post(&head, &message.to_string())
}

fn hello(server: &Server) -> String {
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" } });
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
    let answer = post(server, "", &hello);
    assert_status(&answer, 200);
    let lines = answer.lines().map(str::to_ascii_lowercase).zip(answer.lines());
    let mut ids = lines.filter_map(|(lower, line)| {
        lower.starts_with("mcp-session-id:").then(|| line["mcp-session-id:".len()..].trim())
    });
    let session = ids.next().expect("a session").to_owned();
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_status(&post(server, &session, &ready), 202);
    session
}

fn say(server: &Server, session: &str) -> String {
    let params = json!({ "name": "say", "arguments": { "text": "still here" } });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    post(server, session, &call)
}

/// Kills the server, and starts it again with the same files.
fn killed_and_restarted(mut server: Server) -> Server {
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    let again = tempfile::TempDir::new().unwrap();
    let folder = std::mem::replace(&mut server.folder, again);
    drop(server);
    Server::start_in(folder, &[("CLUSTER_KEY", KEY)], &[])
}

#[test]
fn a_session_survives_a_kill_and_an_ended_one_does_not_come_back() {
    let mut server = Server::start(FILE, &[("CLUSTER_KEY", KEY)], &[]);
    let [session, ended] = [hello(&server), hello(&server)];
    assert!(say(&server, &session).contains("still here"));
    let head = format!("Mcp-Session-Id: {ended}\r\n");
    assert_status(&server.request("DELETE", &head, ""), 204);
    for _ in 0..2 {
        server = killed_and_restarted(server);
        let answer = say(&server, &session);
        assert_status(&answer, 200);
        assert!(answer.contains("still here"));
        assert_status(&say(&server, &ended), 404);
        assert_status(&say(&server, &"x".repeat(32)), 404);
    }
    let kept = std::fs::read(server.folder.path().join("sessions.redb")).unwrap();
    let found = |text: &str| kept.windows(text.len()).any(|bytes| bytes == text.as_bytes());
    assert!(!found("2025-11-25") && !found(&session), "a record is not sealed");
}

#[test]
fn mistakes_are_reported_with_a_hint() {
    for (file, expected) in [
        ("[cluster]\nfile = \"a.redb\"\n", "no key to encrypt sessions with"),
        ("[cluster]\nurl = \"redis://localhost\"\n", "no key to encrypt sessions with"),
        ("[cluster]\nurl = \"http://localhost\"\n", "invalid URL `http://localhost`"),
        (
            "[cluster]\nurl = \"redis://localhost\"\n[tasks]\nstore = \"t.redb\"\n",
            "`store` beside `url` of [cluster]",
        ),
        (
            "[cluster]\nurl = \"redis://localhost\"\nfile = \"a.redb\"\n",
            "expected either `url` or `file`",
        ),
        ("[cluster]\nfile = \"a.redb\"\naddress = \"http://h:1\"\n", "`address` without `url`"),
        (
            "[cluster]\nurl = \"redis://localhost\"\naddress = \"10.0.0.5:7331\"\n",
            "invalid URL `10.0.0.5:7331` of `address` (expected e.g. \"http://10.0.0.5:7331\")",
        ),
    ] {
        let folder = folder_with(file);
        let output = seen(&sabir(folder.path(), &["check"]));
        assert!(output.starts_with("exit 3") && output.contains(expected), "{file}: {output}");
    }
}

#[test]
fn a_cluster_without_http_has_no_effect_and_a_warning() {
    let warning = "warning: [cluster] has no effect: it is used only where HTTP is served";
    let run = |listen: &str, args: &[&str]| {
        let folder = folder_with(&format!("[listen]\n{listen}\n{FILE}"));
        let mut command = command(folder.path(), args);
        let output = command.env("CLUSTER_KEY", KEY).stdin(Stdio::null()).output().unwrap();
        assert!(!folder.path().join("sessions.redb").exists());
        seen(&output)
    };
    for (listen, is_idle) in [
        ("stdio = true", true),
        ("ws = \"127.0.0.1:0\"", true),
        ("", false),
        ("stdio = true\nhttp = \"127.0.0.1:0\"", false),
    ] {
        let checked = run(listen, &["check"]);
        assert_eq!(checked.contains(warning), is_idle, "{listen}: {checked}");
    }
    let served = run("http = \"127.0.0.1:0\"", &["serve", "--stdio"]);
    let hint = "\n  hint: add `http` to [listen], or serve with --http";
    assert_eq!(served, format!("exit 0\nstderr:\n{warning}{hint}"));
}
