//! Listens, serves, stops.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::{Request, Response, Version};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use sabir_budget::Limit;
use sabir_engine::Engine;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use super::activity::Activity;
use super::listener::{Listener, Peer};
use super::plain::{Next, Plain};
use super::reply::Answer;
use super::route;
use super::service::HttpService;
use super::settings::{Limits, Settings};
use super::socket::Socket;
use super::state::{HttpConnection, Place, ServerState};
use super::stats::{Stats, StoreStats, stats, store_stats};
use super::tls::{Tls, TlsListener};

/// An HTTP server that is bound to its address.
pub struct Server {
    service: HttpService,
    listener: TcpListener,
    address: SocketAddr,
}

/// Why a server could not be bound.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// The address is reachable from other hosts, and there is no authentication.
    #[error(
        "refusing to listen on {0}: it is reachable from other hosts and no authentication is \
         configured"
    )]
    Public(SocketAddr),
    /// The address is reachable from other hosts, and credentials would be sent to it in clear.
    #[error(
        "refusing to listen on {0}: it is reachable from other hosts and would receive credentials \
         without TLS"
    )]
    Plain(SocketAddr),
    /// The system refused.
    #[error("cannot listen on {address}: {source}")]
    System {
        /// Where.
        address: SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// Gives the counts of a running server.
#[derive(Clone)]
pub struct Watcher(Arc<ServerState>);

impl Watcher {
    /// The current counts.
    pub fn stats(&self) -> Stats {
        stats(&self.0)
    }

    /// The counts of the shared store; `None` without one.
    pub fn store(&self) -> Option<StoreStats> {
        store_stats(&self.0)
    }
}

impl std::fmt::Debug for Watcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.stats().fmt(f)
    }
}

impl Server {
    /// Binds a server. It serves only after [`Server::run`].
    pub async fn bind(engine: Arc<Engine>, mut settings: Settings) -> Result<Self, BindError> {
        let address = settings.address;
        let tls = settings.tls.as_ref();
        let takes_tokens = !settings.tokens.is_empty() || settings.authenticate.is_some();
        let is_guarded = takes_tokens || tls.is_some_and(Tls::identifies_all);
        if !address.ip().is_loopback() {
            if !is_guarded && !settings.allow_public {
                return Err(BindError::Public(address));
            }
            if takes_tokens && tls.is_none() && !settings.behind_proxy {
                return Err(BindError::Plain(address));
            }
        }
        let failed = |source| BindError::System { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        settings.address = address;
        Ok(Self { service: HttpService::new(engine, settings), listener, address })
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Gives the counts of this server.
    pub fn watcher(&self) -> Watcher {
        Watcher(self.service.state.clone())
    }

    /// Serves until `shutdown` completes, see [`serve`].
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        match self.service.state.settings.tls.clone() {
            None => serve(self.service, self.listener, shutdown).await,
            Some(tls) => serve(self.service, TlsListener::new(self.listener, tls), shutdown).await,
        }
    }
}

/// Serves connections of any listener until `shutdown` completes. Then the engine stops, running
/// calls may finish within the grace period, and this returns when the last connection has ended.
pub async fn serve<L: Listener>(
    service: HttpService,
    mut listener: L,
    shutdown: impl Future<Output = ()>,
) {
    let state = &service.state;
    let limit = state.settings.limits.connections.clamp(1, Semaphore::MAX_PERMITS >> 1);
    let limit = u32::try_from(limit).unwrap_or(u32::MAX);
    let room = Arc::new(Semaphore::new(limit as usize));
    tokio::select! {
        () = accept(state, &mut listener, &room) => {}
        () = shutdown => {}
    }
    drop(listener);
    state.stop();
    for activity in state.activities() {
        activity.finish();
    }
    let grace = state.engine.settings().limits.grace + LAST_WORDS;
    if tokio::time::timeout(grace, room.acquire_many(limit)).await.is_err() {
        for activity in state.activities() {
            activity.abandon();
        }
        // The semaphore is never closed.
        drop(room.acquire_many(limit).await);
    }
    state.table.clear();
}

/// The time that clients get to read the last responses, after the grace period.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The pause after the system refused to accept a connection.
const NO_ROOM: Duration = Duration::from_millis(50);

async fn accept<L>(state: &Arc<ServerState>, listener: &mut L, room: &Arc<Semaphore>)
where
    L: Listener,
{
    let hyper = Arc::new(Hyper::new(&state.settings.limits));
    let mut is_full = false;
    loop {
        // Room first: a connection that cannot be served waits in the backlog of the system.
        let permit = match room.clone().try_acquire_owned() {
            Ok(permit) => {
                is_full = false;
                permit
            }
            Err(_) => {
                let limit = state.settings.limits.connections;
                if !std::mem::replace(&mut is_full, true) {
                    Limit::Connections.reach(format_args!("{limit} connections are open"));
                }
                state.make_room(limit / 64);
                let waiting = tokio::time::timeout(NO_ROOM, room.clone().acquire_owned());
                match waiting.await {
                    Ok(Ok(permit)) => permit,
                    Ok(Err(_)) => return,
                    Err(_) => continue,
                }
            }
        };
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!("cannot accept a connection: {error}");
                tokio::time::sleep(NO_ROOM).await;
                continue;
            }
        };
        let (state, hyper) = (state.clone(), hyper.clone());
        tokio::spawn(async move {
            serve_connection(&state, &hyper, stream, Some(permit), peer).await;
        });
    }
}

/// Requests of one HTTP/2 connection at once. RFC 9113 asks for no fewer.
const MAX_STREAMS: u32 = 100;

/// How hyper serves.
pub(super) struct Hyper {
    /// HTTP/1.1. Not a `Builder` for both, which would look for HTTP/2 in the middle of a
    /// connection.
    one: http1::Builder,
    /// HTTP/1.1 or HTTP/2, by the first bytes of the peer.
    any: Builder<TokioExecutor>,
}

impl Hyper {
    pub(super) fn new(limits: &Limits) -> Self {
        let mut any = Builder::new(TokioExecutor::new());
        // The sweeper ends a connection without a complete head, so it needs no timer of its own.
        // hyper refuses without a body, so it refuses only heads that are far too long.
        let most = limits.head.saturating_mul(2).max(8 << 10);
        any.http1().header_read_timeout(None).max_buf_size(most);
        let mut one = http1::Builder::new();
        one.header_read_timeout(None).max_buf_size(most);
        let head = u32::try_from(limits.head).unwrap_or(u32::MAX);
        any.http2()
            .timer(TokioTimer::new())
            .max_header_list_size(head)
            .max_concurrent_streams(MAX_STREAMS);
        Self { one, any }
    }
}

pub(super) async fn serve_connection<S>(
    state: &Arc<ServerState>,
    hyper: &Hyper,
    stream: S,
    place: Place,
    peer: Peer,
) where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let connection = state.connect(place, peer);
    let Some(activity) = connection.activity.clone() else { return };
    let mut plain = Plain::new(Socket::new(stream, activity.clone()), connection.clone());
    let next = activity.drive(plain.serve(), |_| {}).await;
    let mut socket = plain.into_socket();
    match next {
        None => {}
        Some(Next::Over) => drop(activity.drive(socket.shutdown(), |_| {}).await),
        Some(Next::Other(answer)) => {
            serve_with_hyper(connection, &activity, hyper, socket, answer).await;
        }
    }
}

/// Serves the rest of a connection with hyper, which reads everything that HTTP allows.
pub(super) async fn serve_with_hyper<S>(
    connection: Arc<HttpConnection>,
    activity: &Activity,
    hyper: &Hyper,
    socket: Socket<S>,
    answer: Option<Answer>,
) where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let may_speak_two = socket.may_speak_two();
    let first = Mutex::new(answer);
    let service = service_fn(move |request: Request<_>| {
        let first = first.lock().unwrap_or_else(PoisonError::into_inner).take();
        let connection = connection.clone();
        async move {
            let version = request.version();
            let reply = match first {
                Some(answer) => route::resume(answer, request.into_body()).await,
                None => route::answer(&connection, request).await,
            };
            let response = Response::from(reply);
            // Over HTTP/1 the socket shows whether the peer reads.
            let stall = connection.state.settings.limits.stall;
            let timed = connection.activity.clone().filter(|_| version >= Version::HTTP_2);
            Ok::<_, Infallible>(match timed {
                Some(activity) => response.map(|body| body.timed(activity, stall)),
                None => response,
            })
        }
    });
    let socket = TokioIo::new(socket);
    if may_speak_two {
        let served = Box::pin(hyper.any.serve_connection_with_upgrades(socket, service));
        activity.drive(served, |served| served.get_mut().as_mut().graceful_shutdown()).await;
    } else {
        let served = Box::pin(hyper.one.serve_connection(socket, service).with_upgrades());
        activity.drive(served, |served| served.get_mut().as_mut().graceful_shutdown()).await;
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("address", &self.address).finish_non_exhaustive()
    }
}
