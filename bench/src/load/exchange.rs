//! The messages that are sent, and whether their answers are right.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;

/// What a server is spoken to in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Era {
    /// 2026-07-28: every request describes itself.
    Modern,
    /// 2025-11-25: a handshake, and a session.
    Legacy,
}

impl Era {
    /// Both, the newer first.
    pub const ALL: [Self; 2] = [Self::Modern, Self::Legacy];

    /// The revision that stands for it.
    pub const fn revision(self) -> &'static str {
        match self {
            Self::Modern => "2026-07-28",
            Self::Legacy => "2025-11-25",
        }
    }

    /// For tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Modern => "modern",
            Self::Legacy => "legacy",
        }
    }
}

/// What is asked, again and again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// `tools/call` of `echo`, with so many bytes of text.
    Echo(usize),
    /// `tools/list`, whose first page has so many tools.
    List(usize),
    /// `tools/call` of another tool; an answer is right if it is no error.
    Call {
        /// Which.
        tool: &'static str,
        /// Its arguments, as JSON.
        arguments: String,
    },
}

impl Ask {
    /// The method.
    pub fn method(&self) -> &'static str {
        match self {
            Self::Echo(_) | Self::Call { .. } => "tools/call",
            Self::List(_) => "tools/list",
        }
    }

    /// The tool.
    pub fn tool(&self) -> Option<&'static str> {
        match self {
            Self::Echo(_) => Some("echo"),
            Self::Call { tool, .. } => Some(tool),
            Self::List(_) => None,
        }
    }

    /// The message, with [`FIRST_ID`] as its id.
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
            Self::Echo(size) => {
                format!(
                    r#"{{{meta}{comma}"name":"echo","arguments":{{"text":"{}"}}}}"#,
                    text(*size)
                )
            }
            Self::Call { tool, arguments } => {
                format!(r#"{{{meta}{comma}"name":"{tool}","arguments":{arguments}}}"#)
            }
            Self::List(_) => format!("{{{meta}}}"),
        };
        let method = self.method();
        format!(r#"{{"jsonrpc":"2.0","id":{FIRST_ID},"method":"{method}","params":{params}}}"#)
    }

    /// Why this is not the answer to `id`.
    pub fn refute(&self, id: u64, answer: &[u8]) -> Option<String> {
        #[derive(Deserialize)]
        struct Answer {
            id: u64,
            result: Option<Value>,
            error: Option<Value>,
        }
        let answer: Answer = match serde_json::from_slice(answer) {
            Ok(answer) => answer,
            Err(error) => return Some(format!("no answer: {error}")),
        };
        if answer.id != id {
            return Some(format!("the answer to {}, not to {id}", answer.id));
        }
        let Some(result) = answer.result else { return Some(format!("{:?}", answer.error)) };
        let is_right = match self {
            Self::Echo(size) => result["content"][0]["text"] == text(*size),
            Self::List(count) => {
                *count == 0 || result["tools"].as_array().is_some_and(|all| all.len() == *count)
            }
            Self::Call { .. } => result["isError"] != true,
        };
        (!is_right).then(|| format!("a wrong result: {result}"))
    }
}

/// Ids have eight digits, so that one is exchanged for the next in place.
pub const FIRST_ID: u64 = 10_000_000;

/// Words, and now and then something that JSON must escape.
fn text(size: usize) -> String {
    "The quick brown fox jumps over the lazy dog, 0123456789 times; "
        .chars()
        .cycle()
        .take(size)
        .collect()
}

/// A message in which the id is exchanged for the next one.
#[derive(Clone)]
pub struct Template {
    bytes: Vec<u8>,
    id_at: Option<usize>,
}

impl Template {
    /// `bytes` contain `id`, or need none.
    pub fn new(bytes: Vec<u8>, id: u64) -> Self {
        let id_at = memchr::memmem::find(&bytes, id.to_string().as_bytes());
        Self { bytes, id_at }
    }

    /// The message with that id.
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

/// Checks the answers of one server: the first in full, the rest against the first, and in full
/// again where they differ.
pub struct Checker {
    ask: Ask,
    known: Option<Template>,
}

impl Checker {
    /// Nothing was answered yet.
    pub fn new(ask: Ask) -> Self {
        Self { ask, known: None }
    }

    /// Whether `answer` is the answer to `id`.
    pub fn check(&mut self, id: u64, answer: &[u8]) -> Result<(), String> {
        if self.known.as_mut().is_some_and(|known| known.with(id) == answer) {
            return Ok(());
        }
        let message = of_events(answer);
        if let Some(why) = self.ask.refute(id, &message) {
            return Err(why);
        }
        if self.known.is_none() {
            self.known = Some(Template::new(answer.to_vec(), id));
        }
        Ok(())
    }
}

/// The last message of a stream of events; other bodies as they are.
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
