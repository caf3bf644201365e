//! The requests that are sent, and the check of their answers.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;

/// The era of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Era {
    /// 2026-07-28: every request carries its metadata.
    Modern,
    /// 2025-11-25: a handshake and a session.
    Legacy,
}

impl Era {
    /// Both eras, the newer one first.
    pub const ALL: [Self; 2] = [Self::Modern, Self::Legacy];

    /// The protocol revision that is used for the era.
    pub const fn revision(self) -> &'static str {
        match self {
            Self::Modern => "2026-07-28",
            Self::Legacy => "2025-11-25",
        }
    }

    /// The name in tables and on command lines.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Modern => "modern",
            Self::Legacy => "legacy",
        }
    }
}

/// The request of a load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// `tools/call` of `echo` with a text of this many bytes. The handler returns it at once.
    Echo(usize),
    /// `tools/call` of `wait` with a text of this many bytes. The handler yields to the runtime once
    /// before it returns the text.
    Wait(usize),
    /// `tools/list`. The first page must have this many tools; 0 accepts any number.
    List(usize),
    /// `tools/call` of any tool. Every result without `isError` is accepted.
    Call {
        /// The name of the tool.
        tool: &'static str,
        /// The arguments as JSON.
        arguments: String,
    },
}

impl Ask {
    /// The method of the request.
    pub fn method(&self) -> &'static str {
        match self {
            Self::Echo(_) | Self::Wait(_) | Self::Call { .. } => "tools/call",
            Self::List(_) => "tools/list",
        }
    }

    /// The tool that is called.
    pub fn tool(&self) -> Option<&'static str> {
        match self {
            Self::Echo(_) => Some("echo"),
            Self::Wait(_) => Some("wait"),
            Self::Call { tool, .. } => Some(tool),
            Self::List(_) => None,
        }
    }

    /// The JSON-RPC message, with the id [`FIRST_ID`].
    pub fn message(&self, era: Era) -> String {
        let meta = match era {
            Era::Modern => concat!(
                r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
                r#""io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1.0.0"},"#,
                r#""io.modelcontextprotocol/clientCapabilities":{}}"#
            ),
            Era::Legacy => "",
        };
        let comma = if meta.is_empty() || *self == Self::List(0) { "" } else { "," };
        let params = match self {
            Self::Echo(size) | Self::Wait(size) => {
                let (name, text) = (self.tool().unwrap_or_default(), text(*size));
                format!(r#"{{{meta}{comma}"name":"{name}","arguments":{{"text":"{text}"}}}}"#)
            }
            Self::Call { tool, arguments } => {
                format!(r#"{{{meta}{comma}"name":"{tool}","arguments":{arguments}}}"#)
            }
            Self::List(_) => format!("{{{meta}}}"),
        };
        let method = self.method();
        format!(r#"{{"jsonrpc":"2.0","id":{FIRST_ID},"method":"{method}","params":{params}}}"#)
    }

    /// Checks that `answer` is the right answer to the request `id`.
    pub fn check(&self, id: u64, answer: &[u8]) -> Result<(), String> {
        #[derive(Deserialize)]
        struct Answer {
            id: u64,
            result: Option<Value>,
            error: Option<Value>,
        }
        let answer: Answer = serde_json::from_slice(answer)
            .map_err(|error| format!("invalid JSON-RPC response: {error}"))?;
        if answer.id != id {
            return Err(format!("answer to request {} (expected {id})", answer.id));
        }
        let Some(result) = answer.result else {
            return Err(format!("error response: {}", answer.error.unwrap_or_default()));
        };
        let is_right = match self {
            Self::Echo(size) | Self::Wait(size) => result["content"][0]["text"] == text(*size),
            Self::List(count) => {
                *count == 0 || result["tools"].as_array().is_some_and(|all| all.len() == *count)
            }
            Self::Call { .. } => result["isError"] != true,
        };
        if is_right { Ok(()) } else { Err(format!("wrong result: {result}")) }
    }
}

/// The first id. All ids have eight digits, so that they can be replaced in place.
pub const FIRST_ID: u64 = 10_000_000;

/// A text of this many bytes.
fn text(size: usize) -> String {
    "The quick brown fox jumps over the lazy dog, 0123456789 times; "
        .chars()
        .cycle()
        .take(size)
        .collect()
}

/// A message whose id is replaced in place.
#[derive(Clone)]
pub struct Template {
    bytes: Vec<u8>,
    id_at: Option<usize>,
}

impl Template {
    /// Creates a template from a message with this id.
    pub fn new(bytes: Vec<u8>, id: u64) -> Self {
        let id_at = memchr::memmem::find(&bytes, id.to_string().as_bytes());
        Self { bytes, id_at }
    }

    /// Returns the message with this id.
    pub fn with(&mut self, id: u64) -> &[u8] {
        if let Some(at) = self.id_at {
            let mut left = id;
            for digit in self.bytes[at..at + 8].iter_mut().rev() {
                *digit = b'0' + (left % 10) as u8;
                left /= 10;
            }
        }
        &self.bytes
    }
}

/// Checks the answers of one server. The first one is parsed; the others are compared with it byte by
/// byte, and parsed where they differ.
pub struct Checker {
    ask: Ask,
    known: Option<Template>,
}

impl Checker {
    /// Creates a checker for the answers to one request.
    pub fn new(ask: Ask) -> Self {
        Self { ask, known: None }
    }

    /// Checks that `answer` is the right answer to the request `id`.
    pub fn check(&mut self, id: u64, answer: &[u8]) -> Result<(), String> {
        if self.known.as_mut().is_some_and(|known| known.with(id) == answer) {
            return Ok(());
        }
        let message = of_events(answer);
        self.ask.check(id, &message)?;
        if self.known.is_none() {
            self.known = Some(Template::new(answer.to_vec(), id));
        }
        Ok(())
    }
}

/// Returns the last message of an event stream, and other bodies unchanged.
pub fn of_events(body: &[u8]) -> Cow<'_, [u8]> {
    if body.first().is_none_or(|first| *first == b'{') {
        return Cow::Borrowed(body);
    }
    let data = body
        .split(|byte| *byte == b'\n')
        .filter_map(|line| line.strip_prefix(b"data:"))
        .map(<[u8]>::trim_ascii)
        .rfind(|data| !data.is_empty());
    Cow::Borrowed(data.unwrap_or(body))
}
