//! Any byte stream, by lines: the bounds of a message, and clients that do not behave.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use sabir_engine::{Engine, Settings};
use sabir_testkit::{CallNumber, Event, House, Pair, Player as _, StandIn, play};
use sabir_transports::stream;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWriteExt as _, ReadBuf};

fn limited(change: impl FnOnce(&mut Settings)) -> Pair {
    let mut settings = House::settings();
    change(&mut settings);
    Pair::new(settings)
}

/// A ping of exactly so many bytes.
fn ping(length: usize) -> String {
    let ping = |padding: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"a":"{padding}"}}}}"#)
    };
    ping(&"x".repeat(length - ping("").len()))
}

#[test]
fn a_message_may_be_so_long_and_no_longer() {
    let mut pair = limited(|settings| settings.engine_limits.message_size = 1000);
    pair.say(ping(1000).as_bytes());
    assert_eq!(pair.hear().unwrap(), r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    pair.say(format!("{}\r", ping(1000)).as_bytes());
    assert_eq!(pair.hear().unwrap(), r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    for length in [1001, 5000, 200_000] {
        pair.say(ping(length).as_bytes());
        let refused: Value = serde_json::from_slice(&pair.hear().unwrap()).unwrap();
        assert_eq!(refused["error"]["code"], -32600, "{length}: {refused}");
        assert_eq!(pair.hear(), None, "it is refused once");
    }
    pair.say(ping(100).as_bytes());
    assert_eq!(pair.hear().unwrap(), r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
}

#[test]
fn a_message_may_be_nested_so_deep_and_no_deeper() {
    let nested = |depth: usize| {
        let (open, close) = ("[".repeat(depth - 2), "]".repeat(depth - 2));
        format!(r#"{{"jsonrpc":"2.0","id":7,"method":"ping","params":{{"a":{open}{close}}}}}"#)
    };
    let mut pair = limited(|settings| settings.engine_limits.depth = 10);
    pair.say(nested(10).as_bytes());
    assert_eq!(pair.hear().unwrap(), r#"{"jsonrpc":"2.0","id":7,"result":{}}"#);
    pair.say(nested(11).as_bytes());
    let refused: Value = serde_json::from_slice(&pair.hear().unwrap()).unwrap();
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&7.into(), &(-32600).into()));
}

#[test]
fn a_message_nested_as_deep_as_a_message_is_long_harms_nobody() {
    let mut pair = Pair::new(House::settings());
    let (open, close) = ("[".repeat(1 << 16), "]".repeat(1 << 16));
    for bomb in [
        format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"t","arguments":{{"a":{open}{close}}}}}}}"#
        ),
        format!(r#"{{"jsonrpc":"2.0","id":7,"method":"ping","params":{open}"#),
        format!("{open}{close}"),
        "{\"a\":".repeat(1 << 15),
    ] {
        pair.say(bomb.as_bytes());
        let refused: Value = serde_json::from_slice(&pair.hear().unwrap()).unwrap();
        assert!(refused["error"]["code"].is_i64(), "{refused}");
    }
    pair.say(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    assert_eq!(pair.hear().unwrap(), r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
}

#[test]
fn what_is_not_utf_8_is_refused_and_the_next_line_is_read() {
    let mut pair = Pair::new(House::settings());
    pair.send(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\xfe\"}\n");
    let refused: Value = serde_json::from_slice(&pair.hear().unwrap()).unwrap();
    assert_eq!(refused["error"]["code"], -32700);
    pair.say("{\"jsonrpc\":\"2.0\",\"id\":\"é\u{2028}\",\"method\":\"ping\"}".as_bytes());
    let pong: Value = serde_json::from_slice(&pair.hear().unwrap()).unwrap();
    assert_eq!(pong["id"], "é\u{2028}");
}

#[test]
fn many_requests_in_one_write_are_all_answered() {
    let mut pair = Pair::new(House::settings());
    let ask =
        |id: usize| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/list\"}}\n");
    let all: String = (0..1000).map(ask).collect();
    pair.send(all.as_bytes());
    for id in 0..1000 {
        let list: Value = serde_json::from_slice(&pair.hear().unwrap()).unwrap();
        assert_eq!(list["id"], id);
    }
}

/// A client whose unread answers have reached the limit, while the calls 1 and 2 are running.
fn deaf(change: impl FnOnce(&mut Settings)) -> Pair {
    let mut settings = House::settings();
    change(&mut settings);
    let mut offer = House::offer();
    offer.tools[0].description = Some("x".repeat(1 << 20));
    let mut pair = Pair::with(House::offering(settings, offer));
    play(
        &mut pair,
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":1}}}
        ! start 1
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"u"}}
        ! start 2
    "#,
    );
    pair.set_reading(false);
    for id in 10..30 {
        pair.say(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list"}}"#).as_bytes());
    }
    pair
}

#[test]
fn a_client_that_does_not_listen_is_made_to_wait_and_nothing_grows() {
    let mut pair = deaf(|settings| settings.engine_limits.notifications = 4);
    let line = pair.house.called(CallNumber(1)).unwrap().handle().clone();
    for progress in 1..=100 {
        line.progress(f64::from(progress), None, None);
        pair.settle();
    }
    pair.set_reading(true);
    let mut heard = Vec::new();
    while let Some(frame) = pair.hear() {
        let frame: Value = serde_json::from_slice(&frame).unwrap();
        heard.push(frame["id"].as_u64().or(frame["params"]["progress"].as_u64()).unwrap());
    }
    // All requests are answered. Of the notifications of the call, four were kept.
    heard.sort_unstable();
    assert_eq!(heard, (1..=4).chain(10..30).collect::<Vec<_>>());
    line.progress(101.0, None, None);
    assert!(pair.hear().is_some(), "and then it goes on");
}

#[test]
fn a_deadline_holds_and_a_stop_is_heard_though_the_client_does_not_listen() {
    let mut pair = deaf(|_| {});
    pair.pass(Duration::from_secs(300));
    assert!(matches!(pair.event(), Some(Event::Abort(_))));
    assert!(matches!(pair.event(), Some(Event::Abort(_))));
    pair.house.engine.stop();
    pair.settle();
    assert_eq!(pair.event(), None, "it waits a little for the client");
    pair.pass(Duration::from_secs(5));
    assert_eq!(pair.event(), Some(Event::Close));
}

#[test]
fn a_client_that_ends_its_input_and_does_not_listen_is_left_after_the_grace() {
    let mut pair = limited(|settings| settings.limits.grace = Duration::from_secs(2));
    pair.set_reading(false);
    let ask =
        |id: usize| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/list\"}}\n");
    let all: String = (0..2000).map(ask).collect();
    pair.send(all.as_bytes());
    pair.end_input();
    assert_eq!(pair.event(), None);
    pair.pass(Duration::from_millis(1999));
    assert_eq!(pair.event(), None);
    pair.pass(Duration::from_millis(2));
    assert_eq!(pair.event(), Some(Event::Close));
}

#[test]
fn a_client_that_has_gone_ends_the_conversation_and_its_calls() {
    let mut pair = Pair::new(House::settings());
    play(
        &mut pair,
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}
        ! start 1
    "#,
    );
    pair.vanish();
    pair.pass(Duration::from_secs(6));
    let events: Vec<_> = std::iter::from_fn(|| pair.event()).collect();
    assert!(matches!(events[..], [Event::Abort(_), Event::Close]), "{events:?}");
}

/// A client whose next request is always there already; it stops the server at its 50th.
struct Flood {
    engine: Arc<Engine>,
    reads: usize,
}

impl AsyncRead for Flood {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        self.reads += 1;
        if self.reads == 50 {
            self.engine.stop();
        }
        assert!(self.reads < 10_000, "the server does not stop");
        buffer.put_slice(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n");
        Poll::Ready(Ok(()))
    }
}

#[test]
fn a_client_that_never_stops_asking_does_not_keep_the_server_from_stopping() {
    let house = House::of(House::settings(), vec![Arc::new(StandIn)]);
    house.block_on(async {
        let flood = Flood { engine: house.engine.clone(), reads: 0 };
        stream::serve(&house.engine, sabir_wire::Caller::local(), flood, tokio::io::sink())
            .await
            .unwrap();
    });
}

#[test]
fn a_broken_pipe_is_the_end_and_no_error() {
    let house = House::of(House::settings(), vec![Arc::new(StandIn)]);
    house.block_on(async {
        let (mut client, server) = tokio::io::duplex(100);
        let (reader, writer) = tokio::io::split(server);
        client.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n").await.unwrap();
        drop(client);
        stream::serve(&house.engine, sabir_wire::Caller::local(), reader, writer).await.unwrap();
    });
}
