//! Lists: their pages, and notifications of changes.

use sabir_registry::Offer;
use sabir_testkit::{ConnectionPlayer, House, Player as _, play};
use sabir_wire::Raw;
use sabir_wire::types::{CacheHint, CacheScope, Prompt, Resource, ResourceTemplate, Tool, Topic};
use serde_json::Value;

use crate::{after_hello, ask, player, playing, settings};

/// Seven of everything, three on a page.
fn long() -> ConnectionPlayer {
    let mut paged = settings();
    paged.engine_limits.page_size = 3;
    let any = Raw::parse(r#"{"type":"object"}"#).unwrap();
    let names = || (0..7).map(|n| format!("n{n}"));
    let prompt = |name| Prompt { name, ..Prompt::default() };
    let resource =
        |name: String| Resource { uri: format!("m:{name}"), name, ..Resource::default() };
    let template = |name: String| ResourceTemplate {
        uri_template: format!("t:{name}/{{id}}"),
        name,
        ..ResourceTemplate::default()
    };
    let offer = Offer {
        tools: names().map(|name| Tool::new(name, "d", any.clone())).collect(),
        prompts: names().map(prompt).collect(),
        resources: names().map(resource).collect(),
        templates: names().map(template).collect(),
        cache: CacheHint { ttl_ms: 42, scope: CacheScope::Private },
        ..Offer::default()
    };
    playing(House::offering(paged, offer))
}

const LISTS: [(&str, &str); 4] = [
    ("tools/list", "tools"),
    ("prompts/list", "prompts"),
    ("resources/list", "resources"),
    ("resources/templates/list", "resourceTemplates"),
];

#[test]
fn pages_cover_each_list_once_in_order_and_carry_the_same_hints() {
    for (method, key) in LISTS {
        let mut player = long();
        let (mut names, mut sizes, mut params) = (Vec::new(), Vec::new(), String::new());
        loop {
            let page = ask(&mut player, method, &params);
            let result = &page["result"];
            assert_eq!((&result["ttlMs"], &result["cacheScope"]), (&42.into(), &"private".into()));
            assert_eq!(result["resultType"], "complete");
            let items = result[key].as_array().unwrap();
            sizes.push(items.len());
            names.extend(items.iter().map(|item| item["name"].as_str().unwrap().to_owned()));
            match &result["nextCursor"] {
                Value::String(cursor) => params = format!(r#""cursor":"{cursor}""#),
                none => {
                    assert!(none.is_null());
                    break;
                }
            }
        }
        assert_eq!(sizes, [3, 3, 1], "{method}");
        assert_eq!(names, ["n0", "n1", "n2", "n3", "n4", "n5", "n6"], "{method}");
    }
}

#[test]
fn a_cursor_goes_on_in_whichever_era() {
    for (method, key) in LISTS {
        let mut player = long();
        let first = ask(&mut player, method, "");
        let cursor = first["result"]["nextCursor"].as_str().unwrap().to_owned();
        let next = format!(
            r#"{{"jsonrpc":"2.0","id":2,"method":"{method}","params":{{"cursor":"{cursor}"}}}}"#
        );
        player.say(next.as_bytes());
        let page = crate::answer(&mut player);
        assert_eq!(page["result"][key][0]["name"], "n3", "{page}");
        assert!(
            page["result"].get("ttlMs").is_none() && page["result"].get("resultType").is_none()
        );
    }
}

#[test]
fn a_cursor_that_is_none_of_ours_is_an_invalid_param() {
    for (method, _) in LISTS {
        for cursor in [r#""""#, r#""unknown""#, r#""MA""#, "7", "{}"] {
            let refused = ask(&mut long(), method, &format!(r#""cursor":{cursor}"#));
            assert_eq!(refused["error"]["code"], -32602, "{method} {cursor}: {refused}");
        }
        // A cursor of one list is not one of another.
        let cursor = ask(&mut long(), "tools/list", "")["result"]["nextCursor"].clone();
        if method.starts_with("resources") {
            let refused = ask(&mut long(), method, &format!(r#""cursor":{cursor}"#));
            assert_eq!(refused["error"]["code"], -32602, "{method}: {refused}");
        }
    }
}

#[test]
fn lists_come_out_in_the_same_order_every_time() {
    let mut player = long();
    let first = ask(&mut player, "tools/list", "");
    for _ in 0..3 {
        assert_eq!(ask(&mut player, "tools/list", ""), first);
    }
}

#[test]
fn a_change_is_told_to_both_eras_and_the_new_list_is_there() {
    let mut player = player();
    play(
        &mut player,
        &after_hello(
            r#"
        > {"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["memo:///a"]},"_meta":@modern}}
        < {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":"…"}
        > {"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"memo:///a"}}
        < {"jsonrpc":"2.0","id":2,"result":{}}
        * tools
        < {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}
        < {"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"l"}}}
        * prompts
        < {"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}
        < {"jsonrpc":"2.0","method":"notifications/prompts/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"l"}}}
        * resources
        < {"jsonrpc":"2.0","method":"notifications/resources/list_changed"}
        < {"jsonrpc":"2.0","method":"notifications/resources/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"l"}}}
        * memo:///a
        < {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"memo:///a"}}
        < {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"l"},"uri":"memo:///a"}}
        * memo:///b
    "#,
        ),
    );
    let list = ask(&mut player, "tools/list", "");
    let names: Vec<_> =
        list["result"]["tools"].as_array().unwrap().iter().map(|t| &t["name"]).collect();
    assert_eq!(names, ["t", "u", "more-2"]);
}

#[test]
fn a_source_that_comes_or_goes_is_told_of_where_that_was_promised() {
    let promised = |changeable: bool| {
        let mut player = playing(House::of(settings(), Vec::new()));
        let registry = player.house.engine.registry().clone();
        if changeable {
            registry.allow_changes();
        }
        play(&mut player, &after_hello(""));
        let id = registry.add(std::sync::Arc::new(sabir_testkit::StandIn)).unwrap();
        player.settle();
        assert!(registry.remove(id).is_some());
        player
    };
    let told = r#"< {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    play(&mut promised(true), &format!("{told}\n{told}"));
    play(&mut promised(false), "");
}

#[test]
fn a_client_that_cannot_keep_up_is_told_of_everything_once() {
    let mut slow = settings();
    slow.engine_limits.notifications = 4;
    let mut player = playing(House::new(slow));
    play(
        &mut player,
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["memo:///a","memo:///x/1"]},"_meta":@modern}}
        < {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":"…"}
    "#,
    );
    // The connection does not advance meanwhile.
    for n in 0..100 {
        let uri = if n % 2 == 0 { "memo:///a".to_owned() } else { format!("memo:///x/{n}") };
        player.house.source.handle().updated(uri);
    }
    let methods: Vec<_> = std::iter::from_fn(|| player.hear())
        .map(|frame| {
            let said: Value = serde_json::from_slice(&frame).unwrap();
            let uri = said["params"]["uri"].as_str().unwrap_or_default();
            format!("{} {uri}", said["method"].as_str().unwrap())
        })
        .collect();
    assert_eq!(
        methods,
        [
            "notifications/tools/list_changed ",
            "notifications/prompts/list_changed ",
            "notifications/resources/list_changed ",
            "notifications/resources/updated memo:///a",
            "notifications/resources/updated memo:///x/1",
        ]
    );
    // Later changes are announced one by one again.
    player.change(Topic::Resource("memo:///a".into()));
    assert!(player.hear().is_some() && player.hear().is_none());
}

#[test]
fn a_client_that_listens_to_nothing_is_told_nothing() {
    let mut player = player();
    player.change(Topic::Tools);
    player.change(Topic::Resource("memo:///a".into()));
    assert_eq!(player.hear(), None);
}

#[test]
fn a_listener_gets_what_is_declared_and_no_more() {
    let mut still = House::offer();
    (still.changes, still.updates) = (false, false);
    play(
        &mut playing(House::offering(settings(), still)),
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["memo:///a"]},"_meta":@modern}}
        < {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1},"notifications":{}}}
        * tools
        * memo:///a
    "#,
    );
}
