//! A notice of one node to others about a session.

use sabir_cluster::{Away, Seal};
use sabir_wire::Caller;
use serde::{Deserialize, Serialize};

use super::table::{SessionId, StoredSession};

/// A notice of one node to others about a session.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Notice {
    pub(crate) session: String,
    pub(crate) caller: Caller,
    /// The session uses the transport of the first revision.
    #[serde(default)]
    pub(crate) is_old: bool,
    pub(crate) news: News,
}

/// The content of a notice.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum News {
    /// The session has ended.
    Ended,
    /// The record of the session has changed.
    Changed,
    /// The client of the session has sent this message.
    Message(String),
    /// The client follows this stream on another node. Older nodes ignore it.
    Follows(u64),
}

/// The name under which notices are sealed.
const NOTICE: &str = "notice";

impl Notice {
    pub(crate) fn new(stored: &StoredSession, news: News) -> Self {
        Self::about(&stored.id, stored.owner.clone(), false, news)
    }

    pub(crate) fn about(id: &SessionId, caller: Caller, is_old: bool, news: News) -> Self {
        let session = String::from_utf8_lossy(id.as_bytes()).into_owned();
        Self { session, caller, is_old, news }
    }

    pub(crate) fn sealed(&self, seal: &Seal) -> Result<Vec<u8>, Away> {
        let text = serde_json::to_vec(self).map_err(Away::new)?;
        Ok(seal.seal(NOTICE, &text))
    }

    /// Opens a notice. `None` if it was sealed with another key, or has an unknown format.
    pub(crate) fn open(seal: &Seal, sealed: &[u8]) -> Option<Self> {
        serde_json::from_slice(&seal.open(NOTICE, sealed).ok()?).ok()
    }
}
