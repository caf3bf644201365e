//! The limits of the streams of a session.

use sabir_budget::{MemoryFull, memory};

/// The bounds of the streams of one session.
#[derive(Debug)]
pub(crate) struct Bounds {
    /// Messages of each stream.
    pub(crate) events: usize,
    /// Bytes of all complete streams without a reader: with more, the oldest stream is forgotten.
    /// Also bytes of one stream: with more, messages that a reader has taken are dropped.
    pub(crate) bytes: usize,
    /// The number of streams with a reader, and of those without.
    pub(crate) streams: usize,
    /// Unread bytes of all streams. At the limit no further message is accepted.
    pub(crate) unsent: usize,
}

/// Why a message is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// There are too many waiting requests and streams.
    Streams,
    /// The client has too many unread bytes.
    Unsent,
    /// The client has unread bytes, and the process has no memory for more.
    Memory(MemoryFull),
}

/// Unread bytes that a client may have even without memory for more.
const ALWAYS: usize = 64 << 10;

impl Bounds {
    /// Whether a client with `unsent` unread bytes may send another request.
    pub(super) fn check_unsent(&self, unsent: usize, share: u64) -> Result<(), Full> {
        match unsent {
            _ if unsent >= self.unsent => Err(Full::Unsent),
            0..=ALWAYS => Ok(()),
            _ => memory().check(share).map_err(Full::Memory),
        }
    }
}
