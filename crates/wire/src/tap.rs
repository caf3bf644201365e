//! Who sees every message that passes a link, on either side of a server.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;

use crate::Caller;

/// Sees every message of all links. It is told on the thread that moves the message, so it must be
/// quick. On the link of an upstream, `call` numbers the call of a client that something belongs to;
/// 0 if it belongs to none, or if that is not known.
pub trait Tap: std::fmt::Debug + Send + Sync {
    /// Whether it looks at messages now. One that does not is still told of links.
    fn is_on(&self) -> bool {
        true
    }

    /// A link is opened.
    fn opened(&self, _link: u64, _peer: &Peer<'_>) {}

    /// A message came from the peer. That of a client over HTTP has headers.
    fn received(&self, _link: u64, _call: u64, _message: &Bytes, _headers: &[(String, String)]) {}

    /// A message is about to be sent to the peer.
    fn sent(&self, _link: u64, _call: u64, _message: &Bytes) {}

    /// An upstream has begun to answer an HTTP request.
    fn exchanged(&self, _link: u64, _call: u64, _exchange: &HttpExchange) {}

    /// The program of an upstream has written a line to standard error.
    fn wrote(&self, _link: u64, _line: &str) {}

    /// A link is closed.
    fn closed(&self, _link: u64) {}
}

/// Who is at the other end of a link.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Peer<'a> {
    /// A client, on a session of its own.
    Client {
        /// The way in: `pipe`, `http` or `websocket`.
        transport: &'static str,
        /// Who opened it.
        caller: &'a Caller,
    },
    /// A server that we are a client of.
    Upstream {
        /// Its name.
        name: &'a str,
        /// The way out: `pipe` or `http`.
        transport: &'static str,
    },
}

/// Stands for a secret.
pub const MASK: &str = "[masked]";

/// An HTTP request to an upstream, and the head of its response, with a [`MASK`] for headers that
/// are known to be secret. The access token that the request was sent with is not among them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpExchange {
    /// The headers of the request.
    pub request: Vec<(String, String)>,
    /// The status of the response.
    pub status: u16,
    /// The headers of the response.
    pub response: Vec<(String, String)>,
}

/// All who see the messages of a server. Numbers its links.
#[derive(Debug)]
pub struct Taps {
    all: Vec<Arc<dyn Tap>>,
    last_link: AtomicU64,
}

impl Taps {
    /// For these.
    pub fn new(all: Vec<Arc<dyn Tap>>) -> Arc<Self> {
        Arc::new(Self { all, last_link: AtomicU64::new(0) })
    }

    /// A link is opened. Gives its number, never 0.
    pub fn open(&self, peer: &Peer<'_>) -> u64 {
        let link = self.last_link.fetch_add(1, Ordering::Relaxed) + 1;
        self.tell(|tap| tap.opened(link, peer));
        link
    }

    /// Whether one of them looks at messages now.
    pub fn is_on(&self) -> bool {
        self.all.iter().any(|tap| tap.is_on())
    }

    /// Tells each of them.
    pub fn tell(&self, tell: impl Fn(&dyn Tap)) {
        self.all.iter().for_each(|tap| tell(&**tap));
    }
}
