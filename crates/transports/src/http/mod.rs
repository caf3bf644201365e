//! HTTP: both eras on one endpoint, which can become a WebSocket, and the transport of the first
//! revision beside it.
//!
//! [`HttpService`] answers requests and can be mounted anywhere; [`serve`] owns the connections:
//! HTTP/1.1 and HTTP/2, with TLS or without. Our own reader parses plain requests, hyper all
//! others. A connection is one task; a request that is answered at once needs no other.

mod accept; // the headers of a modern request
mod activity; // the activity of a connection, and its times
mod attachment; // a connection that reads a stream of a session
mod auth; // authentication
mod denials; // the log of denied requests
mod exchange; // one POST
mod floods; // addresses that send too much
mod forward; // calls that only another node can resume
mod forwarded; // calls that another node passes on
#[doc(hidden)]
pub mod fuzzing; // the header rules, for fuzzers
mod guard; // checks of `Host`, `Origin` and the form of requests
mod headers; // the headers of a request
mod link; // a session's link to its record in the store
mod listener; // where connections come from
mod notice; // notices between nodes about sessions
mod notices; // sends and handles them
mod old_sse; // the transport of the first revision
mod one_shot; // a connection that lives for one exchange
mod pages; // pages beside the endpoint
mod peers; // messages between the engines of several nodes
mod plain; // plain requests, without hyper
mod proxies; // the address of a client behind them
mod replay; // events of streams in the store
mod reply; // responses
mod route; // which request goes where
mod server; // listen, serve, stop
mod service; // the endpoint as a tower service
mod session; // legacy clients: POST, GET, DELETE
mod settings; // the settings of a server
mod shared; // sessions that several nodes serve
mod shares; // how many legacy sessions each caller has
mod sharing; // the store of their records
mod socket; // a connection's socket
mod sse; // server-sent events
mod state; // the state that all connections share
mod stats; // counts, for operators
mod streams; // the streams of one legacy session
mod sweep; // the task that enforces time limits
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
