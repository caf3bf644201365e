//! What one node tells others about a session.

use sabir_cluster::{Away, Seal};
use sabir_wire::Caller;
use serde::{Deserialize, Serialize};

use super::table::{SessionId, StoredSession};

/// What one node tells others about a session.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Notice {
    pub(crate) session: String,
    pub(crate) caller: Caller,
    /// It is of the first revision's transport.
    #[serde(default)]
    pub(crate) is_old: bool,
    pub(crate) news: News,
}

/// What there is to tell.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum News {
    /// It has ended.
    Ended,
    /// Its record has changed.
    Changed,
    /// Its client has sent this message.
    Message(String),
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

    /// `None` if it is not ours, or of a newer version.
    pub(crate) fn open(seal: &Seal, sealed: &[u8]) -> Option<Self> {
        serde_json::from_slice(&seal.open(NOTICE, sealed).ok()?).ok()
    }
}
