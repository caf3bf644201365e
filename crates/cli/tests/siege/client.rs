//! A client that can send any bytes, and need not read.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};

pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    address: SocketAddr,
    pub(crate) token: Option<&'static str>,
}

pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Response {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    pub(crate) fn header(&self, name: &str) -> Option<String> {
        let lines = self.head.lines().filter_map(|line| line.split_once(':'));
        let mut found = lines.filter(|(known, _)| known.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value.trim().to_owned())
    }
}

pub(crate) fn request(id: u64, method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

/// Reads a resource, in the newest revision.
pub(crate) fn read_request(uri: &str) -> String {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    request(1, "resources/read", &json!({ "uri": uri, "_meta": meta }))
}

pub(crate) fn hello(name: &str, revision: &str) -> String {
    let client = json!({ "name": name, "version": "1" });
    let params = json!({ "protocolVersion": revision, "capabilities": {}, "clientInfo": client });
    request(0, "initialize", &params)
}

pub(crate) fn health(address: SocketAddr) -> u16 {
    let mut client = Client::connect(address);
    client.say(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    client.response().map_or(0, |response| response.status)
}

/// Opens the stream of the first revision; where to post, unless it was refused.
pub(crate) fn open_old_sse(client: &mut Client) -> Option<String> {
    client.say(b"GET /sse HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n");
    let mut seen = String::new();
    while !seen.contains("sessionId=") || !seen.ends_with("\n\n\r\n") {
        let mut buffer = [0; 4096];
        let read = client.stream.read(&mut buffer).ok().filter(|read| *read > 0)?;
        seen += &String::from_utf8_lossy(&buffer[..read]);
        if !seen.starts_with("HTTP/1.1 200 ") {
            return None;
        }
    }
    let path = seen.split("data: ").nth(1)?;
    Some(path.lines().next()?.trim().to_owned())
}

/// The head of a WebSocket message whose payload has so many bytes. Its mask changes nothing.
pub(crate) fn message_head(length: u64) -> Vec<u8> {
    let mut head = vec![0x81, 0xff];
    head.extend(length.to_be_bytes());
    head.extend([0; 4]);
    head
}

impl Client {
    /// A WebSocket, ready for messages.
    pub(crate) fn websocket(address: SocketAddr) -> Option<Self> {
        let mut client = Self::try_connect(address).ok()?;
        let head = format!(
            "GET /mcp HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        );
        client.say(head.as_bytes());
        client.response().filter(|response| response.status == 101).map(|_| client)
    }

    /// Sends a message over a WebSocket.
    pub(crate) fn message(&mut self, text: &str) -> bool {
        self.say(&[&message_head(text.len() as u64), text.as_bytes()].concat())
    }

    pub(crate) fn connect(address: SocketAddr) -> Self {
        Self::try_connect(address).unwrap()
    }

    pub(crate) fn try_connect(address: SocketAddr) -> std::io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, Duration::from_secs(30))?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        stream.set_write_timeout(Some(Duration::from_secs(60)))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, address, token: None })
    }

    pub(crate) fn head(&self, path: &str, headers: &str, length: usize) -> String {
        let token = self.token.map(|token| format!("Authorization: Bearer {token}\r\n"));
        format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nAccept: \
             application/json, text/event-stream\r\n{headers}{}Content-Length: {length}\r\n\r\n",
            self.address,
            token.unwrap_or_default()
        )
    }

    /// Sends bytes; whether the server took them.
    pub(crate) fn say(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).is_ok()
    }

    pub(crate) fn post(&mut self, headers: &str, body: &str) -> bool {
        let head = self.head("/mcp", headers, body.len());
        self.say(&[head.as_bytes(), body.as_bytes()].concat())
    }

    /// Posts a message of the first revision; its status.
    pub(crate) fn post_to(&mut self, path: &str, body: &str) -> Option<u16> {
        let head = self.head(path, "", body.len());
        let is_sent = self.say(&[head.as_bytes(), body.as_bytes()].concat());
        is_sent.then(|| self.response()).flatten().map(|response| response.status)
    }

    pub(crate) fn ask(&mut self, headers: &str, body: &str) -> Option<Response> {
        self.post(headers, body).then(|| self.response()).flatten()
    }

    /// Reads one response with a known length.
    pub(crate) fn response(&mut self) -> Option<Response> {
        let mut read = Vec::new();
        let mut buffer = vec![0; 64 << 10];
        let end = loop {
            if let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") {
                break end + 4;
            }
            let length = self.stream.read(&mut buffer).ok().filter(|length| *length > 0)?;
            read.extend_from_slice(&buffer[..length]);
        };
        let head = String::from_utf8_lossy(&read[..end]).into_owned();
        let status = head.split(' ').nth(1)?.parse().ok()?;
        let mut response = Response { status, head, body: read.split_off(end) };
        let length = response.header("content-length").and_then(|l| l.parse().ok());
        let length: usize = length.unwrap_or(0);
        while response.body.len() < length {
            let read = self.stream.read(&mut buffer).ok().filter(|read| *read > 0)?;
            response.body.extend_from_slice(&buffer[..read]);
        }
        Some(response)
    }

    /// The text of a resource, or what went wrong.
    pub(crate) fn read(&mut self, uri: &str) -> String {
        let headers = format!(
            "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: resources/read\r\nMcp-Name: {uri}\r\n"
        );
        let Some(response) = self.ask(&headers, &read_request(uri)) else {
            return "no response".into();
        };
        let json = response.json();
        let text = json["result"]["contents"][0]["text"].as_str();
        text.map_or_else(|| format!("{}: {json}", response.status), str::to_owned)
    }

    /// A legacy session whose handshake is complete.
    pub(crate) fn session(&mut self, revision: &str) -> Option<String> {
        let response = self.ask("", &hello("normal", revision))?;
        let id = response.header("mcp-session-id")?;
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        let done = self.ask(&session_header(&id), &ready.to_string())?;
        (done.status == 202).then_some(id)
    }
}

pub(crate) fn session_header(id: &str) -> String {
    format!("Mcp-Session-Id: {id}\r\n")
}
