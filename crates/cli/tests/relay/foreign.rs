//! Servers of others behind the relay, for clients of every revision. `./test relay` installs them
//! and sets `SABIR_UPSTREAM_RMCP`; without it there is nothing to test. The test writes the last part
//! of `docs/GRID.md`.

use std::fmt::Write as _;
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use sabir_client::{CallOptions, Client};
use sabir_wire::Revision;
use sabir_wire::types::ToolReply;
use serde_json::{Value, json};

use super::grid::{FOREIGN, write_page};
use super::{PATIENCE, Person, Process, Relay, docs, raw, text};

/// A tool with its arguments, and a part of its answer.
type Called = (&'static str, Value, &'static str);

/// A server, and how each row is tried with it; `None` if it does not offer that.
struct Server {
    title: &'static str,
    run: Vec<String>,
    /// The arguments after `run` to serve behind a URL. All servers take the port from `PORT`.
    at_url: Option<&'static str>,
    tool: Called,
    structured: Called,
    failed: Called,
    progress: Called,
    /// The prompt, its argument and the value of that.
    prompt: (&'static str, &'static str, &'static str),
    resource: &'static str,
    elicit: Called,
    /// The index of the first revision of clients that has what is asked for.
    elicits_since: usize,
    sample: Option<Called>,
}

fn servers(rmcp: &str) -> [Server; 5] {
    let rmcp = |title, era: &str| Server {
        title,
        run: vec![rmcp.to_owned(), era.to_owned()],
        at_url: None,
        tool: ("echo", json!({ "message": "hello" }), "hello"),
        structured: ("add", json!({ "a": 2, "b": 3 }), r#"{"result":5}"#),
        failed: ("fail", json!({}), "on purpose"),
        progress: ("count", json!({}), "done"),
        prompt: ("review", "code", "x = 1"),
        resource: "motto://en",
        elicit: ("ask", json!({}), "Who are you?"),
        elicits_since: 2,
        sample: Some(("sample", json!({}), "test-model")),
    };
    let everything = Server {
        title: "server-everything 2026.8.31 (legacy)",
        run: vec!["mcp-server-everything".into()],
        at_url: Some("streamableHttp"),
        tool: ("echo", json!({ "message": "hello" }), "hello"),
        structured: ("get-structured-content", json!({ "location": "Chicago" }), "temperature"),
        failed: ("get-resource-reference", json!({ "resourceId": -1 }), "Invalid resourceId"),
        progress: (
            "trigger-long-running-operation",
            json!({ "duration": 0.03, "steps": 3 }),
            "completed",
        ),
        prompt: ("args-prompt", "city", "Chicago"),
        resource: "demo://resource/dynamic/text/1",
        elicit: ("trigger-elicitation-request", json!({}), "accept"),
        // Its form has multiple choice.
        elicits_since: 3,
        sample: Some((
            "trigger-sampling-request",
            json!({ "prompt": "hello", "maxTokens": 10 }),
            "test-model",
        )),
    };
    let python = |title, path: &str| Server {
        title,
        run: vec!["python3".into(), "-B".into(), path.into()],
        tool: ("add", json!({ "a": 2, "b": 3 }), "5"),
        failed: ("translate", json!({ "word": "x" }), "translate"),
        elicit: ("greet", json!({}), "Hello Who are you?"),
        sample: None,
        ..rmcp("", "")
    };
    let here = env!("CARGO_MANIFEST_DIR");
    [
        everything,
        python("Python mcp 2.3.0 (legacy)", &format!("{here}/tests/relay/legacy_server.py")),
        python("Python mcp 2.3.0 (modern)", &format!("{here}/../../examples/relay/server.py")),
        rmcp("rmcp 3.8.0 (legacy)", "legacy"),
        rmcp("rmcp 3.8.0 (modern)", "modern"),
    ]
}

/// Rows, and the index of the first revision of clients that has them.
const ROWS: [(&str, usize); 8] = [
    ("tool", 0),
    ("structured output", 2),
    ("failed tool", 0),
    ("progress", 0),
    ("prompts", 0),
    ("resources", 0),
    ("elicitation: form", 2),
    ("sampling", 0),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_of_others_are_relayed_to_every_client() {
    let Ok(rmcp) = std::env::var("SABIR_UPSTREAM_RMCP") else { return };
    let servers = servers(&rmcp);
    let mut failures = Vec::new();
    let mut page = format!(
        "{FOREIGN}\nWritten by `./test relay`. The marks are for the same clients; `–`: the revision of \
         the client does not have it (the form of server-everything has multiple choice, which is \
         newer than forms), `·`: the server does not offer it.\n"
    );
    let titles: Vec<_> = servers.iter().map(|server| server.title).collect();
    for way in ["child process", "behind a URL"] {
        let mut cells = vec![vec![String::new(); servers.len()]; ROWS.len()];
        for (column, server) in servers.iter().enumerate() {
            let (_process, reach) = match way {
                "child process" => (None, format!("run = {:?}", server.run)),
                _ => server.serve_http(),
            };
            let relay = Relay::start(&format!("[[upstream]]\nname = \"up\"\n{reach}\n"));
            for near in Revision::ALL {
                let (client, person) = relay.client(near).await;
                super::listed(&client, &format!("up_{}", server.tool.0)).await;
                for (row, (name, since)) in ROWS.iter().enumerate() {
                    let marked = server.mark(&client, &person, near, name, *since).await;
                    cells[row][column].push(marked.unwrap_or_else(|why| {
                        let (date, title) = (near.date(), server.title);
                        failures.push(format!("{date} -> {title}, {way}, {name}: {why}"));
                        '✗'
                    }));
                }
            }
        }
        let _ = write!(page, "\n| {way} | {} |\n", titles.join(" | "));
        let _ = writeln!(page, "|---|{}", "---|".repeat(servers.len()));
        for ((name, _), cells) in ROWS.iter().zip(&cells) {
            let _ = writeln!(page, "| {name} | {} |", cells.join(" | "));
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
    let old = std::fs::read_to_string(docs().join("GRID.md")).unwrap();
    write_page(old.split(FOREIGN).next().unwrap_or_default(), &page);
}

impl Server {
    /// Starts it behind a URL; gives the line of the configuration, too. The port was free a moment
    /// ago: if another process has taken it, the server exits.
    fn serve_http(&self) -> (Option<Process>, String) {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
            let mut command = Command::new(&self.run[0]);
            command.args(&self.run[1..]).args(self.at_url).env("PORT", free.port().to_string());
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let mut process = Process { child: command.spawn().unwrap(), _stdin: None };
            while process.child.try_wait().unwrap().is_none() && Instant::now() < end {
                if TcpStream::connect(free).is_ok() {
                    return (Some(process), format!("url = \"http://{free}/mcp\""));
                }
                std::thread::sleep(Duration::from_millis(50));
            }
        }
        panic!("{} does not listen", self.title);
    }

    /// The mark of a row for a client of one revision.
    async fn mark(
        &self,
        client: &Client,
        person: &Person,
        near: Revision,
        row: &str,
        since: usize,
    ) -> Result<char, String> {
        let since = if row == "elicitation: form" { self.elicits_since } else { since };
        if near.index() < since {
            return Ok('–');
        }
        match self.check(client, person, row).await {
            None => Ok('·'),
            Some(checked) => checked.map(|()| '✓'),
        }
    }

    async fn check(
        &self,
        client: &Client,
        person: &Person,
        row: &str,
    ) -> Option<Result<(), String>> {
        let checked = match row {
            "tool" => self.call(client, &self.tool, |reply| text(&reply)).await,
            "structured output" => {
                let structured = |reply: ToolReply| reply.structured.unwrap_or_default();
                self.call(client, &self.structured, |reply| structured(reply).text().into()).await
            }
            "failed tool" => {
                let (tool, arguments, part) = &self.failed;
                let reply = client.call_tool(&format!("up_{tool}"), raw(arguments.clone())).await;
                reply.map_err(told).and_then(|reply| match reply.is_error {
                    true => holds(&text(&reply), part),
                    false => Err("not an error".into()),
                })
            }
            "progress" => self.progress(client, person).await,
            "prompts" => {
                let (name, argument, value) = self.prompt;
                let reply = client.get_prompt(&format!("up_{name}"), [(argument, value)]).await;
                reply.map_err(told).and_then(|reply| holds(&format!("{:?}", reply.messages), value))
            }
            "resources" => {
                let reply = client.read_resource(self.resource).await.map_err(told);
                reply.and_then(|reply| holds(&reply.contents[0].uri, self.resource))
            }
            "elicitation: form" => self.call(client, &self.elicit, |reply| text(&reply)).await,
            _ => {
                let sample = self.sample.as_ref()?;
                self.call(client, sample, |reply| text(&reply)).await
            }
        };
        Some(checked)
    }

    async fn call(
        &self,
        client: &Client,
        (tool, arguments, part): &Called,
        seen: impl Fn(ToolReply) -> String,
    ) -> Result<(), String> {
        let reply = client.call_tool(&format!("up_{tool}"), raw(arguments.clone())).await;
        holds(&seen(reply.map_err(told)?), part)
    }

    async fn progress(&self, client: &Client, person: &Person) -> Result<(), String> {
        let (tool, arguments, part) = &self.progress;
        let options = CallOptions { progress: true, ..CallOptions::default() };
        let before = person.progress.lock().unwrap().len();
        let (tool, arguments) = (format!("up_{tool}"), raw(arguments.clone()));
        let reply = client.call_tool_with(&tool, arguments, options).await.map_err(told)?;
        holds(&text(&reply), part)?;
        let is_told = person.progress.lock().unwrap().len() > before;
        if is_told { Ok(()) } else { Err("no progress".into()) }
    }
}

fn told(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn holds(seen: &str, part: &str) -> Result<(), String> {
    if seen.contains(part) { Ok(()) } else { Err(format!("{part:?} is not in {seen:?}")) }
}
