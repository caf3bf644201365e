//! Who may do what: tokens by their digests, scopes, limits, the audit log.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::http::{Server, assert_status};
use crate::{command, folder_with, sabir, seen};

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

/// Sends a modern request; `name` is that of the tool, if it is a call.
fn ask(server: &Server, token: &str, method: &str, name: &str) -> String {
    let (mirrored, params) = match name {
        "" => (String::new(), format!("{{{META}}}")),
        name => (
            format!("Mcp-Name: {name}\r\n"),
            format!(r#"{{"name":"{name}","arguments":{{"secret":"in the arguments"}},{META}}}"#),
        ),
    };
    let head = format!(
        "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n{mirrored}Authorization: \
         Bearer {token}\r\n"
    );
    let body = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{params}}}"#);
    server.post(&head, &body)
}

fn body(answer: &str) -> Value {
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    serde_json::from_str(body).unwrap_or_else(|_| panic!("{answer}"))
}

fn tools(server: &Server, token: &str) -> Vec<String> {
    let answer = body(&ask(server, token, "tools/list", ""));
    assert_eq!(answer["result"]["cacheScope"], "private");
    let tools = answer["result"]["tools"].as_array().unwrap().iter();
    tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// A new token, and the lines for the file.
fn new_token(name: &str, scopes: &[&str]) -> (String, String) {
    let folder = tempfile::TempDir::new().unwrap();
    let scopes = scopes.iter().flat_map(|scope| ["--scope", scope]);
    let args: Vec<_> = ["token", "new", name].into_iter().chain(scopes).collect();
    let output = sabir(folder.path(), &args);
    assert!(output.status.success(), "{}", seen(&output));
    let token = String::from_utf8(output.stdout).unwrap().trim_end().to_owned();
    let lines = String::from_utf8(output.stderr).unwrap();
    let lines = lines.split_once("[[token]]").unwrap().1;
    assert!(token.starts_with("sabir_") && token.len() > 40 && !lines.contains(&token));
    (token, format!("[[token]]{lines}"))
}

const COMMANDS: &str = r#"
[auth]
hierarchy = { notes = ["notes:read", "notes:write"] }

[[command]]
name = "free"
run = ["echo", "free"]

[[command]]
name = "read"
run = ["echo", "read"]
scopes = ["notes:read"]

[[command]]
name = "delete"
run = ["echo", "delete"]
scopes = ["notes:write", "admin"]

[[http]]
name = "remote"
url = "http://127.0.0.1:9/"
scopes = ["notes:write"]

[audit]
file = "audit.jsonl"

[[limit]]
tools = ["read"]
quota = 2
per = ["caller"]
"#;

#[test]
fn scopes_decide_what_is_listed_and_called_and_all_of_it_is_logged() {
    let (ann, ann_lines) = new_token("ann", &["notes"]);
    let (bob, bob_lines) = new_token("bob", &[]);
    let server = Server::start(&format!("{ann_lines}\n{bob_lines}\n{COMMANDS}"), &[], &[]);
    assert_eq!(tools(&server, &ann), ["free", "read", "remote"]);
    assert_eq!(tools(&server, &bob), ["free"]);
    assert_status(&ask(&server, "sabir_other", "tools/list", ""), 401);

    assert_status(&ask(&server, &ann, "tools/call", "read"), 200);
    let denied = ask(&server, &ann, "tools/call", "delete");
    assert_status(&denied, 403);
    let challenge = r#"bearer error="insufficient_scope", scope="admin notes:write""#;
    assert!(denied.to_lowercase().contains(challenge), "{denied}");
    let error = body(&denied);
    assert_eq!((&error["id"], &error["error"]["code"]), (&7.into(), &403.into()), "{error}");
    assert_status(&ask(&server, &bob, "tools/call", "read"), 403);

    assert_status(&ask(&server, &ann, "tools/call", "read"), 200);
    let limited = body(&ask(&server, &ann, "tools/call", "read"));
    assert_eq!(limited["result"]["isError"], true, "{limited}");
    let told = limited["result"]["content"][0]["text"].as_str().unwrap();
    assert!(
        told.starts_with("rate limit exceeded (2 in a day per caller); try again in "),
        "{told}"
    );

    let file = server.folder.path().join("audit.jsonl");
    let mut lines = Vec::new();
    for _ in 0..300 {
        let text = fs::read_to_string(&file).unwrap();
        lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect();
        if lines.len() >= 5 {
            assert!(!text.contains(&ann) && !text.contains("in the arguments"), "{text}");
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    let told: Vec<_> = lines
        .iter()
        .map(|line| {
            ["subject", "name", "decision"].map(|key| line[key].as_str().unwrap()).join(" ")
        })
        .collect();
    let expected = [
        "ann read allowed",
        "ann delete denied",
        "bob read denied",
        "ann read allowed",
        "ann read limited",
    ];
    assert_eq!(told, expected);
    assert_eq!(lines[1]["rule"], "scopes admin notes:write");
    assert_status(&ask(&server, &bob, "tools/call", "remote"), 403);
    server.stop();
}

/// The contents of all files in a folder.
fn written(folder: &Path, all: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => written(&path, all),
            false => *all += &String::from_utf8_lossy(&fs::read(&path).unwrap()),
        }
    }
}

#[test]
fn a_call_has_one_challenge_however_often_it_is_made_and_no_token_is_written_anywhere() {
    let (ann, lines) = new_token("ann", &["notes:read"]);
    let more = format!("{lines}\n{COMMANDS}");
    let (asked, stray) = ("sabir_in-the-query", "sabir_that-nobody-has");
    let mut server = Server::start(&more, &[], &["--log", "trace", "--record", "talk.jsonl"]);
    let denied = ask(&server, &ann, "tools/call", "delete");
    let challenge = |answer: &str| -> Vec<String> {
        let lines = answer.lines().filter(|line| line.starts_with("www-authenticate"));
        lines.map(str::to_owned).collect()
    };
    assert_eq!(challenge(&denied).len(), 1, "{denied}");
    for _ in 0..100 {
        let again = challenge(&ask(&server, &ann, "tools/call", "delete"));
        assert_eq!(again, challenge(&denied), "the same call has another challenge");
    }
    assert_status(&ask(&server, &ann, "tools/call", "read"), 200);
    assert_status(&ask(&server, stray, "tools/list", ""), 401);
    let mut stream = TcpStream::connect(&server.address).unwrap();
    let target = format!("/mcp?access_token={asked}&token={ann}");
    write!(stream, "POST {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert_status(&answer, 401);

    let mut all = server.end().join("\n");
    written(server.folder.path(), &mut all);
    for name in ["audit.jsonl", "talk.jsonl"] {
        let length = fs::metadata(server.folder.path().join(name)).unwrap().len();
        assert!(length > 0, "{name}");
    }
    for token in [&*ann, asked, stray] {
        assert!(!all.contains(token), "a token was written");
    }
}

const ISSUER: &str = "[auth]\nissuer = \"http://127.0.0.1:9\"\n";

#[test]
fn where_an_issuer_is_demanded_the_console_can_call() {
    let file = format!("{ISSUER}resource = \"http://127.0.0.1:7331/mcp\"\n");
    let secret = [("SABIR_CONSOLE_TOKEN", "open-it")];
    let server = Server::start(&file, &secret, &["--console", "always"]);
    assert_status(&ask(&server, "open-it", "tools/list", ""), 200);
    assert_status(&ask(&server, "open-i", "tools/list", ""), 401);
}

#[test]
fn an_issuer_is_demanded_over_http_only() {
    let file = format!(
        "{ISSUER}resource = \"http://127.0.0.1:7331/mcp\"\n{}",
        "[[command]]\n\
         name = \"free\"\nrun = [\"echo\", \"free\"]\nscopes = [\"x\"]\n"
    );
    let server = Server::start(&file, &[], &[]);
    let refused = server.post("", "{}");
    assert_status(&refused, 401);
    let place =
        r#"resource_metadata="http://127.0.0.1:7331/.well-known/oauth-protected-resource/mcp""#;
    assert!(refused.contains(place), "{refused}");
    server.stop();

    let folder = folder_with(&file);
    let mut stdio = command(folder.path(), &["serve", "--stdio"]);
    let mut stdio =
        stdio.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let call =
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"free","arguments":{}}}"#;
    writeln!(stdio.stdin.take().unwrap(), "{call}").unwrap();
    let output = stdio.wait_with_output().unwrap();
    let answer = String::from_utf8(output.stdout).unwrap();
    assert!(answer.contains(r#""text":"free"#), "the user's own tools: {answer}");
}

#[test]
fn mistakes_are_told() {
    for (file, expected) in [
        (
            "[auth]\nissuer = \"http://login.example\"\n",
            "expected an https URL, or http on this machine",
        ),
        ("[auth]\nissuer = 7\n", "expected a URL, or a list of URLs"),
        ("[auth]\nissuer = []\n", "no issuer (expected at least one)"),
        ("[auth]\nresource = \"https://x.example/mcp\"\n", "`resource` without `issuer`"),
        (
            "[auth]\nissuer = \"https://x.example\"\nscopes = [\"offline_access\"]\n",
            "offline_access",
        ),
        (
            "[[command]]\nname = \"c\"\nrun = [\"ls\"]\nscopes = [\"offline_access\"]\n",
            "scope `offline_access` (expected only scopes of this server)",
        ),
        (
            "[[command]]\nname = \"c\"\nrun = [\"ls\"]\nscopes = [\"a\\\"b\"]\n",
            "(expected printable characters without spaces and quotes)",
        ),
        (
            "[auth]\nissuer = \"https://x.example\"\nalgorithms = [\"HS256\"]\n",
            "invalid algorithm `HS256`",
        ),
        ("[auth]\nhierarchy = { a = [\"b\"], b = [\"a\"] }\n", "covers itself"),
        ("[[token]]\nname = \"ann\"\n", "either `hash` or `env`"),
        ("[[token]]\nname = \"ann\"\nhash = \"s3cret\"\n", "invalid hash of a token"),
        ("[[limit]]\nrate = \"10\"\n", "invalid rate `10`"),
        ("[[limit]]\nper = [\"caller\"]\n", "neither `rate` nor `quota`"),
        ("[[limit]]\nrate = \"1/s\"\nper = [\"user\"]\n", "invalid `per`"),
    ] {
        let output = sabir(folder_with(file).path(), &["check"]);
        let told = seen(&output);
        assert!(told.starts_with("exit 3"), "{file}\n{told}");
        assert!(told.contains(expected), "{file}\n{told}");
    }
    let folder = folder_with(ISSUER);
    let told = seen(&sabir(folder.path(), &["serve", "--http", "127.0.0.1:0"]));
    assert!(told.contains("no `resource` for 127.0.0.1:0 (expected the server's URL)"), "{told}");
}

#[test]
fn a_hash_is_not_taken_for_a_token() {
    let folder = folder_with("[[token]]\nname = \"ann\"\nenv = \"ANN_TOKEN\"\n");
    let hash = "sha256:JcJ0cZC6mJNGT4xAOVfGaZnN3sXGGr4+SUkVYmSR5mM=";
    let mut check = command(folder.path(), &["check", "sabir.toml"]);
    let seen = seen(&check.env("ANN_TOKEN", hash).output().unwrap());
    assert!(seen.contains("`ANN_TOKEN` has the hash of a token (expected the token)"), "{seen}");
    assert!(seen.contains("hint: write `hash = \"sha256:…\"` instead"), "{seen}");
    assert!(!seen.contains(hash), "{seen}");
}
