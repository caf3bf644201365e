//! `[[app]]`: an HTML view of a tool, as any client sees it.

use std::fs;

use serde_json::{Value, json};

use crate::tasks::Server;
use crate::{folder_with, sabir, seen};

const CONFIGURATION: &str = r#"
[[command]]
name = "list"
description = "Lists"
run = ["printf", "a\tb\n1\t2\n"]

[[command]]
name = "refresh"
description = "For the view"
run = ["true"]

[[command]]
name = "plain"
description = "Has no view"
run = ["true"]

[[app]]
tool = "list"
file = "view.html"
title = "A list"
csp = { connect = ["https://api.example.com"], resources = ["https://*.example.com"] }
permissions = ["clipboardWrite", "camera"]
domain = "x.example.com"
border = false

[[app]]
tool = "refresh"
visibility = ["app"]
"#;

fn tool(server: &mut Server, name: &str) -> Value {
    let listed = server.ask("tools/list", json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap();
    tools.iter().find(|tool| tool["name"] == name).unwrap().clone()
}

#[test]
fn a_tool_names_its_view_and_the_view_says_what_it_needs() {
    let folder = folder_with(CONFIGURATION);
    let page = "<!DOCTYPE html>\n<title>A \"list\"</title>\n";
    fs::write(folder.path().join("view.html"), page).unwrap();
    let mut server = Server::start(folder.path());
    let capabilities = server.ask("server/discover", json!({}))["result"]["capabilities"].clone();
    assert_eq!(capabilities["extensions"], json!({ "io.modelcontextprotocol/ui": {} }));
    let meta = tool(&mut server, "list")["_meta"].clone();
    assert_eq!(meta, json!({ "ui": { "resourceUri": "ui://views/list" } }));
    let meta = tool(&mut server, "refresh")["_meta"].clone();
    assert_eq!(meta, json!({ "ui": { "visibility": ["app"] } }));
    assert_eq!(tool(&mut server, "plain").get("_meta"), None);
    let read = server.ask("resources/read", json!({ "uri": "ui://views/list" }));
    let needs = json!({ "ui": {
        "csp": {
            "connectDomains": ["https://api.example.com"],
            "resourceDomains": ["https://*.example.com"],
        },
        "permissions": { "clipboardWrite": {}, "camera": {} },
        "domain": "x.example.com",
        "prefersBorder": false,
    } });
    assert_eq!(
        read["result"]["contents"],
        json!([{
            "uri": "ui://views/list",
            "mimeType": "text/html;profile=mcp-app",
            "text": page,
            "_meta": needs,
        }])
    );
    let listed = server.ask("resources/list", json!({}))["result"]["resources"].clone();
    assert_eq!(
        listed,
        json!([{
            "uri": "ui://views/list",
            "name": "list",
            "title": "A list",
            "mimeType": "text/html;profile=mcp-app",
            "_meta": needs,
        }])
    );
    let called = server.ask("tools/call", json!({ "name": "list", "arguments": {} }));
    assert_eq!(called["result"]["content"][0]["text"], "a\tb\n1\t2", "{called}");
    // The page is read anew.
    fs::write(folder.path().join("view.html"), "<!DOCTYPE html><p>new").unwrap();
    let read = server.ask("resources/read", json!({ "uri": "ui://views/list" }));
    assert_eq!(read["result"]["contents"][0]["text"], "<!DOCTYPE html><p>new");
    server.kill();
}

#[test]
fn the_built_in_view_is_off_until_a_tool_asks_for_it() {
    let command = "[[command]]\nname = \"a\"\ndescription = \"b\"\nrun = [\"true\"]\n";
    let mut server = Server::start(folder_with(command).path());
    let capabilities = server.ask("server/discover", json!({}))["result"]["capabilities"].clone();
    assert_eq!(capabilities.get("extensions"), None);
    server.kill();
    let folder = folder_with(&format!("{command}[[app]]\ntool = \"a\"\nbuilt_in = true\n"));
    let mut server = Server::start(folder.path());
    let read = server.ask("resources/read", json!({ "uri": "ui://views/a" }));
    let page = read["result"]["contents"][0]["text"].as_str().unwrap().to_owned();
    assert!(page.starts_with("<!DOCTYPE html>"), "{page}");
    // A policy without any origin is what hosts use for it.
    assert_eq!(read["result"]["contents"][0].get("_meta"), None);
    assert!(!page.contains("src=") && !page.contains("innerHTML"), "it loads nothing");
    server.kill();
}

#[test]
fn mistakes_are_named() {
    let app = |keys: &str| format!("[[app]]\ntool = \"a\"\n{keys}\n");
    for (file, told) in [
        (app(""), "app of `a`: expected either `file` or `built_in = true`"),
        (app("file = \"none.html\""), "app of `a`: cannot read "),
        (app("built_in = true\nuri = \"http://x\""), "invalid URI `http://x`"),
        (
            app("built_in = true\npermissions = [\"usb\"]"),
            "invalid value `usb` of `permissions` (expected \"camera\"",
        ),
        (
            app("built_in = true\nvisibility = [\"all\"]"),
            "invalid value `all` of `visibility` (expected \"model\", \"app\")",
        ),
        (
            app("built_in = true\ncsp = { connect = [\"https://x; script-src *\"] }"),
            "invalid origin `https://x; script-src *` of `connect` (expected e.g. \"https://api.example.com\")",
        ),
        (app("built_in = true") + &app("built_in = true"), "there are two apps of the tool `a`"),
    ] {
        let said = seen(&sabir(folder_with(&file).path(), &["check"]));
        assert!(said.starts_with("exit 3") && said.contains(told), "{said}");
    }
    let said = seen(&sabir(folder_with(&app("built_in = true")).path(), &["check"]));
    assert!(said.contains("warning: app: unknown tool `a`"), "{said}");
}
