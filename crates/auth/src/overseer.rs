//! Limits and the audit log, as the engine sees them.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use sabir_cluster::Cluster;
use sabir_engine::{Admission, CallEnd, Oversee, OverseenCall};

use crate::audit::{Audit, AuditSettings};
use crate::limits::{Limit, Limits};
use crate::shared_limits;

/// Limits calls, and writes the audit log.
#[derive(Debug)]
pub struct Overseer {
    limits: Arc<Limits>,
    /// The cluster whose nodes count together.
    cluster: Option<Cluster>,
    audit: Option<Audit>,
    /// The time since 1970 at the start, and the monotonic clock that counts from there.
    began: (Duration, Instant),
}

impl Overseer {
    /// Fails if the audit log cannot be opened.
    pub fn new(limits: Vec<Limit>, audit: Option<&AuditSettings>) -> io::Result<Self> {
        let audit = audit.map(Audit::open).transpose()?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let limits = Arc::new(Limits::new(limits));
        Ok(Self { limits, cluster: None, audit, began: (now, Instant::now()) })
    }

    /// Counts together with the other nodes of the cluster.
    #[must_use]
    pub fn among(mut self, cluster: Option<Cluster>) -> Self {
        self.cluster = cluster;
        self
    }
}

impl Oversee for Overseer {
    fn admit(&self, call: &OverseenCall) -> Admission {
        let (began, at) = self.began;
        let now = began + at.elapsed();
        match &self.cluster {
            None => Admission::Decided(self.limits.admit(call, now, 1)),
            Some(cluster) => shared_limits::admit(&self.limits, cluster, call, now),
        }
    }

    fn ended(&self, call: &OverseenCall, end: &CallEnd) {
        if let Some(audit) = &self.audit {
            audit.record(call, end);
        }
    }
}
