//! The streams of messages: over HTTP each exchange is a stream of its own.

use sabir_session::{Input, StreamId};
use sabir_testkit::{Ending, Event, Player as _, SessionPlayer, play};
use sabir_wire::Raw;
use sabir_wire::types::Topic;

use crate::{after_hello, rules};

fn started(player: &mut SessionPlayer) -> sabir_testkit::CallNumber {
    match player.event() {
        Some(Event::Start(number)) => number,
        other => panic!("no call: {other:?}"),
    }
}

#[test]
fn answers_notes_and_questions_go_where_their_request_came_from() {
    let mut player = SessionPlayer::new(rules());
    play(&mut player, &after_hello(""));
    let call = |id: u8| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t","_meta":{{"progressToken":{id}}}}}}}"#
        )
    };
    player.say_on(StreamId(1), call(1).as_bytes());
    let first = started(&mut player);
    player.say_on(StreamId(2), call(2).as_bytes());
    let second = started(&mut player);
    assert!(player.session.is_active(StreamId(1)) && player.session.is_active(StreamId(2)));
    let progress = |progress| sabir_session::CallNotification::Progress {
        progress,
        total: None,
        message: None,
    };
    player.note(second, progress(1.0));
    player.note(first, progress(1.0));
    let streams: Vec<_> =
        std::iter::from_fn(|| player.hear_on()).map(|(stream, _)| stream).collect();
    assert_eq!(streams, [Some(StreamId(2)), Some(StreamId(1))]);
    let ask = Raw::parse(r#"{"inputRequests":{"r":{"method":"roots/list"}}}"#).unwrap();
    player.finish(first, Ending::Asks(ask));
    assert_eq!(player.hear_on().unwrap().0, Some(StreamId(1)));
    // The answer arrives on a stream of its own, and the result goes to the stream of the call.
    player.say_on(StreamId(3), br#"{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}"#);
    assert!(!player.session.is_active(StreamId(3)));
    assert_eq!(started(&mut player), first);
    player.finish(first, Ending::Result(Raw::parse(r#"{"content":[]}"#).unwrap()));
    assert_eq!(player.hear_on().unwrap().0, Some(StreamId(1)));
    assert!(!player.session.is_active(StreamId(1)) && player.session.is_active(StreamId(2)));
}

#[test]
fn a_listener_keeps_its_lane_and_a_legacy_client_is_told_on_none() {
    let mut player = SessionPlayer::new(rules());
    play(&mut player, &after_hello(""));
    let listen = r#"{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    player.say_on(StreamId(5), listen.as_bytes());
    assert_eq!(player.hear_on().unwrap().0, Some(StreamId(5)));
    assert!(player.session.is_active(StreamId(5)));
    player.handle(Input::Changed(Topic::Tools));
    let streams: Vec<_> =
        std::iter::from_fn(|| player.hear_on()).map(|(stream, _)| stream).collect();
    assert_eq!(streams, [None, Some(StreamId(5))]);
    player.handle(Input::Eof);
    let streams: Vec<_> =
        std::iter::from_fn(|| player.hear_on()).map(|(stream, _)| stream).collect();
    assert_eq!(streams, [Some(StreamId(5)), Some(StreamId(5))]);
    assert!(!player.session.is_active(StreamId(5)));
}
