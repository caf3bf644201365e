use sabir_engine::{Connection, Engine, Settings};
use sabir_session::{SessionKind, StreamId};
use sabir_wire::Caller;

use super::*;

/// The timeline after so many calls with arguments of that length.
fn after(bounds: Bounds, calls: usize, length: usize) -> Arc<Timeline> {
    let timeline = Timeline::new(bounds);
    let engine = Engine::observed(Settings::default(), vec![timeline.clone()]);
    let mut connection = Connection::new(&engine, SessionKind::Stream, Caller::local());
    let text = "x".repeat(length);
    for id in 0..calls {
        let params = format!(
            r#"{{"name":"t","arguments":{{"a":"{text}"}},"_meta":{{"io.modelcontextprotocol/protocolVersion":"{}","io.modelcontextprotocol/clientInfo":{{"name":"c","version":"1"}},"io.modelcontextprotocol/clientCapabilities":{{}}}}}}"#,
            sabir_wire::Revision::NEWEST.date()
        );
        let frame =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#);
        connection.receive(StreamId(0), Caller::local(), &frame.into());
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
    assert_eq!(call["request"], json!({ "a": "xxx" }));
    assert_eq!(call["response"]["id"], 0);
    assert!(call["duration"].is_number(), "{call}");
}

#[test]
fn the_oldest_calls_are_forgotten() {
    let timeline = after(Bounds { calls: 5, ..Bounds::default() }, 8, 1);
    let (calls, _) = timeline.since(0, 100);
    let numbers: Vec<_> = calls.iter().map(|call| call["number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [4, 5, 6, 7, 8]);
    assert!(timeline.call(3).is_none() && timeline.call(4).is_some());
}

#[test]
fn long_texts_are_cut_and_the_oldest_are_forgotten() {
    let bounds = Bounds { text: 100, bytes: 450, ..Bounds::default() };
    let timeline = after(bounds, 20, 1_000);
    assert!(timeline.lock().bytes <= 450);
    let newest = timeline.call(20).unwrap();
    assert_eq!(newest["request"]["cut"].as_str().unwrap().len(), 100);
    assert_eq!(newest["request"]["length"], 1_008);
    assert_eq!(timeline.call(1).unwrap()["request"]["cut"], "");
    let kept: usize = timeline.lock().entries.iter().flatten().map(Entry::texts).sum();
    assert_eq!(kept, timeline.lock().bytes);
}
