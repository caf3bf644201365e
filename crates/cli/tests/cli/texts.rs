//! Prompts and resources that are written down, through the real binary.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::Client;

const FILE: &str = r#"
[[prompt]]
name = "review"
title = "Review"
description = "Reviews code"
input.code = { type = "string", description = "What to review" }
input.tone = { enum = ["kind", "strict"], default = "kind" }
input.focus = "string?"

[[prompt.messages]]
role = "assistant"
text = "I will be {tone}{{}}."

[[prompt.messages]]
text = "Review this: {code} {focus?}"

[[prompt.messages]]
file = "guide.md"

[[prompt.messages]]
file = "dot.png"
uri = "image://dot"

[[prompt]]
name = "hello"
text = "Hello"

[[resource]]
uri = "text://motto"
description = "What we say"
text = "Deal!"

[[resource]]
uri = "file:///guide"
name = "guide"
title = "The guide"
file = "guide.md"

[[resource]]
uri = "image://dot"
mime_type = "image/x-dot"
file = "dot.png"
"#;

fn client() -> Client {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("sabir.toml"), FILE).unwrap();
    std::fs::write(folder.path().join("guide.md"), "# Guide {code}\n").unwrap();
    std::fs::write(folder.path().join("dot.png"), b"\x89PNG\xff").unwrap();
    Client::start_in(folder)
}

fn get(client: &mut Client, arguments: Value) -> Value {
    client.ask("prompts/get", json!({ "name": "review", "arguments": arguments }))
}

#[test]
fn a_server_without_code_offers_prompts_and_resources() {
    let mut client = client();
    let capabilities = client.initialize()["capabilities"].clone();
    assert_eq!(capabilities, json!({ "prompts": {}, "resources": {}, "completions": {} }));
    let prompts = client.ask("prompts/list", json!({}))["result"]["prompts"].clone();
    let arguments = json!([
        { "name": "code", "description": "What to review", "required": true },
        { "name": "tone" },
        { "name": "focus" },
    ]);
    assert_eq!(
        prompts,
        json!([
            {
                "name": "review", "title": "Review", "description": "Reviews code",
                "arguments": arguments,
            },
            { "name": "hello" },
        ])
    );
    let resources = client.ask("resources/list", json!({}))["result"]["resources"].clone();
    let png = json!({ "uri": "image://dot", "name": "dot", "mimeType": "image/x-dot" });
    assert_eq!(
        resources,
        json!([
            {
                "uri": "text://motto", "name": "motto", "description": "What we say",
                "mimeType": "text/plain", "size": 5,
            },
            {
                "uri": "file:///guide", "name": "guide", "title": "The guide",
                "mimeType": "text/markdown",
            },
            png,
        ])
    );
}

#[test]
fn a_prompt_is_filled_in() {
    let mut client = client();
    let said = |role: &str, content: Value| json!({ "role": role, "content": content });
    let text = |text: &str| json!({ "type": "text", "text": text });
    let guide = json!({
        "uri": "prompt:///guide.md", "mimeType": "text/markdown", "text": "# Guide {code}\n",
    });
    let answer = get(&mut client, json!({ "code": "x = {tone}; 'y'\n" }));
    assert_eq!(
        answer["result"],
        json!({
            "description": "Reviews code",
            "messages": [
                said("assistant", text("I will be kind{}.")),
                said("user", text("Review this: x = {tone}; 'y'\n ")),
                said("user", json!({ "type": "resource", "resource": guide })),
                said("user", json!({
                    "type": "image", "data": "iVBOR/8=", "mimeType": "image/png",
                })),
            ],
        })
    );
    let answer = get(&mut client, json!({ "code": "c", "tone": "strict", "focus": "speed" }));
    assert_eq!(answer["result"]["messages"][0]["content"], text("I will be strict{}."));
    assert_eq!(answer["result"]["messages"][1]["content"], text("Review this: c speed"));
    // A form that was left empty.
    let answer = get(&mut client, json!({ "code": "", "tone": "", "focus": "" }));
    assert_eq!(answer["result"]["messages"][0]["content"], text("I will be kind{}."));
    let hello = client.ask("prompts/get", json!({ "name": "hello" }))["result"].clone();
    assert_eq!(hello, json!({ "messages": [said("user", text("Hello"))] }));
}

#[test]
fn wrong_arguments_of_a_prompt_are_refused() {
    let mut client = client();
    for (arguments, told) in [
        (json!({}), "`code` is missing"),
        (json!({ "code": "x", "tone": "rude" }), "`tone` must be one of: kind, strict"),
        (json!({ "code": "x", "colour": "red" }), "unknown argument `colour`"),
        (json!({ "code": "a\u{0}b" }), "`code` contains a NUL byte"),
    ] {
        let error = get(&mut client, arguments)["error"].clone();
        assert_eq!(error["code"], -32602, "{error}");
        assert!(error["message"].as_str().unwrap().contains(told), "{error}");
    }
}

#[test]
fn choices_are_completions() {
    let mut client = client();
    let mut complete = |argument: &str, typed: &str| {
        let reference = json!({ "type": "ref/prompt", "name": "review" });
        let argument = json!({ "name": argument, "value": typed });
        let params = json!({ "ref": reference, "argument": argument });
        client.ask("completion/complete", params)["result"]["completion"]["values"].clone()
    };
    assert_eq!(complete("tone", ""), json!(["kind", "strict"]));
    assert_eq!(complete("tone", "S"), json!(["strict"]));
    assert_eq!(complete("code", ""), json!([]));
}

#[test]
fn a_resource_is_read_as_it_is_now() {
    let mut client = client();
    let read = |client: &mut Client, uri: &str| {
        client.ask("resources/read", json!({ "uri": uri }))["result"]["contents"].clone()
    };
    assert_eq!(
        read(&mut client, "text://motto"),
        json!([{ "uri": "text://motto", "mimeType": "text/plain", "text": "Deal!" }])
    );
    assert_eq!(
        read(&mut client, "image://dot"),
        json!([{ "uri": "image://dot", "mimeType": "image/x-dot", "blob": "iVBOR/8=" }])
    );
    let guide = client.folder().join("guide.md");
    std::fs::write(&guide, "changed").unwrap();
    assert_eq!(read(&mut client, "file:///guide")[0]["text"], "changed");
    std::fs::remove_file(&guide).unwrap();
    let error = client.ask("resources/read", json!({ "uri": "file:///guide" }))["error"].clone();
    assert_eq!(error["code"], -32603);
    let told = error["message"].as_str().unwrap();
    assert!(!told.contains(guide.to_str().unwrap()), "{told}");
}

/// What the log says of a file that is gone when it is asked for.
fn logged(level: &str) -> String {
    let folder = crate::folder_with("[[resource]]\nuri = \"file:///guide\"\nfile = \"guide.md\"\n");
    let file = folder.path().join("guide.md");
    std::fs::write(&file, "# Guide\n").unwrap();
    let mut sabir = crate::command(folder.path(), &["serve", "--stdio", "--log", level])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = sabir.stdin.take().unwrap();
    let mut output = BufReader::new(sabir.stdout.take().unwrap());
    let mut answer = || {
        let request = json!({
            "jsonrpc": "2.0",
            "id": 1,
            "method": "resources/read",
            "params": {
                "uri": "file:///guide",
                "_meta": {
                    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                    "io.modelcontextprotocol/clientCapabilities": {},
                },
            },
        });
        writeln!(input, "{request}").unwrap();
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        line
    };
    assert!(answer().contains("# Guide"));
    std::fs::remove_file(&file).unwrap();
    assert!(answer().contains("cannot read a file"));
    drop(input);
    let said = sabir.wait_with_output().unwrap().stderr;
    String::from_utf8(said).unwrap()
}

#[test]
fn the_log_says_as_much_as_is_wanted() {
    let said = logged("warn");
    assert!(
        said.contains("ERROR") && said.contains("cannot read") && said.contains("guide.md"),
        "{said}"
    );
    assert_eq!(said.lines().count(), 1, "{said}");
    assert_eq!(logged("off"), "");
}
