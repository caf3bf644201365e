//! `task` of a `[[command]]`, and `[tasks]`: tasks of the real binary, also after it was killed.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use sabir_testkit::leftovers::{alive, wait_until};
use serde_json::{Value, json};

use crate::{command, folder_with, sabir, seen};

const CONFIGURATION: &str = r#"
[tasks]
store = "tasks.redb"

[[command]]
name = "say"
description = "Says it, as a task"
run = ["echo", "{text}"]
input = { text = "string" }
task = "always"

[[command]]
name = "wait"
description = "Takes long"
run = ["sleep", "1000.{token}"]
input = { token = "string" }
timeout = "1h"
task = "auto"
task_after = "0s"
"#;

/// How long anything may take on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A server on a pipe.
pub(crate) struct Server {
    child: Child,
    output: BufReader<ChildStdout>,
    last: u64,
}

impl Server {
    pub(crate) fn start(folder: &Path) -> Self {
        let mut command = command(folder, &["serve", "--stdio", "--log", "off"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, output, last: 0 }
    }

    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        self.say(method, params);
        let answer = self.hear();
        assert_eq!(answer["id"], self.last, "{answer}");
        answer
    }

    fn say(&mut self, method: &str, mut params: Value) {
        self.last += 1;
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {
                "extensions": { "io.modelcontextprotocol/tasks": {} },
            },
        });
        let request =
            json!({ "jsonrpc": "2.0", "id": self.last, "method": method, "params": params });
        writeln!(self.child.stdin.as_mut().unwrap(), "{request}").unwrap();
    }

    fn hear(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).expect("a message")
    }

    fn task(&mut self, tool: &str, arguments: Value) -> String {
        let created = self.ask("tools/call", json!({ "name": tool, "arguments": arguments }));
        assert_eq!(created["result"]["resultType"], "task", "{created}");
        created["result"]["taskId"].as_str().unwrap().to_owned()
    }

    fn get(&mut self, id: &str) -> Value {
        self.ask("tasks/get", json!({ "taskId": id }))["result"].clone()
    }

    fn wait_for_end(&mut self, id: &str) -> Value {
        let mut task = Value::Null;
        wait_until("the task has ended", PATIENCE, || {
            task = self.get(id);
            task["status"] != "working"
        });
        task
    }

    pub(crate) fn kill(mut self) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::KILL).unwrap();
        self.child.wait().unwrap();
    }
}

/// `relay/tasks/killed.rs` has more of it, over HTTP.
#[test]
fn finished_tasks_survive_a_kill_and_interrupted_ones_say_so() {
    let folder = folder_with(CONFIGURATION);
    let token = format!("8{:07}", std::process::id());
    let mut server = Server::start(folder.path());
    let said = server.task("say", json!({ "text": "kept" }));
    let running = server.task("wait", json!({ "token": token }));
    let done = server.wait_for_end(&said);
    assert_eq!(done["result"]["content"][0]["text"], "kept");
    wait_until("the program runs", PATIENCE, || alive(&token).len() == 1);
    server.kill();
    wait_until("no program is left", PATIENCE, || alive(&token).is_empty());
    let mut server = Server::start(folder.path());
    assert_eq!(server.get(&said), done);
    let interrupted = server.get(&running);
    assert_eq!(interrupted["status"], "failed", "{interrupted}");
    assert!(interrupted["error"]["message"].as_str().unwrap().contains("interrupted"));
    server.kill();
}

#[test]
fn a_listener_on_a_pipe_hears_how_its_task_ends() {
    let folder = folder_with(CONFIGURATION);
    let mut server = Server::start(folder.path());
    let token = format!("7{:07}", std::process::id());
    let id = server.task("wait", json!({ "token": token }));
    let other = server.task("wait", json!({ "token": token }));
    server.say("subscriptions/listen", json!({ "notifications": { "taskIds": [id, "unknown"] } }));
    let subscription = server.last;
    let acknowledged = server.hear();
    assert_eq!(
        acknowledged["params"]["notifications"],
        json!({ "taskIds": [id] }),
        "{acknowledged}"
    );
    let told = server.hear();
    assert_eq!(
        (&told["method"], &told["params"]["status"]),
        (&json!("notifications/tasks"), &json!("working"))
    );
    for id in [&other, &id] {
        server.say("tasks/cancel", json!({ "taskId": id }));
    }
    // Two acknowledgements, and the state of the one task that was asked for.
    let heard: Vec<_> = (0..3).map(|_| server.hear()).collect();
    let told: Vec<_> =
        heard.iter().filter(|message| message["method"] == "notifications/tasks").collect();
    assert_eq!(told.len(), 1, "{heard:?}");
    let params = &told[0]["params"];
    assert_eq!((&params["taskId"], &params["status"]), (&json!(id), &json!("cancelled")));
    assert_eq!(params["_meta"]["io.modelcontextprotocol/subscriptionId"], subscription);
    wait_until("no program is left", PATIENCE, || alive(&token).is_empty());
    server.kill();
}

#[test]
fn a_second_server_does_not_take_the_store_of_the_first() {
    let folder = folder_with(CONFIGURATION);
    let mut server = Server::start(folder.path());
    server.task("say", json!({ "text": "mine" }));
    let refused = seen(&sabir(folder.path(), &["serve", "--stdio"]));
    assert!(refused.starts_with("exit 1"), "{refused}");
    assert!(refused.contains("cannot open the task store"), "{refused}");
    let checked = seen(&sabir(folder.path(), &["check"]));
    assert!(checked.starts_with("exit 0"), "a check does not need it: {checked}");
    server.kill();
}

#[test]
fn mistakes_are_named() {
    for (file, told) in [
        (
            "[[command]]\nname = \"a\"\ndescription = \"b\"\nrun = [\"true\"]\ntask = \"maybe\"",
            "invalid value \"maybe\" of `task` (expected \"auto\" or \"always\" or \"never\")",
        ),
        (
            "[[command]]\nname = \"a\"\ndescription = \"b\"\nrun = [\"true\"]\ntask_after = \"1s\"",
            "command `a`: `task_after` without `task = \"auto\"`",
        ),
        ("[tasks]\nttl = \"soon\"", "invalid duration `soon`"),
        ("[tasks]\nper_caller = 0", "invalid number 0 of `per_caller` (expected at least 1)"),
    ] {
        let said = seen(&sabir(folder_with(file).path(), &["check"]));
        assert!(said.contains(told), "{said}");
    }
}
