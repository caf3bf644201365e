//! HTTP: both eras on one endpoint, which can become a WebSocket, and the transport of the first
//! revision beside it.
//!
//! [`HttpService`] answers requests and can be mounted anywhere; [`serve`] has the connections:
//! HTTP/1.1 and HTTP/2, with TLS or without, plain requests by a reader of our own, all others by
//! hyper. A connection is one task; a request that is answered at once needs nothing else.

mod accept; // the headers of a modern request
mod activity; // what a connection is doing, and for how long
mod attachment; // a connection that reads a stream of a session
mod auth; // who calls
mod denials; // the log of requests that were not let in
mod exchange; // one POST
mod floods; // addresses that send too much
mod forward; // calls that only another node can go on with
mod forwarded; // those that another node passes on
#[doc(hidden)]
pub mod fuzzing; // the header rules, for fuzzers
mod guard; // which requests are let in
mod headers; // the headers of a request
mod link; // what is known of the record of a session
mod listener; // where connections come from
mod notice; // what nodes tell each other
mod notices; // telling and hearing it
mod old_sse; // the transport of the first revision
mod one_shot; // a connection that lives for one exchange
mod pages; // what is served beside the endpoint
mod peers; // what engines of several nodes tell each other
mod plain; // plain requests, without hyper
mod proxies; // the address of a client behind them
mod replay; // events of streams in the store
mod reply; // responses
mod route; // which request goes where
mod server; // listen, serve, stop
mod service; // the endpoint as a tower service
mod session; // legacy clients: POST, GET, DELETE
mod settings; // how it behaves, as decided
mod shared; // sessions that several nodes serve
mod shares; // how many legacy sessions each caller has
mod sharing; // where their records are kept
mod socket; // a connection's socket
mod sse; // server-sent events
mod state; // what all connections share
mod stats; // counts, for operators
mod streams; // the streams of one legacy session
mod sweep; // the task that ends what took too long
mod table; // all legacy sessions
mod tls; // certificates and handshakes
mod upgrade; // WebSocket

pub use accept::headers_agree;
pub use auth::{Authenticate, Authenticating, Denied, Document};
pub use listener::{Listener, Peer};
pub use pages::{Access, Page, PageRequest, Pages};
pub use peers::ClusterPeers;
pub use reply::{Body, EventStream};
pub use route::is_reserved;
pub use server::{BindError, Server, Watcher, serve};
pub use service::HttpService;
pub use settings::{Limits, NamedToken, Settings, Token};
pub use stats::{Stats, StoreStats};
pub use tls::acme::{AcmeSettings, CertificateEvent, LETS_ENCRYPT};
pub use tls::{
    CertificateCaller, ClientCertificates, ServerCertificate, Tls, TlsError, TlsListener,
    TlsSettings,
};
