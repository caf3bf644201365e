//! `examples/asdlc`: every acceptance criterion of the knowledge base, over real HTTP.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::command;

/// The example, served on a free port.
struct Server {
    child: Child,
    address: String,
}

struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    #[track_caller]
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

impl Server {
    fn start() -> Self {
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
        let mut child = command(&examples, &["serve", "asdlc", "--http", "127.0.0.1:0"])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        let address =
            line.trim().strip_prefix("serving `asdlc-knowledge-base` on http://").unwrap();
        let address = address.strip_suffix("/mcp").unwrap().to_owned();
        std::thread::spawn(move || said.lines().for_each(drop));
        let server = Self { child, address };
        while server.call("list_articles", json!({}))["result"]["content"][0]["text"]
            .as_str()
            .unwrap()
            .contains("still being read")
        {}
        server
    }

    fn exchange(&self, method: &str, head: &str, body: &str) -> Answer {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let (address, length) = (&self.address, body.len());
        write!(
            stream,
            "{method} /mcp HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: \
             {length}\r\n{head}\r\n{body}"
        )
        .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head: head.to_lowercase(), body: body.to_owned() }
    }

    /// As the clients of this server post: no session, no revision.
    fn post(&self, message: &Value) -> Answer {
        let head =
            "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";
        self.exchange("POST", head, &message.to_string())
    }

    #[track_caller]
    fn ask(&self, message: Value) -> Value {
        let answer = self.post(&message);
        assert_eq!(answer.status, 200, "{}", answer.body);
        let body = answer.json();
        assert_eq!(body["jsonrpc"], "2.0", "{body}");
        assert_eq!(body["id"], message["id"], "{body}");
        body
    }

    #[track_caller]
    fn call(&self, tool: &str, arguments: Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        self.ask(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}))
    }

    #[track_caller]
    fn text(&self, tool: &str, arguments: Value) -> String {
        let answer = self.call(tool, arguments);
        answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}")).into()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn initialize_returns_server_info_with_capabilities() {
    let server = Server::start();
    let client = json!({"clientInfo": {"name": "test-client", "version": "1.0.0"}});
    for (id, params) in [(json!(1), Some(client)), (json!("test-id-123"), None)] {
        let mut hello = json!({"jsonrpc": "2.0", "id": id, "method": "initialize"});
        if let Some(params) = params {
            hello["params"] = params;
        }
        let result = server.ask(hello)["result"].clone();
        assert_eq!(result["name"], "asdlc-knowledge-base");
        assert_eq!(result["version"], "1.0.0");
        assert_eq!(result["serverInfo"]["name"], "asdlc-knowledge-base");
        assert_eq!(result["protocolVersion"], "2024-11-05");
        assert!(result["capabilities"]["tools"].is_object(), "{result}");
    }
    // Whatever a client asks for.
    for asked in ["2025-11-25", "2024-11-05", "1999-01-01"] {
        let params = json!({"protocolVersion": asked, "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"}});
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
        assert_eq!(server.ask(hello)["result"]["protocolVersion"], "2024-11-05");
    }
}

#[test]
fn a_request_may_be_as_plain_as_it_can_be() {
    let server = Server::start();
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    let answer = server.exchange("POST", "Content-Type: application/json\r\n", &ping.to_string());
    assert_eq!(answer.json(), json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
    assert!(!answer.head.contains("mcp-session-id"), "{}", answer.head);
}

#[test]
fn a_notification_gets_202_and_nothing_else() {
    let server = Server::start();
    let answer = server.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    assert_eq!((answer.status, answer.body.as_str()), (202, ""));
}

#[test]
fn tools_list_returns_all_three_definitions() {
    let server = Server::start();
    let listed = server.ask(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}));
    let tools = listed["result"]["tools"].as_array().unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["list_articles", "get_article", "search_articles"]);
    for tool in tools {
        assert!(tool["description"].is_string(), "{tool}");
        assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
        assert!(tool["inputSchema"]["properties"].is_object(), "{tool}");
        // What 2024-11-05 does not know.
        for later in ["outputSchema", "annotations", "title"] {
            assert_eq!(tool.get(later), None, "{tool}");
        }
    }
    let list = &tools[0]["inputSchema"]["properties"];
    assert_eq!(list["category"]["enum"], json!(["concepts", "patterns", "practices"]));
    assert_eq!(list["limit"]["type"], "number");
    assert_eq!(tools[0]["inputSchema"].get("required"), None);
    assert_eq!(tools[1]["inputSchema"]["required"], json!(["slug"]));
    let search = &tools[2]["inputSchema"];
    assert_eq!(search["required"], json!(["query"]));
    assert_eq!(search["properties"]["include_content"]["type"], "boolean");
    assert_eq!(search["properties"]["include_content"]["default"], false);
}

#[test]
fn tools_call_goes_to_the_tools() {
    let server = Server::start();
    let list = server.text("list_articles", json!({"limit": 5}));
    assert!(list.starts_with("The newest 5 of 12 articles.\n- Living Specs ("), "{list}");
    assert!(
        list.contains("\n- Context Engineering (`concepts/context-engineering`, 2025-09-14): ")
    );
    let list = server.text("list_articles", json!({"category": "patterns"}));
    assert!(list.starts_with("4 articles, newest first."), "{list}");
    let article = server.text("get_article", json!({"slug": "context-engineering"}));
    assert!(article.contains("\n# Context Engineering\n\nA model answers from"), "{article}");
    let found = server.text("search_articles", json!({"query": "context enginering"}));
    assert!(found.contains("\n1. Context Engineering ("), "{found}");
    let found = server.text("search_articles", json!({"query": "qwertzuiop"}));
    assert_eq!(found, "No article matches \"qwertzuiop\".");
    let found =
        server.text("search_articles", json!({"query": "micro-commits", "include_content": true}));
    assert!(found.contains("\n\n# Micro-Commits\n\nLet the agent commit"), "{found}");
}

#[test]
fn wrong_params_are_32602() {
    let server = Server::start();
    let call = |params: Value| {
        server.ask(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}))
    };
    for params in [
        json!({"arguments": {}}),
        json!({"name": "nonexistent_tool", "arguments": {}}),
        json!({"name": "get_article", "arguments": {}}),
        json!({"name": "list_articles", "arguments": {"limit": "five"}}),
        json!({"name": "list_articles", "arguments": {"category": "recipes"}}),
    ] {
        assert_eq!(call(params.clone())["error"]["code"], -32602, "{params}");
    }
    let answer = server.call("get_article", json!({"slug": "no-such-article"}));
    assert_eq!(answer["error"]["code"], -32602);
    assert_eq!(answer["error"]["data"], json!({"slug": "no-such-article"}));
}

#[test]
fn a_failing_tool_is_32603_and_says_why() {
    let server = Server::start();
    let answer = server.call("get_article", json!({"slug": "review"}));
    assert_eq!(answer["error"]["code"], -32603);
    assert_eq!(
        answer["error"]["message"],
        "`review` is ambiguous (expected one of: concepts/review, patterns/review)"
    );
    let answer = server.call("list_articles", json!({"limit": 0}));
    assert_eq!(answer["error"]["code"], -32603);
    assert_eq!(answer["error"]["message"], "limit must be at least 1, not 0");
}

#[test]
fn an_unknown_method_is_32601_and_named() {
    let server = Server::start();
    let answer = server.ask(json!({"jsonrpc": "2.0", "id": 1, "method": "unknown/method"}));
    assert_eq!(answer["error"]["code"], -32601);
    assert!(answer["error"]["message"].as_str().unwrap().contains("unknown/method"));
}

#[test]
fn only_live_and_experimental_articles_exist() {
    let server = Server::start();
    let list = server.text("list_articles", json!({"limit": 1000}));
    assert!(list.contains("`patterns/review`"), "an experimental one: {list}");
    for hidden in ["swarm-governance", "model-routing", "prompt-library"] {
        assert!(!list.contains(hidden), "{list}");
        let answer = server.call("get_article", json!({ "slug": hidden }));
        assert_eq!(answer["error"]["data"], json!({ "slug": hidden }));
        let words = hidden.replace('-', " ");
        let found = server.text("search_articles", json!({ "query": words }));
        assert!(!found.contains(hidden), "{found}");
    }
}

#[test]
fn a_browser_can_call_it() {
    let server = Server::start();
    let head = "Origin: http://localhost:4321\r\nAccess-Control-Request-Method: \
                POST\r\nAccess-Control-Request-Headers: content-type,mcp-protocol-version\r\n";
    let answer = server.exchange("OPTIONS", head, "");
    assert_eq!((answer.status, answer.body.as_str()), (204, ""));
    for part in [
        "access-control-allow-origin: http://localhost:4321",
        "access-control-allow-methods: ",
        "access-control-allow-headers: ",
        "mcp-protocol-version",
    ] {
        assert!(answer.head.contains(part), "{}", answer.head);
    }
    let head = "Origin: http://localhost:4321\r\nContent-Type: application/json\r\nAccept: \
                application/json, text/event-stream\r\n";
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let answer = server.exchange("POST", head, &list.to_string());
    assert_eq!(answer.status, 200);
    assert!(answer.head.contains("access-control-allow-origin: http://localhost:4321"));
}
