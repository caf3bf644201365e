//! A raw WebSocket client, which can send every invalid frame.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

use crate::server::in_time;

pub(crate) const CONTINUATION: u8 = 0x0;
pub(crate) const TEXT: u8 = 0x1;
pub(crate) const BINARY: u8 = 0x2;
pub(crate) const CLOSE: u8 = 0x8;
pub(crate) const PING: u8 = 0x9;
pub(crate) const PONG: u8 = 0xa;

/// The bit of the last frame of a message.
const FINAL: u8 = 0x80;

/// One frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    first: u8,
    pub(crate) payload: Vec<u8>,
    /// The length in its header, if it is not the real one.
    length: u64,
    is_masked: bool,
}

impl Frame {
    /// A frame that is a whole message, or its last fragment.
    pub(crate) fn new(opcode: u8, payload: &[u8]) -> Self {
        let length = payload.len() as u64;
        Self { first: FINAL | opcode, payload: payload.to_vec(), length, is_masked: true }
    }

    /// A fragment that others follow.
    pub(crate) fn part(opcode: u8, payload: &[u8]) -> Self {
        Self { first: opcode, ..Self::new(opcode, payload) }
    }

    pub(crate) fn close(code: u16, reason: &[u8]) -> Self {
        Self::new(CLOSE, &[&code.to_be_bytes(), reason].concat())
    }

    /// The header of a frame whose payload is never sent.
    pub(crate) fn announced(opcode: u8, length: u64) -> Self {
        Self { length, ..Self::new(opcode, b"") }
    }

    pub(crate) fn unmasked(self) -> Self {
        Self { is_masked: false, ..self }
    }

    pub(crate) fn opcode(&self) -> u8 {
        self.first & 0xf
    }

    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.first, FINAL | TEXT, "{self:?}");
        serde_json::from_slice(&self.payload).unwrap()
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        const MASK: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];
        let mask_bit = if self.is_masked { 0x80 } else { 0 };
        let mut bytes = vec![self.first];
        match self.length {
            length @ 0..126 => bytes.push(mask_bit | length as u8),
            length @ 126..0x1_0000 => {
                bytes.push(mask_bit | 126);
                bytes.extend_from_slice(&(length as u16).to_be_bytes());
            }
            length => {
                bytes.push(mask_bit | 127);
                bytes.extend_from_slice(&length.to_be_bytes());
            }
        }
        if self.is_masked {
            bytes.extend_from_slice(&MASK);
        }
        let masked = self.payload.iter().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask);
        if self.is_masked {
            bytes.extend(masked)
        } else {
            bytes.extend(&self.payload)
        }
        bytes
    }
}

/// A header to be replaced, or left out.
pub(crate) type Change<'a> = (&'a str, Option<&'a str>);

/// A client's end of a WebSocket.
pub(crate) struct Socket {
    stream: BufReader<TcpStream>,
    headers: Vec<(String, String)>,
}

impl Socket {
    pub(crate) async fn open(address: SocketAddr) -> Self {
        Self::try_open(address, "/mcp", &[]).await.unwrap()
    }

    /// Opens a socket, or returns the status of the refusal.
    pub(crate) async fn try_open(
        address: SocketAddr,
        path: &str,
        changes: &[Change<'_>],
    ) -> Result<Self, u16> {
        let host = address.to_string();
        let mut headers = vec![
            ("host", Some(host.as_str())),
            ("connection", Some("Upgrade")),
            ("upgrade", Some("websocket")),
            ("sec-websocket-version", Some("13")),
            ("sec-websocket-key", Some("dGhlIHNhbXBsZSBub25jZQ==")),
            ("sec-websocket-protocol", Some("mcp")),
        ];
        for change in changes {
            headers.retain(|(name, _)| *name != change.0);
            headers.push(*change);
        }
        let mut head = format!("GET {path} HTTP/1.1\r\n");
        for (name, value) in headers.iter().filter_map(|(name, value)| Some((name, (*value)?))) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("accept: text/event-stream\r\n\r\n");
        let mut stream = BufReader::new(TcpStream::connect(address).await.unwrap());
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            in_time(stream.read_line(&mut line)).await.unwrap();
            match line.trim_end() {
                "" => break,
                line => lines.push(line.to_owned()),
            }
        }
        let status = lines.remove(0)[9..12].parse().unwrap();
        if status != 101 {
            return Err(status);
        }
        let split = |line: &String| {
            let (name, value) = line.split_once(": ").unwrap();
            (name.to_ascii_lowercase(), value.to_owned())
        };
        let socket = Self { stream, headers: lines.iter().map(split).collect() };
        // The example of RFC 6455, section 1.3.
        let accept = Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert_eq!(socket.header("sec-websocket-accept"), accept);
        Ok(socket)
    }

    /// The raw connection, before the first frame.
    pub(crate) fn into_stream(self) -> TcpStream {
        self.stream.into_inner()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Sends a frame. Errors are ignored: the last frames of a closed connection can still be read.
    pub(crate) async fn send(&mut self, frame: &Frame) {
        let _ = self.stream.write_all(&frame.to_bytes()).await;
    }

    pub(crate) async fn text(&mut self, text: &str) {
        self.send(&Frame::new(TEXT, text.as_bytes())).await;
    }

    /// The next frame; `None` when the server has closed the connection.
    pub(crate) async fn frame(&mut self) -> Option<Frame> {
        let mut start = [0; 2];
        in_time(self.stream.read_exact(&mut start)).await.ok()?;
        assert_eq!(start[1] & 0x80, 0, "a server masks nothing");
        let length = match start[1] {
            126 => u64::from(self.stream.read_u16().await.unwrap()),
            127 => self.stream.read_u64().await.unwrap(),
            short => u64::from(short),
        };
        let mut payload = vec![0; usize::try_from(length).unwrap()];
        in_time(self.stream.read_exact(&mut payload)).await.unwrap();
        Some(Frame { first: start[0], payload, length, is_masked: false })
    }

    /// The next message.
    pub(crate) async fn json(&mut self) -> Value {
        self.frame().await.expect("the server is there").json()
    }

    /// Reads until the server closes, and returns the code; no frame follows.
    pub(crate) async fn close_code(&mut self) -> Option<u16> {
        loop {
            let frame = self.frame().await.expect("a close frame");
            if frame.opcode() == CLOSE {
                assert!(self.frame().await.is_none(), "nothing follows a close");
                let code = frame.payload.get(..2)?;
                return Some(u16::from_be_bytes([code[0], code[1]]));
            }
        }
    }
}
