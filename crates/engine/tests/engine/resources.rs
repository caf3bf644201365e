//! Resources, prompts and completions.

use sabir_registry::{Access, AddedSource, Offer};
use sabir_session::SessionKind;
use sabir_testkit::play;
use sabir_testkit::{Called, ConnectionPlayer, Ending, Event, House, Player as _, ScriptedSource};
use sabir_wire::types::{Prompt, PromptArgument, Resource, ResourceTemplate};
use sabir_wire::{Caller, Raw};
use serde_json::json;

use crate::{
    after_greeting, after_hello, answer, ask, player, playing, request, settings, transcript,
};

#[test]
fn a_resource_that_is_not_there_has_the_code_of_the_revision() {
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let script = r#"
            > {"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"memo:///none"}}
            < {"jsonrpc":"2.0","id":1,"error":{"code":-32002,"message":"…","data":{"uri":"memo:///none"}}}
            > {"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"memo:///none"}}
            < {"jsonrpc":"2.0","id":2,"error":{"code":-32002,"message":"…","data":{"uri":"memo:///none"}}}
        "#;
        transcript(&after_greeting(revision, script));
    }
    let refused = ask(&mut player(), "resources/read", r#""uri":"memo:///none""#);
    assert_eq!(refused["error"]["code"], -32602);
    assert_eq!(refused["error"]["data"], json!({ "uri": "memo:///none" }));
}

#[test]
fn a_resource_of_a_family_is_read_with_its_variables() {
    let mut player = player();
    player.say(request(1, "resources/read", r#""uri":"memo:///x/a%20b""#).as_bytes());
    let Some(Event::Start(call)) = player.event() else { panic!("no call") };
    let Some(Called::Resource(read)) = player.house.called(call) else { panic!("no resource") };
    assert_eq!(read.template.as_deref(), Some("memo:///x/{id}"));
    assert_eq!(read.variables.get("id").unwrap(), "a b");
    assert_eq!(&*read.uri, "memo:///x/a%20b");
}

#[test]
fn what_was_read_carries_its_own_hints_and_a_question_carries_none() {
    let mut player = player();
    player.say(request(1, "resources/read", r#""uri":"memo:///a""#).as_bytes());
    let Some(Event::Start(call)) = player.event() else { panic!("no call") };
    let result =
        r#"{"contents":[{"uri":"memo:///a","text":"x"}],"ttlMs":60000,"cacheScope":"public"}"#;
    player.finish(call, Ending::Result(Raw::parse(result).unwrap()));
    let read = answer(&mut player);
    assert_eq!(
        (&read["result"]["ttlMs"], &read["result"]["cacheScope"]),
        (&json!(60000), &json!("public"))
    );
    player.say(request(2, "resources/read", r#""uri":"memo:///a""#).as_bytes());
    let Some(Event::Start(call)) = player.event() else { panic!("no call") };
    let ask = r#"{"inputRequests":{"r":{"method":"roots/list"}}}"#;
    player.finish(call, Ending::Asks(Raw::parse(ask).unwrap()));
    let asked = answer(&mut player);
    assert_eq!(asked["result"]["resultType"], "input_required");
    assert!(asked["result"].get("ttlMs").is_none() && asked["result"].get("cacheScope").is_none());
}

#[test]
fn what_a_source_says_of_caching_is_said_of_its_lists_and_of_the_server() {
    let mut player = player();
    for method in ["tools/list", "prompts/list", "resources/list", "server/discover"] {
        let result = ask(&mut player, method, "")["result"].clone();
        assert!(result["ttlMs"].is_u64() && result["cacheScope"] == "public", "{method}: {result}");
    }
}

#[test]
fn a_prompt_needs_its_name_and_its_required_arguments() {
    let argument = |name: &str, required| PromptArgument {
        name: name.into(),
        required,
        ..PromptArgument::default()
    };
    let prompt = Prompt {
        name: "p".into(),
        arguments: vec![argument("a", true), argument("b", false)],
        ..Prompt::default()
    };
    let offer = Offer { prompts: vec![prompt], ..Offer::default() };
    let mut player = playing(House::offering(settings(), offer));
    for params in [
        r#""name":"nope""#,
        r#""name":"p""#,
        r#""name":"p","arguments":{"b":"x"}"#,
        r#""name":"p","arguments":{"a":1}"#,
        r#""name":"p","arguments":["a"]"#,
        r#""arguments":{"a":"x"}"#,
    ] {
        let refused = ask(&mut player, "prompts/get", params);
        assert_eq!(refused["error"]["code"], -32602, "{params}: {refused}");
    }
    assert_eq!(player.event(), None);
    player.say(request(1, "prompts/get", r#""name":"p","arguments":{"a":"x"}"#).as_bytes());
    let Some(Event::Start(call)) = player.event() else { panic!("no call") };
    let Some(Called::Prompt(get)) = player.house.called(call) else { panic!("no prompt") };
    assert_eq!(get.arguments[0], ("a".into(), "x".into()));
}

#[test]
fn a_completion_carries_at_most_a_hundred_values() {
    let values = |count: usize| -> String {
        let all: Vec<_> = (0..count).map(|n| format!("\"{n}\"")).collect();
        all.join(",")
    };
    for (count, shown, total, more) in
        [(0, 0, 0, false), (1, 1, 1, false), (100, 100, 100, false), (101, 100, 101, true)]
    {
        let mut player = player();
        let complete = r#""ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":"v"},"context":{"arguments":{"b":"c"}}"#;
        player.say(request(1, "completion/complete", complete).as_bytes());
        let Some(Event::Start(call)) = player.event() else { panic!("no call") };
        let Some(Called::Complete(asked)) = player.house.called(call) else {
            panic!("no completion")
        };
        assert_eq!((&*asked.argument.name, &*asked.argument.value), ("a", "v"));
        assert_eq!(asked.given.arguments, [("b".into(), "c".into())]);
        let result = format!(r#"{{"completion":{{"values":[{}]}}}}"#, values(count));
        player.finish(call, Ending::Result(Raw::parse(result).unwrap()));
        let completion = answer(&mut player)["result"]["completion"].clone();
        assert_eq!(completion["values"].as_array().unwrap().len(), shown);
        assert_eq!((&completion["total"], &completion["hasMore"]), (&json!(total), &json!(more)));
    }
}

#[test]
fn a_completion_of_what_is_not_there_is_refused() {
    let mut player = player();
    for params in [
        r#""ref":{"type":"ref/prompt","name":"nope"},"argument":{"name":"a","value":""}"#,
        r#""ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"nope","value":""}"#,
        r#""ref":{"type":"ref/resource","uri":"memo:///y/{id}"},"argument":{"name":"id","value":""}"#,
        r#""ref":{"type":"ref/resource","uri":"memo:///x/{id}"},"argument":{"name":"nope","value":""}"#,
        r#""ref":{"type":"ref/tool","name":"t"},"argument":{"name":"a","value":""}"#,
        r#""ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a"}"#,
        r#""ref":{"type":"ref/prompt","name":"p"}"#,
        r#""argument":{"name":"a","value":""}"#,
        r#""ref":{"type":"ref/prompt","name":"p"},"argument":["a","b"]"#,
    ] {
        let refused = ask(&mut player, "completion/complete", params);
        assert_eq!(refused["error"]["code"], -32602, "{params}: {refused}");
    }
    assert_eq!(player.event(), None);
    let template = r#""ref":{"type":"ref/resource","uri":"memo:///x/{id}"},"argument":{"name":"id","value":""}"#;
    player.say(request(1, "completion/complete", template).as_bytes());
    assert!(matches!(player.event(), Some(Event::Start(_))));
}

#[test]
fn the_first_revision_completes_without_having_a_word_for_it() {
    transcript(&after_greeting(
        "2024-11-05",
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":""}}}
        ! start 1
        = 1 {"completion":{"values":["x"]}}
        < {"jsonrpc":"2.0","id":1,"result":{"completion":{"values":["x"],"total":1,"hasMore":false}}}
    "#,
    ));
}

#[test]
fn updates_stop_when_they_are_not_wanted_any_more() {
    play(
        &mut player(),
        &after_hello(
            r#"
        > {"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"memo:///x/1"}}
        < {"jsonrpc":"2.0","id":1,"result":{}}
        * memo:///x/1
        < {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"memo:///x/1"}}
        * memo:///x/2
        > {"jsonrpc":"2.0","id":2,"method":"resources/unsubscribe","params":{"uri":"memo:///x/1"}}
        < {"jsonrpc":"2.0","id":2,"result":{}}
        * memo:///x/1
    "#,
        ),
    );
}

#[test]
fn a_listener_needs_the_scopes_of_a_resource_that_a_template_of_another_source_also_matches() {
    let template = ResourceTemplate {
        uri_template: "memo:///{+path}".into(),
        name: "all".into(),
        ..ResourceTemplate::default()
    };
    let secret =
        Resource { uri: "memo:///secret".into(), name: "secret".into(), ..Resource::default() };
    let open = Offer { templates: vec![template], updates: true, ..Offer::default() };
    let closed = Offer { resources: vec![secret], updates: true, ..Offer::default() };
    let house = House::of(settings(), Vec::new());
    let added = [(open, Vec::new()), (closed, vec!["a".into()])].map(|(offer, scopes)| {
        let access = Access { scopes, ..Access::default() };
        AddedSource { source: ScriptedSource::new(offer), access }
    });
    house.engine.registry().add_all(added.into()).unwrap();
    let caller = Caller::new("i", "ann");
    let mut player = ConnectionPlayer::with(house, SessionKind::Stream, caller);
    let uris = r#"["memo:///secret","memo:///public","other:///unknown"]"#;
    let filter = format!(r#""notifications":{{"resourceSubscriptions":{uris}}}"#);
    let acknowledged = ask(&mut player, "subscriptions/listen", &filter);
    let served = &acknowledged["params"]["notifications"]["resourceSubscriptions"];
    assert_eq!(*served, json!(["memo:///public"]));
    for uri in ["memo:///secret", "memo:///public"] {
        player.house.engine.registry().updated(uri);
    }
    player.settle();
    assert_eq!(answer(&mut player)["params"]["uri"], "memo:///public");
    assert_eq!(player.hear(), None);
}
