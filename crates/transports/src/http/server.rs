//! Listens, serves, stops.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::{Request, Response, Version};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use sabir_engine::Engine;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use super::activity::Activity;
use super::listener::Listener;
use super::plain::{Next, Plain};
use super::reply::Answer;
use super::route;
use super::service::HttpService;
use super::settings::{Limits, Settings};
use super::socket::Socket;
use super::state::{HttpConnection, Place, ServerState};

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

/// Counts of connections, requests, streams and sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stats {
    /// Open connections.
    pub connections: usize,
    /// Requests that are not answered in full, streams among them.
    pub requests: usize,
    /// Open streams of events, and WebSockets.
    pub streams: usize,
    /// Legacy sessions.
    pub sessions: usize,
}

/// Gives the counts of a running server.
#[derive(Clone)]
pub struct Watcher(Arc<ServerState>);

impl Watcher {
    /// The current counts.
    pub fn stats(&self) -> Stats {
        let activities = self.0.activities();
        Stats {
            connections: activities.len(),
            requests: activities.iter().map(|activity| activity.in_flight()).sum(),
            streams: self.0.streams.load(Ordering::Relaxed),
            sessions: self.0.table.len(),
        }
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
        let is_guarded = !settings.tokens.is_empty() || settings.authenticate.is_some();
        if !address.ip().is_loopback() && !is_guarded && !settings.allow_public {
            return Err(BindError::Public(address));
        }
        let failed = |source| BindError::System { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        settings.address = address;
        Ok(Self { service: HttpService::new(engine, settings), listener, address })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Counts what goes on.
    pub fn watcher(&self) -> Watcher {
        Watcher(self.service.state.clone())
    }

    /// Serves until `shutdown` completes, see [`serve`].
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        serve(self.service, self.listener, shutdown).await;
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
    loop {
        // Room first: a connection that cannot be served waits outside, where it costs us nothing.
        let permit = match room.clone().try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) => {
                let most = state.settings.limits.connections / 64;
                state.make_room(most);
                let waiting = tokio::time::timeout(NO_ROOM, room.clone().acquire_owned());
                match waiting.await {
                    Ok(Ok(permit)) => permit,
                    Ok(Err(_)) => return,
                    Err(_) => continue,
                }
            }
        };
        let stream = match listener.accept().await {
            Ok(stream) => stream,
            Err(error) => {
                tracing::warn!("cannot accept a connection: {error}");
                tokio::time::sleep(NO_ROOM).await;
                continue;
            }
        };
        let (state, hyper) = (state.clone(), hyper.clone());
        tokio::spawn(async move {
            serve_connection(&state, &hyper, stream, Some(permit)).await;
        });
    }
}

/// How hyper serves.
pub(super) struct Hyper {
    /// HTTP/1.1.
    one: Builder<TokioExecutor>,
    /// HTTP/1.1 or HTTP/2, as the peer begins.
    any: Builder<TokioExecutor>,
}

impl Hyper {
    pub(super) fn new(limits: &Limits) -> Self {
        let mut any = Builder::new(TokioExecutor::new());
        // A connection without a complete head is ended by the sweeper, without a timer of its own.
        // What hyper refuses itself it refuses without a body; so it refuses only what is far too
        // long.
        let most = limits.head.saturating_mul(2).max(8 << 10);
        any.http1().header_read_timeout(None).max_buf_size(most);
        let head = u32::try_from(limits.head).unwrap_or(u32::MAX);
        any.http2().timer(TokioTimer::new()).max_header_list_size(head);
        Self { one: any.clone().http1_only(), any }
    }
}

pub(super) async fn serve_connection<S>(
    state: &Arc<ServerState>,
    hyper: &Hyper,
    stream: S,
    place: Place,
) where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let connection = state.connect(place);
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

/// Serves the rest of a connection with hyper, which can read everything that HTTP allows.
pub(super) async fn serve_with_hyper<S>(
    connection: Arc<HttpConnection>,
    activity: &Activity,
    hyper: &Hyper,
    socket: Socket<S>,
    answer: Option<Answer>,
) where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let builder = if socket.may_speak_two() { &hyper.any } else { &hyper.one };
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
            // Over HTTP/1 the socket tells whether the peer takes anything.
            let stall = connection.state.settings.limits.stall;
            let timed = connection.activity.clone().filter(|_| version >= Version::HTTP_2);
            Ok::<_, Infallible>(match timed {
                Some(activity) => response.map(|body| body.timed(activity, stall)),
                None => response,
            })
        }
    });
    let served = builder.serve_connection_with_upgrades(TokioIo::new(socket), service);
    let served = Box::pin(served);
    activity.drive(served, |served| served.get_mut().as_mut().graceful_shutdown()).await;
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("address", &self.address).finish_non_exhaustive()
    }
}
