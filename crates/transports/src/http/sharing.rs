//! The store in which a server keeps the records of its sessions, and their seals.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sabir_cluster::{Away, Cluster, To, Unreadable};
use sabir_outbound::{Addresses, HttpClient, PlainHttp, Policy};
use sabir_session::SessionRecord;
use sabir_wire::Caller;

use super::notice::Notice;
use super::settings::Limits;
use super::table::SessionId;

/// The sessions that a server shares.
pub(crate) struct Sharing {
    pub(crate) cluster: Cluster,
    /// How long a session is kept without a request, and one whose handshake is not complete.
    pub(crate) idle: Duration,
    handshake: Duration,
    /// The store has answered once.
    has_reached: AtomicBool,
    /// The client for calls to other nodes, once one is passed on.
    client: OnceLock<HttpClient>,
}

impl Sharing {
    pub(crate) fn new(cluster: Cluster, limits: &Limits) -> Self {
        let handshake = limits.handshake_time.min(limits.session_idle);
        let idle = limits.session_idle;
        let has_reached = AtomicBool::new(false);
        Self { cluster, idle, handshake, has_reached, client: OnceLock::new() }
    }

    /// The client for calls to other nodes. It may reach any address: only nodes can seal one.
    pub(crate) fn client(&self) -> Result<&HttpClient, sabir_outbound::Error> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let (addresses, plain_http) = (Addresses::Any, PlainHttp::Allowed);
        let client = HttpClient::new(Policy { addresses, plain_http, ..Policy::default() })?;
        Ok(self.client.get_or_init(|| client))
    }

    /// Whether the store has ever answered.
    pub(crate) fn has_reached(&self) -> bool {
        self.has_reached.load(Ordering::Relaxed)
    }

    /// Sends a request to the store; `false` if it does not answer.
    pub(crate) async fn reach(&self) -> bool {
        let reached = self.cluster.store.get("reached", None).await;
        if let Err(away) = &reached {
            // The store itself logs a warning.
            tracing::debug!("the store of sessions cannot be reached: {away}");
        }
        self.has_reached.fetch_or(reached.is_ok(), Ordering::Relaxed);
        reached.is_ok()
    }

    pub(crate) fn name(&self, id: &SessionId, caller: &Caller) -> String {
        self.named("session", id, caller)
    }

    /// The name of a record about a session. It depends on the caller, so that other callers do not
    /// find the record.
    pub(crate) fn named(&self, kind: &str, id: &SessionId, caller: &Caller) -> String {
        let (issuer, subject) = (caller.issuer().as_bytes(), caller.subject().as_bytes());
        self.cluster.seal.name(&[kind.as_bytes(), issuer, subject, id.as_bytes()])
    }

    /// How long a record is kept without a request.
    pub(crate) fn life(&self, record: &SessionRecord) -> Duration {
        if record.is_ready() { self.idle } else { self.handshake }
    }

    pub(crate) fn seal(&self, name: &str, record: &SessionRecord) -> Result<Vec<u8>, Away> {
        let text = serde_json::to_vec(record).map_err(Away::new)?;
        Ok(self.cluster.seal.seal(name, &text))
    }

    pub(crate) fn open(&self, name: &str, sealed: &[u8]) -> Result<SessionRecord, Away> {
        let text = self.cluster.seal.open(name, sealed).map_err(|error: Unreadable| {
            tracing::error!("a session cannot be read: {error}");
            Away::new(error)
        })?;
        serde_json::from_slice(&text).map_err(Away::new)
    }

    /// Sends a notice to other nodes, if there is a bus.
    pub(crate) async fn tell(&self, to: To<'_>, notice: &Notice) -> Result<bool, Away> {
        let Some(bus) = &self.cluster.bus else { return Ok(false) };
        bus.send(to, &notice.sealed(&self.cluster.seal)?).await
    }
}
