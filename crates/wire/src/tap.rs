//! Observers of every message on a link, on either side of a server.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;

use crate::Caller;

/// Observes every message of all links. It is called on the thread that moves the message, so it
/// must be quick. On the link of an upstream, `call` is the number of the client's call that a
/// message belongs to; 0 if there is none, or if it is unknown.
pub trait Tap: std::fmt::Debug + Send + Sync {
    /// Whether it observes messages now. It is notified of links in any case.
    fn is_on(&self) -> bool {
        true
    }

    /// A link is opened.
    fn opened(&self, _link: u64, _peer: &Peer<'_>) {}

    /// A message arrived from the peer. A client's message over HTTP has headers.
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

/// The other end of a link.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Peer<'a> {
    /// A client, on a session of its own.
    Client {
        /// The way in: `pipe`, `http` or `websocket`.
        transport: &'static str,
        /// The caller who opened it.
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

/// Replaces a secret.
pub const MASK: &str = "[masked]";

/// An HTTP request to an upstream, and the head of its response, with a [`MASK`] for headers that
/// are known to be secret. The access token of the request is not included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpExchange {
    /// The headers of the request.
    pub request: Vec<(String, String)>,
    /// The status of the response.
    pub status: u16,
    /// The headers of the response.
    pub response: Vec<(String, String)>,
}

/// All taps of a server. Numbers its links.
#[derive(Debug)]
pub struct Taps {
    all: Vec<Arc<dyn Tap>>,
    last_link: AtomicU64,
}

impl Taps {
    /// With these taps.
    pub fn new(all: Vec<Arc<dyn Tap>>) -> Arc<Self> {
        Arc::new(Self { all, last_link: AtomicU64::new(0) })
    }

    /// A link is opened. Gives its number, never 0.
    pub fn open(&self, peer: &Peer<'_>) -> u64 {
        let link = self.last_link.fetch_add(1, Ordering::Relaxed) + 1;
        self.tell(|tap| tap.opened(link, peer));
        link
    }

    /// Whether any tap observes messages now.
    pub fn is_on(&self) -> bool {
        self.all.iter().any(|tap| tap.is_on())
    }

    /// Calls `tell` with each tap.
    pub fn tell(&self, tell: impl Fn(&dyn Tap)) {
        self.all.iter().for_each(|tap| tell(&**tap));
    }
}
