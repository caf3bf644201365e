use sabir_engine::{Connection, Settings};
use sabir_session::{SessionKind, StreamId};
use sabir_wire::{Caller, Taps};

use super::*;
use crate::recording::{EventKind, Recording};

/// The recording of a client that sends these messages.
fn recorded(limit: u64, messages: &[&str]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.jsonl");
    let recorder = Recorder::new("s", false, limit);
    recorder.begin(&path).unwrap();
    let taps = Taps::new(vec![recorder.clone()]);
    let settings = Settings { tap: Some(taps), ..Settings::default() };
    let engine = Engine::observed(settings, vec![recorder.clone()]);
    recorder.watch(&engine);
    let mut connection = Connection::new(&engine, SessionKind::Stream, Caller::local());
    for message in messages {
        let frame = Bytes::copy_from_slice(message.as_bytes());
        connection.receive(StreamId(0), Caller::local(), &frame);
    }
    drop(connection);
    (folder, path)
}

#[test]
fn a_recording_has_every_message_and_every_call() {
    let (_folder, path) =
        recorded(1 << 20, &[r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#, "not json"]);
    let recording = Recording::open(&path).unwrap();
    assert_eq!(recording.head.server, "s");
    let events: Vec<_> = recording.map(Result::unwrap).collect();
    let kinds: Vec<_> = events.iter().map(|event| event.event).collect();
    use EventKind::*;
    let expected = [Open, Received, Call, End, Sent, Answer, Received, Sent, Close];
    assert_eq!(kinds, expected);
    assert_eq!(events[4].message.as_ref().unwrap().member("id").unwrap().text(), "7");
    assert_eq!(events[6].text.as_deref(), Some("not json"));
    assert!(events.is_sorted_by_key(|event| event.at));
}

#[test]
fn a_recording_ends_at_its_limit() {
    let ping = r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#;
    let (_folder, path) = recorded(2_000, &[ping; 100]);
    assert!(std::fs::metadata(&path).unwrap().len() <= 2_000);
    let last = Recording::open(&path).unwrap().last().unwrap().unwrap();
    assert_eq!(last.event, EventKind::Full);
}

#[test]
fn a_recorder_at_its_limit_is_off_and_its_file_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new("s", false, 500);
    let begin = || recorder.begin(&folder.path().join("r.jsonl")).unwrap();
    let taps = Taps::new(vec![recorder.clone()]);
    let is_open = || lock(&recorder.output).as_ref().unwrap().file.is_some();
    begin();
    recorder.wrote(1, "short");
    assert!(taps.is_on() && is_open());
    recorder.wrote(1, &"x".repeat(1_000));
    assert!(!taps.is_on() && !is_open());
    let state = recorder.state().unwrap();
    assert!(state.is_over && !state.is_on && state.written > 0);
    // The user's own file is replaced.
    begin();
    assert!(taps.is_on() && is_open() && !recorder.state().unwrap().is_over);
    recorder.end();
    assert!(!taps.is_on() && !is_open() && !recorder.state().unwrap().is_over);
}

#[test]
fn a_recording_whose_last_line_was_cut_is_read_up_to_it() {
    let ping = r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#;
    let (_folder, path) = recorded(1 << 20, &[ping]);
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() - 9]).unwrap();
    let told = crate::recording::stories(Recording::open(&path).unwrap(), None).unwrap();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].starts_with("ping: ok") && told[1].contains("was cut"), "{told:?}");
    // A cut line in the middle is an error.
    let broken = [&whole[..whole.len() - 9], b"\n", &whole[whole.len() / 2..]].concat();
    std::fs::write(&path, broken).unwrap();
    assert!(Recording::open(&path).unwrap().any(|event| event.is_err()));
}

#[test]
fn a_recording_that_begins_later_tells_the_links_that_are_open() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.jsonl");
    let recorder = Recorder::new("s", false, 1 << 20);
    let taps = Taps::new(vec![recorder.clone()]);
    let settings = Settings { tap: Some(taps), ..Settings::default() };
    let engine = Engine::observed(settings, vec![recorder.clone()]);
    let mut connection = Connection::new(&engine, SessionKind::Stream, Caller::local());
    let ping = Bytes::from_static(br#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#);
    let mut send = || connection.receive(StreamId(0), Caller::local(), &ping);
    send();
    recorder.begin(&path).unwrap();
    send();
    assert!(recorder.state().unwrap().is_on);
    recorder.end();
    send();
    assert!(!recorder.state().unwrap().is_on);
    let kinds: Vec<_> = Recording::open(&path).unwrap().map(|event| event.unwrap().event).collect();
    use EventKind::*;
    assert_eq!(kinds, [Open, Received, Call, End, Sent, Answer]);
    assert_eq!(recorder.state().unwrap().written, std::fs::metadata(&path).unwrap().len());
}

#[test]
fn the_arguments_of_a_tool_that_is_not_offered_are_not_recorded() {
    let call = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"logn","arguments":{"password":"open sesame"}}}"#;
    let (_folder, path) = recorded(1 << 20, &[call]);
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.contains(r#""arguments":{"password":"[masked]"}"#), "{text}");
    assert!(!text.contains("sesame"), "{text}");
}
