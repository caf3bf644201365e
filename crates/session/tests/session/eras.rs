//! Two eras on one pipe, request by request.

use sabir_session::{Dialect, SessionKind, SessionState};
use sabir_testkit::{Event, Player as _, SessionPlayer, play};
use sabir_wire::{Era, Revision};

use crate::{after_greeting, after_hello, rules, speaking, transcript, under};

#[test]
fn each_request_is_answered_in_the_era_it_is_written_in() {
    transcript(&after_hello(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":@modern}}
        ! start 1
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t"}}
        ! start 2
        = 1 {"content":[]}
        < {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[],"_meta":@server}}
        = 2 {"content":[]}
        < {"jsonrpc":"2.0","id":2,"result":{"content":[]}}
        > {"jsonrpc":"2.0","id":3,"method":"server/discover","params":{"_meta":@modern}}
        < {"jsonrpc":"2.0","id":3,"result":{"resultType":"complete","supportedVersions":"…","capabilities":"…","ttlMs":"…","cacheScope":"…","_meta":@server}}
        > {"jsonrpc":"2.0","id":4,"method":"ping"}
        < {"jsonrpc":"2.0","id":4,"result":{}}
    "#,
    ));
}

#[test]
fn a_modern_client_needs_no_handshake_and_makes_none() {
    let mut player = SessionPlayer::new(rules());
    play(
        &mut player,
        r#"
        > {"jsonrpc":"2.0","id":"a","method":"tools/list","params":{"_meta":@modern}}
        ! start a
        = a {"tools":[]}
        < {"jsonrpc":"2.0","id":"a","result":{"tools":[]}}
    "#,
    );
    assert_eq!(player.session.state(), SessionState::Waiting);
}

#[test]
fn a_modern_request_does_not_stand_in_the_way_of_a_later_handshake() {
    transcript(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":@modern}}
        < {"jsonrpc":"2.0","id":1,"result":"…"}
        > {"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}
        < {"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-06-18","…":"…"}}
        > {"jsonrpc":"2.0","method":"notifications/initialized"}
        ! ready
    "#,
    );
}

#[test]
fn the_metadata_that_a_modern_request_needs_must_be_there() {
    transcript(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}
        < {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"…"}}
        > {"jsonrpc":"2.0","id":2,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}
        < {"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"…"}}
    "#,
    );
    // Over HTTP the header has said that the request is modern.
    for meta in [
        "{}",
        r#"{"_meta":{}}"#,
        r#"{"_meta":{"io.modelcontextprotocol/clientCapabilities":{}}}"#,
        r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#,
    ] {
        let mut player = SessionPlayer::of_kind(rules(), SessionKind::ModernHttp);
        let ask = format!(r#"> {{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{meta}}}"#);
        let refusal = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"…"}}"#;
        play(&mut player, &format!("{ask}\n< {refusal}"));
    }
}

#[test]
fn metadata_of_the_wrong_type_is_refused() {
    for meta in [
        r#"{"io.modelcontextprotocol/protocolVersion":7,"io.modelcontextprotocol/clientCapabilities":{}}"#,
        r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":[]}"#,
        r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":null}"#,
        r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"sampling":true}}"#,
        r#"@modern+{"io.modelcontextprotocol/clientInfo":{"name":"c"}}"#,
        r#"@modern+{"io.modelcontextprotocol/clientInfo":"c"}"#,
        r#"@modern+{"io.modelcontextprotocol/logLevel":"loud"}"#,
        r#"@modern+{"progressToken":1.5}"#,
        r#"@modern+{"progressToken":{}}"#,
        "7",
        "[]",
    ] {
        transcript(&format!(
            "> {{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{{\"_meta\":{meta}}}}}\n\
             < {{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{{\"code\":-32602,\"message\":\"…\"}}}}"
        ));
    }
}

#[test]
fn a_client_that_does_not_name_itself_is_served() {
    let mut player = SessionPlayer::new(rules());
    let ask =
        r#"> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":@modern}}"#;
    play(&mut player, &format!("{ask}\n! start 1"));
    let ask = r#"> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","_meta":@modern+{"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"com.example/x":1}}}"#;
    play(&mut player, ask.lines().next().map(|ask| format!("{ask}\n! start 2")).unwrap().as_str());
}

#[test]
fn what_a_request_says_of_itself_reaches_the_call() {
    let mut player = SessionPlayer::new(rules());
    let script = sabir_testkit::Transcript::parse(
        r#"> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":@able+{"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"com.example/x":12345678901234567890,"traceparent":"00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01","io.modelcontextprotocol/logLevel":"warning","progressToken":7}}}"#,
    );
    let sabir_testkit::Step::Say(frame) = &script.steps[0].1 else { panic!("no frame") };
    player.say(frame);
    let Some(Event::Start(number)) = player.event() else { panic!("no call") };
    let from = &player.call(number).unwrap().from;
    assert_eq!(from.revision, Revision::NEWEST);
    assert!(from.capabilities.elicitation_form && from.capabilities.sampling_tools);
    assert_eq!(from.client.as_ref().unwrap().text(), r#"{"name":"c","version":"1"}"#);
    assert_eq!(from.log_level, Some(sabir_wire::types::Level::Warning));
    assert_eq!(from.meta.progress_token, Some(7.into()));
    assert_eq!(
        from.meta.trace().traceparent.unwrap(),
        "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"
    );
    assert!(from.meta.raw.as_ref().unwrap().text().contains(":12345678901234567890,"));
}

#[test]
fn a_revision_that_is_not_served_is_refused_with_those_that_are() {
    let legacy = Revision::ALL.into_iter().filter(|revision| revision.era() == Era::Legacy);
    let unknown = ["v999.0.0", "", "2026-07-29"].into_iter();
    for version in unknown.chain(legacy.map(Revision::date)) {
        transcript(&format!(
            r#"
            > {{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"_meta":{{"io.modelcontextprotocol/protocolVersion":"{version}","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}
            < {{"jsonrpc":"2.0","id":1,"error":{{"code":-32022,"message":"…","data":{{"supported":["2026-07-28"],"requested":"{version}"}}}}}}
        "#
        ));
    }
}

#[test]
fn methods_of_one_era_do_not_exist_in_the_other() {
    for method in ["initialize", "ping", "logging/setLevel", "resources/subscribe"] {
        transcript(&format!(
            r#"
            > {{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"level":"info","uri":"a:b","_meta":@modern}}}}
            < {{"jsonrpc":"2.0","id":1,"error":{{"code":-32601,"message":"…"}}}}
        "#
        ));
    }
    for method in ["resources/unsubscribe", "tools/unknown", "tasks/result", "roots/list"] {
        transcript(&format!(
            r#"
            > {{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"_meta":@modern}}}}
            < {{"jsonrpc":"2.0","id":1,"error":{{"code":-32601,"message":"…"}}}}
        "#
        ));
    }
    transcript(&after_hello(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"server/discover"}
        < {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"…"}}
        > {"jsonrpc":"2.0","id":2,"method":"subscriptions/listen","params":{"notifications":{}}}
        < {"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"…"}}
    "#,
    ));
}

#[test]
fn nothing_of_the_handshake_helps_or_harms_a_modern_request() {
    // The handshake declared everything, and asked for all log messages.
    transcript(&after_hello(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"debug"}}
        < {"jsonrpc":"2.0","id":1,"result":{}}
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","_meta":@modern}}
        ! start 2
        ~ 2 log emergency - "x"
        = 2 asks {"inputRequests":{"r":{"method":"roots/list"}}}
        < {"jsonrpc":"2.0","id":2,"error":{"code":-32021,"message":"…","data":{"requiredCapabilities":{"roots":{}}}}}
    "#,
    ));
    // The declarations of a modern request hold for that request only.
    transcript(&after_greeting(
        Revision::V2025_11_25,
        "{}",
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":@able+{"io.modelcontextprotocol/logLevel":"debug"}}}
        ! start 1
        = 1 {"content":[]}
        < {"jsonrpc":"2.0","id":1,"result":"…"}
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","_meta":@modern}}
        ! start 2
        ~ 2 log emergency - "x"
        = 2 asks {"inputRequests":{"r":{"method":"roots/list"}}}
        < {"jsonrpc":"2.0","id":2,"error":{"code":-32021,"…":"…"}}
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"t"}}
        ! start 3
        ~ 3 log debug - "x"
        = 3 asks {"inputRequests":{"r":{"method":"roots/list"}}}
        < {"jsonrpc":"2.0","id":3,"error":{"code":-32600,"…":"…"}}
    "#,
    ));
}

#[test]
fn a_server_pinned_to_a_legacy_revision_is_a_legacy_server() {
    let pinned = Dialect { revision: Some(Revision::V2025_03_26), ..Dialect::default() };
    under(
        speaking(pinned),
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":@modern}}
        < {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"…"}}
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","_meta":@modern}}
        ! start 2
        = 2 {"content":[]}
        < {"jsonrpc":"2.0","id":2,"result":{"content":[]}}
    "#,
    );
}

#[test]
fn a_server_pinned_to_the_modern_revision_wants_its_metadata() {
    let pinned = || Dialect { revision: Some(Revision::V2026_07_28), ..Dialect::default() };
    for method in ["tools/list", "ping", "server/discover"] {
        under(
            speaking(pinned()),
            &format!(
                r#"
            > {{"jsonrpc":"2.0","id":1,"method":"{method}"}}
            < {{"jsonrpc":"2.0","id":1,"error":{{"code":-32602,"message":"…"}}}}
        "#
            ),
        );
    }
    under(
        speaking(pinned()),
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":@modern}}
        ! start 1
        = 1 {"content":[]}
        < {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[],"_meta":@server}}
    "#,
    );
}

#[test]
fn results_are_said_in_each_revision_as_it_can() {
    let result = r#"{"content":[{"type":"audio","data":"AA==","mimeType":"audio/wav"},{"type":"resource_link","uri":"a:b","name":"n"}],"structuredContent":{"n":1},"_meta":{"com.example/n":1}}"#;
    let audio = r#"{"type":"audio","data":"AA==","mimeType":"audio/wav"}"#;
    let link = r#"{"type":"resource_link","uri":"a:b","name":"n"}"#;
    let told = r#"{"type":"text","text":"n: a:b"}"#;
    let kept = r#"{"type":"resource","resource":{"uri":"…","mimeType":"audio/wav","blob":"AA=="}}"#;
    let meta = r#""_meta":{"com.example/n":1}"#;
    let structured = r#""structuredContent":{"n":1}"#;
    let said = |revision| match revision {
        Revision::V2024_11_05 => format!(r#"{{"content":[{kept},{told}],{meta}}}"#),
        Revision::V2025_03_26 => format!(r#"{{"content":[{audio},{told}],{meta}}}"#),
        _ => format!(r#"{{"content":[{audio},{link}],{structured},{meta}}}"#),
    };
    for revision in Revision::ALL.into_iter().filter(|revision| revision.era() == Era::Legacy) {
        let script = format!(
            r#"
            > {{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t"}}}}
            ! start 1
            = 1 {result}
            < {{"jsonrpc":"2.0","id":1,"result":{}}}
        "#,
            said(revision)
        );
        transcript(&after_greeting(revision, "{}", &script));
    }
}
