//! The boundary to a transport.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use sabir_wire::{Malformed, decode};
use tokio::sync::mpsc;

use crate::config::Limits;
use crate::error::{CallError, OpenError};
use crate::io::{CallKey, Input, LinkKind, Order};

/// A way to a server. It opens one link at a time, and may be asked to open another after that has
/// ended.
pub trait Transport: std::fmt::Debug + Send + Sync + 'static {
    /// The kind of its links.
    fn kind(&self) -> LinkKind;

    /// Opens a link: starts tasks that carry out the orders and report what arrives. The link ends
    /// when the orders end, or when the transport reports that it has.
    fn open(&self, link: Link) -> Opening<'_>;

    /// Another way to the same server, to be tried if this one refuses the handshake of the legacy
    /// era.
    fn fallback(&self) -> Option<Arc<dyn Transport>> {
        None
    }

    /// The last lines that the server wrote to standard error.
    fn stderr(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A link that is being opened.
pub type Opening<'a> = Pin<Box<dyn Future<Output = Result<(), OpenError>> + Send + 'a>>;

/// Our end of a link, for the transport.
#[derive(Debug)]
pub struct Link {
    /// Orders, in their sequence. When they end, the link is no longer wanted.
    pub orders: mpsc::UnboundedReceiver<Order>,
    /// Where to report what happens.
    pub inbox: Inbox,
}

/// Takes what arrives on a link. Reporting never waits: it is done when it returns.
#[derive(Clone, Debug)]
pub struct Inbox {
    receiver: Arc<dyn Receiver>,
    /// The limits of the client.
    pub limits: Limits,
}

/// The connection behind an inbox.
pub(crate) trait Receiver: std::fmt::Debug + Send + Sync {
    fn handle(&self, input: Input);
    fn end(&self, reason: OpenError, unsent: &[CallKey]);
    fn sent(&self, bytes: usize);
    fn is_waiting(&self, call: CallKey) -> bool;
}

impl Inbox {
    pub(crate) fn new(receiver: Arc<dyn Receiver>, limits: Limits) -> Self {
        Self { receiver, limits }
    }

    /// A frame arrived; over HTTP, in the exchange of `call`.
    pub fn receive(&self, call: Option<CallKey>, frame: &Bytes) {
        let frame = decode(frame, self.limits.message_depth);
        self.receiver.handle(Input::Received { exchange: call, frame });
    }

    /// A frame arrived that is longer than the limit, and was dropped.
    pub fn receive_too_long(&self, call: Option<CallKey>) {
        let frame = Err(Malformed::TOO_LONG);
        self.receiver.handle(Input::Received { exchange: call, frame });
    }

    /// The exchange of `call` ended without an answer.
    pub fn fail(&self, call: CallKey, failure: CallError, challenge: Option<String>) {
        self.receiver.handle(Input::Failed { exchange: call, failure, challenge });
    }

    /// Whether the answer to `call` is still to come.
    pub fn is_waiting(&self, call: CallKey) -> bool {
        self.receiver.is_waiting(call)
    }

    /// A frame of this length was sent, or will not be. Room for others is made.
    pub fn sent(&self, bytes: usize) {
        self.receiver.sent(bytes);
    }

    /// The link ended. The messages that began these calls were certainly not sent.
    pub fn end(&self, reason: OpenError, unsent: &[CallKey]) {
        self.receiver.end(reason, unsent);
    }
}
