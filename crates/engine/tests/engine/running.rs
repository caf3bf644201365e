//! Running calls: immediate, cancelled and late ones, and those at the stop of the server.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use sabir_engine::{ClientEvent, ClientEventKind, Connection, Engine};
use sabir_registry::{Offer, Outcome, Pending, Source, ToolCall};
use sabir_session::{SessionKind, StreamId};
use sabir_testkit::{Event, House, Player as _, play};
use sabir_wire::types::{Tool, ToolReply};
use sabir_wire::{Caller, Raw};

use crate::{after_hello, player, playing, request, settings, transcript};

#[test]
fn calls_of_both_eras_run_at_once_and_are_answered_as_they_end() {
    transcript(&after_hello(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}
        ! start 1
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"u","_meta":@modern}}
        ! start 2
        > {"jsonrpc":"2.0","id":3,"method":"prompts/get","params":{"name":"p"}}
        ! start 3
        > {"jsonrpc":"2.0","id":4,"method":"ping"}
        < {"jsonrpc":"2.0","id":4,"result":{}}
        = 3 {"messages":[{"role":"user","content":{"type":"text","text":"x"}}]}
        < {"jsonrpc":"2.0","id":3,"result":{"messages":[{"role":"user","content":{"type":"text","text":"x"}}]}}
        = 2 {"content":[]}
        < {"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","content":[],"_meta":@server}}
        = 1 {"content":[]}
        < {"jsonrpc":"2.0","id":1,"result":{"content":[]}}
    "#,
    ));
}

#[test]
fn a_cancelled_call_is_told_so_and_says_nothing_more() {
    transcript(&after_hello(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":1}}}
        ! start 1
        ~ 1 progress 1
        < {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}
        ! abort 1
        ~ 1 progress 2
        ~ 1 log error - "x"
        = 1 {"content":[]}
    "#,
    ));
}

#[test]
fn notes_come_before_the_result_they_belong_to() {
    transcript(&after_hello(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":1}}}
        ! start 1
        ~ 1 log info db {"n":1}
        < {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","logger":"db","data":{"n":1}}}
        ~ 1 progress 1 2
        < {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1,"total":2}}
        = 1 {"content":[]}
        < {"jsonrpc":"2.0","id":1,"result":{"content":[]}}
    "#,
    ));
}

#[test]
fn progress_that_is_no_number_is_not_told() {
    let mut player = player();
    play(
        &mut player,
        &after_hello(
            r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":1}}}
        ! start 1
        ~ 1 progress NaN
        ~ 1 progress inf
        ~ 1 progress -inf
        ~ 1 progress 1 inf
        ~ 1 progress 1 NaN
        ~ 1 progress 1e300
        < {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1e300}}
    "#,
        ),
    );
}

#[test]
fn a_source_that_does_not_log_declares_nothing_and_its_log_is_not_told() {
    let mut offer = House::offer();
    offer.logs = false;
    let mut player = playing(House::offering(settings(), offer));
    play(
        &mut player,
        &after_hello(
            r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}
        ! start 1
        ~ 1 log emergency - "x"
        = 1 {"content":[]}
        < {"jsonrpc":"2.0","id":1,"result":{"content":[]}}
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","_meta":@modern+{"io.modelcontextprotocol/logLevel":"debug"}}}
        ! start 2
        ~ 2 log emergency - "x"
        > {"jsonrpc":"2.0","id":3,"method":"logging/setLevel","params":{"level":"info"}}
        < {"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":"…"}}
    "#,
        ),
    );
}

#[test]
fn notes_beyond_the_limit_are_dropped_and_the_ending_never_is() {
    let mut few = settings();
    few.engine_limits.notifications = 2;
    let mut player = playing(House::new(few));
    player.say(br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":1}}}"#);
    let Some(Event::Start(call)) = player.event() else { panic!("no call") };
    let line = player.house.called(call).unwrap().handle().clone();
    for progress in 1..=5 {
        line.progress(f64::from(progress), None, None);
    }
    let told: Vec<_> = std::iter::from_fn(|| player.hear()).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    // There is room again.
    line.progress(6.0, None, None);
    assert!(player.hear().is_some());
    for progress in 7..=9 {
        line.progress(f64::from(progress), None, None);
    }
    player.finish(call, sabir_testkit::Ending::Result(Raw::parse(r#"{"content":[]}"#).unwrap()));
    let told: Vec<_> = std::iter::from_fn(|| player.hear()).collect();
    assert_eq!(told.len(), 3, "two notes and the result: {told:?}");
}

/// A source whose calls end only when they are dropped, and count it.
#[derive(Default)]
struct Stubborn {
    running: Arc<AtomicUsize>,
}

struct Running(Arc<AtomicUsize>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Source for Stubborn {
    fn offer(&self) -> Offer {
        let schema = Raw::parse(r#"{"type":"object"}"#).unwrap();
        Offer {
            tools: vec![
                Tool::new("stubborn", "d", schema.clone()),
                Tool::new("polite", "d", schema),
            ],
            ..Offer::default()
        }
    }

    fn call_tool(&self, call: ToolCall) -> Pending<ToolReply> {
        self.running.fetch_add(1, Ordering::SeqCst);
        let running = Running(self.running.clone());
        Box::pin(async move {
            let _running = running;
            if &*call.name == "polite" {
                call.context.call.cancelled().await;
                return Ok(Outcome::Done(ToolReply::text("too late")));
            }
            std::future::pending().await
        })
    }
}

#[test]
fn an_unwanted_call_may_clean_up_for_a_while_and_is_dropped_then() {
    let source = Arc::new(Stubborn::default());
    let running = source.running.clone();
    let mut player = playing(House::of(settings(), vec![source]));
    player.say(request(1, "tools/call", r#""name":"stubborn""#).as_bytes());
    player.say(request(2, "tools/call", r#""name":"polite""#).as_bytes());
    assert_eq!(running.load(Ordering::SeqCst), 2);
    for id in [1, 2] {
        let cancel = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
        );
        player.say(cancel.as_bytes());
    }
    assert_eq!(running.load(Ordering::SeqCst), 1, "the polite one is gone at once");
    player.pass(Duration::from_millis(999));
    assert_eq!(running.load(Ordering::SeqCst), 1);
    player.pass(Duration::from_millis(2));
    assert_eq!(running.load(Ordering::SeqCst), 0);
    assert_eq!(player.hear(), None);
}

#[test]
fn a_conversation_that_is_dropped_leaves_no_call_behind() {
    let source = Arc::new(Stubborn::default());
    let running = source.running.clone();
    let house = House::of(settings(), vec![source]);
    let mut connection = house
        .block_on(async { Connection::new(&house.engine, SessionKind::Stream, Caller::local()) });
    house.block_on(async {
        for tool in ["stubborn", "polite"] {
            let call = request(
                running.load(Ordering::SeqCst) as u64,
                "tools/call",
                &format!(r#""name":"{tool}""#),
            );
            connection.receive(StreamId::default(), Caller::local(), &call.into());
        }
        assert_eq!(running.load(Ordering::SeqCst), 2);
        drop(connection);
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(running.load(Ordering::SeqCst), 0);
    });
}

#[test]
fn what_one_client_was_not_told_is_not_told_to_the_next() {
    let house = House::of(settings(), vec![Arc::new(Stubborn::default())]);
    house.block_on(async {
        let (standing, stream) = (SessionKind::Stream, StreamId::default());
        let begin = || Connection::new(&house.engine, standing, Caller::local());
        let discover = |id| request(id, "server/discover", "").into();
        let call = |id, tool| request(id, "tools/call", &format!(r#""name":"{tool}""#)).into();
        // The client leaves before it has read its answer, while its calls run. One of them will
        // end.
        let mut gone = begin();
        gone.receive(stream, Caller::local(), &discover(1));
        gone.receive(stream, Caller::local(), &call(2, "polite"));
        drop(gone);
        let mut next = begin();
        assert_eq!(next.next_frame(), None);
        next.receive(stream, Caller::local(), &discover(3));
        next.receive(stream, Caller::local(), &call(4, "stubborn"));
        tokio::time::sleep(Duration::from_secs(2)).await;
        next.advance();
        let answer = next.next_frame().unwrap();
        assert!(String::from_utf8_lossy(&answer.text).contains(r#""id":3"#), "{answer:?}");
        assert_eq!(next.next_frame(), None);
    });
}

/// A source whose calls never stop sending notifications.
struct Chatty;

impl Source for Chatty {
    fn offer(&self) -> Offer {
        let schema = Raw::parse(r#"{"type":"object"}"#).unwrap();
        Offer { tools: vec![Tool::new("chatty", "d", schema)], ..Offer::default() }
    }

    fn call_tool(&self, call: ToolCall) -> Pending<ToolReply> {
        Box::pin(async move {
            for progress in 0.. {
                call.context.call.progress(f64::from(progress), None, None);
                tokio::task::yield_now().await;
            }
            Ok(Outcome::Done(ToolReply::default()))
        })
    }
}

#[test]
fn a_call_that_never_stops_talking_does_not_talk_past_its_deadline() {
    let house = House::of(settings(), vec![Arc::new(Chatty)]);
    house.block_on(async {
        let standing = SessionKind::Stream;
        let mut connection = Connection::new(&house.engine, standing, Caller::local());
        let call = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"chatty","_meta":{"progressToken":1}}}"#;
        connection.receive(StreamId::default(), Caller::local(), &call.as_slice().into());
        tokio::time::advance(Duration::from_secs(300)).await;
        for _ in 0..100 {
            connection.wait().happened().await;
            connection.advance();
            while let Some(frame) = connection.next_frame() {
                if String::from_utf8_lossy(&frame.text).contains("took too long") {
                    return;
                }
            }
        }
        panic!("it talks on");
    });
}

#[test]
fn a_call_that_takes_too_long_is_aborted_and_answered() {
    let mut brief = settings();
    brief.limits.call_time = Some(Duration::from_secs(10));
    play(
        &mut playing(House::new(brief)),
        &after_hello(
            r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}
        ! start 1
        + 9s
        + 1s
        ! abort 1
        < {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the call took too long"}}
        = 1 {"content":[]}
    "#,
        ),
    );
}

#[test]
fn a_client_that_leaves_lets_its_calls_finish_within_the_grace() {
    transcript(&after_hello(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}
        ! start 1
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t"}}
        ! start 2
        > ^D
        + 4s
        = 1 {"content":[]}
        < {"jsonrpc":"2.0","id":1,"result":{"content":[]}}
        + 1s
        ! abort 2
        < {"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"the server is stopping"}}
        ! close
    "#,
    ));
}

#[test]
fn a_server_that_stops_ends_every_conversation_with_grace() {
    let mut player = player();
    play(
        &mut player,
        &after_hello(
            r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}
        ! start 1
        > {"jsonrpc":"2.0","id":2,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":@modern}}
        < {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":"…"}
    "#,
        ),
    );
    player.house.engine.stop();
    play(
        &mut player,
        r#"
        < {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":2},"requestId":2,"reason":"…"}}
        < {"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":"…","io.modelcontextprotocol/subscriptionId":2}}}
        > {"jsonrpc":"2.0","id":3,"method":"tools/list"}
        < {"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"the server is stopping"}}
    "#,
    );
    player.pass(Duration::from_secs(5));
    assert!(matches!(player.event(), Some(Event::Abort(_))));
    let last =
        r#"< {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the server is stopping"}}"#;
    play(&mut player, &format!("{last}\n! close"));
}

#[test]
fn a_client_that_comes_to_a_server_that_has_stopped_is_sent_away() {
    let player = player();
    player.house.engine.stop();
    let mut late = playing(player.house);
    assert_eq!(late.event(), Some(Event::Close));
}

#[test]
fn who_is_ready_is_counted_while_it_is_there() {
    let mut player = player();
    let engine = player.house.engine.clone();
    assert_eq!(engine.ready_clients(), 0);
    play(&mut player, &after_hello(""));
    assert_eq!(engine.ready_clients(), 1);
    drop(player);
    assert_eq!(engine.ready_clients(), 0);
}

#[test]
fn the_host_hears_of_clients_and_of_their_own_notifications() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let ear = heard.clone();
    let on_event = move |event: ClientEvent| {
        let name = event.client.map(|client| client.text().to_owned()).unwrap_or_default();
        let is_named = name.contains(r#""name":"c""#);
        let kind = match event.kind {
            ClientEventKind::Notified { method, params } => {
                format!("{method} {}", params.map(|params| params.text().to_owned()).unwrap())
            }
            kind => format!("{kind:?}"),
        };
        ear.lock().unwrap().push((event.connection, is_named, kind));
    };
    let engine = Engine::observed(settings(), vec![Arc::new(on_event)]);
    let mut connection = Connection::new(&engine, SessionKind::Stream, Caller::local());
    let mut say = |text: &str| {
        let frame = Bytes::copy_from_slice(text.as_bytes());
        connection.receive(StreamId::default(), Caller::local(), &frame);
    };
    say(r#"{"jsonrpc":"2.0","method":"too_early","params":{}}"#);
    say(
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#,
    );
    say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    say(r#"{"jsonrpc":"2.0","method":"ide_connected","params":{"pid":7}}"#);
    say(r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#);
    drop(connection);
    let expected = ["Initializing", "Ready", r#"ide_connected {"pid":7}"#, "Left"];
    assert_eq!(*heard.lock().unwrap(), expected.map(|kind| (1, true, kind.to_owned())));
}

#[test]
fn a_notification_of_the_host_reaches_clients_that_are_ready() {
    let mut player = player();
    let engine = player.house.engine.clone();
    let notify = |text: &str| {
        let params = Raw::of(&serde_json::json!({ "text": text })).unwrap();
        engine.registry().notify("selection_changed", Some(&params));
    };
    notify("no client yet");
    play(&mut player, &after_hello(""));
    notify("x");
    play(&mut player, r#"< {"jsonrpc":"2.0","method":"selection_changed","params":{"text":"x"}}"#);
}

#[test]
fn a_call_may_stay_open_for_an_hour_where_the_settings_allow_it() {
    let mut unlimited = settings();
    unlimited.limits.call_time = None;
    let schema = Raw::parse(r#"{"type":"object"}"#).unwrap();
    let tool = Tool::new("openDiff", "Waits for the user", schema);
    let mut player =
        playing(House::offering(unlimited, Offer { tools: vec![tool], ..Offer::default() }));
    play(
        &mut player,
        &after_hello(
            r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"openDiff"}}
        ! start 1
        + 3600s
        > {"jsonrpc":"2.0","id":2,"method":"ping"}
        < {"jsonrpc":"2.0","id":2,"result":{}}
        = 1 {"content":[]}
        < {"jsonrpc":"2.0","id":1,"result":{"content":[]}}
    "#,
        ),
    );
}
