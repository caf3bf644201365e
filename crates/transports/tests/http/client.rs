//! A raw HTTP/1.1 client: it can send any bytes, and reads responses piece by piece.

use std::net::SocketAddr;

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::server::in_time;

pub(crate) const MODERN: &str = "2026-07-28";

/// One connection.
pub(crate) struct Client<S = TcpStream> {
    pub(crate) stream: S,
    unread: Vec<u8>,
    framing: Framing,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Framing {
    None,
    Length(usize),
    Chunked,
    ToTheEnd,
}

/// A response, or its head.
#[derive(Clone, Debug, Default)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|_| panic!("no JSON: {:?}", String::from_utf8_lossy(&self.body)))
    }

    pub(crate) fn text(&self) -> String {
        self.json()["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned()
    }

    pub(crate) fn code(&self) -> i64 {
        self.json()["error"]["code"].as_i64().unwrap_or_default()
    }

    /// The events of a stream that has ended.
    pub(crate) fn events(&self) -> Vec<Event> {
        let text = String::from_utf8(self.body.clone()).unwrap();
        text.split("\n\n").filter(|block| !block.is_empty()).map(Event::parse).collect()
    }
}

/// One event of a stream.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Event {
    pub(crate) id: Option<String>,
    pub(crate) kind: Option<String>,
    pub(crate) data: Option<String>,
    pub(crate) retry: Option<u64>,
    pub(crate) is_comment: bool,
}

impl Event {
    fn parse(block: &str) -> Self {
        let mut event = Self::default();
        for line in block.lines() {
            let (field, value) = line.split_once(':').expect("a line without a field");
            let value = value.strip_prefix(' ').unwrap_or(value).to_owned();
            match field {
                "" => event.is_comment = true,
                "id" => event.id = Some(value),
                "event" => event.kind = Some(value),
                "data" => {
                    assert!(event.data.is_none(), "a message on two lines");
                    event.data = Some(value);
                }
                "retry" => event.retry = value.parse().ok(),
                other => panic!("an unknown field {other}"),
            }
        }
        event
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(self.data.as_deref().expect("no data")).expect("no JSON")
    }

    pub(crate) fn method(&self) -> String {
        self.json()["method"].as_str().unwrap_or_default().to_owned()
    }
}

/// A request, to be sent.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn new(method: &str, path: &str) -> Self {
        let headers = vec![("host".to_owned(), "localhost".to_owned())];
        Self { method: method.into(), path: path.into(), headers, body: Vec::new() }
    }

    pub(crate) fn post(body: impl Into<Vec<u8>>) -> Self {
        let mut request = Self::new("POST", "/mcp");
        request.body = body.into();
        request
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
    }

    /// A POST of a message.
    pub(crate) fn message(message: &Value) -> Self {
        Self::post(message.to_string())
    }

    /// A modern request with its metadata and headers.
    pub(crate) fn modern(id: impl Into<Value>, method: &str, params: Value) -> Self {
        Self::modern_with(id, method, params, json!({}))
    }

    /// The same, from a client with capabilities.
    pub(crate) fn modern_with(
        id: impl Into<Value>,
        method: &str,
        mut params: Value,
        capabilities: Value,
    ) -> Self {
        let name = params.get("name").or(params.get("uri")).and_then(Value::as_str);
        let name = name.map(str::to_owned);
        let meta = params
            .as_object_mut()
            .unwrap()
            .entry("_meta")
            .or_insert_with(|| json!({}))
            .as_object_mut()
            .unwrap();
        meta.insert("io.modelcontextprotocol/protocolVersion".into(), json!(MODERN));
        meta.insert("io.modelcontextprotocol/clientCapabilities".into(), capabilities);
        let message =
            json!({ "jsonrpc": "2.0", "id": id.into(), "method": method, "params": params });
        let request = Self::message(&message)
            .header("mcp-protocol-version", MODERN)
            .header("mcp-method", method);
        match name {
            Some(name) => request.header("mcp-name", &name),
            None => request,
        }
    }

    /// A modern call of a tool.
    pub(crate) fn call(id: impl Into<Value>, tool: &str, arguments: Value) -> Self {
        Self::modern(id, "tools/call", json!({ "name": tool, "arguments": arguments }))
    }

    /// A legacy request.
    pub(crate) fn legacy(id: impl Into<Value>, method: &str, params: Value) -> Self {
        Self::message(
            &json!({ "jsonrpc": "2.0", "id": id.into(), "method": method, "params": params }),
        )
    }

    /// A notification.
    pub(crate) fn note(method: &str, params: Value) -> Self {
        Self::message(&json!({ "jsonrpc": "2.0", "method": method, "params": params }))
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// The same without a header.
    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self
    }

    /// The same with another value of a header, at the same place.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        match self.headers.iter_mut().find(|(known, _)| known.eq_ignore_ascii_case(name)) {
            Some((_, known)) => *known = value.into(),
            None => self.headers.push((name.into(), value.into())),
        }
        self
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut out = format!("{} {} HTTP/1.1\r\n", self.method, self.path).into_bytes();
        for (name, value) in &self.headers {
            out.extend(format!("{name}: {value}\r\n").bytes());
        }
        if !self.body.is_empty() || self.method == "POST" {
            out.extend(format!("content-length: {}\r\n", self.body.len()).bytes());
        }
        out.extend(b"\r\n");
        out.extend(&self.body);
        out
    }
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        let stream = in_time(TcpStream::connect(address)).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self::on(stream)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Client<S> {
    /// A client on an existing connection.
    pub(crate) fn on(stream: S) -> Self {
        Self { stream, unread: Vec::new(), framing: Framing::None }
    }

    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        in_time(self.stream.write_all(bytes)).await.unwrap();
        in_time(self.stream.flush()).await.unwrap();
    }

    /// Sends a request and reads the whole response.
    pub(crate) async fn send(&mut self, request: &Request) -> Response {
        self.write(&request.bytes()).await;
        self.response().await
    }

    /// Sends a request and reads the head of a stream.
    pub(crate) async fn open(&mut self, request: &Request) -> Response {
        self.write(&request.bytes()).await;
        self.head().await
    }

    /// The whole of the next response.
    pub(crate) async fn response(&mut self) -> Response {
        let mut response = self.head().await;
        while let Some(piece) = self.piece().await {
            response.body.extend(piece);
        }
        response
    }

    /// The head of the next response.
    pub(crate) async fn head(&mut self) -> Response {
        self.try_head().await.expect("the connection ended before a response")
    }

    /// The same; `None` if the connection ends instead.
    pub(crate) async fn try_head(&mut self) -> Option<Response> {
        let end = loop {
            if let Some(at) = find(&self.unread, b"\r\n\r\n") {
                break at;
            }
            if !self.fill().await {
                return None;
            }
        };
        let head: Vec<u8> = self.unread.drain(..end + 4).collect();
        let head = String::from_utf8(head).unwrap();
        let mut lines = head.lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers: Vec<_> = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        let response = Response { status, headers, body: Vec::new() };
        self.framing = match response.header("content-length") {
            Some(length) => Framing::Length(length.parse().unwrap()),
            None if response.header("transfer-encoding") == Some("chunked") => Framing::Chunked,
            None if matches!(status, 204 | 304) => Framing::Length(0),
            None => Framing::ToTheEnd,
        };
        Some(response)
    }

    /// The next piece of the body.
    pub(crate) async fn piece(&mut self) -> Option<Vec<u8>> {
        match self.framing {
            Framing::None => None,
            Framing::Length(0) => {
                self.framing = Framing::None;
                None
            }
            Framing::Length(left) => {
                while self.unread.is_empty() {
                    assert!(self.fill().await, "the body is too short");
                }
                let length = left.min(self.unread.len());
                self.framing = Framing::Length(left - length);
                Some(self.unread.drain(..length).collect())
            }
            Framing::Chunked => self.chunk().await,
            Framing::ToTheEnd => {
                if self.unread.is_empty() && !self.fill().await {
                    self.framing = Framing::None;
                    return None;
                }
                Some(std::mem::take(&mut self.unread))
            }
        }
    }

    async fn chunk(&mut self) -> Option<Vec<u8>> {
        let line = loop {
            if let Some(at) = find(&self.unread, b"\r\n") {
                break at;
            }
            if !self.fill().await {
                // Cut off in the middle of a stream.
                self.framing = Framing::None;
                return None;
            }
        };
        let size = std::str::from_utf8(&self.unread[..line]).unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        while self.unread.len() < line + 2 + size + 2 {
            assert!(self.fill().await, "a chunk is too short");
        }
        let chunk = self.unread[line + 2..line + 2 + size].to_vec();
        self.unread.drain(..line + 2 + size + 2);
        if size == 0 {
            self.framing = Framing::None;
            return None;
        }
        Some(chunk)
    }

    /// The next event of a stream; `None` at its end.
    pub(crate) async fn event(&mut self, pending: &mut Vec<u8>) -> Option<Event> {
        loop {
            if let Some(at) = find(pending, b"\n\n") {
                let block: Vec<u8> = pending.drain(..at + 2).collect();
                return Some(Event::parse(std::str::from_utf8(&block[..at]).unwrap()));
            }
            pending.extend(self.piece().await?);
        }
    }

    /// Whether the server closes the connection without sending more.
    pub(crate) async fn is_closed(&mut self) -> bool {
        self.unread.is_empty() && !self.fill().await
    }

    async fn fill(&mut self) -> bool {
        let mut buffer = [0; 16 << 10];
        let read = in_time(self.stream.read(&mut buffer)).await.unwrap_or(0);
        self.unread.extend(&buffer[..read]);
        read > 0
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}
