//! The handshake, and the states of a legacy client.

use sabir_session::{Dialect, Input, RequireReady, SessionKind, SessionState};
use sabir_testkit::{Event, Player as _, SessionPlayer, play};
use sabir_wire::{Era, Revision};

use crate::{after_hello, rules, speaking, transcript, under};

fn initialize(version: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":{version},"capabilities":{{}},"clientInfo":{{"name":"c","version":"1"}}}}}}"#
    )
}

fn welcome(revision: Revision) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":{{"protocolVersion":"{revision}","capabilities":"…","serverInfo":"…"}}}}"#
    )
}

fn legacy() -> impl Iterator<Item = Revision> {
    Revision::ALL.into_iter().filter(|revision| revision.era() == Era::Legacy)
}

#[test]
fn each_legacy_revision_is_agreed_on_when_it_is_asked_for() {
    for revision in legacy() {
        let asked = initialize(&format!("\"{revision}\""));
        let mut player = SessionPlayer::new(rules());
        play(&mut player, &format!("> {asked}\n< {}", welcome(revision)));
        assert_eq!(player.session.revision(), revision);
    }
}

#[test]
fn an_unknown_or_modern_revision_is_answered_with_the_newest_of_the_handshakes() {
    for version in ["\"2026-07-28\"", "\"2099-01-01\"", "\"1.0.0\"", "\"\"", "\"2025-11-25 \""] {
        let newest = welcome(Revision::V2025_11_25);
        transcript(&format!("> {}\n< {newest}", initialize(version)));
    }
}

#[test]
fn a_client_that_leaves_everything_out_is_welcome() {
    transcript(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"initialize"}
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":"…","serverInfo":"…"}}
    "#,
    );
}

#[test]
fn a_handshake_of_the_wrong_type_is_refused_and_may_be_tried_again() {
    transcript(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":7}}
        < {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"…"}}
        > {"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"roots":true}}}
        < {"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"…"}}
        > {"jsonrpc":"2.0","id":3,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}
        < {"jsonrpc":"2.0","id":3,"result":{"protocolVersion":"2025-06-18","…":"…"}}
    "#,
    );
}

#[test]
fn a_pinned_revision_is_answered_whatever_is_asked() {
    for pinned in legacy() {
        for version in ["2024-11-05", "2025-11-25", "2026-07-28", "nonsense"] {
            let rules = speaking(Dialect { revision: Some(pinned), ..Dialect::default() });
            let asked = initialize(&format!("\"{version}\""));
            under(rules, &format!("> {asked}\n< {}", welcome(pinned)));
        }
    }
}

#[test]
fn a_server_of_the_modern_era_alone_names_it_to_who_shakes_hands() {
    let modern = Dialect { revision: Some(Revision::V2026_07_28), ..Dialect::default() };
    under(
        speaking(modern),
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        < {"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"…","data":{"supported":["2026-07-28"],"requested":"2025-11-25"}}}
    "#,
    );
}

#[test]
fn the_states_are_waiting_initializing_ready_closed() {
    let mut player = SessionPlayer::new(rules());
    assert_eq!(player.session.state(), SessionState::Waiting);
    player.say(initialize("\"2025-06-18\"").as_bytes());
    assert_eq!(player.session.state(), SessionState::Initializing);
    assert_eq!(player.session.client().unwrap().text(), r#"{"name":"c","version":"1"}"#);
    assert_eq!(player.event(), None);
    player.say(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    assert_eq!(player.session.state(), SessionState::Ready);
    assert_eq!(player.event(), Some(Event::Ready));
    player.handle(Input::Eof);
    assert_eq!(player.session.state(), SessionState::Closed);
    assert_eq!(player.event(), Some(Event::Close));
}

#[test]
fn initialized_counts_once_and_only_after_initialize() {
    transcript(
        r#"
        > {"jsonrpc":"2.0","method":"notifications/initialized"}
        > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}
        < {"jsonrpc":"2.0","id":1,"result":"…"}
        > {"jsonrpc":"2.0","method":"notifications/initialized"}
        ! ready
        > {"jsonrpc":"2.0","method":"notifications/initialized"}
    "#,
    );
}

#[test]
fn a_second_handshake_is_refused_and_changes_nothing() {
    let mut player = SessionPlayer::new(rules());
    play(
        &mut player,
        &after_hello(
            r#"
        > {"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"d","version":"2"}}}
        < {"jsonrpc":"2.0","id":2,"error":{"code":-32600,"message":"…"}}
    "#,
        ),
    );
    assert_eq!(player.session.revision(), Revision::V2025_11_25);
    assert_eq!(player.session.client().unwrap().text(), r#"{"name":"c","version":"1"}"#);
    assert_eq!(player.session.state(), SessionState::Ready);
}

#[test]
fn a_ping_is_answered_at_any_time_with_nothing_in_it() {
    transcript(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"ping"}
        < {"jsonrpc":"2.0","id":1,"result":{}}
        > {"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}
        < {"jsonrpc":"2.0","id":2,"result":"…"}
        > {"jsonrpc":"2.0","id":3,"method":"ping","params":{"_meta":{}}}
        < {"jsonrpc":"2.0","id":3,"result":{}}
    "#,
    );
}

/// The allowed requests in each state, by the `require_ready` setting.
#[test]
fn what_needs_a_handshake_is_the_deployments_choice() {
    let refused = r#"{"jsonrpc":"2.0","id":9,"error":{"code":-32600,"message":"…"}}"#;
    let call = r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"t"}}"#;
    let list = r#"{"jsonrpc":"2.0","id":9,"method":"tools/list"}"#;
    let ping = r#"{"jsonrpc":"2.0","id":9,"method":"ping"}"#;
    let pong = r#"{"jsonrpc":"2.0","id":9,"result":{}}"#;
    let hello = format!("> {}\n< \"…\"\n", initialize("\"2025-11-25\""));
    let ready = "> {\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n! ready\n";
    let all = [
        (RequireReady::None, true, true),
        (RequireReady::Tools, false, true),
        (RequireReady::All, false, false),
    ];
    for (require, may_call, may_list) in all {
        let rules = || speaking(Dialect { require_ready: Some(require), ..Dialect::default() });
        for before in [String::new(), hello.clone()] {
            for (asked, may) in [(call, may_call), (list, may_list)] {
                let answer = if may { "! start 9".to_owned() } else { format!("< {refused}") };
                under(rules(), &format!("{before}> {asked}\n{answer}"));
            }
            under(rules(), &format!("{before}> {ping}\n< {pong}"));
        }
        for asked in [call, list] {
            under(rules(), &format!("{hello}{ready}> {asked}\n! start 9"));
        }
    }
}

#[test]
fn a_legacy_client_over_http_must_shake_hands_first_unless_told_otherwise() {
    let http = SessionKind::LegacyHttp(Revision::UNNAMED);
    let script = r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/list"}
        < {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"…"}}
        > {"jsonrpc":"2.0","id":2,"method":"ping"}
        < {"jsonrpc":"2.0","id":2,"result":{}}
    "#;
    play(&mut SessionPlayer::of_kind(rules(), http), script);
    let none = Dialect { require_ready: Some(RequireReady::None), ..Dialect::default() };
    let script = r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/list"}
        ! start 1
    "#;
    play(&mut SessionPlayer::of_kind(speaking(none), http), script);
}

#[test]
fn what_the_server_is_called_may_stand_at_the_top() {
    under(
        speaking(Dialect { flat_server_info: true, ..Dialect::default() }),
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}
        < {"jsonrpc":"2.0","id":1,"result":{"name":"s","version":"1","protocolVersion":"2025-11-25","capabilities":"…","serverInfo":{"name":"s","version":"1"}}}
    "#,
    );
}
