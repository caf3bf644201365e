//! An open connection to an upstream, whose end is reported to observers.

use std::time::Instant;

use sabir_registry::{LinkEnd, SourceHandle};
use sabir_wire::Revision;

/// An open connection. When it is dropped, its end is reported.
#[derive(Debug)]
pub(super) struct OpenLink {
    pub(super) upstream: String,
    pub(super) revision: Revision,
    pub(super) transport: &'static str,
    pub(super) opened: Instant,
    pub(super) handle: Option<SourceHandle>,
}

impl Drop for OpenLink {
    fn drop(&mut self) {
        let Some(handle) = &self.handle else { return };
        handle.link_ended(&LinkEnd {
            upstream: &self.upstream,
            revision: self.revision,
            transport: self.transport,
            duration: self.opened.elapsed(),
        });
    }
}
