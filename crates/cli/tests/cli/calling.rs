//! `sabir list` and `sabir call`, against our own sources, programs and HTTP.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

use crate::{command, folder_with, sabir, seen};

const FILE: &str = r#"
[server]
name = "demo"
version = "1.2"

[[command]]
name = "add"
description = "Add two numbers"
run = ["/bin/sh", "-c", "echo $(( $1 + $2 ))", "sh", "{a}", "{b}", "{c?}"]
input = { a = "integer", b = "integer", c = "string?" }

[[command]]
name = "slow"
description = "Sleep"
run = ["/bin/sleep", "30"]
"#;

const LISTED: &str = "demo 1.2 (protocol 2026-07-28)

Tools
 add   a b [c]  Add two numbers
 slow           Sleep";

const BINARY: &str = env!("CARGO_BIN_EXE_sabir");

#[test]
fn our_own_sources_are_listed_and_called() {
    let folder = folder_with(FILE);
    let run = |args: &[&str]| seen(&sabir(folder.path(), args));
    assert_eq!(run(&["list"]), format!("exit 0\nstdout:\n{LISTED}"));
    assert_eq!(run(&["list", "sabir.toml"]), format!("exit 0\nstdout:\n{LISTED}"));
    assert_eq!(run(&["call", ".", "add", "a=1", "b=2"]), "exit 0\nstdout:\n3");
    let json = run(&["call", ".", "add", "--json", r#"{"a":1,"b":2}"#]);
    assert!(json.contains(r#""content":[{"type":"text","text":"3"}]"#), "{json}");
    let listed = sabir(folder.path(), &["list", "--json"]).stdout;
    let listed: serde_json::Value = serde_json::from_slice(&listed).unwrap();
    assert_eq!(listed["tools"][1]["name"], "slow");
}

#[test]
fn the_team_example_accepts_only_names_inside_its_folder() {
    let folder = folder_with(include_str!("../../../../examples/team/sabir.toml"));
    std::fs::create_dir(folder.path().join("notes")).unwrap();
    std::fs::write(folder.path().join("kept"), "").unwrap();
    let run = |tool: &str, name: &str| {
        seen(&sabir(folder.path(), &["call", ".", tool, &format!("name={name}")]))
    };
    for name in ["../kept", "../new", "a/../../new", "..", ".", "", "/tmp/new", "a\nb"] {
        for tool in ["add_note", "delete_note"] {
            let refused = run(tool, name);
            assert!(refused.contains("Invalid arguments"), "{tool} {name:?}: {refused}");
        }
    }
    assert!(folder.path().join("kept").exists() && !folder.path().join("new").exists());
    let note = folder.path().join("notes/todo-2.md");
    assert!(run("add_note", "todo-2.md").starts_with("exit 0") && note.exists());
    assert!(run("delete_note", "todo-2.md").starts_with("exit 0") && !note.exists());
}

#[test]
fn a_program_is_started_and_stopped() {
    let folder = folder_with(FILE);
    let run = |args: &[&str]| seen(&sabir(folder.path(), args));
    let serve = ["--", BINARY, "serve", ".", "--stdio"];
    assert_eq!(run(&[&["list"], &serve[..]].concat()), format!("exit 0\nstdout:\n{LISTED}"));
    let called = run(&[&["call", "add", "a=3", "b=4"], &serve[..]].concat());
    assert_eq!(called, "exit 0\nstdout:\n7");
}

#[test]
fn failures_have_a_reason_and_a_code() {
    let folder = folder_with(FILE);
    for (args, expected) in [
        (
            &["call", ".", "add", "a=x", "b=1"][..],
            "exit 2\nstderr:\nerror: invalid value of `a`: `x` (expected integer)",
        ),
        (
            &["call", ".", "nope"],
            "exit 1\nstderr:\nerror: no tool `nope` (the server has: add, slow)",
        ),
        (&["call", "."], "exit 2\nstderr:\nerror: no tool (expected TARGET TOOL [KEY=VALUE…])"),
        (
            &["call", ".", "add", "a=1"],
            "exit 1\nstdout:\nInvalid arguments: \"b\" is a required property\nstderr:\n\
             the tool reported an error",
        ),
        (
            &["list", "--", "/bin/sh", "-c", "echo bad luck >&2; exit 7"],
            "exit 1\nstderr:\nerror: the program exited with code 7: bad luck",
        ),
        (
            &["list", "--", "/bin/sh", "-c", "echo much >&2; echo bad luck >&2; exit 7"],
            "exit 1\nstderr:\nerror: the program exited with code 7: bad luck\n  stderr: much\n  \
             stderr: bad luck",
        ),
        (
            &["list", "--", "no-such-program"],
            "exit 1\nstderr:\nerror: program `no-such-program` not found in PATH",
        ),
        (
            &["list", "http://example.com/mcp"],
            "exit 1\nstderr:\nerror: plain http to `example.com` is not allowed (expected https)",
        ),
        (
            &["list", "--header", "A: b", "."],
            "exit 1\nstderr:\nerror: --header needs a target that is a URL",
        ),
    ] {
        assert_eq!(seen(&sabir(folder.path(), args)), expected, "{args:?}");
    }
}

/// A legacy server that reports progress, asks for a name, and answers with a picture.
const ASKING: &str = r#"
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$1" "$2"; }
while read -r line; do case "$line" in
*server/discover*) echo '{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}' ;;
*'"initialize"'*) answer 2 '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
*tools/list*) answer 3 '{"tools":[{"name":"greet","inputSchema":{"type":"object"}}]}' ;;
*tools/call*)
    echo '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":4,"progress":1,"total":2,"message":"half"}}'
    echo '{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer","default":7}},"required":["name"]}}}' ;;
*'"id":"q"'*)
    text=$(printf '%s' "$line" | tr -d '"{}')
    answer 4 '{"content":[{"type":"text","text":"'"$text"'"},{"type":"image","data":"iVBORw==","mimeType":"image/png"}]}' ;;
esac; done
"#;

#[test]
fn questions_are_asked_at_the_terminal_and_pictures_are_files() {
    let folder = folder_with("");
    let args = ["call", "greet", "--", "/bin/sh", "-c", ASKING];
    let mut command = command(folder.path(), &args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"Ada\n\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let written = folder.path().join("greet-1.png");
    let expected = format!(
        "exit 0\nstdout:\njsonrpc:2.0,id:q,result:action:accept,content:name:Ada,age:7\nimage/png \
         written to {}\nstderr:\nprogress 1/2 half\nthe server asks: Who?\n  name:\n  age [7]:",
        written.display()
    );
    assert_eq!(seen(&output), expected);
    assert_eq!(std::fs::read(written).unwrap(), b"\x89PNG");
}

#[test]
fn an_interrupt_cancels_the_call() {
    let folder = folder_with("");
    let note = folder.path().join("cancelled");
    let script = ASKING.replace("*tools/call*)", "*cancelled*) : > cancelled ;;\n*tools/call*)");
    let args = ["call", "greet", "--", "/bin/sh", "-c", &script];
    let mut command = command(folder.path(), &args);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // Standard input stays open, also when the child is waited for: the question is never answered.
    let _stdin = child.stdin.take();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line == "the server asks: Who?"));
    let kill = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(kill.unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert_eq!(lines.last().as_deref(), Some("error: cancelled"));
    let noted = (0..100).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        note.exists()
    });
    assert!(noted, "the server was not told");
}

/// A server of the legacy era that never answers, beside one of our own tools.
#[test]
fn a_silent_upstream_does_not_delay_the_call_of_another_tool() {
    let folder = folder_with(&format!(
        "{FILE}\n[[upstream]]\nname = \"silent\"\nrun = [\"sleep\", \"1000\"]\n"
    ));
    let begin = std::time::Instant::now();
    let output = sabir(folder.path(), &["call", ".", "add", "a=1", "b=2"]);
    assert_eq!(seen(&output), "exit 0\nstdout:\n3");
    // The handshake alone has a minute.
    assert!(begin.elapsed() < std::time::Duration::from_secs(50), "{:?}", begin.elapsed());
}

#[test]
fn a_form_without_values_has_to_be_confirmed() {
    for (line, expected) in [("\n", "accept,content:"), ("n\n", "decline")] {
        let folder = folder_with("");
        let script = ASKING.replace(
            r#""properties":{"name":{"type":"string"},"age":{"type":"integer","default":7}},"required":["name"]"#,
            r#""properties":{}"#,
        );
        let mut command =
            command(folder.path(), &["call", "greet", "--", "/bin/sh", "-c", &script]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(line.as_bytes()).unwrap();
        let output = seen(&child.wait_with_output().unwrap());
        assert!(output.contains(&format!("result:action:{expected}\n")), "{output}");
        assert!(output.contains("press Enter to accept, or type n to decline:"), "{output}");
    }
}
