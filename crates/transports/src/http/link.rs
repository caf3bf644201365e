//! What is known here of the record of a session.

use bytes::Bytes;
use sabir_session::SessionRecord;

/// What is known here of the record of a session.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    /// The record as it was last read or written, sealed.
    pub(crate) sealed: Bytes,
    /// The same, opened: what changes here are compared with.
    pub(crate) base: SessionRecord,
    /// The changes of the session that are in it.
    pub(crate) changes: u32,
    /// When its life was renewed, and when it was last known to exist.
    pub(crate) renewed: u64,
    pub(crate) confirmed: u64,
    /// The session was used while the store could not be reached: its life is to be renewed.
    pub(crate) is_owed: bool,
}

impl Link {
    /// What is known of a record that was read or written just now.
    pub(crate) fn new(sealed: Bytes, base: SessionRecord, changes: u32, now: u64) -> Self {
        Self { sealed, base, changes, renewed: now, confirmed: now, is_owed: false }
    }
}
