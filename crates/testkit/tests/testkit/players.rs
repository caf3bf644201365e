//! The players themselves: a test that cannot fail proves nothing.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use sabir_testkit::{ConnectionPlayer, House, Pair, Player, play};

/// The failure of a script that differs from the connection.
fn failure(player: &mut dyn Player, script: &str) -> String {
    let panic = catch_unwind(AssertUnwindSafe(|| play(player, script))).expect_err("it played");
    panic.downcast_ref::<String>().cloned().expect("a report")
}

fn players() -> Vec<Box<dyn Player>> {
    let settings = House::settings;
    vec![Box::new(ConnectionPlayer::new(settings())), Box::new(Pair::new(settings()))]
}

#[test]
fn a_wrong_answer_is_shown_with_the_conversation_up_to_it() {
    for mut player in players() {
        let report = failure(
            player.as_mut(),
            r#"
            > {"jsonrpc":"2.0","id":1,"method":"ping"}
            < {"jsonrpc":"2.0","id":2,"result":{}}
        "#,
        );
        assert!(report.contains(r#"    > {"jsonrpc":"2.0","id":1,"method":"ping"}"#), "{report}");
        assert!(report.contains(r#" -  < {"jsonrpc":"2.0","id":2,"result":{}}"#), "{report}");
        assert!(report.contains(r#" +  < {"jsonrpc":"2.0","id":1,"result":{}}"#), "{report}");
        assert!(report.contains("$.id is 1, expected was 2"), "{report}");
    }
}

#[test]
fn silence_where_an_answer_was_expected_fails_and_so_does_an_answer_that_was_not() {
    for mut player in players() {
        let script = "> {\"jsonrpc\":\"2.0\",\"method\":\"ping\"}\n< {}";
        assert!(failure(player.as_mut(), script).contains("nothing was said"));
        let script = r#"> {"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        assert!(failure(player.as_mut(), script).contains("unexpected: < "));
        let script = "> {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n+ 1s";
        assert!(failure(player.as_mut(), script).contains("before that, unexpected: < "));
    }
}

#[test]
fn a_call_that_does_not_begin_or_begins_unexpectedly_fails() {
    for mut player in players() {
        assert!(failure(player.as_mut(), "! start 1").contains("nothing happened"));
        assert!(failure(player.as_mut(), "= 1 {}").contains("no call 1 was started"));
        let call = r#"> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}"#;
        assert!(failure(player.as_mut(), call).contains("unexpected: ! start"));
    }
}

#[test]
fn calls_wait_for_their_ending_and_time_passes_when_it_is_told_to() {
    for mut player in players() {
        play(
            player.as_mut(),
            r#"
            > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}
            ! start 1
            + 299s
            + 1s
            ! abort 1
            < {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the call took too long"}}
            > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t"}}
            ! start 2
            > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"u"}}
            ! start 3
            = 3 {"content":[]}
            < {"jsonrpc":"2.0","id":3,"result":{"content":[]}}
            > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}
            ! abort 2
            = 2 {"content":[]}
        "#,
        );
    }
}

#[test]
fn a_pair_moves_bytes_however_they_are_cut() {
    let mut pair = Pair::new(House::settings());
    for byte in br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"# {
        pair.send(&[*byte]);
    }
    assert_eq!(pair.hear(), None);
    pair.send(b"\r\n\n{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}\n{\"json");
    assert_eq!(pair.hear().unwrap(), r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    assert_eq!(pair.hear().unwrap(), r#"{"jsonrpc":"2.0","id":2,"result":{}}"#);
    assert_eq!(pair.hear(), None);
    pair.pass(Duration::from_secs(1));
    // The last line needs no end.
    pair.send(br#"rpc":"2.0","id":3,"method":"ping"}"#);
    pair.end_input();
    assert_eq!(pair.hear().unwrap(), r#"{"jsonrpc":"2.0","id":3,"result":{}}"#);
    assert_eq!(pair.event(), Some(sabir_testkit::Event::Close));
}
