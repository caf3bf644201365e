//! Clients that know no tasks: handles in words, and heartbeats.

use super::older::say;
use super::*;

#[test]
fn a_client_that_knows_no_tasks_can_get_a_handle_in_words() {
    let mut settings = settings();
    settings.tasks.in_words = Some(Duration::from_secs(50));
    let mut player = with_settings(TaskMode::Auto, settings);
    hello(&mut player, "2025-06-18");
    say(&mut player, 1, "tools/call", json!({ "name": "t" }));
    let Some(Event::Start(call)) = player.event() else { panic!("no call") };
    player.pass(Duration::from_secs(49));
    assert_eq!(player.hear(), None);
    player.pass(Duration::from_secs(1));
    let handle = answer(&mut player);
    let told = handle["result"]["content"][0]["text"].as_str().unwrap();
    assert!(told.ends_with("it waits up to 50 s, and can be called again."), "{told}");
    let id = told.split_once("as task ").unwrap().1.split_once(". Call").unwrap().0.to_owned();
    let wait = json!({ "name": "await_result", "arguments": { "task": id } });
    say(&mut player, 2, "tools/call", wait.clone());
    assert_eq!(player.hear(), None, "it waits");
    player.pass(Duration::from_secs(50));
    let later = answer(&mut player);
    assert!(
        later["result"]["content"][0]["text"].as_str().unwrap().contains("not done"),
        "{later}"
    );
    // A question of the call is asked by the call of `await_result`.
    player.finish(call, asks(json!({ "a": { "method": ROOTS } })));
    say(&mut player, 3, "tools/call", wait.clone());
    let question = answer(&mut player);
    assert_eq!(question["method"], ROOTS, "{question}");
    let given = json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "roots": [] } });
    player.say(given.to_string().as_bytes());
    let Some(Event::Start(again)) = player.event() else { panic!("not called again") };
    player.finish(again, text("done"));
    let done = answer(&mut player);
    assert_eq!((&done["id"], &done["result"]["content"][0]["text"]), (&json!(3), &json!("done")));
    let wrong = json!({ "name": "await_result", "arguments": { "task": "unknown" } });
    let wrong = legacy(&mut player, "tools/call", wrong);
    assert_eq!(wrong["result"]["isError"], true, "{wrong}");
}

/// The handshake of a client of that name.
fn hello_of(player: &mut ConnectionPlayer, name: &str) {
    let hello = json!({
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": { "name": name, "version": "1" },
    });
    legacy(player, "initialize", hello);
}

#[test]
fn a_client_that_is_known_to_give_up_gets_a_handle_without_any_setting() {
    for (name, policy, sees_tool) in [
        ("codex-mcp-client", TaskMode::Auto, true),
        ("inspector-cli", TaskMode::Always, true),
        ("codex-mcp-client", TaskMode::Never, false),
        ("somebody", TaskMode::Auto, false),
    ] {
        let mut player = with_policy(policy);
        hello_of(&mut player, name);
        let listed = legacy(&mut player, "tools/list", json!({}));
        let tools = listed["result"]["tools"].as_array().unwrap();
        let has_tool = tools.iter().any(|tool| tool["name"] == "await_result");
        assert_eq!(has_tool, sees_tool, "{name}, {policy:?}: {listed}");
        let wait = json!({ "name": "await_result", "arguments": { "task": "unknown" } });
        let refused = legacy(&mut player, "tools/call", wait);
        assert_eq!(refused["result"]["isError"] == true, sees_tool, "{name}: {refused}");
        say(&mut player, 1, "tools/call", json!({ "name": "t" }));
        let Some(Event::Start(call)) = player.event() else { panic!("no call") };
        // Shorter than `call_time`.
        player.pass(Duration::from_secs(281));
        match sees_tool {
            true => {
                let told = answer(&mut player)["result"]["content"][0]["text"].clone();
                assert!(told.as_str().unwrap().contains("await_result"), "{name}: {told}");
            }
            false => assert_eq!(player.hear(), None, "{name}"),
        }
        player.finish(call, text("done"));
    }
}

#[test]
fn a_client_of_a_known_name_waits_as_long_as_it_can() {
    let mut settings = settings();
    settings.tasks.clients.insert("quick".into(), Some(Duration::from_secs(20)));
    settings.tasks.clients.insert("quick-patient".into(), None);
    for (name, wait) in [("quick", Some(20)), ("quick-client", Some(20)), ("quicker", None)]
        .into_iter()
        .chain([("quick-patient", None)])
    {
        let mut player = with_settings(TaskMode::Auto, settings.clone());
        hello_of(&mut player, name);
        say(&mut player, 1, "tools/call", json!({ "name": "t" }));
        let Some(Event::Start(call)) = player.event() else { panic!("no call") };
        player.pass(Duration::from_secs(19));
        assert_eq!(player.hear(), None, "{name}");
        player.pass(Duration::from_secs(1));
        match wait {
            Some(_) => {
                let told = answer(&mut player)["result"]["content"][0]["text"].clone();
                assert!(told.as_str().unwrap().contains("await_result"), "{name}: {told}");
            }
            None => assert_eq!(player.hear(), None, "{name}"),
        }
        player.finish(call, text("done"));
    }
}

#[test]
fn a_client_that_wants_progress_hears_of_a_silent_call() {
    let mut player = with_policy(TaskMode::Never);
    let mut request: Value =
        serde_json::from_slice(&modern(1, "tools/call", json!({ "name": "t" }), false)).unwrap();
    request["params"]["_meta"]["progressToken"] = json!("p");
    player.say(request.to_string().as_bytes());
    let Some(Event::Start(call)) = player.event() else { panic!("no call") };
    player.pass(Duration::from_secs(14));
    assert_eq!(player.hear(), None);
    player.pass(Duration::from_secs(1));
    let told = answer(&mut player);
    assert_eq!(told["params"]["message"], "running for 15 s", "{told}");
    let first = told["params"]["progress"].as_f64().unwrap();
    assert!(first > 0.0 && first < 1e-6, "there is room for the values of the source: {told}");
    // The source itself has reported progress.
    let (progress, total, message) = (0.5, Some(1.0), None);
    player.note(call, CallNotification::Progress { progress, total, message });
    assert_eq!(answer(&mut player)["params"]["progress"], 0.5);
    player.pass(Duration::from_secs(15));
    assert_eq!(player.hear(), None);
    player.pass(Duration::from_secs(15));
    let told = answer(&mut player)["params"].clone();
    let next = told["progress"].as_f64().unwrap();
    assert!(next > 0.5 && next < 0.500_001 && told["total"] == 1.0, "{told}");
    player.finish(call, text("done"));
    assert_eq!(answer(&mut player)["result"]["content"][0]["text"], "done");
}
