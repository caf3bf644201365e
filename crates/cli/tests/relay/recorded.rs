//! A recording of clients of both eras in front of upstreams of both: replayed, and explained.

use std::process::{Command, Output, Stdio};

use sabir_wire::Revision;
use serde_json::json;
use tempfile::TempDir;

use super::{Relay, fixture, listed, raw, text};

/// A tool with a secret, which it repeats.
const LOGIN: &str = r#"
[[command]]
name = "login"
description = "Log in"
run = ["cat"]
stdin = "{password}"
input_schema = { type = "object", required = ["password"], properties = { password = { type = "string", format = "password" } } }
"#;

const SECRET: &str = "xyzzy-4711";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recording_is_played_again_and_told() {
    let (old, new) = (Revision::NEWEST_LEGACY, Revision::NEWEST);
    let configuration = format!("{LOGIN}\n{}{}", fixture("old", old), fixture("new", new));
    // The second time, the catalog is known from the beginning.
    let learning = Relay::start(&configuration);
    let (client, _) = learning.client(new).await;
    listed(&client, "old_echo").await;
    listed(&client, "new_echo").await;
    let Relay { process, folder, .. } = learning;
    drop(process);
    let relay = Relay::start_with(folder, &configuration, |command| {
        command.args(["--record", "r.jsonl"]);
    });
    for revision in [old, new] {
        let (client, _) = relay.client(revision).await;
        client.list_tools().await.unwrap();
        for upstream in ["old", "new"] {
            let call = |tool: &str| (format!("{upstream}_{tool}"), raw(json!({ "word": "sabir" })));
            for (tool, arguments) in [call("echo"), call("elicit"), call("fail")] {
                client.call_tool(&tool, arguments).await.unwrap();
            }
        }
        let reply = client.call_tool("login", raw(json!({ "password": SECRET }))).await.unwrap();
        assert_eq!(text(&reply), SECRET);
        client.close().await;
    }
    let path = relay.folder.path().join("r.jsonl");
    let recording = std::fs::read_to_string(&path).unwrap();
    assert!(!recording.contains(SECRET), "a secret was recorded");
    let args = ["replay", "r.jsonl", "--against", "sabir.toml"];
    let replayed = sabir(&relay.folder, &args);
    let seen = String::from_utf8_lossy(&replayed.stdout);
    assert!(replayed.status.success(), "{seen}{}", String::from_utf8_lossy(&replayed.stderr));
    assert!(seen.contains("requests: no differences"), "{seen}");

    // One field differs.
    let changed = recording.replace(r#""text":"on purpose""#, r#""text":"by mistake""#);
    std::fs::write(&path, changed).unwrap();
    let replayed = sabir(&relay.folder, &args);
    let seen = String::from_utf8_lossy(&replayed.stdout);
    assert_eq!(replayed.status.code(), Some(1), "{seen}");
    assert!(seen.contains("result.content[0].text: \"by mistake\" -> \"on purpose\""), "{seen}");
    let seen = String::from_utf8_lossy(
        &sabir(&relay.folder, &[&args[..], &["--ignore", "text"]].concat()).stdout,
    )
    .into_owned();
    assert!(seen.contains("no differences"), "{seen}");

    check_story(
        &String::from_utf8_lossy(&sabir(&relay.folder, &["explain", "r.jsonl"]).stdout),
        old,
        new,
    );
}

/// The explanation of a call of an old client to a new upstream has all of its parts.
fn check_story(told: &str, old: Revision, new: Revision) {
    let mut stories = told.split("\n\n");
    let story = stories.find(|story| story.starts_with("tools/call new_elicit: ok"));
    let story = story.unwrap_or_else(|| panic!("{told}"));
    for part in [
        &*format!("(test 0, revision {})", old.date()),
        &*format!("-> upstream `new` (pipe), {}: tools/call elicit", new.date()),
        "translated: params.name: \"new_elicit\" -> \"elicit\"",
        "sabir asks the client: elicitation/create Who?",
        "the client answers",
        "again, with the answers",
        "sabir answers: a result",
        "time: sabir and its own sources ",
        ", upstream ",
        ", client ",
    ] {
        assert!(story.contains(part), "no {part} in\n{story}");
    }
}

fn sabir(folder: &TempDir, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sabir"));
    command.current_dir(folder.path()).args(args).stdin(Stdio::null());
    command.env("XDG_CACHE_HOME", folder.path().join("cache")).env_remove("SABIR_LOG");
    command.output().unwrap()
}
