//! Files as people have them: an entry is added and removed, and nothing else changes.

use clap::ValueEnum as _;
use serde_json::json;

use super::*;
use crate::clients::Entry;

/// Files of each kind: comments, odd indentation, unknown keys, CRLF, a BOM, one line, no servers.
const FILES: &[(Client, &str)] = &[
    (
        Client::Cursor,
        "{\n  \"mcpServers\": {\n    \"a\": { \"command\": \"x\", \"args\": [1, 1.0e5] }\n  }\n}\n",
    ),
    (
        Client::Vscode,
        "// servers\n{\n\t\"inputs\": [], /* none */\n\t\"servers\": {\n\t\t// first\n\t\t\"a\": {\"type\": \"stdio\", \"command\": \"x\",}, // one\n\t},\n}\n",
    ),
    (
        Client::Zed,
        "{\r\n    // theme\r\n    \"theme\": \"One\",\r\n    \"context_servers\": {\r\n        \"a\": {\"command\": \"x\"}\r\n    }\r\n}\r\n",
    ),
    (
        Client::Windsurf,
        "\u{feff}{\n   \"mcpServers\": {\n      \"a\": {\n         \"serverUrl\": \"http://x\"\n      }\n   }\n}",
    ),
    (
        Client::Gemini,
        "{\n  \"security\": { \"auth\": {} },\n\n\n  \"mcpServers\": {\n    \"a\": {\"httpUrl\": \"http://x\"}\n  },\n  \"z\": 12345678901234567890\n}\n",
    ),
    (
        Client::ClaudeCode,
        "{\n  \"numStartups\": 3,\n  \"mcpServers\": {\n    \"a\": {\"type\": \"stdio\", \"command\": \"x\", \"args\": [], \"env\": {}}\n  },\n  \"projects\": {\"/p\": {\"mcpServers\": {\"b\": {}}}}\n}\n",
    ),
    (
        Client::Opencode,
        "{\n  \"$schema\": \"https://opencode.ai/config.json\",\n  \"mcp\": {\n    \"a\": {\"type\": \"local\", \"command\": [\"x\"]}\n  }\n}\n",
    ),
    (
        Client::Codex,
        "# mine\nmodel = \"x\"   # odd\n\n[mcp_servers.a]\ncommand = \"x\"\nargs = [\n  \"[not.a.table]\",\n]\n\n[mcp_servers.a.env]\nK = '''\n[nor.this]\n'''\n\n[tui]\nz = 1\n",
    ),
    (Client::Codex, "model = \"x\"\r\n\r\n[tui]\r\nz = 1\r\n"),
    (
        Client::Goose,
        "GOOSE_MODEL: x # mine\nextensions:\n    a:\n        type: stdio # odd\n        cmd: x\n        args:\n        - y\n    b:\n        type: builtin\nother: 1\n",
    ),
    (Client::Goose, "extensions:\r\n  a:\r\n    type: stdio\r\n    cmd: x\r\n"),
];

#[test]
fn an_entry_that_is_added_and_removed_leaves_every_byte() {
    for (client, text) in FILES {
        for entry in [
            Entry::Local(vec!["/opt/sa bir".into(), "serve".into(), "/ä\"'".into()]),
            Entry::Remote("http://h/mcp".into(), None),
        ] {
            let value = client.value("notes", &entry).unwrap();
            let with = client.with(text, "notes", &value).unwrap();
            let servers = client.servers(&with).unwrap();
            let ours = servers.iter().find(|server| server.name == "notes").expect(&with);
            assert_eq!(ours.value, value, "{with}");
            assert_eq!(servers.len(), client.servers(text).unwrap().len() + 1, "{with}");
            assert_eq!(with.contains("\r\n"), text.contains("\r\n"));
            assert_eq!(
                with.replace("\r\n", "").contains('\n'),
                text.replace("\r\n", "").contains('\n'),
                "{with:?}"
            );
            assert_eq!(client.without(&with, &named("notes")).unwrap(), *text, "{with}");
            // Replacing it changes only the entry.
            let other = client.value("notes", &Entry::Local(vec!["other".into()])).unwrap();
            let replaced = client.with(&with, "notes", &other).unwrap();
            assert_eq!(client.without(&replaced, &named("notes")).unwrap(), *text, "{replaced}");
        }
    }
}

#[test]
fn the_first_server_of_a_file_is_added() {
    for client in Client::value_variants() {
        let texts: &[&str] = match client.format() {
            Format::Json => &["", "{}", "{\n}\n", "// mine\n{\n  \"a\": 1 // b\n}\n"],
            Format::Toml => &["", "# only a comment", "a = 1\n"],
            Format::Yaml => &["", "a: 1", "extensions: {}\nb: 2\n", "extensions:\nb: 2\n"],
        };
        for text in texts {
            let value = client.value("n", &Entry::Local(vec!["sabir".into()])).unwrap();
            let with = client.with(text, "n", &value).unwrap();
            assert_eq!(client.servers(&with).unwrap()[0].value, value, "{with}");
            assert!(client.servers(&with).unwrap()[0].is_ours());
            assert!(
                client.servers(&client.without(&with, &named("n")).unwrap()).unwrap().is_empty()
            );
        }
    }
}

#[test]
fn a_file_that_cannot_be_edited_is_refused() {
    for (client, text) in [
        (Client::Cursor, "{ not json"),
        (Client::Cursor, "[]"),
        (Client::Cursor, "{\"mcpServers\": []}"),
        (Client::Codex, "a = "),
        (Client::Codex, "mcp_servers = { a = { command = \"x\" } }\n"),
        (Client::Goose, "extensions: {a: {cmd: x}}\n"),
        (Client::Goose, "a: [\n"),
    ] {
        let refused = client.with(text, "n", &json!({"command": "x"}));
        assert!(refused.is_err(), "{text}: {refused:?}");
    }
}

fn named(name: &str) -> Server {
    Server { name: name.to_owned(), value: Value::Null, folder: None }
}
