//! `sabir serve --ws`, `--ide` and `--host`: the binary as an editor's child.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::{command, folder_with, sabir, seen};

/// A host: the parent of a `sabir serve --host`, which writes each answer itself.
struct Host {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    home: tempfile::TempDir,
    _folder: tempfile::TempDir,
}

impl Host {
    /// Starts `sabir`, and completes the handshake with one tool.
    fn start() -> Self {
        let folder = folder_with("[limits]\ngrace = \"200ms\"");
        let home = tempfile::TempDir::new().unwrap();
        let args = ["serve", "sabir.toml", "--host", "--ide=Ed"];
        let mut command = command(folder.path(), &args);
        command.env("HOME", home.path()).env_remove("CLAUDE_CONFIG_DIR");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take(), child.stdout.take().unwrap());
        let output = BufReader::new(output);
        let mut host = Self { child, input, output, home, _folder: folder };
        let hello = host.hear();
        assert_eq!(hello["method"], "initialize", "no other question comes before: {hello}");
        let version = &hello["params"]["protocolVersion"];
        host.answer(&hello, &json!({ "protocolVersion": version, "serverInfo":
            { "name": "Ed", "version": "1" }, "capabilities": { "tools": { "listChanged": true } } }));
        assert_eq!(host.hear()["method"], "notifications/initialized");
        host.list(&["first"]);
        host
    }

    fn hear(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).expect(&line)
    }

    fn say(&mut self, message: &Value) {
        writeln!(self.input.as_ref().unwrap(), "{message}").unwrap();
    }

    fn answer(&mut self, request: &Value, result: &Value) {
        self.say(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }));
    }

    /// Answers `tools/list`.
    fn list(&mut self, names: &[&str]) {
        let request = self.hear();
        assert_eq!(request["method"], "tools/list");
        let tool = |name: &&str| json!({ "name": name, "inputSchema": { "type": "object" } });
        let tools: Vec<_> = names.iter().map(tool).collect();
        self.answer(&request, &json!({ "tools": tools }));
    }

    fn listening(&mut self) -> Value {
        let listening = self.hear();
        assert_eq!(listening["method"], "notifications/host/listening");
        listening["params"].clone()
    }

    fn lock(&self) -> Option<(std::path::PathBuf, Value)> {
        let mut entries = std::fs::read_dir(self.home.path().join(".claude/ide")).ok()?;
        let path = entries.next()?.unwrap().path();
        Some((path.clone(), serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()))
    }

    fn end(mut self) -> i32 {
        self.input = None;
        let code = self.child.wait().unwrap().code().unwrap();
        assert!(self.lock().is_none(), "the lock file is gone with the process");
        code
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_tools_of_the_host_are_called_by_a_client_over_websocket() {
    let mut host = Host::start();
    let listening = host.listening();
    let url = listening["url"].as_str().unwrap();
    let (path, lock) = host.lock().unwrap();
    assert_eq!(listening["lockFile"], path.to_str().unwrap());
    assert_eq!((&lock["ideName"], &lock["pid"]), (&json!("Ed"), &json!(std::process::id())));
    // Our own client is the other end: `sabir call` over WebSocket, with the token.
    let token = format!("x-claude-code-ide-authorization: {}", lock["authToken"].as_str().unwrap());
    let calling = command(Path::new("."), &["call", "--header", &token, url, "first", "a=1"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = Vec::new();
    let call = loop {
        let message = host.hear();
        if message["method"] == "tools/call" {
            break message;
        }
        told.push(message);
    };
    assert_eq!(call["params"]["name"], "first");
    host.answer(&call, &json!({ "content": [{ "type": "text", "text": "done" }] }));
    let output = calling.wait_with_output().unwrap();
    assert_eq!(seen(&output), "exit 0\nstdout:\ndone");
    // A modern client has no handshake; the host is told of a legacy one, with its states.
    for message in &told {
        assert_eq!(message["method"], "notifications/client/connected", "{message}");
    }
    let refused = sabir(Path::new("."), &["list", url]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("401"), "{}", seen(&refused));
    assert_eq!(host.end(), 0);
}

#[test]
fn a_tool_that_is_registered_later_is_listed_and_the_folders_may_change() {
    let mut host = Host::start();
    host.listening();
    host.say(&json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }));
    host.list(&["first", "second"]);
    let folders = json!({ "folders": ["/elsewhere"] });
    host.say(
        &json!({ "jsonrpc": "2.0", "method": "notifications/host/workspace", "params": folders }),
    );
    while host.lock().unwrap().1["workspaceFolders"] != json!(["/elsewhere"]) {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert_eq!(host.end(), 0);
}

#[test]
fn a_host_that_says_nothing_sensible_ends_nothing() {
    let mut host = Host::start();
    host.listening();
    for nonsense in
        [json!(7), json!({ "jsonrpc": "2.0", "method": "notifications/host/workspace" })]
    {
        host.say(&nonsense);
    }
    host.say(&json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }));
    host.list(&[]);
    assert_eq!(host.end(), 0);
}

#[test]
fn an_editor_listens_on_this_machine_only() {
    let folder = folder_with("");
    let output = sabir(folder.path(), &["serve", "--ide", "--ws", "0.0.0.0:0"]);
    let expected =
        "exit 1\nstderr:\nerror: --ide cannot use 0.0.0.0:0 (expected a loopback address)";
    assert_eq!(seen(&output), expected);
    let output = sabir(folder.path(), &["serve", "--ide", "--workspace", "nowhere"]);
    assert!(seen(&output).starts_with("exit 1\nstderr:\nerror: cannot use the folder nowhere"));
    assert_eq!(sabir(folder.path(), &["serve", "--host", "--stdio"]).status.code(), Some(2));
    assert_eq!(sabir(folder.path(), &["serve", "--workspace", "."]).status.code(), Some(2));
}
