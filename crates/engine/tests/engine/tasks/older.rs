//! Tasks in the form of 2025-11-25, in which the client decides.

use super::*;

#[track_caller]
pub(super) fn hello(player: &mut ConnectionPlayer, revision: &str) -> Value {
    let hello = legacy(
        player,
        "initialize",
        json!({
            "protocolVersion": revision, "capabilities": { "roots": {}, "elicitation": {} },
            "clientInfo": { "name": "c", "version": "1" },
        }),
    );
    player.say(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    assert_eq!(player.event(), Some(Event::Ready));
    hello["result"].clone()
}

#[track_caller]
pub(super) fn legacy(player: &mut ConnectionPlayer, method: &str, params: Value) -> Value {
    say(player, 5, method, params);
    answer(player)
}

pub(super) fn say(player: &mut ConnectionPlayer, id: u64, method: &str, params: Value) {
    let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    player.say(request.to_string().as_bytes());
}

/// A task in the form of 2025-11-25.
#[track_caller]
fn legacy_task(player: &mut ConnectionPlayer) -> (String, CallNumber) {
    legacy_task_for(player, 60_000)
}

#[track_caller]
fn legacy_task_for(player: &mut ConnectionPlayer, ttl: u64) -> (String, CallNumber) {
    let params = json!({ "name": "t", "task": { "ttl": ttl } });
    let created = legacy(player, "tools/call", params);
    let task = &created["result"]["task"];
    assert_eq!((&task["status"], &task["ttl"]), (&json!("working"), &json!(ttl)), "{created}");
    let Some(Event::Start(call)) = player.event() else { panic!("no call") };
    (task["taskId"].as_str().unwrap().to_owned(), call)
}

#[test]
fn a_client_of_the_older_form_decides_and_waits_for_the_result() {
    let mut player = with_policy(TaskMode::Auto);
    hello(&mut player, "2025-11-25");
    let (id, call) = legacy_task(&mut player);
    let wanted = json!({ "taskId": id });
    let got = legacy(&mut player, "tasks/get", wanted.clone());
    assert_eq!(got["result"]["status"], "working", "{got}");
    say(&mut player, 6, "tasks/result", wanted.clone());
    assert_eq!(player.hear(), None, "it blocks");
    player.finish(call, text("done"));
    let result = answer(&mut player);
    assert_eq!(result["result"]["content"][0]["text"], "done", "{result}");
    let related = &result["result"]["_meta"]["io.modelcontextprotocol/related-task"];
    assert_eq!(*related, json!({ "taskId": id }));
    assert_eq!(result["result"].get("resultType"), None);
    let listed = legacy(&mut player, "tasks/list", json!({}));
    assert_eq!(listed["result"]["tasks"][0]["status"], "completed", "{listed}");
    let refused = legacy(&mut player, "tasks/list", json!({ "cursor": "garbage" }));
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let refused = legacy(&mut player, "tasks/cancel", wanted);
    assert_eq!(refused["error"]["code"], -32602, "it has ended");
    let refused = legacy(&mut player, "tasks/update", json!({ "taskId": id }));
    assert_eq!(refused["error"]["code"], -32601, "of the other form");
    // Without a `task` param it is a plain call, however long it takes.
    say(&mut player, 8, "tools/call", json!({ "name": "t" }));
    let Some(Event::Start(call)) = player.event() else { panic!("no call") };
    player.pass(Duration::from_secs(60));
    player.finish(call, text("plain"));
    assert_eq!(answer(&mut player)["result"]["content"][0]["text"], "plain");
}

#[test]
fn cancelling_in_the_older_form_gives_the_cancelled_task() {
    let mut player = with_policy(TaskMode::Always);
    hello(&mut player, "2025-11-25");
    let (id, call) = legacy_task(&mut player);
    say(&mut player, 6, "tasks/result", json!({ "taskId": id }));
    say(&mut player, 7, "tasks/cancel", json!({ "taskId": id }));
    let mut answers = [answer(&mut player), answer(&mut player)];
    answers.sort_by_key(|answer| answer["id"].as_u64());
    assert_eq!(answers[0]["error"]["code"], -32603, "{answers:?}");
    assert_eq!(answers[1]["result"]["status"], "cancelled");
    assert_eq!(player.event(), Some(Event::Abort(call)));
}

#[test]
fn in_the_older_form_questions_reach_whoever_waits_for_the_result() {
    let mut player = with_policy(TaskMode::Always);
    hello(&mut player, "2025-11-25");
    let (id, call) = legacy_task(&mut player);
    let form = json!({ "method": "elicitation/create", "params": {
        "message": "sure?", "requestedSchema": { "type": "object", "properties": {} },
        "_meta": { "own": 1 },
    } });
    player.finish(call, asks(json!({ "a": form, "b": { "method": ROOTS } })));
    let got = legacy(&mut player, "tasks/get", json!({ "taskId": id }));
    assert_eq!(got["result"]["status"], "input_required");
    assert_eq!(got["result"].get("inputRequests"), None);
    say(&mut player, 6, "tasks/result", json!({ "taskId": id }));
    let mut questions = [answer(&mut player), answer(&mut player)];
    questions.sort_by_key(|question| question["method"] == ROOTS);
    assert_eq!(questions[0]["method"], "elicitation/create", "{questions:?}");
    assert_eq!(questions[0]["params"]["_meta"]["own"], 1, "the metadata of the source stays");
    let answers = [json!({ "action": "decline" }), json!({ "roots": [] })];
    for (question, answer) in questions.iter().zip(answers) {
        let related = &question["params"]["_meta"]["io.modelcontextprotocol/related-task"];
        assert_eq!(*related, json!({ "taskId": id }), "{question}");
        let given = json!({ "jsonrpc": "2.0", "id": question["id"], "result": answer });
        player.say(given.to_string().as_bytes());
    }
    let Some(Event::Start(again)) = player.event() else { panic!("not called again") };
    player.finish(again, Ending::Fails("declined".into()));
    let result = answer(&mut player);
    assert_eq!((&result["id"], &result["result"]["isError"]), (&json!(6), &json!(true)));
    let got = legacy(&mut player, "tasks/get", json!({ "taskId": id }));
    assert_eq!(got["result"]["status"], "failed", "a tool that failed");
}

#[test]
fn a_task_that_expires_before_an_older_one_is_stopped_in_its_second() {
    let mut player = with_policy(TaskMode::Always);
    hello(&mut player, "2025-11-25");
    let (long, first) = legacy_task(&mut player);
    let (short, second) = legacy_task_for(&mut player, 5_000);
    player.pass(Duration::from_millis(4_900));
    assert_eq!(player.event(), None);
    player.pass(Duration::from_millis(200));
    assert_eq!(player.event(), Some(Event::Abort(second)));
    let gone = legacy(&mut player, "tasks/get", json!({ "taskId": short }));
    assert_eq!(gone["error"]["code"], -32602, "{gone}");
    let got = legacy(&mut player, "tasks/get", json!({ "taskId": long }));
    assert_eq!(got["result"]["status"], "working");
    player.finish(first, text("done"));
}

#[test]
fn a_wish_for_a_task_is_refused_where_there_can_be_none_and_ignored_without_tasks() {
    let wish = json!({ "name": "t", "task": {} });
    let mut player = with_policy(TaskMode::Never);
    hello(&mut player, "2025-11-25");
    say(&mut player, 1, "tools/call", wish.clone());
    let Some(Event::Start(call)) = player.event() else { panic!("no call") };
    player.finish(call, text("plain"));
    assert_eq!(answer(&mut player)["result"]["content"][0]["text"], "plain");
    let mut player = with_policy(TaskMode::Auto);
    hello(&mut player, "2025-11-25");
    let wrong = legacy(&mut player, "tools/call", json!({ "name": "t", "task": { "ttl": "1" } }));
    assert_eq!(wrong["error"]["code"], -32602, "{wrong}");
    // The newest revision has no such param.
    player.say(&modern(2, "tools/call", json!({ "name": "t", "task": 7 }), false));
    let Some(Event::Start(call)) = player.event() else { panic!("no call") };
    player.finish(call, text("plain"));
    assert_eq!(answer(&mut player)["result"]["content"][0]["text"], "plain");
}
