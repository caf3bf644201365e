//! Passes the reports of a transport to its connection, and those of the connection to the tap.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use sabir_wire::{HttpExchange, Incoming as Frame, Malformed, Peer};
use tokio::sync::Notify;

use super::Connection;
use crate::config::ClientConfig;
use crate::error::OpenError;
use crate::io::{CallKey, Input, LinkKind};
use crate::link::Receiver;

/// Reports a new link to the tap, and returns its number; 0 without a tap.
pub(super) fn open_link(config: &ClientConfig, kind: LinkKind) -> u64 {
    config.tap.as_ref().map_or(0, |(tap, name)| {
        let transport = match kind {
            LinkKind::Pipe => "pipe",
            LinkKind::Http => "http",
        };
        tap.open(&Peer::Upstream { name, transport })
    })
}

/// A transport's handle of its connection, which does not keep it alive.
#[derive(Debug)]
pub(super) struct Incoming {
    pub(super) connection: Weak<Connection>,
    pub(super) released: Arc<Notify>,
}

impl Drop for Incoming {
    fn drop(&mut self) {
        self.released.notify_one();
    }
}

impl Receiver for Incoming {
    fn receive(&self, call: Option<CallKey>, frame: &Bytes, parsed: Result<Frame, Malformed>) {
        let Some(connection) = self.connection.upgrade() else { return };
        let input = Input::Received { exchange: call, frame: parsed };
        connection.advance(connection.lock(), input, Some(frame));
    }

    fn handle(&self, input: Input) {
        if let Some(connection) = self.connection.upgrade() {
            connection.handle(input);
        }
    }

    fn end(&self, reason: OpenError, unsent: &[CallKey]) {
        if let Some(connection) = self.connection.upgrade() {
            connection.finish(reason, unsent);
        }
    }

    fn is_tapped(&self) -> bool {
        let Some(connection) = self.connection.upgrade() else { return false };
        connection.config.tap.as_ref().is_some_and(|(tap, _)| tap.is_on())
    }

    fn exchanged(&self, call: Option<CallKey>, exchange: &HttpExchange) {
        let Some(connection) = self.connection.upgrade() else { return };
        if let Some((tap, _)) = &connection.config.tap {
            let origin = connection.lock().origin(call);
            tap.tell(|tap| tap.exchanged(connection.link, origin, exchange));
        }
    }

    fn wrote(&self, line: &str) {
        let Some(connection) = self.connection.upgrade() else { return };
        if let Some((tap, _)) = &connection.config.tap {
            tap.tell(|tap| tap.wrote(connection.link, line));
        }
    }

    fn is_waiting(&self, call: CallKey) -> bool {
        self.connection
            .upgrade()
            .is_some_and(|connection| connection.lock().conversation.is_waiting(call))
    }

    fn sent(&self, bytes: usize) {
        if let Some(connection) = self.connection.upgrade() {
            connection.unsent.fetch_sub(bytes, Ordering::Relaxed);
            connection.room.notify_waiters();
        }
    }
}
