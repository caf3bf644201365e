//! The configuration of upstreams, and how it fails.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use sabir_wire::Revision;
use serde_json::json;
use tempfile::TempDir;

use super::{FIXTURE, Process, Relay, fixture, raw, text, upstream};

/// Runs `sabir check --start` on a configuration, and returns its output.
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
        .args(["check", "--start", file])
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
            "invalid value \"planet\" of `scope` (expected \"shared\" or \"session\")",
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
    let configuration = plain("one") + &plain("two");
    let seen = check("sabir.toml", &configuration);
    let expected = "error: upstream `two`: left out: there is a tool `echo` already (from upstream \
                    `one`)";
    assert!(seen.starts_with("exit 1\n") && seen.contains(expected), "{seen}");
    // The first start of a server finds out what both offer, the second remembers it. On a busy
    // machine the first may serve before it knows.
    let starts = || (0..20).find_map(|_| start_twice(&configuration));
    for (seen, code) in starts().unwrap().into_iter().zip([1, 3]) {
        for part in ["upstream `two`: ", "a tool `echo` already (from upstream `one`)", "hint: "] {
            assert!(seen.contains(part), "{seen}");
        }
        assert!(seen.starts_with(&format!("exit {code}\n")), "{seen}");
    }
}

/// The output of a server that is started twice and ends at once; `None` if it serves.
fn start_twice(configuration: &str) -> Option<[String; 2]> {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("sabir.toml"), configuration).unwrap();
    let start = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sabir"));
        command.args(["serve", "--http", "127.0.0.1:0"]).current_dir(folder.path());
        command.env("XDG_CACHE_HOME", folder.path().join("cache")).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut process = Process { child, _stdin: None };
        let mut seen = String::new();
        for line in lines {
            seen += &format!("{}\n", line.unwrap());
            if seen.contains(" on http") {
                return None;
            }
        }
        let code = process.child.wait().unwrap().code();
        Some(format!("exit {}\n{seen}", code.unwrap_or(-1)))
    };
    Some([start()?, start()?])
}

/// An upstream that lists a name twice harms only itself, also when its list is remembered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_that_an_upstream_lists_twice_is_served_once() {
    let mut folder = TempDir::new().unwrap();
    for _ in 0..2 {
        let configuration = upstream("twice", &["hostile", "lists-twice"])
            + &fixture("good", Revision::NEWEST_LEGACY);
        let relay = Relay::start_in(folder, &configuration);
        let (client, _) = relay.client(Revision::NEWEST).await;
        super::listed(&client, "twice_tool").await;
        super::listed(&client, "good_echo").await;
        let tools = client.list_tools().await.unwrap();
        assert_eq!(tools.iter().filter(|tool| tool.name == "twice_tool").count(), 1);
        let cache = relay.folder.path().join("cache/sabir/upstreams");
        super::until("both are remembered", async || {
            let is_catalog =
                |path: &std::path::Path| path.extension().is_some_and(|end| end == "json");
            let files = std::fs::read_dir(&cache).into_iter().flatten().flatten();
            files.filter(|file| is_catalog(&file.path())).count() == 2
        })
        .await;
        folder = relay.folder;
    }
}

#[test]
fn servers_of_another_clients_file_are_served() {
    let servers = json!({ "mcpServers": {
        "my server": { "command": FIXTURE, "args": ["stdio", "${SABIR_NOT_SET:-2025-06-18}"] },
    } });
    let seen = check("mcp.json", &servers.to_string());
    assert!(seen.contains("offers 25 tools, 1 prompt and 4 resources"), "{seen}");
}

#[test]
fn an_upstream_that_cannot_be_started_fails_the_check() {
    let seen = check("sabir.toml", &upstream("bad", &["hostile", "exits-at-once"]));
    assert!(seen.starts_with("exit 1"), "{seen}");
    assert!(seen.contains("upstream `bad`") && seen.contains("no such file: data.db"), "{seen}");
}

#[test]
fn without_start_no_upstream_is_started() {
    let folder = TempDir::new().unwrap();
    let run = |configuration: &str, args: &[&str]| {
        std::fs::write(folder.path().join("sabir.toml"), configuration).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_sabir"));
        command.args(args).current_dir(folder.path());
        let output = command.env("XDG_CACHE_HOME", folder.path()).output().unwrap();
        let code = output.status.code().unwrap_or(-1);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (code, said + &String::from_utf8_lossy(&output.stdout))
    };
    let trace = "[[upstream]]\nname = \"a\"\nrun = [\"touch\", \"started\"]\n";
    let (code, said) = run(trace, &["check"]);
    assert!(code == 0 && said.contains("upstream `a`: not started (--start starts it)"), "{said}");
    assert!(!folder.path().join("started").exists());
    let (code, said) = run(trace, &["check", "--json"]);
    assert!(code == 0 && said.contains("\"started\": false"), "{said}");
    let (code, said) = run(trace, &["check", "--start"]);
    assert!(code == 1 && folder.path().join("started").exists(), "{said}");
    let missing = trace.replace("touch", "sabir-no-such");
    let (code, said) = run(&missing, &["check"]);
    assert!(
        code == 1 && said.contains("upstream `a`: program `sabir-no-such` not found"),
        "{said}"
    );
    // The last known tools are listed, and the upstream is asked for the current ones.
    let server = folder.path().join("server");
    std::os::unix::fs::symlink(FIXTURE, &server).unwrap();
    let real = fixture("up", Revision::NEWEST).replace(FIXTURE, "./server");
    run(&real, &["list"]);
    std::fs::remove_file(&server).unwrap();
    std::os::unix::fs::symlink("/bin/false", &server).unwrap();
    let (code, said) = run(&real, &["check"]);
    assert!(code == 0 && said.contains("offers 25 tools"), "{said}");
    let (code, said) = run(&real, &["check", "--start"]);
    assert!(code == 1 && said.contains("upstream `up`: "), "{said}");
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
