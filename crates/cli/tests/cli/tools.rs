//! Programs as tools, through the real binary.

use serde_json::{Value, json};

use crate::client::{Client, soon, text};

/// A command that runs a shell script with one argument, as `$1`.
fn script(name: &str, script: &str, rest: &str) -> String {
    format!(
        "[[command]]\nname = \"{name}\"\nrun = [\"sh\", \"-c\", '''{script}''', \"sh\", \"{{x?}}\"]\n\
         input = {{ x = \"string?\" }}\nkill_after = \"100ms\"\n{rest}\n"
    )
}

#[test]
fn a_tool_is_listed_as_it_is_described() {
    let mut client = Client::start(
        r#"
[[command]]
name = "search"
title = "Search"
description = "Searches files"
run = ["grep", "--", "{pattern}", "{file}"]
input.pattern = { type = "string", description = "What to look for" }
input.file = ["a.txt", "b.txt"]
output = "json"
output_schema = { type = "object", properties = { n = { type = "integer" } } }
read_only = true
destructive = false
idempotent = true
open_world = false

[[command]]
name = "plain"
run = ["true"]
"#,
    );
    assert_eq!(client.initialize()["capabilities"], json!({ "tools": {} }));
    let tools = client.ask("tools/list", json!({}))["result"]["tools"].clone();
    assert_eq!(
        tools,
        json!([
            {
                "name": "search",
                "title": "Search",
                "description": "Searches files",
                "inputSchema": {
                    "type": "object",
                    "properties": {
                        "pattern": { "type": "string", "description": "What to look for" },
                        "file": { "type": "string", "enum": ["a.txt", "b.txt"] },
                    },
                    "required": ["pattern", "file"],
                    "additionalProperties": false,
                },
                "outputSchema": { "type": "object", "properties": { "n": { "type": "integer" } } },
                "annotations": {
                    "readOnlyHint": true,
                    "destructiveHint": false,
                    "idempotentHint": true,
                    "openWorldHint": false,
                },
            },
            {
                "name": "plain",
                "inputSchema": {
                    "type": "object", "properties": {}, "additionalProperties": false,
                },
            },
        ])
    );
}

#[test]
fn text_is_text_and_nothing_structured() {
    let mut client = Client::start(&script("t", "printf '%s\\n' \"a $1\"", ""));
    let result = client.call("t", json!({ "x": "b" }));
    assert_eq!(result, json!({ "content": [{ "type": "text", "text": "a b" }] }));
}

#[test]
fn json_is_structured_and_held_to_its_schema() {
    let schema = "output = \"json\"\noutput_schema = { type = \"object\", required = [\"n\"] }";
    let mut client = Client::start(&script("t", "printf '%s' \"$1\"", schema));
    client.initialize();
    let result = client.call("t", json!({ "x": "{\n\"n\": 12345678901234567890123\n}" }));
    let written = r#"{ "n": 12345678901234567890123 }"#;
    assert_eq!(result["structuredContent"], serde_json::from_str::<Value>(written).unwrap());
    assert_eq!(text(&result), written);
    let result = client.call("t", json!({ "x": "oops" }));
    assert_eq!(result["isError"], true);
    assert!(result.get("structuredContent").is_none());
    let answer = client.ask("tools/call", json!({ "name": "t", "arguments": { "x": "{}" } }));
    assert_eq!(answer["error"]["code"], -32603);
}

#[test]
fn bytes_are_pictures_sounds_or_documents() {
    let file = ["image/png", "audio/wav", "application/zip"].map(|mime| {
        let name = mime.replace('/', "-");
        script(&name, "printf 'PK\\000\\377'", &format!("output = \"{mime}\""))
    });
    let mut client = Client::start(&file.concat());
    let mut content = |tool| client.call(tool, json!({}))["content"][0].clone();
    let data = "UEsA/w==";
    assert_eq!(
        content("image-png"),
        json!({ "type": "image", "data": data, "mimeType": "image/png" })
    );
    assert_eq!(
        content("audio-wav"),
        json!({ "type": "audio", "data": data, "mimeType": "audio/wav" })
    );
    let zip = json!({
        "uri": "command:///application-zip", "mimeType": "application/zip", "blob": data,
    });
    assert_eq!(content("application-zip"), json!({ "type": "resource", "resource": zip }));
}

#[test]
fn lines_are_told_while_the_program_runs() {
    // The second line is written only when the first has been told.
    let wait = "echo one; while [ ! -e go ]; do sleep 0.01; done; echo two";
    let mut client = Client::start(&script("t", wait, "output = \"lines\""));
    let id = client.request(
        "tools/call",
        json!({ "name": "t", "arguments": {}, "_meta": { "progressToken": "p" } }),
    );
    let progress = |number: u32, line: &str| {
        json!({
            "jsonrpc": "2.0",
            "method": "notifications/progress",
            "params": { "progressToken": "p", "progress": number, "message": line },
        })
    };
    assert_eq!(client.receive(), progress(1, "one"));
    std::fs::write(client.folder().join("go"), "").unwrap();
    assert_eq!(client.receive(), progress(2, "two"));
    assert_eq!(text(&client.answer(id)["result"]), "one\ntwo");
}

#[test]
fn stderr_goes_to_the_log_where_the_author_says_so() {
    let noisy = "echo one >&2; echo done; echo two >&2";
    let mut client = Client::start(&script("t", noisy, "log_stderr = true"));
    let capabilities = client.initialize()["capabilities"].clone();
    assert_eq!(capabilities, json!({ "tools": {}, "logging": {} }));
    client.ask("logging/setLevel", json!({ "level": "debug" }));
    assert_eq!(text(&client.call("t", json!({}))), "done");
    let logged: Vec<_> = client.notes.iter().map(|note| note["params"].clone()).collect();
    let line = |text: &str| json!({ "level": "debug", "logger": "t", "data": text });
    assert_eq!(logged, [line("one"), line("two")]);

    client.notes.clear();
    client.ask("logging/setLevel", json!({ "level": "info" }));
    client.call("t", json!({}));
    assert_eq!(client.notes, [Value::Null; 0]);
}

#[test]
fn a_failure_is_a_result_that_says_why() {
    let file = script("f", "echo so far; echo oh no >&2; exit 3", "")
        + &script("ok", "echo found nothing; exit 1", "success_codes = [0, 1]")
        + &script("slow", "echo begun; sleep 600", "timeout = \"200ms\"")
        + &script("loud", "yes", "max_output = \"64KB\"")
        + &script("killed", "kill -9 $$", "");
    let mut client = Client::start(&file);
    let mut texts = |tool: &str| {
        let result = client.call(tool, json!({}));
        let texts = result["content"].as_array().unwrap().iter();
        let texts: Vec<_> = texts.map(|block| block["text"].as_str().unwrap().to_owned()).collect();
        (result["isError"] == true, texts)
    };
    let told = |is_error, texts: &[&str]| {
        (is_error, texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>())
    };
    assert_eq!(texts("f"), told(true, &["oh no\n(exit code 3)", "so far"]));
    assert_eq!(texts("ok"), told(false, &["found nothing"]));
    let slow = "The program failed: stopped: it ran longer than 200ms";
    assert_eq!(texts("slow"), told(true, &[slow, "begun"]));
    let (is_error, loud) = texts("loud");
    assert!(is_error);
    assert_eq!(
        loud[0],
        "The program failed: stopped: it wrote more than 65536 bytes to standard output"
    );
    assert!(loud[1].len() < 10_000);
    assert_eq!(texts("killed"), told(true, &["The program failed: killed by SIGKILL"]));
}

#[test]
fn the_environment_is_clean_and_paths_are_those_of_the_file() {
    let folder = tempfile::TempDir::new().unwrap();
    std::fs::create_dir(folder.path().join("sub")).unwrap();
    std::fs::write(folder.path().join("sub/here"), "").unwrap();
    let file = script(
        "t",
        "env | grep -v '^PWD=\\|^SHLVL=\\|^_=\\|^OLDPWD=' | sort; ls",
        "cwd = \"sub\"\nenv = { A = \"1 2\", CARGO_PKG_NAME = true, PATH = \"/usr/bin:/bin\" }",
    );
    std::fs::write(folder.path().join("sabir.toml"), file).unwrap();
    let mut client = Client::start_in(folder);
    let expected = "A=1 2\nCARGO_PKG_NAME=sabir-cli\nPATH=/usr/bin:/bin\nhere";
    assert_eq!(text(&client.call("t", json!({}))), expected);
}

#[test]
fn the_whole_call_may_come_as_json() {
    let mut client = Client::start(
        r#"
[[command]]
name = "t"
run = ["cat"]
stdin = "json"
input = { a = "number", b = { type = "string", default = "x" } }
"#,
    );
    let result = client.call("t", json!({ "a": 1 }));
    assert_eq!(text(&result), r#"{"a":1,"b":"x"}"#);
}

#[test]
fn exact_bytes_reach_the_program_or_a_refusal_is_clear() {
    let mut client = Client::start(
        r#"
[[command]]
name = "argument"
run = ["printf", "%s", "{x}"]
input = { x = "string" }

[[command]]
name = "dash"
run = ["printf", "%s", "{x}"]
input = { x = "string" }
allow_dash = ["x"]

[[command]]
name = "behind"
run = ["printf", "--", "%s", "{x}"]
input = { x = "string" }

[[command]]
name = "stdin"
run = ["cat"]
stdin = "{x}"
input = { x = "string" }
"#,
    );
    let nasty = "'\"\\ $HOME `id` $(id) ; | & > < * ? ~ # ! \n\r\n\t {x} {{x}} %s \u{1}\u{7f} é 👩‍👩‍👧 \u{202e}x";
    let all = ["argument", "dash", "behind", "stdin"];
    for tool in all {
        assert_eq!(text(&client.call(tool, json!({ "x": nasty }))), nasty, "{tool}");
        assert_eq!(text(&client.call(tool, json!({ "x": "" }))), "", "{tool}");
    }
    for tool in ["dash", "behind", "stdin"] {
        for dash in ["-", "--", "-x", "--output=/etc/passwd"] {
            assert_eq!(text(&client.call(tool, json!({ "x": dash }))), dash, "{tool}");
        }
    }
    let refused = |result: Value, why: &str| {
        assert_eq!(result["isError"], true, "{result}");
        assert!(text(&result).contains(why), "{result}");
    };
    refused(client.call("argument", json!({ "x": "--help" })), "`x` must not start with `-`");
    for tool in all {
        refused(client.call(tool, json!({ "x": "a\0b" })), "`x` contains a NUL byte");
    }

    let long = "0123456789abcdé\n".repeat((1 << 20) / 17 + 1) + ".";
    assert!(long.len() > 1 << 20);
    assert!(text(&client.call("stdin", json!({ "x": long }))) == long);
    let most = "x".repeat(131_071);
    assert!(text(&client.call("argument", json!({ "x": most }))) == most);
    refused(
        client.call("argument", json!({ "x": most + "x" })),
        "`x` is too long: an argument of 131072 bytes (limit 131071)",
    );
    refused(client.call("argument", json!({ "x": long })), "(limit 131071)");
}

/// Writes its number to a log when it starts, waits for a file, and writes it again.
const LOGGED: &str = "echo \"+$1\" >> log; while [ ! -e go ]; do sleep 0.01; done; \
                      echo \"-$1\" >> log; echo \"$1\"";

fn lines(client: &Client) -> Vec<String> {
    let log = std::fs::read_to_string(client.folder().join("log")).unwrap_or_default();
    log.lines().map(str::to_owned).collect()
}

/// The calls that have started, in their order.
fn started(client: &Client) -> Vec<usize> {
    let lines = lines(client);
    lines.iter().filter_map(|line| line.strip_prefix('+')).map(|n| n.parse().unwrap()).collect()
}

/// How many ran at the same time, at most.
fn most_at_once(client: &Client) -> usize {
    let mut running = 0;
    let counts = lines(client).into_iter().map(|line| {
        if line.starts_with('+') {
            running += 1
        } else {
            running -= 1
        }
        running
    });
    counts.max().unwrap_or(0)
}

#[test]
fn sixty_four_calls_at_once_run_four_at_a_time_in_order_and_none_is_lost() {
    let mut client = Client::start(&script("t", LOGGED, "concurrency = 4"));
    let ids: Vec<_> = (0..64).map(|n| client.begin("t", json!({ "x": n.to_string() }))).collect();
    soon("four have started", || started(&client).len() == 4);
    // A fifth would have had every chance by the time that a ping is answered.
    client.ask("ping", json!({}));
    let mut first = started(&client);
    first.sort_unstable();
    assert_eq!(first, [0, 1, 2, 3]);
    std::fs::write(client.folder().join("go"), "").unwrap();

    let mut answers = std::collections::BTreeMap::new();
    while answers.len() < ids.len() {
        let answer = client.receive();
        let said = text(&answer["result"]).to_owned();
        assert!(answers.insert(answer["id"].as_u64().unwrap(), said).is_none(), "{answer}");
    }
    let expected = ids.iter().zip((0..64).map(|n: usize| n.to_string()));
    assert!(answers.iter().map(|(id, said)| (id, said.clone())).eq(expected));
    // Whoever starts before its elders has at most three of them beside it: they run, but their
    // shells have not come to write yet.
    let log = started(&client);
    assert_eq!(most_at_once(&client), 4);
    for (at, number) in log.iter().enumerate() {
        let late = (0..*number).filter(|elder| !log[..at].contains(elder)).count();
        assert!(late <= 3, "{number} came before {late} elders: {log:?}");
    }
}

#[test]
fn one_at_a_time_runs_in_exact_order() {
    let mut client = Client::start(&script("t", "echo \"+$1\" >> log", "concurrency = 1"));
    let ids: Vec<_> = (0..64).map(|n| client.begin("t", json!({ "x": n.to_string() }))).collect();
    for id in ids {
        client.answer(id);
    }
    assert_eq!(started(&client), (0..64).collect::<Vec<_>>());
}

#[test]
fn cancelled_calls_never_start_and_a_running_one_is_ended_at_once() {
    let mut client = Client::start(&script("t", LOGGED, "concurrency = 4"));
    let ids: Vec<_> = (0..64).map(|n| client.begin("t", json!({ "x": n.to_string() }))).collect();
    soon("four have started", || started(&client).len() == 4);
    // Every second one that waits, and one that runs.
    let unwanted: Vec<usize> = (5..64).step_by(2).chain([2]).collect();
    for number in &unwanted {
        client.notify("notifications/cancelled", json!({ "requestId": ids[*number] }));
    }
    // The one that ran makes room for the next that is still wanted.
    soon("a fifth has started", || started(&client).len() == 5);
    assert!(started(&client).contains(&4), "{:?}", started(&client));
    std::fs::write(client.folder().join("go"), "").unwrap();
    let wanted: Vec<usize> = (0..64).filter(|number| !unwanted.contains(number)).collect();
    let mut answered: Vec<_> =
        wanted.iter().map(|_| client.receive()["id"].as_u64().unwrap()).collect();
    answered.sort_unstable();
    assert_eq!(answered, wanted.iter().map(|number| ids[*number]).collect::<Vec<_>>());
    let mut ran = started(&client);
    ran.sort_unstable();
    let mut expected = wanted;
    expected.push(2);
    expected.sort_unstable();
    assert_eq!(ran, expected);
    let (rest, code) = client.finish();
    assert_eq!((rest, code), (vec![], 0));
}

#[test]
fn one_more_than_may_wait_is_refused() {
    let file = script("t", LOGGED, "concurrency = 1") + "[limits]\ncalls = 2000\n";
    let mut client = Client::start(&file);
    for number in 0..1 + 1024 {
        client.begin("t", json!({ "x": number.to_string() }));
    }
    client.ask("ping", json!({}));
    assert_eq!(client.notes, [Value::Null; 0]);
    let result = client.call("t", json!({ "x": "one more" }));
    assert_eq!(result["isError"], true);
    assert_eq!(text(&result), "too many calls are waiting (limit 1024)");
}

#[test]
fn a_program_that_is_gone_is_told_without_its_path() {
    let folder = crate::folder_with("[[command]]\nname = \"t\"\nrun = [\"./p\"]\n");
    let program = folder.path().join("p");
    std::fs::copy("/bin/true", &program).unwrap();
    let mut client = Client::start_in(folder);
    client.ask("ping", json!({}));
    std::fs::remove_file(&program).unwrap();
    let result = client.call("t", json!({}));
    assert_eq!(result["isError"], true);
    assert_eq!(text(&result), "cannot start the program of `t`");
}
