//! A session's link to its record in the store.

use bytes::Bytes;
use sabir_session::SessionRecord;

/// The state of a session's record, as this node knows it.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    /// The record as it was last read or written, sealed.
    pub(crate) sealed: Bytes,
    /// The same, opened: the base of changes on this node.
    pub(crate) base: SessionRecord,
    /// The number of the session's changes that the record contains.
    pub(crate) changes: u32,
    /// When its expiry was renewed, and when it was last known to exist.
    pub(crate) renewed: u64,
    pub(crate) confirmed: u64,
    /// The session was used while the store could not be reached: its expiry must be renewed.
    pub(crate) is_owed: bool,
}

impl Link {
    /// The link to a record that was just read or written.
    pub(crate) fn new(sealed: Bytes, base: SessionRecord, changes: u32, now: u64) -> Self {
        Self { sealed, base, changes, renewed: now, confirmed: now, is_owed: false }
    }
}
