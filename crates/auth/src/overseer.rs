//! Limits and the audit log, as the engine sees them.

use std::io;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use sabir_engine::{CallEnd, Limited, Oversee, OverseenCall};

use crate::audit::{Audit, AuditSettings};
use crate::limits::{Limit, Limits};

/// Limits calls, and writes the audit log.
#[derive(Debug)]
pub struct Overseer {
    limits: Limits,
    audit: Option<Audit>,
    /// The time since 1970 at the start, and the monotonic clock that counts from there.
    began: (Duration, Instant),
}

impl Overseer {
    /// Fails if the audit log cannot be opened.
    pub fn new(limits: Vec<Limit>, audit: Option<&AuditSettings>) -> io::Result<Self> {
        let audit = audit.map(Audit::open).transpose()?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Self { limits: Limits::new(limits), audit, began: (now, Instant::now()) })
    }
}

impl Oversee for Overseer {
    fn admit(&self, call: &OverseenCall) -> Result<(), Limited> {
        let (began, at) = self.began;
        self.limits.admit(call, began + at.elapsed())
    }

    fn ended(&self, call: &OverseenCall, end: &CallEnd) {
        if let Some(audit) = &self.audit {
            audit.record(call, end);
        }
    }
}
