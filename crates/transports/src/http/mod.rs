//! HTTP: both eras on one endpoint, and the transport of the first revision beside it.
//!
//! HTTP/1.1 and HTTP/2 without TLS: plain requests by ourselves, all others on hyper. A connection is
//! one task; a request that answers at once needs nothing else.

mod accept; // the headers of a modern request
mod attachment; // a connection that reads a stream of a session
mod exchange; // one POST
#[doc(hidden)]
pub mod fuzzing; // the header rules, for fuzzers
mod guard; // who may call at all
mod headers; // the headers of a request
mod old_sse; // the transport of the first revision
mod one_shot; // a connection that lives for one exchange
mod plain; // what nearly all requests look like
mod activity; // how a connection is doing
mod reply; // responses
mod route; // which request goes where
mod server; // listen, run, stop
mod session; // legacy clients: POST, GET, DELETE
mod settings; // how it behaves, as decided
mod state; // what all connections share
mod socket; // a connection's socket
mod sse; // server-sent events
mod streams; // the streams of one legacy session
mod sweep; // the one task that looks after all
mod table; // all legacy sessions

pub use accept::headers_agree;
pub use server::{BindError, Server, Stats, Watcher};
pub use settings::{Limits, Settings, Token};
