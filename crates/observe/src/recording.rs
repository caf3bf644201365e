//! Reads a recording. `docs/operations.md` has the format.

mod difference; // how two messages differ
mod story; // a recording as text, call by call

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Lines};
use std::path::Path;

use sabir_wire::Raw;
use serde::Deserialize;
use serde_json::Value;

pub use self::difference::{Difference, Rules, differences};
pub use self::story::stories;

/// The version of the format. Raised when readers of the older format would misunderstand the newer
/// one.
pub(crate) const FORMAT: u64 = 1;

/// A recording that is being read: its events, in their order.
#[derive(Debug)]
pub struct Recording {
    /// Its first line.
    pub head: Head,
    lines: Lines<BufReader<File>>,
    number: usize,
}

/// The first line of a recording.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct Head {
    recording: u64,
    /// The version of Sabir.
    pub sabir: String,
    /// The name of the server.
    pub server: String,
    /// Whether clients were told to expect changes of what is offered.
    #[serde(default)]
    pub reloads: bool,
    /// When the recording began.
    pub started: String,
}

/// Something that happened.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct Event {
    /// Microseconds since the beginning.
    pub at: u64,
    /// The kind.
    pub event: EventKind,
    /// The link.
    #[serde(default)]
    pub link: u64,
    /// The number of a call.
    #[serde(default)]
    pub call: u64,
    /// Names a call on its link.
    #[serde(default)]
    pub key: u64,
    /// The message.
    pub message: Option<Raw>,
    /// A message that is not JSON, or a line of standard error.
    pub text: Option<String>,
    /// The headers of the message.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// How many values of the message were masked.
    #[serde(default)]
    pub masked: usize,
    /// `client` or `upstream`.
    pub peer: Option<String>,
    /// The way in or out.
    pub transport: Option<String>,
    /// The name of the upstream, the tool, the prompt, or the URI.
    pub name: Option<String>,
    /// The caller.
    pub caller: Option<String>,
    /// The client, as it names itself.
    pub client: Option<Value>,
    /// The method of a call.
    pub method: Option<String>,
    /// The revision of a call.
    pub revision: Option<String>,
    /// The outcome of a call.
    pub outcome: Option<String>,
    /// The id of the answered request.
    pub id: Option<Value>,
}

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EventKind {
    /// A link was opened.
    Open,
    /// A message came in.
    Received,
    /// A message went out.
    Sent,
    /// A call began.
    Call,
    /// A call ended.
    End,
    /// The message before it answers a call.
    Answer,
    /// The program of an upstream wrote a line to standard error.
    Stderr,
    /// A link was closed.
    Close,
    /// The recording has reached its limit.
    Full,
    /// A kind of a later version.
    #[serde(other)]
    Other,
}

impl Recording {
    /// Opens a recording.
    pub fn open(path: &Path) -> io::Result<Self> {
        let invalid = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
        let mut lines = BufReader::new(File::open(path)?).lines();
        let first = lines.next().transpose()?.unwrap_or_default();
        let head = serde_json::from_str::<Head>(&first).map_err(|_| {
            invalid("not a recording (expected a file of `sabir serve --record`)".to_owned())
        })?;
        if head.recording != FORMAT {
            let found = head.recording;
            return Err(invalid(format!("a recording of format {found} (expected {FORMAT})")));
        }
        Ok(Self { head, lines, number: 1 })
    }
}

impl Iterator for Recording {
    type Item = io::Result<Event>;

    fn next(&mut self) -> Option<Self::Item> {
        self.number += 1;
        let line = match self.lines.next()? {
            Ok(line) => line,
            Err(error) => return Some(Err(error)),
        };
        let number = self.number;
        let mut event = serde_json::from_str(&line);
        // The process was killed, or the disk was full, in the middle of the last line.
        if event.as_ref().is_err_and(serde_json::Error::is_eof) && self.lines.next().is_none() {
            event = serde_json::from_str(r#"{"at":0,"event":"full"}"#);
        }
        Some(event.map_err(|error| {
            io::Error::new(io::ErrorKind::InvalidData, format!("line {number}: {error}"))
        }))
    }
}
