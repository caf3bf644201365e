//! A server under test, and requests to it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use sabir_auth::{ResourceServer, Settings};
use sabir_engine::Engine;
use sabir_registry::{Offer, Outcome, Pending, Source, ToolCall};
use sabir_transports::http;
use sabir_wire::Raw;
use sabir_wire::types::{Content, Tool, ToolReply};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::issuer::Issuer;

/// The URL of the server under test, as clients write it.
pub(crate) const RESOURCE: &str = "https://mcp.example/mcp";

/// A tool that answers with its caller.
struct Who;

impl Source for Who {
    fn offer(&self) -> Offer {
        let schema = Raw::parse(r#"{"type":"object"}"#).unwrap();
        Offer { tools: vec![Tool::new("who", "d", schema)], ..Offer::default() }
    }

    fn call_tool(&self, call: ToolCall) -> Pending<ToolReply> {
        let caller = &call.context.caller;
        let scopes: Vec<_> = caller.scopes().collect();
        let content = vec![Content::text(format!("{} {}", caller.subject(), scopes.join(" ")))];
        Box::pin(async { Ok(Outcome::Done(ToolReply { content, ..ToolReply::default() })) })
    }
}

/// A server that accepts tokens of these issuers, and has changed settings.
pub(crate) async fn start_with(
    issuers: &[&Issuer],
    change: impl FnOnce(&mut Settings),
) -> SocketAddr {
    start_serving(issuers, vec![Arc::new(Who)], change).await
}

/// The same, with these sources.
pub(crate) async fn start_serving(
    issuers: &[&Issuer],
    sources: Vec<Arc<dyn Source>>,
    change: impl FnOnce(&mut Settings),
) -> SocketAddr {
    let mut settings = Settings::new(RESOURCE, "");
    settings.issuers = issuers.iter().map(|issuer| issuer.url()).collect();
    settings.scopes = vec!["notes".into()];
    settings.key_interval = Duration::ZERO;
    change(&mut settings);
    let mut http = http::Settings::default();
    http.authenticate = Some(Arc::new(ResourceServer::new(&settings).unwrap()));
    http.tokens = vec![http::NamedToken::new("static", http::Token::new("s3cret").unwrap())];
    serve(sources, http).await
}

/// A server without authentication.
pub(crate) async fn start_open() -> SocketAddr {
    serve(vec![Arc::new(Who)], http::Settings::default()).await
}

async fn serve(sources: Vec<Arc<dyn Source>>, mut http: http::Settings) -> SocketAddr {
    let engine = Engine::new(sabir_engine::Settings::default());
    for source in sources {
        engine.registry().add(source).unwrap();
    }
    http.address.set_port(0);
    let server = http::Server::bind(engine, http).await.unwrap();
    let address = server.address();
    tokio::spawn(server.run(std::future::pending()));
    address
}

pub(crate) async fn start(issuer: &Issuer) -> SocketAddr {
    start_with(&[issuer], |_| ()).await
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        let mut found = lines.filter(|(known, _)| known.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value)
    }

    pub(crate) fn challenge(&self) -> &str {
        self.header("www-authenticate").unwrap_or_else(|| panic!("no challenge: {self:?}"))
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    /// The answer of the tool `who`.
    pub(crate) fn text(&self) -> String {
        self.json()["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned()
    }
}

/// Sends a request with these lines and this body, on a connection of its own.
pub(crate) async fn send(address: SocketAddr, lines: &str, body: &str) -> Answer {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let length = body.len();
    let lines = lines.replace('\n', "\r\n");
    let request = format!(
        "{lines}\r\nhost: localhost\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut read = Vec::new();
    let reading = stream.read_to_end(&mut read);
    tokio::time::timeout(Duration::from_secs(30), reading).await.expect("too slow").unwrap();
    let text = String::from_utf8(read).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text}"));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { status, head: head.to_owned(), body: body.to_owned() }
}

/// The lines of a POST to the endpoint.
pub(crate) const POST: &str = "POST /mcp HTTP/1.1\ncontent-type: application/json\n\
     accept: application/json, text/event-stream\nmcp-protocol-version: 2026-07-28\n\
     mcp-method: tools/call\nmcp-name: who";

/// A call of the tool `who`.
pub(crate) fn call_of_who() -> String {
    json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "who", "arguments": {}, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        } },
    })
    .to_string()
}

/// Calls the tool `who` with a token.
pub(crate) async fn who(address: SocketAddr, token: &str) -> Answer {
    let lines = format!("{POST}\nauthorization: Bearer {token}");
    send(address, &lines, &call_of_who()).await
}
