//! Calls that ask their client: the state that it keeps between two attempts, and who can use it.

use std::time::Duration;

use sabir_engine::{SealKey, Settings};
use sabir_session::SessionKind;
use sabir_testkit::{Called, ConnectionPlayer, Ending, Event, House, Player as _, play};
use sabir_wire::{Caller, Raw};
use serde_json::{Value, json};

use crate::{after_hello, answer, ask, player, playing, request, settings};

const ROOTS: &str = r#"{"method":"roots/list"}"#;

/// Any key that all servers of a test share.
fn shared_key() -> SealKey {
    SealKey::parse("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=").unwrap()
}

fn known_to(caller: Option<&str>) -> ConnectionPlayer {
    let settings = Settings { seal_key: Some(shared_key()), ..settings() };
    ConnectionPlayer::with(
        House::new(settings),
        SessionKind::Stream,
        caller.map_or_else(Caller::anonymous, |subject| Caller::new("token", subject)),
    )
}

/// Lets the call that has just begun ask for the roots, and returns the state that the client is to
/// keep.
#[track_caller]
fn asks(player: &mut ConnectionPlayer, state: &str) -> Value {
    let Some(Event::Start(call)) = player.event() else { panic!("no call") };
    let ask = format!(r#"{{"inputRequests":{{"where":{ROOTS}}}{state}}}"#);
    player.finish(call, Ending::Asks(Raw::parse(ask).unwrap()));
    let answer = answer(player);
    assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
    answer["result"]["requestState"].clone()
}

/// Lets the call that has just begun, without the answers that came without a state, ask for the
/// roots: it begins again, with them.
#[track_caller]
fn asks_again(player: &mut ConnectionPlayer) {
    let Some(Event::Start(call)) = player.event() else { panic!("no call") };
    assert!(player.house.called(call).unwrap().context().answers.is_empty());
    let ask = format!(r#"{{"inputRequests":{{"where":{ROOTS}}}}}"#);
    player.finish(call, Ending::Asks(Raw::parse(ask).unwrap()));
}

/// The call that has just begun, as its source sees it.
#[track_caller]
fn begun(player: &mut ConnectionPlayer) -> Called {
    let Some(Event::Start(call)) = player.event() else { panic!("no call") };
    player.house.called(call).unwrap().clone()
}

const CALL: &str = r#""name":"t","arguments":{"b":[1,{"d":2,"c":3}],"a":1}"#;

#[test]
fn what_the_source_keeps_comes_back_and_the_client_cannot_read_it() {
    let mut player = player();
    player.say(request(1, "tools/call", CALL).as_bytes());
    let state = asks(&mut player, r#","requestState":{"secret":12345678901234567890}"#);
    assert!(!state.as_str().unwrap().contains("secret"));
    let retry =
        format!(r#"{CALL},"inputResponses":{{"where":{{"roots":[]}}}},"requestState":{state}"#);
    player.say(request(2, "tools/call", &retry).as_bytes());
    let called = begun(&mut player);
    let context = called.context();
    assert_eq!(context.state.as_ref().unwrap().text(), r#"{"secret":12345678901234567890}"#);
    assert_eq!(context.answer("where").unwrap().text(), r#"{"roots":[]}"#);
    let Called::Tool(call) = &called else { panic!("no tool") };
    assert_eq!(call.arguments.text(), r#"{"b":[1,{"d":2,"c":3}],"a":1}"#);
}

#[test]
fn a_state_opens_for_the_same_request_and_for_no_other() {
    let mut player = player();
    player.say(request(1, "tools/call", CALL).as_bytes());
    let state = asks(&mut player, r#","requestState":1"#);
    let given = |params: &str| format!(r#"{params},"requestState":{state}"#);
    for (method, params) in [
        ("tools/call", r#""name":"u","arguments":{"b":[1,{"d":2,"c":3}],"a":1}"#),
        ("tools/call", r#""name":"t","arguments":{"b":[1,{"d":2,"c":4}],"a":1}"#),
        ("tools/call", r#""name":"t","arguments":{"b":[1,{"d":2,"c":3}]}"#),
        ("tools/call", r#""name":"t""#),
        ("prompts/get", r#""name":"p""#),
        ("resources/read", r#""uri":"memo:///a""#),
    ] {
        let refused = ask(&mut player, method, &given(params));
        assert_eq!(refused["error"]["code"], -32602, "{method} {params}: {refused}");
        assert_eq!(player.event(), None, "{method} {params} was begun");
    }
    // The order of keys does not matter.
    let same = r#""arguments":{"a":1,"b":[1,{"c":3,"d":2}]},"name":"t""#;
    player.say(request(3, "tools/call", &given(same)).as_bytes());
    begun(&mut player);
}

#[test]
fn arguments_that_cannot_be_read_are_refused_before_a_state_is_bound_to_them() {
    let mut player = player();
    let refused = ask(&mut player, "tools/call", r#""name":"t","arguments":{"a":1e400}"#);
    let is_error = refused["error"].is_object() || refused["result"]["isError"] == true;
    assert!(is_error, "{refused}");
    assert_eq!(player.event(), None);
}

#[test]
fn a_state_that_was_changed_cut_or_made_up_is_refused() {
    let mut player = player();
    player.say(request(1, "tools/call", CALL).as_bytes());
    let state = asks(&mut player, r#","requestState":1"#);
    let state = state.as_str().unwrap();
    let mut flipped = state.to_owned().into_bytes();
    let last = flipped.len() - 2;
    flipped[last] = if flipped[last] == b'A' { b'B' } else { b'A' };
    let flipped = String::from_utf8(flipped).unwrap();
    for forged in [
        format!("{state}-TAMPERED"),
        state[..state.len() - 4].to_owned(),
        state[4..].to_owned(),
        flipped,
        String::new(),
        "eyJyb3VuZHMiOjB9".into(),
        "é".into(),
    ] {
        let forged = json!(forged);
        let refused = ask(&mut player, "tools/call", &format!(r#"{CALL},"requestState":{forged}"#));
        assert_eq!(refused["error"]["code"], -32602, "{forged}: {refused}");
    }
    for wrong in ["7", "null", "{}"] {
        let refused = ask(&mut player, "tools/call", &format!(r#"{CALL},"requestState":{wrong}"#));
        assert_eq!(refused["error"]["code"], -32602, "{wrong}: {refused}");
    }
    assert_eq!(player.event(), None);
}

#[test]
fn a_state_belongs_to_whom_it_was_given_and_any_replica_opens_it() {
    let mut first = known_to(Some("ann"));
    first.say(request(1, "tools/call", CALL).as_bytes());
    let state = asks(&mut first, r#","requestState":1"#);
    let retry = format!(r#"{CALL},"requestState":{state}"#);
    for stranger in [Some("bob"), None, Some("")] {
        let refused = ask(&mut known_to(stranger), "tools/call", &retry);
        assert_eq!(refused["error"]["code"], -32602, "{stranger:?}: {refused}");
    }
    let mut replica = known_to(Some("ann"));
    replica.say(request(2, "tools/call", &retry).as_bytes());
    begun(&mut replica);
    let refused = ask(&mut player(), "tools/call", &retry);
    assert_eq!(refused["error"]["code"], -32602, "another key: {refused}");
}

#[test]
fn a_state_expires() {
    let mut brief = settings();
    brief.limits.question_time = Some(Duration::ZERO);
    let mut player = playing(House::new(brief));
    player.say(request(1, "tools/call", CALL).as_bytes());
    let state = asks(&mut player, r#","requestState":1"#);
    let refused = ask(&mut player, "tools/call", &format!(r#"{CALL},"requestState":{state}"#));
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
}

#[test]
fn answers_of_all_rounds_come_together() {
    let mut player = player();
    player.say(request(1, "tools/call", CALL).as_bytes());
    let Some(Event::Start(call)) = player.event() else { panic!("no call") };
    let ask = r#"{"inputRequests":{"a":{"method":"roots/list"},"b":{"method":"roots/list"}}}"#;
    player.finish(call, Ending::Asks(Raw::parse(ask).unwrap()));
    let first = answer(&mut player);
    assert!(first["result"].get("requestState").is_none(), "nothing is to be kept: {first}");
    let retry = format!(r#"{CALL},"inputResponses":{{"a":{{"n":1}},"b":{{"n":2}}}}"#);
    player.say(request(2, "tools/call", &retry).as_bytes());
    let Some(Event::Start(call)) = player.event() else { panic!("no call") };
    player.finish(call, Ending::Asks(Raw::parse(ask).unwrap()));
    let state = asks(&mut player, "");
    assert!(state.is_string(), "the answers are to be kept");
    let retry = format!(
        r#"{CALL},"inputResponses":{{"where":{{"n":3}},"b":{{"n":4}}}},"requestState":{state}"#
    );
    player.say(request(3, "tools/call", &retry).as_bytes());
    let called = begun(&mut player);
    let mut answers: Vec<_> = called.context().answers.iter().collect();
    answers.sort_by(|(a, _), (b, _)| a.cmp(b));
    let answers: Vec<_> =
        answers.iter().map(|(key, answer)| (key.as_str(), answer.text())).collect();
    // The newer answer to `b` replaces the older.
    assert_eq!(answers, [("a", r#"{"n":1}"#), ("b", r#"{"n":4}"#), ("where", r#"{"n":3}"#)]);
}

#[test]
fn answers_are_objects_and_others_are_ignored() {
    let mut player = player();
    for wrong in ["7", "null", "[]", r#""x""#] {
        let responses = format!(r#"{CALL},"inputResponses":{{"where":{wrong}}}"#);
        let refused = ask(&mut player, "tools/call", &responses);
        assert_eq!(refused["error"]["code"], -32602, "{wrong}: {refused}");
    }
    let refused = ask(&mut player, "tools/call", &format!(r#"{CALL},"inputResponses":[]"#));
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let responses = format!(r#"{CALL},"inputResponses":{{"unasked":{{}}}}"#);
    player.say(request(2, "tools/call", &responses).as_bytes());
    begun(&mut player);
}

#[test]
fn answers_without_the_state_that_the_call_keeps_are_not_taken() {
    let mut player = player();
    let answers = r#""inputResponses":{"where":{"roots":[]}}"#;
    for id in 1..4 {
        player.say(request(id, "tools/call", &format!("{CALL},{answers}")).as_bytes());
        let Some(Event::Start(call)) = player.event() else { panic!("no call") };
        let called = player.house.called(call).unwrap().clone();
        assert!(called.context().answers.is_empty() && called.context().state.is_none());
        let ask = format!(r#"{{"inputRequests":{{"where":{ROOTS}}},"requestState":1}}"#);
        player.finish(call, Ending::Asks(Raw::parse(ask).unwrap()));
        assert!(answer(&mut player)["result"]["requestState"].is_string());
        assert_eq!(player.event(), None, "it began again");
    }
}

#[test]
fn answers_without_a_state_are_those_to_the_questions_that_come_without_one() {
    let mut player = player();
    let answers = r#""inputResponses":{"later":{"n":1},"where":{"n":2}}"#;
    player.say(request(1, "tools/call", &format!("{CALL},{answers}")).as_bytes());
    asks_again(&mut player);
    let called = begun(&mut player);
    let answers: Vec<_> = called.context().answers.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(answers, ["where"]);
}

#[test]
fn a_legacy_client_cannot_answer_in_its_request() {
    let mut player = player();
    play(&mut player, &after_hello(""));
    player.say(br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","inputResponses":{"where":{}},"requestState":"x"}}"#);
    let called = begun(&mut player);
    assert!(called.context().answers.is_empty() && called.context().state.is_none());
}

fn asking_at_most(questions: usize) -> ConnectionPlayer {
    let mut few = settings();
    few.engine_limits.questions = questions;
    playing(House::new(few))
}

#[test]
fn a_call_may_ask_a_modern_client_so_often_and_not_once_more() {
    for state in ["", r#","requestState":1"#] {
        for limit in 0..4 {
            let mut player = asking_at_most(limit);
            let mut kept = Value::Null;
            for round in 0..=limit {
                let mut params = CALL.to_owned();
                if round > 0 {
                    params += r#","inputResponses":{"where":{"roots":[]}}"#;
                }
                if kept.is_string() {
                    params += &format!(r#","requestState":{kept}"#);
                }
                player.say(request(round as u64, "tools/call", &params).as_bytes());
                if round > 0 && !kept.is_string() {
                    asks_again(&mut player);
                }
                if round < limit {
                    kept = asks(&mut player, state);
                }
            }
            let Some(Event::Start(call)) = player.event() else { panic!("no call") };
            let ask = format!(r#"{{"inputRequests":{{"where":{ROOTS}}}{state}}}"#);
            player.finish(call, Ending::Asks(Raw::parse(ask).unwrap()));
            let refused = answer(&mut player);
            assert_eq!(refused["error"]["code"], -32603, "{limit} {state}: {refused}");
        }
    }
}

#[test]
fn a_call_may_ask_a_legacy_client_so_often_and_not_once_more() {
    for limit in 0..4 {
        let mut script = String::from(
            r#"
            > {"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"t"}}
            ! start c
        "#,
        );
        for round in 1..=limit {
            script += &format!(
                r#"
                = c asks {{"inputRequests":{{"where":{ROOTS}}}}}
                < {{"jsonrpc":"2.0","id":{round},"method":"roots/list"}}
                > {{"jsonrpc":"2.0","id":{round},"result":{{"roots":[]}}}}
                ! start c
            "#
            );
        }
        script += &format!(
            r#"
            = c asks {{"inputRequests":{{"where":{ROOTS}}}}}
            < {{"jsonrpc":"2.0","id":"c","error":{{"code":-32603,"message":"…"}}}}
        "#
        );
        play(&mut asking_at_most(limit), &after_hello(&script));
    }
}

#[test]
fn a_call_that_asks_nothing_and_keeps_nothing_has_failed() {
    play(
        &mut player(),
        &after_hello(
            r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}
        ! start 1
        = 1 asks {}
        < {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"…"}}
    "#,
        ),
    );
}

#[test]
fn a_call_that_begins_again_by_itself_for_ever_is_stopped() {
    // Each time it keeps something and asks nothing: a legacy client is not even asked.
    let mut script = String::from(
        r#"
        > {"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"t"}}
        ! start c
    "#,
    );
    for _ in 0..16 {
        script += "= c asks {\"requestState\":1}\n! start c\n";
    }
    script += r#"
        = c asks {"requestState":1}
        < {"jsonrpc":"2.0","id":"c","error":{"code":-32603,"message":"…"}}
    "#;
    play(&mut player(), &after_hello(&script));
}

#[test]
fn prompts_and_resources_ask_and_a_completion_cannot() {
    for (method, params) in
        [("prompts/get", r#""name":"p""#), ("resources/read", r#""uri":"memo:///x/1""#)]
    {
        let mut player = player();
        player.say(request(1, method, params).as_bytes());
        let state = asks(&mut player, r#","requestState":"kept""#);
        let retry = format!(
            r#"{params},"inputResponses":{{"where":{{"roots":[]}}}},"requestState":{state}"#
        );
        player.say(request(2, method, &retry).as_bytes());
        let called = begun(&mut player);
        assert_eq!(called.context().state.as_ref().unwrap().text(), r#""kept""#);
    }
    let mut player = player();
    let complete = r#""ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":""}"#;
    player.say(request(1, "completion/complete", complete).as_bytes());
    let Some(Event::Start(call)) = player.event() else { panic!("no call") };
    let ask = format!(r#"{{"inputRequests":{{"where":{ROOTS}}}}}"#);
    player.finish(call, Ending::Asks(Raw::parse(ask).unwrap()));
    assert_eq!(answer(&mut player)["error"]["code"], -32603);
}

#[test]
fn a_legacy_client_never_sees_the_state_and_the_source_finds_it_again() {
    let mut player = player();
    let script = r#"
        > {"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"t"}}
        ! start c
        = c asks {"inputRequests":{"a":{"method":"roots/list"}},"requestState":{"round":1}}
        < {"jsonrpc":"2.0","id":1,"method":"roots/list"}
        > {"jsonrpc":"2.0","id":1,"result":{"roots":[]}}
        ! start c
        = c asks {"inputRequests":{"b":{"method":"roots/list"}},"requestState":{"round":2}}
        < {"jsonrpc":"2.0","id":2,"method":"roots/list"}
    "#;
    play(&mut player, &after_hello(script));
    player.say(br#"{"jsonrpc":"2.0","id":2,"result":{"roots":[{"uri":"file:///b"}]}}"#);
    let called = begun(&mut player);
    let context = called.context();
    assert_eq!(context.state.as_ref().unwrap().text(), r#"{"round":2}"#);
    assert_eq!(context.answer("a").unwrap().text(), r#"{"roots":[]}"#);
    assert_eq!(context.answer("b").unwrap().text(), r#"{"roots":[{"uri":"file:///b"}]}"#);
}

/// A legacy client that was asked by a call with the state `"kept"`.
fn asked_with_state() -> ConnectionPlayer {
    let mut player = player();
    let script = r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}
        ! start 1
        = 1 asks {"inputRequests":{"where":{"method":"roots/list"}},"requestState":"kept"}
        < {"jsonrpc":"2.0","id":1,"method":"roots/list"}
    "#;
    play(&mut player, &after_hello(script));
    assert!(player.house.source.abandoned().is_empty());
    player
}

#[track_caller]
fn abandoned(player: &ConnectionPlayer) -> Vec<String> {
    player.house.source.abandoned().iter().map(|state| state.text().to_owned()).collect()
}

#[test]
fn a_source_learns_that_its_questions_will_not_be_answered() {
    for last_words in [
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}"#,
    ] {
        let mut player = asked_with_state();
        player.say(last_words.as_bytes());
        assert_eq!(abandoned(&player), [r#""kept""#], "{last_words}");
    }
    let mut late = asked_with_state();
    late.pass(Duration::from_secs(901));
    assert_eq!(abandoned(&late), [r#""kept""#]);
}

#[test]
fn a_client_that_vanishes_abandons_its_questions_and_one_that_answers_does_not() {
    let gone = asked_with_state();
    let source = gone.house.source.clone();
    drop(gone);
    assert_eq!(source.abandoned().len(), 1);

    let mut there = asked_with_state();
    there.say(br#"{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}"#);
    let source = there.house.source.clone();
    drop(begun(&mut there));
    drop(there);
    assert!(source.abandoned().is_empty());
}

#[test]
fn a_modern_client_may_come_back_later_so_nothing_is_abandoned() {
    let mut player = player();
    player.say(request(1, "tools/call", CALL).as_bytes());
    asks(&mut player, r#","requestState":"kept""#);
    let source = player.house.source.clone();
    drop(player);
    assert!(source.abandoned().is_empty());
}
