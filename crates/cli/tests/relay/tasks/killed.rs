//! Kills of the binary while two callers have tasks in every state.

use std::collections::BTreeMap;
use std::path::Path;

use sabir_testkit::leftovers::{alive, wait_until};
use sabir_wire::Page;
use tempfile::TempDir;

use super::super::lifetimes::pid;
use super::super::{PATIENCE, TOKENS, connect};
use super::*;

pub(super) const COMMANDS: &str = r#"
[tasks]
store = "tasks.redb"
total = 100_000
per_caller = 100_000

[[command]]
name = "say"
description = "Says it"
run = ["echo", "{text}"]
input = { text = "string" }
task = "always"

[[command]]
name = "fail"
description = "Fails"
run = ["false"]
task = "always"

[[command]]
name = "wait"
description = "Takes long"
run = ["sleep", "1000.{token}"]
input = { token = "string" }
timeout = "1h"
concurrency = 64
task = "always"
"#;

/// A task of a round, and its state before the kill.
struct Left {
    kind: &'static str,
    id: Box<str>,
    seen: Value,
}

pub(super) fn number(variable: &str, usually: usize) -> usize {
    std::env::var(variable).map_or(usually, |written| written.parse().unwrap())
}

fn start(folder: TempDir) -> Relay {
    let upstream = fixture("up", Revision::NEWEST) + "task = \"always\"\n";
    Relay::start_in(folder, &(COMMANDS.to_owned() + &callers::tokens() + &upstream))
}

/// Begins `each` tasks of every kind, and brings each into its state.
async fn leave(client: &Client, round: usize, each: usize, token: &str) -> Vec<Left> {
    let kinds = [
        ("completed", "say", "completed"),
        ("completed with isError", "fail", "completed"),
        ("failed", "up_job_fails", "failed"),
        ("cancelled", "wait", "cancelled"),
        ("working", "wait", "working"),
        ("input_required", "up_elicit", "input_required"),
        ("just begun", "say", ""),
    ];
    let mut begun = Vec::new();
    for (kind, tool, status) in kinds {
        for nth in 0..each {
            let arguments = match tool {
                "say" => json!({ "text": format!("round {round}, number {nth}") }),
                "wait" => json!({ "token": token }),
                _ => json!({}),
            };
            let id = begin_with(client, tool, arguments).await;
            if status == "cancelled" {
                ask(client, Request::CancelTask(id.clone())).await.unwrap();
            }
            begun.push((kind, status, id));
        }
    }
    let mut left = Vec::new();
    for (kind, status, id) in begun {
        let seen = match status {
            "" => Value::Null,
            status => wait_for(client, &id, status).await,
        };
        left.push(Left { kind, id, seen });
    }
    left
}

/// Checks that another caller can do nothing with a task.
async fn refuses(other: &Client, id: &str) {
    let answers = vec![("who".to_owned(), raw(json!({ "action": "decline" })))];
    for request in [
        Request::GetTask(id.into()),
        Request::UpdateTask(UpdateTask { id: id.into(), answers }),
        Request::CancelTask(id.into()),
    ] {
        let refused = ask(other, request).await.unwrap_err();
        assert_eq!(refused.rpc().map(|error| error.code), Some(-32602), "another caller's");
    }
}

/// Checks a task after the restart, and returns how it has ended.
async fn check(client: &Client, left: &Left) -> Value {
    let Left { kind, id, seen } = left;
    let now = get(client, id).await;
    let is_interrupted = || {
        let told = now["error"]["message"].as_str().unwrap_or_default();
        now["status"] == "failed" && told.contains("interrupted")
    };
    match *kind {
        "working" | "input_required" => assert!(is_interrupted(), "{kind}: {now}"),
        "just begun" if now["status"] == "completed" => {
            let said = now["result"]["content"][0]["text"].as_str().unwrap();
            assert!(said.starts_with("round "), "{now}");
        }
        "just begun" => assert!(is_interrupted(), "{kind}: {now}"),
        _ => assert_eq!(now, *seen, "{kind}"),
    }
    now
}

/// The ids of all tasks that a caller is shown, by a client of the form that has a list.
async fn all_listed(relay: &Relay, token: &str) -> Vec<String> {
    let target = callers::target(relay, token);
    let (client, _) = connect(target, Revision::NEWEST_LEGACY).await;
    let (mut ids, mut cursor) = (Vec::new(), None);
    loop {
        let page = ask(&client, Request::ListTasks(Page { cursor })).await.unwrap();
        let tasks = page["tasks"].as_array().unwrap().iter();
        ids.extend(tasks.map(|task| task["taskId"].as_str().unwrap().to_owned()));
        cursor = page["nextCursor"].as_str().map(Into::into);
        if cursor.is_none() {
            ids.sort();
            return ids;
        }
    }
}

/// `cargo xtask tasks` runs this for longer, with more tasks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_has_ended_survives_a_kill_and_all_others_say_that_they_were_interrupted() {
    let (rounds, each) = (number("SABIR_TASK_ROUNDS", 2), number("SABIR_TASK_COUNT", 1));
    let mut relay = start(TempDir::new().unwrap());
    let mut kept: [Vec<(Box<str>, Value)>; 2] = Default::default();
    let mut counts = BTreeMap::<String, usize>::new();
    for round in 0..rounds {
        let token = format!("9{:07}{round:04}", std::process::id());
        let [(ann, _), (bob, _)] = callers::both(&relay).await;
        listed(&ann, "up_elicit").await;
        let upstream = pid(&ann).await;
        let theirs = begin_with(&bob, "say", json!({ "text": "of bob" })).await;
        let seen = wait_for(&bob, &theirs, "completed").await;
        let theirs = Left { kind: "of another caller", id: theirs, seen };
        let left = leave(&ann, round, each, &token).await;
        for task in &left {
            refuses(&bob, &task.id).await;
        }
        wait_until("the programs run", PATIENCE, || alive(&token).len() == each);
        let Relay { process, folder, .. } = relay;
        // By SIGKILL.
        drop(process);
        wait_until("no program is left", PATIENCE, || {
            alive(&token).is_empty() && !Path::new("/proc").join(&upstream).exists()
        });
        relay = start(folder);
        let [(ann, _), (bob, _)] = callers::both(&relay).await;
        for task in &left {
            let now = check(&ann, task).await;
            refuses(&bob, &task.id).await;
            let how = now["status"].as_str().unwrap();
            *counts.entry(format!("{}, then {how}", task.kind)).or_default() += 1;
            kept[0].push((task.id.clone(), now));
        }
        refuses(&ann, &theirs.id).await;
        kept[1].push((theirs.id.clone(), check(&bob, &theirs).await));
    }
    let clients = callers::both(&relay).await;
    for ((tasks, (client, _)), (_, token)) in kept.iter().zip(&clients).zip(TOKENS) {
        for (id, then) in tasks {
            assert_eq!(get(client, id).await, *then, "it does not change any more");
        }
        let mut ids: Vec<_> = tasks.iter().map(|(id, _)| id.to_string()).collect();
        ids.sort();
        assert_eq!(all_listed(&relay, token).await, ids);
    }
    println!("{rounds} kills, {} tasks: {counts:#?}", kept[0].len() + kept[1].len());
}
