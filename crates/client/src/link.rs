//! The boundary to a transport.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use sabir_budget::compute;
use sabir_wire::{HttpExchange, Incoming, Malformed, decode};
use tokio::sync::mpsc;

use crate::config::Limits;
use crate::error::{CallError, OpenError};
use crate::io::{CallKey, Input, LinkKind, Order};

/// A way to reach a server. It opens one link at a time, and may be asked for another after the
/// last one has ended.
pub trait Transport: std::fmt::Debug + Send + Sync + 'static {
    /// The kind of its links.
    fn kind(&self) -> LinkKind;

    /// Opens a link: starts tasks that carry out the orders and report received messages. The link
    /// ends when the orders end, or when the transport reports its end.
    fn open(&self, link: Link) -> Opening<'_>;

    /// Another transport to the same server, to be tried if the server refuses the legacy handshake
    /// on this one.
    fn fallback(&self) -> Option<Arc<dyn Transport>> {
        None
    }

    /// The last lines that the server wrote to standard error.
    fn stderr(&self) -> Vec<String> {
        Vec::new()
    }
}

/// The future of a link that is being opened.
pub type Opening<'a> = Pin<Box<dyn Future<Output = Result<(), OpenError>> + Send + 'a>>;

/// The client's end of a link, for the transport.
#[derive(Debug)]
pub struct Link {
    /// Orders, in their sequence. Their end means that the link is to be closed.
    pub orders: mpsc::UnboundedReceiver<Order>,
    /// Takes the reports of the transport.
    pub inbox: Inbox,
}

/// Longer messages are parsed by the computing pool: the reading thread serves other links, too.
const PARSED_IN_PLACE: usize = 256 << 10;

/// Takes the reports of a transport. A report is handled when its function returns.
#[derive(Clone, Debug)]
pub struct Inbox {
    receiver: Arc<dyn Receiver>,
    /// Identifies the link in the computing pool, in which links and callers take turns.
    share: u64,
    /// The limits of the client.
    pub limits: Limits,
}

/// The connection behind an inbox.
pub(crate) trait Receiver: std::fmt::Debug + Send + Sync {
    fn receive(&self, call: Option<CallKey>, frame: &Bytes, parsed: Result<Incoming, Malformed>);
    fn handle(&self, input: Input);
    fn end(&self, reason: OpenError, unsent: &[CallKey]);
    fn sent(&self, bytes: usize);
    fn is_waiting(&self, call: CallKey) -> bool;

    /// Whether a tap is on.
    fn is_tapped(&self) -> bool {
        false
    }

    fn exchanged(&self, _call: Option<CallKey>, _exchange: &HttpExchange) {}
    fn wrote(&self, _line: &str) {}
}

impl Inbox {
    pub(crate) fn new(receiver: Arc<dyn Receiver>, limits: Limits) -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        // Counted down: the numbers of connections, which identify callers, count up.
        let share = u64::MAX - LAST.fetch_add(1, Ordering::Relaxed);
        Self { receiver, share, limits }
    }

    /// A frame arrived; over HTTP, in the exchange of `call`.
    pub async fn receive(&self, call: Option<CallKey>, frame: Bytes) {
        let depth = self.limits.message_depth;
        let parsed = if frame.len() > PARSED_IN_PLACE {
            let long = frame.clone();
            let parsing = compute(self.share, move |_| Ok(decode(&long, depth)));
            // An answer is not lost because the pool is full.
            parsing.await.unwrap_or_else(|_| decode(&frame, depth))
        } else {
            decode(&frame, depth)
        };
        self.receiver.receive(call, &frame, parsed);
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

    /// Whether `call` still waits for its answer.
    pub fn is_waiting(&self, call: CallKey) -> bool {
        self.receiver.is_waiting(call)
    }

    /// A frame of this length was sent or dropped, which makes room for others.
    pub fn sent(&self, bytes: usize) {
        self.receiver.sent(bytes);
    }

    /// Whether a tap observes the heads of HTTP exchanges.
    pub(crate) fn is_tapped(&self) -> bool {
        self.receiver.is_tapped()
    }

    /// The response to an HTTP request began.
    pub(crate) fn exchanged(&self, call: Option<CallKey>, exchange: &HttpExchange) {
        self.receiver.exchanged(call, exchange);
    }

    /// The program at the other end wrote a line to standard error.
    pub fn wrote(&self, line: &str) {
        self.receiver.wrote(line);
    }

    /// The link ended. The messages that began these calls were certainly not sent.
    pub fn end(&self, reason: OpenError, unsent: &[CallKey]) {
        self.receiver.end(reason, unsent);
    }
}
