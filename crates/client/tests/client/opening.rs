//! How the era of a server is found, and what happens when its link ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use sabir_client::{CallError, CallEvent, OpenError, Transport};
use sabir_wire::types::SubscriptionFilter;
use sabir_wire::{Era, Request, Revision};
use serde_json::{Value, json};

use crate::support::{Scripted, hasty};

/// The answer of a legacy server to a message.
pub(crate) fn legacy(message: &Value) -> Vec<String> {
    let Some(id) = message.get("id") else { return Vec::new() };
    let result = match message["method"].as_str() {
        Some("initialize") => json!({
            "protocolVersion": Revision::NEWEST_LEGACY.date(), "capabilities": { "tools": {} },
            "serverInfo": { "name": "s", "version": "1" },
        }),
        Some("tools/list") => {
            json!({ "tools": [{ "name": "t", "inputSchema": { "type": "object" } }] })
        }
        Some("tools/call") => json!({ "content": [] }),
        _ => return vec![refuse(id, -32601)],
    };
    vec![answer(id, &result)]
}

/// The answer of a modern server to a message.
fn modern(message: &Value) -> Vec<String> {
    let id = &message["id"];
    let result = match message["method"].as_str() {
        Some("server/discover") => json!({
            "resultType": "complete", "supportedVersions": [Revision::NEWEST.date()],
            "capabilities": { "tools": {} }, "ttlMs": 0, "cacheScope": "private",
        }),
        Some("tools/call") => json!({ "resultType": "complete", "content": [] }),
        _ => return vec![refuse(id, -32601)],
    };
    vec![answer(id, &result)]
}

pub(crate) fn answer(id: &Value, result: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string()
}

fn refuse(id: &Value, code: i64) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": "no" } }).to_string()
}

/// The era that is found, and whether it is certain.
async fn era(transport: impl Transport) -> Result<(Era, bool), OpenError> {
    let client = hasty(transport);
    let info = client.open().await?;
    let called = client.call_tool("t", json!({})).await;
    assert!(called.is_ok(), "{called:?}");
    Ok((info.revision.era(), info.is_certain))
}

fn is_probe(message: &Value) -> bool {
    message["method"] == "server/discover"
}

#[tokio::test]
async fn any_error_that_is_not_a_modern_one_means_legacy() {
    for code in [-32601, -32602, -32600, -32000, -32001, 0, 401] {
        let found = era(Scripted::new(move |_, message| {
            let id = &message["id"];
            Some(if is_probe(&message) { vec![refuse(id, code)] } else { legacy(&message) })
        }));
        assert_eq!(found.await, Ok((Era::Legacy, true)), "{code}");
    }
    // So does an invalid result.
    let odd = Scripted::new(|_, message| {
        let id = &message["id"];
        Some(if is_probe(&message) { vec![answer(id, &json!({}))] } else { legacy(&message) })
    });
    assert_eq!(era(odd).await, Ok((Era::Legacy, true)));
}

#[tokio::test]
async fn silence_means_legacy_but_is_doubtful() {
    let silent = Scripted::new(|_, message| {
        Some(if is_probe(&message) { Vec::new() } else { legacy(&message) })
    });
    assert_eq!(era(silent).await, Ok((Era::Legacy, false)));
}

#[tokio::test]
async fn a_modern_server_that_is_slow_is_modern() {
    let slow = Scripted::new(|_, message| {
        // It answers the probe only after the handshake has arrived.
        if message["method"] == "initialize" {
            let late = json!({ "id": 1, "method": "server/discover" });
            return Some([modern(&late), vec![refuse(&message["id"], -32601)]].concat());
        }
        Some(if is_probe(&message) { Vec::new() } else { modern(&message) })
    });
    assert_eq!(era(slow).await, Ok((Era::Modern, true)));
}

#[tokio::test]
async fn a_server_that_exits_when_it_is_asked_is_started_again() {
    let fragile = Scripted::new(|_, message| (!is_probe(&message)).then(|| legacy(&message)));
    let links = fragile.1.clone();
    assert_eq!(era(fragile).await, Ok((Era::Legacy, true)));
    assert_eq!(links.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_modern_error_is_not_followed_by_a_handshake() {
    let other = |supported: Value| {
        Scripted::new(move |_, message| {
            let id = &message["id"];
            assert_ne!(message["method"], "initialize");
            let data = json!({ "supported": supported, "requested": "x" });
            let error = json!({ "code": -32022, "message": "no", "data": data });
            Some(vec![json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string()])
        })
    };
    let unknown = era(other(json!(["2099-01-01"]))).await.unwrap_err();
    assert_eq!(unknown, OpenError::Unsupported("2099-01-01".into()));
    let refused = era(other(json!([Revision::NEWEST.date()]))).await.unwrap_err();
    assert!(matches!(refused, OpenError::Unsupported(_)), "{refused}");
}

#[tokio::test]
async fn the_version_that_a_server_lists_is_tried() {
    let first = Arc::new(AtomicUsize::new(0));
    let picky = Scripted::new(move |_, message| {
        if first.fetch_add(1, Ordering::SeqCst) > 0 {
            return Some(modern(&message));
        }
        let data = json!({ "supported": [Revision::NEWEST.date()], "requested": "x" });
        let error = json!({ "code": -32022, "message": "no", "data": data });
        Some(vec![json!({ "jsonrpc": "2.0", "id": message["id"], "error": error }).to_string()])
    });
    assert_eq!(era(picky).await, Ok((Era::Modern, true)));
    let only_legacy = Scripted::new(|_, message| {
        let data = json!({ "supported": [Revision::NEWEST_LEGACY.date()], "requested": "x" });
        let error = json!({ "code": -32022, "message": "no", "data": data });
        let id = &message["id"];
        let refused = json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string();
        Some(if is_probe(&message) { vec![refused] } else { legacy(&message) })
    });
    assert_eq!(era(only_legacy).await, Ok((Era::Legacy, true)));
}

#[tokio::test]
async fn noise_wrong_ids_and_invalid_answers_harm_nobody() {
    let noisy = Scripted::new(|_, message| {
        let mut said = vec![
            "Server listening on stdio!".to_owned(),
            "{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":{}}".to_owned(),
            "[]".to_owned(),
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":7}".to_owned(),
            "[".repeat(5000),
        ];
        said.extend(legacy(&message));
        // The same answer twice.
        said.extend(legacy(&message));
        Some(said)
    });
    assert_eq!(era(noisy).await, Ok((Era::Legacy, true)));
}

#[tokio::test]
async fn a_call_that_may_have_happened_is_not_repeated() {
    let calls = Arc::new(AtomicUsize::new(0));
    let count = calls.clone();
    let client = hasty(Scripted::new(move |link, message| {
        if message["method"] == "tools/call" {
            count.fetch_add(1, Ordering::SeqCst);
            return (link > 1).then(|| modern(&message));
        }
        Some(modern(&message))
    }));
    let lost = client.call_tool("t", json!({})).await.unwrap_err();
    assert!(matches!(lost, CallError::Lost(_)), "{lost:?}");
    // The next call finds a new link.
    client.call_tool("t", json!({})).await.unwrap();
    assert_eq!(calls.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_server_that_fails_again_and_again_is_down() {
    let client = hasty(Scripted::new(|_, _| None));
    let mut error = client.call_tool("t", json!({})).await.unwrap_err();
    if !matches!(error, CallError::Down(_)) {
        error = client.call_tool("t", json!({})).await.unwrap_err();
    }
    assert_eq!(error.to_string(), "the server closed the connection");
    let at = tokio::time::Instant::now();
    assert!(matches!(client.call_tool("t", json!({})).await, Err(CallError::Down(_))));
    assert!(at.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn one_call_is_enough_to_try_a_server_again_that_was_down() {
    let is_up = Arc::new(AtomicBool::new(false));
    let up = is_up.clone();
    let answer = move |_, message: Value| up.load(Ordering::SeqCst).then(|| modern(&message));
    let client = hasty(Scripted::new(answer));
    while !matches!(client.call_tool("t", json!({})).await, Err(CallError::Down(_))) {}
    is_up.store(true, Ordering::SeqCst);
    tokio::time::sleep(client.config().reconnect.down_time).await;
    client.call_tool("t", json!({})).await.unwrap();
}

#[tokio::test]
async fn a_dropped_call_is_cancelled_and_its_late_answer_is_ignored() {
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let client = hasty(Scripted::new(move |_, message| {
        tell.send(message.clone()).unwrap();
        match message["method"].as_str() {
            Some("tools/call") => Some(Vec::new()),
            Some("notifications/cancelled") => {
                Some(vec![answer(&message["params"]["requestId"], &json!({ "content": [] }))])
            }
            _ => Some(modern(&message)),
        }
    }));
    let request = Request::CallTool(sabir_wire::CallTool {
        name: "t".into(),
        ..sabir_wire::CallTool::default()
    });
    let call = client.start(request.clone()).await.unwrap();
    let mut said = told.recv().await.unwrap();
    while said["method"] != "tools/call" {
        said = told.recv().await.unwrap();
    }
    drop(call);
    let cancelled = told.recv().await.unwrap();
    assert_eq!(cancelled["method"], "notifications/cancelled");
    assert_eq!(cancelled["params"]["requestId"], said["id"]);
    // A call that takes too long is cancelled, too.
    let options = sabir_client::CallOptions {
        timeout: Some(Duration::from_millis(20)),
        ..sabir_client::CallOptions::default()
    };
    let slow = client.call(sabir_client::CallRequest::new(request).with(options)).await;
    assert_eq!(slow.unwrap_err(), CallError::Timeout(Duration::from_millis(20)));
    told.recv().await.unwrap();
    assert_eq!(told.recv().await.unwrap()["method"], "notifications/cancelled");
}

#[tokio::test]
async fn a_question_on_a_pipe_goes_to_the_only_call_or_to_the_owner() {
    let client = hasty(Scripted::new(|_, message| {
        let ask = |n: u64| {
            json!({ "jsonrpc": "2.0", "id": format!("q{n}"), "method": "roots/list" }).to_string()
        };
        if is_probe(&message) {
            return Some(vec![refuse(&message["id"], -32601)]);
        }
        Some(match message["method"].as_str() {
            Some("tools/call") => vec![ask(message["id"].as_u64().unwrap())],
            _ => legacy(&message),
        })
    }));
    let events = client.events();
    let start = async || {
        let call = sabir_wire::CallTool { name: "t".into(), ..sabir_wire::CallTool::default() };
        client.start(Request::CallTool(call)).await.unwrap()
    };
    let mut first = start().await;
    let CallEvent::Question(asked) = first.next().await else { panic!("no question") };
    assert_eq!(asked.calls(), [first.key()]);
    let second = start().await;
    loop {
        if let sabir_client::ClientEvent::Question(asked) = events.next().await {
            assert_eq!(asked.calls(), [first.key(), second.key()]);
            break;
        }
    }
    let mut asked = asked;
    drop(first);
    // The call was cancelled, and its question with it.
    asked.withdrawn().await;
}

#[tokio::test]
async fn a_subscription_that_ends_while_it_replaces_another_is_tried_again() {
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let listened = Arc::new(AtomicUsize::new(0));
    let client = hasty(Scripted::new(move |_, message| {
        if message["method"] != "subscriptions/listen" {
            return Some(if message["id"].is_null() { Vec::new() } else { modern(&message) });
        }
        tell.send(message["params"]["notifications"].clone()).unwrap();
        let ended = json!({
            "jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": { "requestId": message["id"] },
        });
        let is_second = listened.fetch_add(1, Ordering::SeqCst) == 1;
        Some(if is_second { vec![ended.to_string()] } else { Vec::new() })
    }));
    let tools = SubscriptionFilter { tools_list_changed: true, ..SubscriptionFilter::default() };
    client.open().await.unwrap();
    client.watch(tools.clone());
    assert_eq!(told.recv().await.unwrap(), json!({ "toolsListChanged": true }));
    client.watch(SubscriptionFilter { prompts_list_changed: true, ..tools });
    for _ in 0..2 {
        let again = tokio::time::timeout(Duration::from_secs(5), told.recv()).await;
        let both = json!({ "toolsListChanged": true, "promptsListChanged": true });
        assert_eq!(again.expect("no other attempt").unwrap(), both);
    }
}

#[tokio::test]
async fn a_server_that_exits_after_its_list_is_not_started_again_and_again() {
    for is_eager in [false, true] {
        let started = Arc::new(AtomicUsize::new(0));
        let count = started.clone();
        let transport = Scripted::new(move |link, message| {
            count.store(link, Ordering::SeqCst);
            match message["method"].as_str() {
                Some("server/discover") => Some(vec![refuse(&message["id"], -32601)]),
                Some("x/exit") => None,
                _ => Some(legacy(&message)),
            }
        });
        let mut config = crate::support::config(Revision::NEWEST);
        config.reconnect.eager = is_eager;
        config.reconnect.first_wait = Duration::from_millis(200);
        let client = sabir_client::Client::without_answers(Arc::new(transport), config);
        let events = client.events();
        let follower = client.clone();
        tokio::spawn(async move {
            loop {
                if let sabir_client::ClientEvent::Opened(_) = events.next().await {
                    let tools_list_changed = true;
                    follower.watch(SubscriptionFilter { tools_list_changed, ..Default::default() });
                    let _ = follower.list_tools().await;
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    follower.notify("x/exit", None);
                }
            }
        });
        client.open().await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        let started = started.load(Ordering::SeqCst);
        match is_eager {
            false => assert_eq!(started, 1, "the next call opens the link"),
            true => assert!((2..=5).contains(&started), "{started}"),
        }
    }
}

#[tokio::test]
async fn changes_during_a_lost_subscription_are_not_missed() {
    let listened = Arc::new(AtomicUsize::new(0));
    let client = hasty(Scripted::new(move |_, message| {
        if message["method"] != "subscriptions/listen" {
            return Some(if message["id"].is_null() { Vec::new() } else { modern(&message) });
        }
        let meta = json!({ "io.modelcontextprotocol/subscriptionId": message["id"] });
        let acknowledged = json!({
            "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
            "params": { "_meta": meta, "notifications": { "toolsListChanged": true } },
        });
        let ended = json!({
            "jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": { "requestId": message["id"] },
        });
        let mut said = vec![acknowledged.to_string()];
        if listened.fetch_add(1, Ordering::SeqCst) == 0 {
            said.push(ended.to_string());
        }
        Some(said)
    }));
    let events = client.events();
    client.open().await.unwrap();
    client.watch(SubscriptionFilter { tools_list_changed: true, ..Default::default() });
    let changed = async {
        loop {
            if let sabir_client::ClientEvent::Changed(topic) = events.next().await {
                return topic;
            }
        }
    };
    let changed = tokio::time::timeout(Duration::from_secs(5), changed).await;
    assert_eq!(changed.unwrap(), sabir_wire::types::Topic::Tools);
}
