//! How much is kept of the streams of a session.

use sabir_budget::{MemoryFull, memory};

/// The bounds of the streams of one session.
#[derive(Debug)]
pub(crate) struct Bounds {
    /// Of each stream, messages.
    pub(crate) events: usize,
    /// Of all streams that nobody reads, bytes: when it is more, the oldest is forgotten. Of what
    /// a reader has taken, bytes.
    pub(crate) bytes: usize,
    /// The number of streams with a reader, and of those without.
    pub(crate) streams: usize,
    /// Unread bytes of all streams. At the limit no further message is accepted.
    pub(crate) unsent: usize,
}

/// Why a message is not taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// Too many requests wait, or streams are read.
    Streams,
    /// Too much was not read.
    Unsent,
    /// Some was not read, and the process has no memory for more.
    Memory(MemoryFull),
}

/// What a client need not have read, even if there is no memory for more.
const ALWAYS: usize = 64 << 10;

impl Bounds {
    /// Whether a client that has not read so many bytes may ask for more.
    pub(super) fn check_unsent(&self, unsent: usize, share: u64) -> Result<(), Full> {
        match unsent {
            _ if unsent >= self.unsent => Err(Full::Unsent),
            0..=ALWAYS => Ok(()),
            _ => memory().check(share).map_err(Full::Memory),
        }
    }
}
