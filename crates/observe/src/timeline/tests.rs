use sabir_engine::{Connection, Engine, Settings};
use sabir_registry::{Offer, Outcome, Pending, Source, ToolCall};
use sabir_session::{SessionKind, StreamId};
use sabir_wire::types::{Tool, ToolReply};
use sabir_wire::{Caller, Peer, Taps};

use super::*;

/// Its tool `t` has no secrets, `s` has the secret `a`. Both fail.
struct Tools;

impl Source for Tools {
    fn offer(&self) -> Offer {
        let secret = json!({ "type": "object", "properties": { "a": { "writeOnly": true } } });
        let tool = |name, schema: Value| Tool::new(name, "d", schema.into());
        let tools = vec![tool("t", json!({ "type": "object" })), tool("s", secret)];
        Offer { tools, ..Offer::default() }
    }

    fn call_tool(&self, _call: ToolCall) -> Pending<ToolReply> {
        let reply = json!({ "content": [], "isError": true, "resultType": "complete" });
        Box::pin(async move { Ok(Outcome::Relayed(reply.into())) })
    }
}

/// The timeline after so many calls of `t` with arguments of that length.
fn after(bounds: Bounds, calls: usize, length: usize) -> Arc<Timeline> {
    after_calls("t", bounds, calls, length)
}

fn after_calls(tool: &str, bounds: Bounds, calls: usize, length: usize) -> Arc<Timeline> {
    let text = "x".repeat(length);
    let client = json!({ "name": "c", "version": "1" });
    let frames: Vec<_> = (0..calls).map(|id| frame(id, tool, &client, &text)).collect();
    after_frames(bounds, &frames)
}

/// A call of a tool.
fn frame(id: usize, name: &str, client: &Value, text: &str) -> String {
    let params = format!(
        r#"{{"name":"{name}","arguments":{{"a":"{text}"}},"_meta":{{"io.modelcontextprotocol/protocolVersion":"{}","io.modelcontextprotocol/clientInfo":{client},"io.modelcontextprotocol/clientCapabilities":{{}}}}}}"#,
        Revision::NEWEST.date()
    );
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#)
}

fn after_frames(bounds: Bounds, frames: &[String]) -> Arc<Timeline> {
    let timeline = Timeline::new(bounds);
    timeline.switch_on();
    let tap = Some(Taps::new(vec![timeline.clone()]));
    let settings = Settings { tap, ..Settings::default() };
    let engine = Engine::observed(settings, vec![timeline.clone()]);
    engine.registry().add(Arc::new(Tools)).unwrap();
    let mut connection = Connection::new(&engine, SessionKind::Stream, Caller::local());
    for frame in frames {
        connection.receive(StreamId(0), Caller::local(), &frame.clone().into());
        while connection.next_frame().is_some() {}
    }
    timeline
}

#[test]
fn a_call_has_its_request_and_its_response() {
    let timeline = after(Bounds::default(), 1, 3);
    let (calls, version) = timeline.since(0, 10);
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0]["name"], "t");
    assert_eq!(calls[0]["client"], "c");
    assert_eq!(calls[0]["isError"], true);
    assert!(timeline.since(version, 10).0.is_empty());
    let call = timeline.call(1).unwrap();
    assert_eq!(call["request"]["params"]["arguments"], json!({ "a": "xxx" }));
    assert_eq!(call["response"]["id"], 0);
    assert!(call["duration"].is_number(), "{call}");
}

#[test]
fn nothing_is_remembered_before_the_timeline_is_switched_on() {
    let timeline = Timeline::new(Bounds::default());
    assert!(!Taps::new(vec![timeline.clone()]).is_on());
    let link = 77;
    timeline.opened(link, &Peer::Upstream { name: "old", transport: "pipe" });
    let request = Bytes::from_static(br#"{"id":1,"method":"ping"}"#);
    timeline.received(1, 0, &request, &[]);
    assert_eq!(timeline.seen().arrived(), 0);
    timeline.switch_on();
    assert!(Taps::new(vec![timeline.clone()]).is_on());
    timeline.received(1, 0, &request, &[]);
    assert_eq!(timeline.seen().arrived(), 1);
    // A link that was opened before is known.
    timeline.received(link, 0, &request, &[]);
    assert_eq!(timeline.seen().arrived(), 1);
}

#[test]
fn the_oldest_calls_are_forgotten() {
    let timeline = after(Bounds { calls: 5, ..Bounds::default() }, 8, 1);
    let (calls, _) = timeline.since(0, 100);
    let numbers: Vec<_> = calls.iter().map(|call| call["number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [4, 5, 6, 7, 8]);
    let is_known = |number| timeline.call(number).is_some();
    assert!(!is_known(3) && is_known(4));
}

#[test]
fn long_texts_are_cut_and_the_oldest_are_forgotten() {
    let bounds = Bounds { text: 100, bytes: 450, ..Bounds::default() };
    let timeline = after(bounds, 20, 1_000);
    assert!(timeline.lock().bytes <= 450);
    let newest = timeline.call(20).unwrap();
    assert_eq!(newest["request"]["cut"].as_str().unwrap().len(), 100);
    assert!(newest["request"]["length"].as_u64().unwrap() > 1_000);
    assert_eq!(timeline.call(1).unwrap()["request"]["cut"], "");
    let kept: usize = timeline.lock().entries.iter().flatten().map(Entry::texts).sum();
    assert_eq!(kept, timeline.lock().bytes);
}

#[test]
fn long_names_are_cut() {
    let long = "é".repeat(10_000);
    let client = json!({ "name": long, "version": "1", "title": long });
    let timeline = after_frames(Bounds::default(), &[frame(1, &long, &client, "x")]);
    let request = OutgoingRequest {
        upstream: "u",
        method: &Method::ReadResource,
        name: Some(&long),
        transport: "pipe",
    };
    timeline.outgoing(1, &request).unwrap().ended(None, None);
    let call = timeline.call(1).unwrap();
    assert_eq!(call["name"], long[..1_000]);
    assert_eq!((&call["client"], &call["clientVersion"]), (&json!(long[..250]), &json!("1")));
    assert_eq!(call["legs"][0]["text"], format!("resources/read {} by pipe: ok", &long[..1_000]));
    let calls = timeline.lock();
    let entry = calls.get(1).unwrap();
    assert!(entry.call.client.as_ref().unwrap().text().len() <= 1_000);
    assert!(entry.outcome.as_ref().unwrap().len() <= 1_000);
}

#[test]
fn notes_and_legs_count_as_texts_and_are_forgotten() {
    let timeline = after(Bounds { bytes: 20_000, ..Bounds::default() }, 3, 1);
    for number in [1, 2, 3] {
        let name = Some(&*"x".repeat(1_000));
        let request =
            OutgoingRequest { upstream: "u", method: &Method::CallTool, name, transport: "pipe" };
        timeline.outgoing(number, &request).unwrap().ended(None, None);
        for _ in 0..10 {
            let message = Some("x".repeat(5_000));
            timeline
                .noted(number, &CallNotification::Progress { progress: 1.0, total: None, message });
        }
    }
    let kept: usize = timeline.lock().entries.iter().flatten().map(Entry::texts).sum();
    assert_eq!(kept, timeline.lock().bytes);
    assert!((11_000..=20_000).contains(&kept), "{kept}");
    let call = |number| timeline.call(number).unwrap();
    let (oldest, newest) = (call(1), call(3));
    assert_eq!((&oldest["notes"], &oldest["moreNotes"]), (&json!([]), &json!(10)));
    assert_eq!(
        (&oldest["legs"][0]["upstream"], &oldest["legs"][0]["text"]),
        (&json!("u"), &json!(""))
    );
    assert_eq!((newest["notes"].as_array().unwrap().len(), &newest["moreNotes"]), (10, &json!(0)));
}

#[test]
fn what_passes_for_a_call_is_shown_without_its_secrets() {
    let timeline = after_calls("s", Bounds::default(), 1, 10);
    let link = 77;
    timeline.opened(link, &Peer::Upstream { name: "old", transport: "pipe" });
    let sent =
        r#"{"id":5,"method":"tools/call","params":{"name":"own","arguments":{"a":"xxxxxxxxxx"}}}"#;
    timeline.sent(link, 1, &sent.into());
    timeline.sent(link, 0, &r#"{"method":"of nobody"}"#.into());
    timeline.received(link, 1, &r#"{"id":5,"result":{"text":"no xxxxxxxxxx"}}"#.into(), &[]);
    let heads = |name: &str| vec![(name.to_owned(), "value".to_owned())];
    let (request, response) = (heads("x-api-key"), heads("content-type"));
    timeline.exchanged(link, 1, &sabir_wire::HttpExchange { request, status: 200, response });
    timeline.wrote(link, "logging in with xxxxxxxxxx");
    let message = Some("still xxxxxxxxxx".to_owned());
    timeline.noted(1, &CallNotification::Progress { progress: 1.0, total: None, message });
    let call = timeline.call(1).unwrap();
    assert_eq!(call["stderr"][0]["text"], "logging in with [masked]");
    assert_eq!(call["notes"][0]["text"], "progress 1: still [masked]");
    assert!(!call.to_string().contains("xxxxxxxxxx"), "{call}");
    assert_eq!(call["request"]["params"]["arguments"]["a"], "[masked]");
    let passed = call["passed"].as_array().unwrap();
    let ways: Vec<_> = passed.iter().map(|one| one["way"].as_str().unwrap()).collect();
    assert_eq!(ways, ["to", "from", "headers"]);
    assert_eq!(passed[0]["message"]["params"]["arguments"]["a"], "[masked]");
    assert_eq!(passed[1]["message"]["result"]["text"], "no [masked]");
    assert_eq!(passed[2]["message"]["request"]["x-api-key"], "[masked]");
    assert_eq!(passed[2]["message"]["response"]["content-type"], "value");
}

#[test]
fn a_cut_message_of_a_tool_with_secrets_is_not_shown() {
    let timeline = after_calls("s", Bounds { text: 300, ..Bounds::default() }, 1, 1_000);
    let message = Some("x".repeat(20));
    timeline.noted(1, &CallNotification::Progress { progress: 1.0, total: None, message });
    let call = timeline.call(1).unwrap();
    assert_eq!(call["request"]["cut"], "[masked]");
    assert_eq!(call["notes"][0]["text"], "[masked]");
}

#[test]
fn the_messages_and_lines_that_are_kept_are_bounded() {
    let timeline = after(Bounds { passed: 3, ..Bounds::default() }, 300, 1);
    assert_eq!(timeline.seen().arrived(), 256);
    let link = 1_000;
    timeline.opened(link, &Peer::Upstream { name: "old", transport: "pipe" });
    for _ in 0..5 {
        timeline.sent(link, 300, &"{}".into());
    }
    for nth in 0..2_100 {
        timeline.wrote(link, &format!("line {nth} {}", "é".repeat(1_000)));
    }
    // The end of the call has passed; a line of the same moment is shown.
    timeline.change(300, |entry| {
        entry.duration_ms = None;
        0
    });
    let call = timeline.call(300).unwrap();
    assert_eq!((call["passed"].as_array().unwrap().len(), &call["morePassed"]), (3, &json!(2)));
    let lines = call["stderr"].as_array().unwrap();
    assert_eq!(lines.len(), 2_000);
    let first = lines[0]["text"].as_str().unwrap();
    assert!(first.starts_with("line 100 é") && first.len() <= 1_000, "{first}");
    timeline.closed(link);
    timeline.sent(link, 300, &"{}".into());
    assert_eq!(timeline.call(300).unwrap()["morePassed"], 2);
}

/// A call of a legacy client.
fn legacy(id: usize, name: &str, text: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{name}","arguments":{{"a":"{text}"}}}}}}"#
    )
}

#[test]
fn a_call_of_a_batch_shows_its_own_request_only() {
    let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
    let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let batch = format!("[{},{}]", legacy(1, "t", "plain text"), legacy(2, "s", "sesame"));
    let timeline = after_frames(Bounds::default(), &[hello.to_owned(), ready.to_owned(), batch]);
    let (plain, secret) = (timeline.call(2).unwrap(), timeline.call(3).unwrap());
    assert_eq!(plain["request"]["params"]["arguments"]["a"], "plain text");
    assert_eq!(secret["request"]["params"]["arguments"]["a"], "[masked]");
    assert!(!plain.to_string().contains("sesame"), "{plain}");
}

#[test]
fn an_attempt_shows_the_request_with_its_id_and_not_the_last_one() {
    let frames = [legacy(1, "t", "first"), legacy(2, "s", "sesame"), legacy(3, "t", "third")];
    let timeline = after_frames(Bounds::default(), &frames);
    let mut again = timeline.lock().get(1).unwrap().call.clone();
    again.number = 4;
    timeline.began(&again);
    let call = timeline.call(4).unwrap();
    assert_eq!(call["request"]["id"], 1, "{call}");
    // The client's answer to a question is not a request.
    timeline.received(again.link, 0, &r#"{"id":1,"result":{"method":"x"}}"#.into(), &[]);
    again.number = 5;
    timeline.began(&again);
    assert_eq!(timeline.call(5).unwrap()["request"], call["request"]);
}

#[test]
fn all_arguments_of_a_tool_that_is_not_offered_are_masked() {
    let timeline = after_calls("unknown", Bounds::default(), 1, 10);
    let call = timeline.call(1).unwrap();
    assert_eq!(call["request"]["params"]["arguments"], json!({ "a": "[masked]" }));
    // A schema that was forgotten masks all as well.
    let timeline = after_calls("s", Bounds::default(), 1, 10);
    timeline.lock().forget_texts(&Bounds { bytes: 0, ..Bounds::default() });
    assert!(timeline.lock().get(1).unwrap().call.schema.is_none());
}

#[test]
fn lines_and_notes_of_another_call_are_shown_without_the_secret() {
    let frames = [legacy(1, "t", "plain"), legacy(2, "s", "open sesame")];
    let timeline = after_frames(Bounds::default(), &frames);
    timeline.change(1, |entry| {
        entry.duration_ms = None;
        0
    });
    let link = 77;
    timeline.opened(link, &Peer::Upstream { name: "old", transport: "pipe" });
    timeline.sent(link, 1, &"{}".into());
    timeline.wrote(link, &format!("{}open sesame", "x".repeat(995)));
    timeline.wrote(link, "got open sesame");
    let message = Some("open sesame".to_owned());
    timeline.noted(1, &CallNotification::Progress { progress: 1.0, total: None, message });
    let call = timeline.call(1).unwrap();
    assert_eq!(call["stderr"][1]["text"], "got [masked]");
    let text = call.to_string();
    assert!(!text.contains("sesame") && !text.contains("open"), "{text}");
}

#[test]
fn answers_to_questions_for_secrets_are_not_shown() {
    let timeline = after(Bounds::default(), 1, 10);
    let (client, upstream) = (76, 77);
    timeline.opened(upstream, &Peer::Upstream { name: "old", transport: "pipe" });
    let question = r#"{"id":5,"method":"elicitation/create","params":{"requestedSchema":{"properties":{"pin":{"format":"password"}}}}}"#;
    let answer = r#"{"id":5,"result":{"action":"accept","content":{"pin":"123456"}}}"#;
    timeline.received(upstream, 1, &question.into(), &[]);
    timeline.sent(client, 0, &question.into());
    timeline.received(client, 0, &answer.into(), &[]);
    timeline.change(1, |entry| {
        entry.duration_ms = None;
        0
    });
    timeline.wrote(upstream, "the pin is 123456");
    timeline.sent(upstream, 1, &answer.replace("123456", "1234").into());
    let call = timeline.call(1).unwrap();
    assert_eq!(call["stderr"][0]["text"], "the pin is [masked]");
    assert_eq!(call["passed"][1]["message"]["result"]["content"]["pin"], "[masked]");
}
