//! The settings of an HTTP server, with all defaults applied.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest as sha256};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ipnet::IpNet;
use sabir_budget::Rate;
use sabir_cluster::Cluster;
use subtle::ConstantTimeEq as _;

use super::auth::Authenticate;
use super::pages::Pages;
use super::tls::Tls;

/// The settings of an HTTP server. Every field has a default.
///
/// ```
/// # fn main() -> Result<(), std::net::AddrParseError> {
/// use sabir_transports::http::Settings;
///
/// let mut settings = Settings::new("127.0.0.1:7331".parse()?);
/// settings.hosts.push("mcp.example.com".into());
/// settings.limits.connections = 500;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct Settings {
    /// Where to listen. Port 0 lets the system choose.
    pub address: SocketAddr,
    /// The path of the MCP endpoint.
    pub endpoint: String,
    /// Whether `/sse` and `/messages` serve the transport of the first revision.
    pub old_sse: bool,
    /// Whether a GET of the endpoint that asks for it becomes a WebSocket: one message a text
    /// frame, with the subprotocol `mcp`.
    pub websocket: bool,
    /// Whether only WebSockets are served, at `/` and at the endpoint.
    pub only_websocket: bool,
    /// How often a WebSocket client is pinged. A client that sends nothing for that long is
    /// disconnected.
    pub ping: Duration,
    /// Whether an address that other hosts can reach may be bound without authentication.
    pub allow_public: bool,
    /// TLS, for all connections. Without it, an address that other hosts can reach is not bound
    /// with authentication, unless `behind_proxy` is set.
    pub tls: Option<Tls>,
    /// Whether all clients come through a proxy that terminates TLS.
    pub behind_proxy: bool,
    /// Proxies whose `Forwarded` or `X-Forwarded-For` is trusted.
    pub trusted_proxies: Vec<IpNet>,
    /// The tokens of which every request must have one. If empty, there is no token authentication.
    pub tokens: Vec<NamedToken>,
    /// A header, in lower case, that may carry a token as it is, in place of `Authorization`.
    pub token_header: Option<Box<str>>,
    /// Establishes callers whom none of `tokens` identifies.
    pub authenticate: Option<Arc<dyn Authenticate>>,
    /// Web origins that may call, beside those of this machine if only this machine can reach us.
    /// `*` allows all.
    pub origins: Vec<String>,
    /// Accepted values of `Host`, with or without a port, beside those of this machine if only this
    /// machine can reach us. If other hosts can reach us and the list is empty, any value is
    /// accepted.
    pub hosts: Vec<String>,
    /// How long a stream may be silent before a comment is sent to keep it open. A call without a
    /// message for that long gets a stream.
    pub keep_alive: Duration,
    /// How long the stream of a legacy call stays open. Then it is closed, and the client resumes
    /// it later. Without it a stream lasts as long as the call. Revisions that cannot resume are
    /// not affected.
    pub poll_after: Option<Duration>,
    /// The time that a legacy client waits before it resumes a stream.
    pub retry: Duration,
    /// The pages beside the endpoint.
    pub pages: Option<Arc<dyn Pages>>,
    /// The store in which legacy sessions survive the process, and the bus to other nodes that
    /// share them. Only one server of a process may have it.
    pub cluster: Option<Cluster>,
    /// The limits of connections, sessions and streams.
    pub limits: Limits,
}

impl Settings {
    /// The default settings, to listen on `address`.
    pub fn new(address: SocketAddr) -> Self {
        Self { address, ..Self::default() }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, 7331)),
            endpoint: "/mcp".into(),
            old_sse: true,
            websocket: true,
            only_websocket: false,
            ping: Duration::from_secs(30),
            allow_public: false,
            tls: None,
            behind_proxy: false,
            trusted_proxies: Vec::new(),
            tokens: Vec::new(),
            token_header: None,
            authenticate: None,
            origins: Vec::new(),
            hosts: Vec::new(),
            keep_alive: Duration::from_secs(15),
            poll_after: None,
            retry: Duration::from_secs(1),
            pages: None,
            cluster: None,
            limits: Limits::default(),
        }
    }
}

/// The limits of connections, sessions and streams, for all clients.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// Connections at once. For one more, idle ones are closed, those without any request first,
    /// then the longest idle; if all are in use it waits.
    pub connections: usize,
    /// The time limit for a connection without a complete request. At the limit it is closed.
    pub idle: Duration,
    /// The longest head of a request, in bytes. A longer one is answered 431.
    pub head: usize,
    /// The time limit for the body of a request. At the limit the response is 408.
    pub body_time: Duration,
    /// The time limit for a client that reads nothing. At the limit its connection is closed.
    pub stall: Duration,
    /// Legacy sessions at once; one caller may have a quarter of them. For one more, the least
    /// recently used one is ended; if all are in use the response is 503.
    pub sessions: usize,
    /// The idle time limit of a legacy session. At the limit it ends; requests with its id get 404.
    pub session_idle: Duration,
    /// The idle time limit of a legacy session without a complete handshake.
    pub handshake_time: Duration,
    /// Bytes that the client of one legacy session has not read. With more, its next request gets
    /// 429.
    pub unsent: usize,
    /// Requests and streams of one legacy session that wait at once. One more gets 429.
    pub streams: usize,
    /// Messages of one stream of a legacy session that are kept for a client that lost its
    /// connection. When full, the oldest that was sent is dropped; of those that were not sent,
    /// notifications are dropped, answers and questions never.
    pub replay: usize,
    /// The same, in bytes, for all streams of a session without a reader. The newest stream is
    /// always kept.
    pub replay_bytes: usize,
    /// How long they are kept after the stream has ended or its reader has disconnected.
    pub replay_time: Duration,
    /// Requests of one address, or one /64 network of IPv6. More get 429 before they are parsed.
    pub requests: Option<Rate>,
    /// The same for requests without valid credentials. Then requests of the address get 429,
    /// except with credentials that were accepted before.
    pub refusals: Option<Rate>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 10_000,
            idle: Duration::from_secs(75),
            head: 64 << 10,
            body_time: Duration::from_secs(30),
            stall: Duration::from_secs(60),
            sessions: 100_000,
            session_idle: Duration::from_secs(30 * 60),
            handshake_time: Duration::from_secs(60),
            unsent: 16 << 20,
            streams: 64,
            replay: 256,
            replay_bytes: 1 << 20,
            replay_time: Duration::from_secs(60),
            requests: None,
            refusals: Some(Rate { calls: 20, period: Duration::from_secs(1), burst: 200 }),
        }
    }
}

/// A static token, which identifies a caller by name.
#[derive(Clone, Debug)]
pub struct NamedToken {
    /// The subject of the caller.
    pub name: Box<str>,
    /// The secret.
    pub token: Token,
    /// The caller's scopes.
    pub scopes: Vec<Box<str>>,
}

impl NamedToken {
    /// A token without scopes.
    pub fn new(name: impl Into<Box<str>>, token: Token) -> Self {
        Self { name: name.into(), token, scopes: Vec::new() }
    }
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings").field("address", &self.address).finish_non_exhaustive()
    }
}

/// A secret token, of which only the digest is kept: it can be compared, but not read.
#[derive(Clone, Copy)]
pub struct Token([u8; 32]);

/// The beginning of a written digest.
const SHA256_PREFIX: &str = "sha256:";

impl Token {
    /// `None` if the secret is empty or has characters that no header can carry.
    pub fn new(secret: &str) -> Option<Self> {
        let fits = !secret.is_empty() && secret.bytes().all(|byte| byte.is_ascii_graphic());
        fits.then(|| {
            let mut digest = [0; 32];
            digest.copy_from_slice(sha256(&SHA256, secret.as_bytes()).as_ref());
            Self(digest)
        })
    }

    /// The token whose digest was written by [`Token::hash`]; `None` if the text is not such a
    /// digest.
    pub fn from_hash(text: &str) -> Option<Self> {
        let digest = STANDARD.decode(text.strip_prefix(SHA256_PREFIX)?).ok()?;
        digest.try_into().ok().map(Self)
    }

    /// The digest, `sha256:` and 32 bytes in Base64. It may be public if the token is random.
    pub fn hash(&self) -> String {
        format!("{SHA256_PREFIX}{}", STANDARD.encode(self.0))
    }

    /// Whether both are the same secret, in constant time.
    pub fn is_same_as(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_recognized_by_its_digest() {
        let token = Token::new("s3cret").unwrap();
        let read = Token::from_hash(&token.hash()).unwrap();
        assert!(read.is_same_as(&token) && !read.is_same_as(&Token::new("s3cret2").unwrap()));
        assert!(!token.hash().contains("s3cret"));
        for bad in ["", "sha256:", "sha256:AAAA", "s3cret", "sha512:AAAA", "sha256:?"] {
            assert!(Token::from_hash(bad).is_none(), "{bad}");
        }
    }
}
