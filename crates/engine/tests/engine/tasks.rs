//! Calls that become tasks, in both forms. The specification's suite covers the rest over HTTP.

mod many; // ten thousand of them
mod older; // the form of 2025-11-25
mod stored; // a store that takes its time
mod waiting; // clients that know no tasks

use std::time::Duration;

use bytes::Bytes;
use sabir_engine::{Connection, Settings};
use sabir_registry::{Offer, TaskMode, TaskPolicy};
use sabir_session::{CallNotification, SessionKind, StreamId};
use sabir_testkit::{CallNumber, Called, ConnectionPlayer, Ending, Event, House, Player as _};
use sabir_wire::{Caller, Raw};
use serde_json::{Value, json};

use self::older::{hello, legacy};
use crate::{answer, settings};

const TASKS: &str = "io.modelcontextprotocol/tasks";

/// A client of a server whose tools `t` and `u` become tasks by this policy.
fn with_policy(policy: impl Into<TaskPolicy>) -> ConnectionPlayer {
    with_settings(policy, settings())
}

fn with_settings(policy: impl Into<TaskPolicy>, settings: Settings) -> ConnectionPlayer {
    let offer = Offer { task: policy.into(), ..House::offer() };
    let house = House::offering(settings, offer);
    ConnectionPlayer::with(house, SessionKind::Stream, Caller::new("token", "ann"))
}

fn modern(id: u64, method: &str, mut params: Value, knows_tasks: bool) -> Vec<u8> {
    let extensions = if knows_tasks { json!({ TASKS: {} }) } else { json!({}) };
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {
            "elicitation": {}, "roots": {}, "extensions": extensions,
        },
    });
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
        .to_string()
        .into_bytes()
}

#[track_caller]
fn ask(player: &mut ConnectionPlayer, method: &str, params: Value) -> Value {
    player.say(&modern(9, method, params, true));
    answer(player)
}

/// Calls `t`, whose call becomes a task at once, and gives the id of the task and the call.
#[track_caller]
fn task(player: &mut ConnectionPlayer) -> (String, CallNumber) {
    let created = ask(player, "tools/call", json!({ "name": "t" }));
    assert_eq!(created["result"]["resultType"], "task", "{created}");
    assert_eq!(created["result"]["status"], "working", "{created}");
    let Some(Event::Start(call)) = player.event() else { panic!("no call") };
    (created["result"]["taskId"].as_str().unwrap().to_owned(), call)
}

#[track_caller]
fn get(player: &mut ConnectionPlayer, id: &str) -> Value {
    let got = ask(player, "tasks/get", json!({ "taskId": id }));
    assert_eq!(got["result"]["resultType"], "complete", "{got}");
    got["result"].clone()
}

fn text(text: &str) -> Ending {
    let reply = json!({ "content": [{ "type": "text", "text": text }] });
    Ending::Result(Raw::of(&reply).unwrap())
}

fn asks(questions: Value) -> Ending {
    Ending::Asks(Raw::of(&json!({ "inputRequests": questions, "requestState": 1 })).unwrap())
}

const ROOTS: &str = "roots/list";

#[test]
fn a_call_that_takes_long_becomes_a_task_and_says_nothing_more() {
    let mut player = with_policy(TaskMode::Auto);
    let request = modern(1, "tools/call", json!({ "name": "t" }), true);
    let mut said: Value = serde_json::from_slice(&request).unwrap();
    said["params"]["_meta"]["progressToken"] = json!("p");
    player.say(said.to_string().as_bytes());
    let Some(Event::Start(call)) = player.event() else { panic!("no call") };
    let progress = |progress| CallNotification::Progress { progress, total: None, message: None };
    player.note(call, progress(1.0));
    assert_eq!(answer(&mut player)["method"], "notifications/progress");
    player.pass(Duration::from_millis(9_999));
    assert_eq!(player.hear(), None);
    player.pass(Duration::from_millis(1));
    let created = answer(&mut player);
    assert_eq!(created["result"]["resultType"], "task", "{created}");
    assert_eq!(created["result"]["ttlMs"], 86_400_000);
    player.note(call, progress(2.0));
    assert_eq!(player.hear(), None, "a task makes no progress notifications");
    let id = created["result"]["taskId"].as_str().unwrap();
    assert!(id.len() >= 32, "{id}");
    assert_eq!(get(&mut player, id)["status"], "working");
    player.pass(Duration::from_secs(25));
    player.finish(call, text("done"));
    let done = get(&mut player, id);
    assert_eq!(done["status"], "completed");
    assert_eq!(done["result"]["content"][0]["text"], "done");
    assert_ne!(done["createdAt"], done["lastUpdatedAt"]);
}

#[test]
fn a_call_that_ends_in_time_is_a_plain_result() {
    let mut player = with_policy(TaskMode::Auto);
    player.say(&modern(1, "tools/call", json!({ "name": "t" }), true));
    let Some(Event::Start(call)) = player.event() else { panic!("no call") };
    player.pass(Duration::from_secs(9));
    player.finish(call, text("quick"));
    assert_eq!(answer(&mut player)["result"]["content"][0]["text"], "quick");
}

#[test]
fn a_client_that_knows_no_tasks_waits_unless_they_are_required() {
    let mut player = with_policy(TaskMode::Always);
    player.say(&modern(1, "tools/call", json!({ "name": "t" }), false));
    let Some(Event::Start(call)) = player.event() else { panic!("no call") };
    player.pass(Duration::from_secs(60));
    player.finish(call, text("late"));
    assert_eq!(answer(&mut player)["result"]["content"][0]["text"], "late");
    let mut player = with_policy(TaskMode::Required);
    player.say(&modern(1, "tools/call", json!({ "name": "t" }), false));
    let refused = answer(&mut player);
    assert_eq!(refused["error"]["code"], -32021, "{refused}");
    let needed = json!({ "extensions": { TASKS: {} } });
    assert_eq!(refused["error"]["data"]["requiredCapabilities"], needed);
}

#[test]
fn every_task_method_wants_the_extension_before_it_looks_at_the_id() {
    let mut player = with_policy(TaskMode::Always);
    let (id, _) = task(&mut player);
    for id in [&*id, "unknown"] {
        for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
            let params = json!({ "taskId": id, "inputResponses": {} });
            player.say(&modern(2, method, params, false));
            assert_eq!(answer(&mut player)["error"]["code"], -32021, "{method}");
        }
        let params = json!({ "notifications": { "taskIds": [id] } });
        player.say(&modern(3, "subscriptions/listen", params, false));
        assert_eq!(answer(&mut player)["error"]["code"], -32021, "listen");
    }
    for method in ["tasks/result", "tasks/list"] {
        let refused = ask(&mut player, method, json!({ "taskId": id }));
        assert_eq!(refused["error"]["code"], -32601, "{method}");
    }
    let unknown = ask(&mut player, "tasks/get", json!({ "taskId": "unknown" }));
    assert_eq!(unknown["error"]["code"], -32602);
    let mut player = with_policy(TaskMode::Never);
    let refused = ask(&mut player, "tasks/get", json!({ "taskId": id }));
    assert_eq!(refused["error"]["code"], -32601, "a server without tasks");
}

#[test]
fn questions_are_asked_through_the_task_and_each_key_once() {
    let mut player = with_policy(TaskMode::Always);
    let (id, call) = task(&mut player);
    player.finish(call, asks(json!({ "a": { "method": ROOTS }, "b": { "method": ROOTS } })));
    let open = get(&mut player, &id);
    assert_eq!(open["status"], "input_required");
    assert_eq!(open["inputRequests"].as_object().unwrap().len(), 2, "{open}");
    assert_eq!(open.get("requestState"), None);
    let answers = |keys: &[&str]| {
        let given = keys.iter().map(|key| ((*key).to_owned(), json!({ "roots": [] })));
        json!({ "taskId": id, "inputResponses": given.collect::<serde_json::Map<_, _>>() })
    };
    let wrong = json!({ "taskId": id, "inputResponses": { "a": 1 } });
    assert_eq!(ask(&mut player, "tasks/update", wrong)["error"]["code"], -32602);
    let acknowledged = ask(&mut player, "tasks/update", answers(&["a", "unknown"]));
    assert_eq!(acknowledged["result"]["resultType"], "complete", "{acknowledged}");
    let left = get(&mut player, &id)["inputRequests"].clone();
    assert_eq!(left, json!({ "b": { "method": ROOTS } }));
    ask(&mut player, "tasks/update", answers(&["b"]));
    assert_eq!(get(&mut player, &id)["status"], "working");
    // The source is called again with both answers and its state, and asks once more.
    let Some(Event::Start(again)) = player.event() else { panic!("not called again") };
    let Some(Called::Tool(called)) = player.house.called(again).cloned() else { panic!("no tool") };
    assert!(called.context.answer("a").is_some() && called.context.answer("b").is_some());
    assert_eq!(called.context.state.as_ref().unwrap().text(), "1");
    player.finish(again, asks(json!({ "a": { "method": ROOTS } })));
    let open = get(&mut player, &id)["inputRequests"].clone();
    assert_eq!(open, json!({ "a-2": { "method": ROOTS } }), "a key is used once");
    ask(&mut player, "tasks/update", answers(&["a-2"]));
    let Some(Event::Start(last)) = player.event() else { panic!("not called again") };
    player.finish(last, text("thanks"));
    assert_eq!(get(&mut player, &id)["result"]["content"][0]["text"], "thanks");
}

#[test]
fn a_question_that_the_client_cannot_be_asked_fails_the_task() {
    let mut player = with_policy(TaskMode::Always);
    let (id, call) = task(&mut player);
    let sample = json!({ "method": "sampling/createMessage", "params": {
        "messages": [], "maxTokens": 9,
    } });
    player.finish(call, asks(json!({ "a": sample })));
    let failed = get(&mut player, &id);
    assert_eq!((&failed["status"], &failed["error"]["code"]), (&json!("failed"), &json!(-32021)));
}

#[test]
fn failures_of_the_tool_are_results_and_errors_of_the_protocol_are_errors() {
    for (ending, status, member) in [
        (Ending::Fails("no".into()), "completed", "result"),
        (Ending::Error { code: -32000, message: "no".into() }, "failed", "error"),
        (Ending::Panics, "failed", "error"),
    ] {
        let mut player = with_policy(TaskMode::Always);
        let (id, call) = task(&mut player);
        player.finish(call, ending);
        let ended = get(&mut player, &id);
        assert_eq!(ended["status"], status, "{ended}");
        assert!(ended.get(member).is_some(), "{ended}");
        assert_eq!(ended["result"]["isError"] == true, member == "result");
    }
}

#[test]
fn a_cancelled_task_stays_cancelled_and_its_source_is_told() {
    let mut player = with_policy(TaskMode::Always);
    let (id, call) = task(&mut player);
    for _ in 0..2 {
        let cancelled = ask(&mut player, "tasks/cancel", json!({ "taskId": id }));
        assert_eq!(cancelled["result"]["resultType"], "complete", "{cancelled}");
        assert_eq!(cancelled["result"].get("taskId"), None);
    }
    assert_eq!(player.event(), Some(Event::Abort(call)));
    player.finish(call, text("late"));
    assert_eq!(get(&mut player, &id)["status"], "cancelled");
    // A task that waits for answers is cancelled, too.
    let (id, call) = task(&mut player);
    player.finish(call, asks(json!({ "a": { "method": ROOTS } })));
    ask(&mut player, "tasks/cancel", json!({ "taskId": id }));
    assert_eq!(get(&mut player, &id)["status"], "cancelled");
    assert_eq!(player.house.source.abandoned().len(), 1);
}

#[test]
fn a_task_outlives_its_connection_and_belongs_to_its_caller() {
    let mut player = with_policy(TaskMode::Always);
    let (id, call) = task(&mut player);
    let hears = |caller: Caller, method: &str, params: Value| -> Value {
        let frame = Bytes::from(modern(1, method, params, true));
        let engine = player.house.engine.clone();
        let said = player.house.block_on(async {
            let mut connection = Connection::new(&engine, SessionKind::ModernHttp, caller.clone());
            connection.receive(StreamId(1), caller, &frame);
            connection.next_frame().expect("an answer").text
        });
        serde_json::from_slice(&said).unwrap()
    };
    let (ann, bob) = (Caller::new("token", "ann"), Caller::new("token", "bob"));
    let wanted = json!({ "taskId": id, "inputResponses": {} });
    for method in ["tasks/get", "tasks/update"] {
        assert_eq!(hears(bob.clone(), method, wanted.clone())["error"]["code"], -32602);
    }
    assert_eq!(hears(ann.clone(), "tasks/get", wanted.clone())["result"]["status"], "working");
    let filter = json!({ "notifications": { "taskIds": [id, "unknown"] } });
    let heard = hears(bob, "subscriptions/listen", filter.clone());
    assert_eq!(heard["params"]["notifications"], json!({}), "nothing of another's task");
    let heard = hears(ann.clone(), "subscriptions/listen", filter);
    assert_eq!(heard["params"]["notifications"], json!({ "taskIds": [id] }));
    player.finish(call, text("done"));
    let Value::Object(done) = get(&mut player, &id) else { panic!() };
    assert_eq!(done["status"], "completed");
}

#[test]
fn a_task_expires_to_the_second_and_a_running_one_is_stopped() {
    let mut player = with_policy(TaskMode::Always);
    let (id, call) = task(&mut player);
    player.pass(Duration::from_secs(86_400 - 1));
    assert_eq!(get(&mut player, &id)["status"], "working");
    player.pass(Duration::from_secs(1) + Duration::from_millis(500));
    let gone = ask(&mut player, "tasks/get", json!({ "taskId": id }));
    assert_eq!(gone["error"]["code"], -32602, "{gone}");
    assert_eq!(player.event(), Some(Event::Abort(call)));
}

#[test]
fn without_room_for_a_task_the_client_waits() {
    let mut settings = settings();
    settings.tasks.limits.per_caller = 1;
    let mut player = with_settings(TaskMode::Always, settings);
    let (_, first) = task(&mut player);
    player.say(&modern(2, "tools/call", json!({ "name": "t" }), true));
    let Some(Event::Start(second)) = player.event() else { panic!("no call") };
    assert_eq!(player.hear(), None);
    player.finish(second, text("waited"));
    assert_eq!(answer(&mut player)["result"]["content"][0]["text"], "waited");
    player.finish(first, text("done"));
}

#[test]
fn a_listener_is_told_the_whole_state_of_its_tasks() {
    let mut player = with_policy(TaskMode::Always);
    let (id, call) = task(&mut player);
    let (_, other_call) = task(&mut player);
    let filter = json!({ "notifications": { "taskIds": [id] } });
    player.say(&modern(7, "subscriptions/listen", filter, true));
    let acknowledged = answer(&mut player);
    assert_eq!(acknowledged["params"]["notifications"], json!({ "taskIds": [id] }));
    let told = |player: &mut ConnectionPlayer| {
        let told = answer(player);
        assert_eq!(told["method"], "notifications/tasks", "{told}");
        assert_eq!(told["params"]["taskId"], id);
        let subscription = &told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
        assert_eq!(*subscription, 7);
        told["params"].clone()
    };
    assert_eq!(told(&mut player)["status"], "working", "its state when the subscription began");
    player.finish(other_call, text("not wanted"));
    player.finish(call, asks(json!({ "a": { "method": ROOTS } })));
    assert_eq!(told(&mut player)["inputRequests"]["a"]["method"], ROOTS);
    player.say(&modern(9, "tasks/cancel", json!({ "taskId": id }), true));
    let mut heard = [answer(&mut player), answer(&mut player)];
    heard.sort_by_key(|message| message.get("method").is_some());
    assert_eq!(heard[0]["result"]["resultType"], "complete", "{heard:?}");
    assert_eq!(heard[1]["params"]["status"], "cancelled", "{heard:?}");
    assert_eq!(player.hear(), None, "nothing of the other task");
}

#[test]
fn what_a_server_can_do_is_declared_in_the_form_of_the_revision() {
    let mut player = with_policy(TaskMode::Required);
    let discovered = ask(&mut player, "server/discover", json!({}));
    let capabilities = &discovered["result"]["capabilities"];
    assert_eq!(capabilities["extensions"], json!({ TASKS: {} }));
    assert_eq!(capabilities.get("tasks"), None);
    let listed = ask(&mut player, "tools/list", json!({}));
    assert_eq!(listed["result"]["tools"][0].get("execution"), None);
    for (revision, tasks, execution) in [
        (
            "2025-11-25",
            json!({ "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } }),
            json!({ "taskSupport": "required" }),
        ),
        ("2025-06-18", Value::Null, Value::Null),
    ] {
        let mut player = with_policy(TaskMode::Required);
        let initialized = hello(&mut player, revision);
        assert_eq!(initialized["capabilities"]["tasks"], tasks, "{revision}");
        assert_eq!(initialized["capabilities"].get("extensions"), None);
        let listed = legacy(&mut player, "tools/list", json!({}));
        assert_eq!(listed["result"]["tools"][0]["execution"], execution, "{revision}");
        let refused = legacy(&mut player, "tools/call", json!({ "name": "t" }));
        assert_eq!(refused["error"]["code"], -32601, "{revision}: {refused}");
    }
}

#[test]
fn the_end_of_the_server_is_the_end_of_its_tasks() {
    let mut player = with_policy(TaskMode::Always);
    let (id, call) = task(&mut player);
    let engine = player.house.engine.clone();
    player.house.block_on(engine.close());
    assert_eq!(player.event(), Some(Event::Abort(call)));
    let failed = get(&mut player, &id);
    assert_eq!(failed["status"], "failed");
    assert!(failed["statusMessage"].as_str().unwrap().contains("interrupted"), "{failed}");
}

#[test]
fn a_long_result_is_kept_and_counted_until_its_task_expires() {
    let mut settings = settings();
    settings.tasks.limits.ttl_ms = 60_000;
    let long = "x".repeat(3 << 20);
    let mut player = with_settings(TaskMode::Always, settings);
    let (id, call) = task(&mut player);
    player.finish(call, text(&long));
    let mut done = get(&mut player, &id);
    // A long result is written by another thread.
    for _ in 0..6000 {
        if done["status"] != "working" {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
        done = get(&mut player, &id);
    }
    assert_eq!(done["status"], "completed", "{}", done["error"]);
    assert_eq!(done["result"]["content"][0]["text"], long);
    drop(done);
    // Other tests of this process may take some of it, too.
    let used = sabir_budget::memory().used();
    assert!(used >= long.len(), "{used}");
    player.pass(Duration::from_millis(60_500));
    let gone = ask(&mut player, "tasks/get", json!({ "taskId": id }));
    assert_eq!(gone["error"]["code"], -32602, "{gone}");
}

#[test]
fn a_call_whose_source_does_not_say_that_it_takes_long_stays_a_call() {
    let mut player = with_policy(TaskMode::Passed);
    player.say(&modern(1, "tools/call", json!({ "name": "t" }), true));
    let Some(Event::Start(call)) = player.event() else { panic!("no call") };
    player.pass(Duration::from_secs(25));
    assert_eq!(player.hear(), None, "however long it takes");
    player.finish(call, text("done"));
    assert_eq!(answer(&mut player)["result"]["content"][0]["text"], "done");
}
