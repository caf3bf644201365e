//! The configuration of upstreams, and how it fails.

use std::process::Command;

use sabir_wire::Revision;
use serde_json::json;
use tempfile::TempDir;

use super::{FIXTURE, Relay, fixture, raw, text, upstream};

/// Runs `sabir check` on a configuration; what it says.
fn check(file: &str, configuration: &str) -> String {
    check_with(file, configuration, |_| {})
}

/// The same, with a change of the command.
pub(super) fn check_with(
    file: &str,
    configuration: &str,
    change: impl FnOnce(&mut Command),
) -> String {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join(file), configuration).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_sabir"));
    command
        .args(["check", file])
        .current_dir(folder.path())
        .env("XDG_CACHE_HOME", folder.path().join("cache"));
    change(&mut command);
    let output = command.output().unwrap();
    let code = output.status.code().unwrap_or(-1);
    format!("exit {code}\n{}", String::from_utf8_lossy(&output.stderr))
}

#[test]
fn mistakes_are_named_with_their_place() {
    for (configuration, expected) in [
        (
            "[[upstream]]\nname = \"a\"\n",
            "upstream `a`: expected either `run` or `url`\n  --> sabir.toml:2",
        ),
        (
            "[[upstream]]\nname = \"a\"\nrun = []\n",
            "upstream `a`: `run` is empty\n  --> sabir.toml:3",
        ),
        (
            "[[upstream]]\nname = \"a\"\nrun = [\"x\"]\n[[upstream]]\nname = \"a\"\nrun = [\"y\"]\n",
            "there are two upstreams `a`\n  --> sabir.toml:5",
        ),
        (
            "[[upstream]]\nname = \"a\"\nurl = \"https://x.example\"\nheaders = { Authorization = \"Bearer ${SABIR_NOT_SET}\" }\n",
            "upstream `a`: headers: `Authorization`: environment variable `SABIR_NOT_SET` is not set\n  --> sabir.toml:4",
        ),
        ("[[upstream]]\nname = \"a\"\nurl = \"http://example.com/mcp\"\n", "upstream `a`: "),
        (
            "[[upstream]]\nname = \"a\"\nrun = [\"x\"]\ntools = { allow = [\"a[\"] }\n",
            "upstream `a`: invalid pattern `a[`",
        ),
        (
            "[[upstream]]\nname = \"a\"\nrun = [\"x\"]\nscope = \"planet\"\n",
            "invalid value \"planet\" (expected \"shared\" or \"session\")",
        ),
        ("[import]\npath = \"nowhere.json\"\n", "import: cannot read "),
    ] {
        let seen = check("sabir.toml", configuration);
        assert!(seen.starts_with("exit 3") && seen.contains(expected), "{seen}");
    }
    let seen = check("mcp.json", "{\"mcpServers\": {\n\"a\": {}}}");
    let expected =
        "exit 3\nerror: server `a`: expected either `command` or `url`\n  --> mcp.json:2";
    assert!(seen.starts_with(expected), "{seen}");
}

#[test]
fn a_collision_names_both() {
    let plain = |name: &str| fixture(name, Revision::NEWEST) + "prefix = \"\"\n";
    let seen = check("sabir.toml", &(plain("one") + &plain("two")));
    let expected = "left out: there is a tool `echo` already (from upstream `";
    assert!(seen.contains(expected), "{seen}");
}

#[test]
fn servers_of_another_clients_file_are_served() {
    let servers = json!({ "mcpServers": {
        "my server": { "command": FIXTURE, "args": ["stdio", "${SABIR_NOT_SET:-2025-06-18}"] },
    } });
    let seen = check("mcp.json", &servers.to_string());
    assert!(seen.contains("offers 21 tools, 1 prompt and 3 resources"), "{seen}");
}

#[test]
fn an_upstream_that_cannot_be_started_fails_the_check() {
    let seen = check("sabir.toml", &upstream("bad", &["hostile", "exits-at-once"]));
    assert!(seen.starts_with("exit 1"), "{seen}");
    assert!(seen.contains("upstream `bad`") && seen.contains("no such file: data.db"), "{seen}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_are_chosen_by_the_operator() {
    let configuration = fixture("up", Revision::NEWEST_LEGACY)
        + "prefix = \"x-\"\ntools = { allow = [\"e*\"], deny = [\"error\"] }\n\
           rename = { echo = \"say\" }\ndescriptions = { echo = \"Says it again\" }\n\
           resources = { deny = [\"*missing\"] }\n";
    let relay = Relay::start(&configuration);
    let (client, _) = relay.client(Revision::NEWEST).await;
    super::listed(&client, "x-say").await;
    let tools = client.list_tools().await.unwrap();
    let names: Vec<_> = tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(names, ["x-say", "x-elicit"]);
    assert_eq!(tools[0].description.as_deref(), Some("Says it again"));
    let reply = client.call_tool("x-say", raw(json!({ "a": 1 }))).await.unwrap();
    assert_eq!(text(&reply), r#"{"a":1}"#);
    assert!(client.call_tool("x-error", raw(json!({}))).await.is_err());
}
