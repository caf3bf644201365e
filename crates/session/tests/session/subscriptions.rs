//! Notifications of changes, in both eras.

use sabir_testkit::{SessionPlayer, play};
use sabir_wire::types::ServerCapabilities;

use crate::{after_hello, rules, transcript};

#[test]
fn a_legacy_client_is_told_that_lists_have_changed_once_it_is_ready() {
    transcript(
        r#"
        * tools
        > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}
        < {"jsonrpc":"2.0","id":1,"result":"…"}
        * tools
        > {"jsonrpc":"2.0","method":"notifications/initialized"}
        ! ready
        * tools
        < {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}
        * prompts
        < {"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}
        * resources
        < {"jsonrpc":"2.0","method":"notifications/resources/list_changed"}
    "#,
    );
}

#[test]
fn a_legacy_client_is_not_told_of_what_was_not_declared() {
    let silent = ServerCapabilities { tools: true, ..ServerCapabilities::default() };
    let mut player = SessionPlayer::new(rules());
    player.offered = silent.clone();
    play(&mut player, &after_hello("* tools\n* prompts\n* resources"));
    let mut player = SessionPlayer::new(rules());
    player.offered = silent.with_list_changed(true);
    let told = r#"< {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    play(&mut player, &after_hello(&format!("* prompts\n* resources\n* tools\n{told}")));
}

#[test]
fn a_legacy_client_is_told_of_the_resources_it_subscribed_to_and_of_no_other() {
    transcript(&after_hello(
        r#"
        * a:b
        > {"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"a:b"}}
        < {"jsonrpc":"2.0","id":1,"result":{}}
        > {"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"a:b"}}
        < {"jsonrpc":"2.0","id":2,"result":{}}
        * a:b
        < {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:b"}}
        * a:c
        > {"jsonrpc":"2.0","id":3,"method":"resources/unsubscribe","params":{"uri":"a:b"}}
        < {"jsonrpc":"2.0","id":3,"result":{}}
        * a:b
        > {"jsonrpc":"2.0","id":4,"method":"resources/unsubscribe","params":{"uri":"a:b"}}
        < {"jsonrpc":"2.0","id":4,"result":{}}
    "#,
    ));
}

const LISTEN: &str = r#"> {"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["a:b"]},"_meta":@modern}}
        < {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"l"},"notifications":{"toolsListChanged":true,"resourceSubscriptions":["a:b"]}}}"#;

#[test]
fn a_listener_is_acknowledged_first_and_hears_what_it_asked_for_with_its_id() {
    transcript(&format!(
        r#"
        {LISTEN}
        * tools
        < {{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{{"_meta":{{"io.modelcontextprotocol/subscriptionId":"l"}}}}}}
        * prompts
        * resources
        * a:c
        * a:b
        < {{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{{"_meta":{{"io.modelcontextprotocol/subscriptionId":"l"}},"uri":"a:b"}}}}
    "#
    ));
}

#[test]
fn several_listeners_hear_each_its_own_and_the_type_of_an_id_is_kept() {
    transcript(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"promptsListChanged":true},"_meta":@modern}}
        < {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1},"notifications":{"promptsListChanged":true}}}
        > {"jsonrpc":"2.0","id":"1","method":"subscriptions/listen","params":{"notifications":{"promptsListChanged":true,"resourcesListChanged":true},"_meta":@modern}}
        < {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"1"},"notifications":{"promptsListChanged":true,"resourcesListChanged":true}}}
        * prompts
        < {"jsonrpc":"2.0","method":"notifications/prompts/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}
        < {"jsonrpc":"2.0","method":"notifications/prompts/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"1"}}}
        * resources
        < {"jsonrpc":"2.0","method":"notifications/resources/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"1"}}}
        > {"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":@modern}}
        < {"jsonrpc":"2.0","error":{"code":-32600,"message":"…"}}
    "#,
    );
}

#[test]
fn other_requests_go_on_beside_a_listener_and_their_notes_are_not_its() {
    transcript(&format!(
        r#"
        {LISTEN}
        > {{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"t","_meta":@modern+{{"progressToken":9,"io.modelcontextprotocol/logLevel":"info"}}}}}}
        ! start 2
        ~ 2 progress 1
        < {{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":9,"progress":1}}}}
        ~ 2 log info - "x"
        < {{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"info","data":"x"}}}}
        = 2 {{"content":[]}}
        < {{"jsonrpc":"2.0","id":2,"result":"…"}}
    "#
    ));
}

#[test]
fn a_listener_that_is_cancelled_hears_nothing_more_not_even_an_answer() {
    transcript(&format!(
        r#"
        {LISTEN}
        > {{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":"l"}}}}
        * tools
        * a:b
        {LISTEN}
        > ^D
        < {{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"_meta":{{"io.modelcontextprotocol/subscriptionId":"l"}},"requestId":"l","reason":"…"}}}}
        < {{"jsonrpc":"2.0","id":"l","result":{{"resultType":"complete","_meta":{{"io.modelcontextprotocol/serverInfo":"…","io.modelcontextprotocol/subscriptionId":"l"}}}}}}
        ! close
    "#
    ));
}

#[test]
fn a_listener_without_a_filter_is_refused_and_an_empty_one_is_not() {
    transcript(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"_meta":@modern}}
        < {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"…"}}
        > {"jsonrpc":"2.0","id":2,"method":"subscriptions/listen","params":{"notifications":[],"_meta":@modern}}
        < {"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"…"}}
        > {"jsonrpc":"2.0","id":3,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":1},"_meta":@modern}}
        < {"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"…"}}
        > {"jsonrpc":"2.0","id":4,"method":"subscriptions/listen","params":{"notifications":{"somethingNew":true},"_meta":@modern}}
        < {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":4},"notifications":{}}}
        * tools
    "#,
    );
}

#[test]
fn a_modern_listener_and_a_legacy_client_on_one_pipe_are_both_told() {
    transcript(&after_hello(&format!(
        r#"
        {LISTEN}
        * tools
        < {{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}}
        < {{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{{"_meta":{{"io.modelcontextprotocol/subscriptionId":"l"}}}}}}
    "#
    )));
}

#[test]
fn what_is_listened_to_can_be_asked() {
    let mut player = SessionPlayer::new(rules());
    play(
        &mut player,
        &after_hello(&format!(
            r#"
        {LISTEN}
        > {{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{{"uri":"a:0"}}}}
        < {{"jsonrpc":"2.0","id":1,"result":{{}}}}
    "#
        )),
    );
    assert_eq!(player.session.watched(), ["a:0", "a:b"].map(Box::<str>::from));
}
