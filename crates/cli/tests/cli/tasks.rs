//! `task` of a `[[command]]`, and `[tasks]`: tasks of the real binary, and what is left of them after
//! it was killed.

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
name = "fail"
description = "Fails, as a task"
run = ["false"]
task = "always"

[[command]]
name = "wait"
description = "Takes long"
run = ["sleep", "1000.{token}"]
input = { token = "string" }
timeout = "1h"
concurrency = 64
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

    pub(crate) fn ask(&mut self, method: &str, mut params: Value) -> Value {
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
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).expect("an answer");
        assert_eq!(answer["id"], self.last, "{answer}");
        answer
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

#[test]
fn finished_tasks_survive_a_kill_and_interrupted_ones_say_so() {
    let rounds: usize =
        std::env::var("SABIR_TASK_ROUNDS").map_or(3, |rounds| rounds.parse().unwrap());
    let folder = folder_with(CONFIGURATION);
    let mut kept: Vec<(String, Value)> = Vec::new();
    for round in 0..rounds {
        let token = format!("8{:07}{round:04}", std::process::id());
        let mut server = Server::start(folder.path());
        for (id, task) in &kept {
            assert_eq!(server.get(id), *task, "round {round}");
        }
        let said = server.task("say", json!({ "text": format!("round {round}") }));
        let failed = server.task("fail", json!({}));
        let running = server.task("wait", json!({ "token": token }));
        let cancelled = server.task("wait", json!({ "token": token }));
        let done = server.wait_for_end(&said);
        assert_eq!(done["result"]["content"][0]["text"], format!("round {round}"));
        let failure = server.wait_for_end(&failed);
        assert_eq!(
            (&failure["status"], &failure["result"]["isError"]),
            (&json!("completed"), &json!(true))
        );
        server.ask("tasks/cancel", json!({ "taskId": cancelled }));
        let gone = server.get(&cancelled);
        assert_eq!(gone["status"], "cancelled");
        wait_until("one program runs", PATIENCE, || alive(&token).len() == 1);
        // Some have just begun when it is killed.
        let brief: Vec<_> = (0..round % 4)
            .map(|nth| server.task("say", json!({ "text": nth.to_string() })))
            .collect();
        server.kill();
        wait_until("no program is left", PATIENCE, || alive(&token).is_empty());
        let mut server = Server::start(folder.path());
        assert_eq!(server.get(&said), done);
        let interrupted = server.get(&running);
        assert_eq!(interrupted["status"], "failed", "{interrupted}");
        assert!(interrupted["error"]["message"].as_str().unwrap().contains("interrupted"));
        for id in brief {
            let status = server.get(&id)["status"].clone();
            assert!(status == "completed" || status == "failed", "{status}");
        }
        kept.extend([(said, done), (failed, failure), (running, interrupted), (cancelled, gone)]);
        server.kill();
    }
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
            "invalid value \"maybe\" (expected \"auto\" or \"always\" or \"never\")",
        ),
        (
            "[[command]]\nname = \"a\"\ndescription = \"b\"\nrun = [\"true\"]\ntask_after = \"1s\"",
            "command `a`: `task_after` without `task = \"auto\"`",
        ),
        ("[tasks]\nttl = \"soon\"", "invalid duration `soon`"),
        ("[tasks]\nper_caller = 0", "invalid number 0 (expected at least 1)"),
    ] {
        let said = seen(&sabir(folder_with(file).path(), &["check"]));
        assert!(said.contains(told), "{said}");
    }
}
