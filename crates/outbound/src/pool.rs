//! The pool of HTTP/1.1 connections without TLS. The sender of a request drives its connection, so
//! that an exchange needs no task and no channel of its own.

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::header::{self, HeaderValue};
use http::uri::{Authority, Parts, PathAndQuery};
use http::{Request, Response, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::Instant;
use tower_service::Service as _;

use crate::connector::TcpConnector;
use crate::error::{Error, chain, connect_failure};

/// Length of the head of a response in bytes. A longer one is an error of the connection.
pub(crate) const MAX_HEAD: usize = 64 << 10;
/// Idle connections that are kept per host. More are closed after use.
pub(crate) const MAX_IDLE: usize = 32;
/// How long an idle connection is kept.
pub(crate) const IDLE_TIME: Duration = Duration::from_secs(60);
/// How often idle connections that are too old, or that the server has closed, are closed.
const SWEEP: Duration = Duration::from_secs(5);

type Outgoing = Request<Full<Bytes>>;

/// Sends requests over kept connections. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    connector: TcpConnector,
    idle: Arc<Idle>,
}

#[derive(Debug, Default)]
struct Idle(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    /// The idle connections, with the time since when they are idle; the newest is the last.
    connections: HashMap<Authority, Vec<(Instant, Connection)>>,
    /// A task that closes old connections is running.
    is_swept: bool,
}

#[derive(Debug)]
struct Connection {
    sender: SendRequest<Full<Bytes>>,
    /// Boxed: it moves with each exchange, and futures that hold it would be large.
    driver: Box<http1::Connection<TokioIo<TcpStream>, Full<Bytes>>>,
}

/// A connection in use. Dropping it closes the connection.
#[derive(Debug)]
pub(crate) struct Lease {
    connection: Connection,
    authority: Authority,
    idle: Arc<Idle>,
}

impl Pool {
    pub(crate) fn new(connector: TcpConnector) -> Self {
        Self { connector, idle: Arc::default() }
    }

    /// Sends a request, and returns the response when its head has arrived, with the connection
    /// that its body must drive; `None` if the connection has ended.
    ///
    /// `check` decides about the URL before a connection is made. A kept connection needs no
    /// further check: it was allowed for the same authority by the same policy.
    pub(crate) async fn send(
        &self,
        request: Outgoing,
        check: impl Fn() -> Result<(), Error>,
    ) -> Result<(Response<Incoming>, Option<Lease>), Error> {
        let uri = request.uri().clone();
        let Some(authority) = uri.authority() else {
            return Err(Error::Url { url: uri.to_string(), reason: "it has no host" });
        };
        let mut request = in_origin_form(request, authority);
        loop {
            let kept = self.idle.take(authority);
            let is_new = kept.is_none();
            let connection = match kept {
                Some(connection) => connection,
                None => {
                    check()?;
                    // Boxed, so that the usual exchange over a kept connection stays small.
                    Box::pin(self.connect(&uri)).await?
                }
            };
            let mut error = match connection.exchange(request).await {
                Ok((response, connection)) => {
                    let lease = connection.map(|connection| Lease {
                        connection,
                        authority: authority.clone(),
                        idle: self.idle.clone(),
                    });
                    return Ok((response, lease));
                }
                Err(error) => error,
            };
            request = match error.take_message() {
                // The server had closed the connection before.
                Some(unsent) if !is_new => unsent,
                Some(_) => return Err(connect_failure(authority.host(), error.error())),
                None => return Err(Error::Transfer(chain(error.error()))),
            };
        }
    }

    async fn connect(&self, uri: &Uri) -> Result<Connection, Error> {
        let host = uri.host().unwrap_or_default();
        let connected = self.connector.clone().call(uri.clone()).await;
        let stream = connected.map_err(|error| connect_failure(host, &error))?;
        let opened = http1::Builder::new().max_buf_size(MAX_HEAD).handshake(stream).await;
        let (sender, driver) = opened.map_err(|error| connect_failure(host, &error))?;
        Ok(Connection { sender, driver: Box::new(driver) })
    }
}

impl Connection {
    /// Sends a request, and drives the connection until the head of the response has arrived.
    /// Returns the connection unless it has ended.
    async fn exchange(
        self,
        request: Outgoing,
    ) -> Result<(Response<Incoming>, Option<Self>), TrySendError<Outgoing>> {
        let Self { mut sender, driver } = self;
        let mut driver = Some(driver);
        let mut answered = pin!(sender.try_send_request(request));
        let response = poll_fn(|cx| {
            if driver.as_mut().is_some_and(|driver| Pin::new(driver).poll(cx).is_ready()) {
                // Its destructor completes the request with an error.
                driver = None;
            }
            answered.as_mut().poll(cx)
        });
        let response = response.await?;
        Ok((response, driver.map(|driver| Self { sender, driver })))
    }

    /// Whether it can be used again: the server has neither closed it nor sent more data.
    fn is_reusable(&mut self) -> bool {
        let cx = &mut Context::from_waker(Waker::noop());
        Pin::new(&mut self.driver).poll(cx).is_pending() && self.sender.is_ready()
    }
}

impl Lease {
    /// Reads more of the body. Ready if the connection has ended.
    pub(crate) fn drive(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.connection.driver).poll(cx).map(drop)
    }

    /// Returns the connection to the pool, after the end of the body.
    pub(crate) fn give_back(mut self) {
        if self.connection.is_reusable() {
            self.idle.keep(self.authority, self.connection);
        }
    }
}

impl Idle {
    fn take(&self, authority: &Authority) -> Option<Connection> {
        let (_, connection) = self.lock().connections.get_mut(authority)?.pop()?;
        Some(connection)
    }

    fn keep(self: &Arc<Self>, authority: Authority, connection: Connection) {
        let mut kept = self.lock();
        let of_host = kept.connections.entry(authority).or_default();
        if of_host.len() < MAX_IDLE {
            of_host.push((Instant::now(), connection));
        }
        if !std::mem::replace(&mut kept.is_swept, true) {
            tokio::spawn(sweep(Arc::downgrade(self)));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes connections that cannot be used again, until none is idle.
async fn sweep(idle: Weak<Idle>) {
    loop {
        tokio::time::sleep(SWEEP).await;
        let Some(idle) = idle.upgrade() else { return };
        let mut kept = idle.lock();
        kept.connections.retain(|_, of_host| {
            of_host.retain_mut(|(since, one)| since.elapsed() < IDLE_TIME && one.is_reusable());
            !of_host.is_empty()
        });
        kept.is_swept = !kept.connections.is_empty();
        if !kept.is_swept {
            return;
        }
    }
}

/// The request in origin form: with the path alone, and the host in a header.
fn in_origin_form(mut request: Outgoing, authority: &Authority) -> Outgoing {
    let path = request.uri().path_and_query().cloned();
    let mut parts = Parts::default();
    parts.path_and_query = Some(path.unwrap_or_else(|| PathAndQuery::from_static("/")));
    // A path alone is always valid.
    *request.uri_mut() = Uri::from_parts(parts).unwrap_or_default();
    // The policy allows no credentials in the authority.
    let host = match authority.port_u16() {
        None | Some(80) => authority.host(),
        Some(_) => authority.as_str(),
    };
    if let (Ok(host), false) =
        (HeaderValue::from_str(host), request.headers().contains_key(header::HOST))
    {
        request.headers_mut().insert(header::HOST, host);
    }
    request
}
