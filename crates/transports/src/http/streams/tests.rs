use bytes::Bytes;
use sabir_budget::memory;
use sabir_engine::{Engine, Settings};
use sabir_session::SessionKind;
use sabir_wire::Revision;

use super::*;

const BOUNDS: Bounds = Bounds { events: 3, bytes: 1000, streams: 2, unsent: 9999 };

fn streams() -> Streams {
    let engine = Engine::new(Settings::default());
    let standing = SessionKind::LegacyHttp(Revision::NEWEST_LEGACY);
    Streams::new(
        Connection::new(&engine, standing, sabir_wire::Caller::anonymous()),
        Arc::new(BOUNDS),
    )
}

fn frame(stream: Option<u64>, text: &str, kind: MessageKind) -> Frame {
    Frame { stream: stream.map(StreamId), text: Bytes::copy_from_slice(text.as_bytes()), kind }
}

fn note(text: &str) -> Frame {
    frame(None, text, MessageKind::Notification)
}

/// The new messages for a reader, as one text.
fn heard(streams: &mut Streams, reader: &mut Reader) -> String {
    match streams.read(reader) {
        ReadResult::Events(events, _) => {
            let texts = events.iter().map(|e| String::from_utf8_lossy(&e.frame.text).into_owned());
            texts.collect::<Vec<_>>().join(" ")
        }
        ReadResult::Wait(..) => "…".into(),
        ReadResult::End => "end".into(),
    }
}

#[test]
fn a_message_is_heard_once_and_on_the_newest_stream() {
    let mut streams = streams();
    let mut first = streams.open(Origin::Get).unwrap();
    let mut second = streams.open(Origin::Get).unwrap();
    streams.deliver(note("a"));
    assert_eq!(heard(&mut streams, &mut first), "…");
    assert_eq!(heard(&mut streams, &mut second), "a");
    assert_eq!(heard(&mut streams, &mut second), "…");
    // After the newest has closed, the other receives what follows.
    streams.leave(&second, true, 1);
    streams.deliver(note("b"));
    assert_eq!(heard(&mut streams, &mut first), "b");
}

#[test]
fn messages_before_the_first_stream_are_kept_within_bounds_and_sent_once() {
    let mut streams = streams();
    for text in ["a", "b", "b", "c", "d"] {
        streams.deliver(note(text));
    }
    let mut reader = streams.open(Origin::Get).unwrap();
    assert_eq!(heard(&mut streams, &mut reader), "b c d");
}

#[test]
fn a_resumed_stream_has_the_rest_of_that_stream_only() {
    let mut streams = streams();
    let mut lost = streams.open(Origin::Get).unwrap();
    streams.deliver(note("a"));
    streams.deliver(note("b"));
    assert_eq!(heard(&mut streams, &mut lost), "a b");
    streams.leave(&lost, true, 1);
    streams.deliver(note("c"));
    let place = EventId { origin: Origin::Get, stream: lost.stream, event: 1 };
    let mut back = streams.resume(place).unwrap();
    assert_eq!(heard(&mut streams, &mut back), "b c");
    // An unknown stream, another origin, and events that do not exist.
    assert!(streams.resume(EventId { stream: 99, ..place }).is_none());
    assert!(streams.resume(EventId { origin: Origin::Post, ..place }).is_none());
    assert!(streams.resume(EventId { event: 4, ..place }).is_none());
    assert!(streams.resume(EventId { event: u64::MAX, ..place }).is_none());
}

#[test]
fn a_reader_that_resumes_replaces_the_old_one() {
    let mut streams = streams();
    let mut old = streams.open(Origin::Get).unwrap();
    let place = EventId { origin: Origin::Get, stream: old.stream, event: 0 };
    let mut new = streams.resume(place).unwrap();
    streams.deliver(note("a"));
    assert_eq!(heard(&mut streams, &mut old), "end");
    assert_eq!(heard(&mut streams, &mut new), "a");
    // The old reader disconnects late, and changes nothing.
    streams.leave(&old, false, 1);
    assert_eq!(heard(&mut streams, &mut new), "…");
}

#[test]
fn a_full_stream_drops_taken_messages_then_notifications_and_never_a_question() {
    let mut streams = streams();
    let mut reader = streams.open(Origin::Get).unwrap();
    streams.deliver(note("taken"));
    assert_eq!(heard(&mut streams, &mut reader), "taken");
    for text in ["1", "2", "3", "4"] {
        streams.deliver(note(text));
    }
    assert_eq!(heard(&mut streams, &mut reader), "2 3 4");
    for nth in 0..5 {
        streams.deliver(frame(None, &format!("q{nth}"), MessageKind::Question));
    }
    assert_eq!(heard(&mut streams, &mut reader), "q0 q1 q2 q3 q4");
    // A stream cannot be resumed at a dropped event.
    let place = EventId { origin: Origin::Get, stream: reader.stream, event: 1 };
    assert!(streams.resume(place).is_none());
}

#[test]
fn bytes_are_bounded_too() {
    let mut streams = streams();
    let mut reader = streams.open(Origin::Get).unwrap();
    streams.deliver(note(&"x".repeat(600)));
    heard(&mut streams, &mut reader);
    streams.deliver(note(&"y".repeat(600)));
    assert_eq!(streams.streams[0].events.len(), 1);
    assert_eq!(streams.streams[0].bytes, 600);
}

#[test]
fn a_client_with_too_many_unread_bytes_is_refused_until_it_reads() {
    let mut streams = streams();
    let mut reader = streams.open(Origin::Only).unwrap();
    let cost = Event { number: 1, frame: note("") }.cost();
    streams.deliver(frame(None, &"x".repeat(BOUNDS.unsent - cost - 1), MessageKind::Question));
    assert_eq!(streams.post_to_only(|_, _| {}), Ok(()), "a byte is left");
    streams.deliver(frame(None, "", MessageKind::Question));
    assert_eq!(streams.post_to_only(|_, _| unreachable!()), Err(Full::Unsent));
    heard(&mut streams, &mut reader);
    assert_eq!(streams.post_to_only(|_, _| {}), Ok(()));
}

/// Other tests count in the same memory, but less than this.
#[test]
fn short_messages_that_wait_take_memory_too() {
    const MUCH: usize = 64 << 20;
    let mut streams = streams();
    streams.bounds = Arc::new(Bounds { events: usize::MAX, bytes: usize::MAX, ..BOUNDS });
    let _reader = streams.open(Origin::Only).unwrap();
    let before = memory().used();
    let text = "x".repeat(900);
    for _ in 0..MUCH / 900 {
        streams.deliver(frame(None, &text, MessageKind::Question));
    }
    assert!(memory().used() > before + MUCH / 2);
    drop(streams);
    assert!(memory().used() < before + MUCH / 2);
}

#[test]
fn no_more_readers_than_allowed() {
    let mut streams = streams();
    let first = streams.open(Origin::Get).unwrap();
    assert!(streams.open(Origin::Get).is_some());
    assert!(streams.open(Origin::Get).is_none());
    assert!(streams.post(|_, _| unreachable!("nothing is handed in")).is_err());
    streams.leave(&first, true, 1);
    assert!(streams.open(Origin::Get).is_some());
}

#[test]
fn the_number_of_streams_without_a_reader_is_limited() {
    let mut streams = streams();
    for nth in 0..10 {
        let reader = streams.open(Origin::Get).unwrap();
        streams.leave(&reader, true, nth);
    }
    assert_eq!(streams.streams.iter().map(|stream| stream.number).collect::<Vec<_>>(), [9, 10]);
}

#[test]
fn streams_that_are_not_resumed_in_time_are_forgotten() {
    let mut streams = streams();
    let reader = streams.open(Origin::Get).unwrap();
    assert!(streams.leave(&reader, true, 10), "the sweeper must look after it");
    assert!(streams.look_after(19, 10, 5));
    assert_eq!(streams.streams.len(), 1);
    assert!(!streams.look_after(20, 10, 5));
    assert_eq!(streams.streams.capacity(), 0);
}

#[test]
fn event_ids_read_back() {
    for text in ["p1-0", "g17-4294967296"] {
        assert_eq!(EventId::parse(text).unwrap().to_string(), text);
    }
    for text in ["", "p", "x1-1", "p1", "p1-", "p-1", "p1-1-1", "é1-1", "p1-1 "] {
        assert_eq!(EventId::parse(text), None, "{text}");
    }
}
