//! Listens, serves, stops.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::{Request, Response};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use sabir_engine::Engine;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use super::guard::Guard;
use super::plain::{Next, Plain};
use super::reply::Answer;
use super::route;
use super::settings::{Limits, Settings};
use super::socket::Socket;
use super::state::{HttpConnection, ServerState};
use super::sweep::sweep;

/// An HTTP server that is bound to its address.
pub struct Server {
    shared: Arc<ServerState>,
    listener: TcpListener,
    address: SocketAddr,
}

/// Why a server could not be bound.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Others could use it, and nothing keeps them from it.
    #[error("{0} can be reached by others, and no token is demanded")]
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

/// How much is going on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stats {
    /// Open connections.
    pub connections: usize,
    /// Requests that are not answered in full, streams among them.
    pub requests: usize,
    /// Open streams of events.
    pub streams: usize,
    /// Legacy sessions.
    pub sessions: usize,
}

/// Counts, for whoever wants to know while the server runs.
#[derive(Clone)]
pub struct Watcher(Arc<ServerState>);

impl Watcher {
    /// How much is going on now.
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
    /// Binds a server, which serves nobody before [`Server::run`].
    pub async fn bind(engine: Arc<Engine>, settings: Settings) -> Result<Self, BindError> {
        let address = settings.address;
        let is_guarded = settings.token.is_some() || settings.allow_public;
        if !address.ip().is_loopback() && !is_guarded {
            return Err(BindError::Public(address));
        }
        let failed = |source| BindError::System { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let guard = Guard::new(&settings, address);
        Ok(Self { shared: Arc::new(ServerState::new(engine, settings, guard)), listener, address })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Counts what goes on.
    pub fn watcher(&self) -> Watcher {
        Watcher(self.shared.clone())
    }

    /// Serves until `stop`, then stops the engine and lets what runs finish within the grace. Comes
    /// back when the last connection has ended.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let Self { shared, listener, .. } = self;
        let sweeper = tokio::spawn(sweep(shared.clone()));
        let most = shared.settings.limits.connections.clamp(1, Semaphore::MAX_PERMITS >> 1);
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        let room = Arc::new(Semaphore::new(most as usize));
        tokio::select! {
            () = accept(&shared, &listener, &room) => {}
            () = stop => {}
        }
        drop(listener);
        shared.is_stopping.store(true, Ordering::Relaxed);
        shared.engine.stop();
        for activity in shared.activities() {
            activity.finish();
        }
        let grace = shared.engine.settings().limits.grace + LAST_WORDS;
        if tokio::time::timeout(grace, room.acquire_many(most)).await.is_err() {
            for activity in shared.activities() {
                activity.abandon();
            }
            // The semaphore is never closed.
            drop(room.acquire_many(most).await);
        }
        shared.table.clear();
        sweeper.abort();
    }
}

/// How long a client may take to read our last words, after the grace.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How long to wait when the system has no room for another connection.
const NO_ROOM: Duration = Duration::from_millis(50);

async fn accept(shared: &Arc<ServerState>, listener: &TcpListener, room: &Arc<Semaphore>) {
    let hyper = Arc::new(Hyper::new(&shared.settings.limits));
    loop {
        // Room first: a connection that cannot be served waits outside, where it costs us nothing.
        let Ok(permit) = room.clone().acquire_owned().await else { return };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!("cannot accept a connection: {error}");
                tokio::time::sleep(NO_ROOM).await;
                continue;
            }
        };
        let (shared, hyper) = (shared.clone(), hyper.clone());
        tokio::spawn(async move {
            serve(shared, &hyper, stream).await;
            drop(permit);
        });
    }
}

/// How hyper serves.
struct Hyper {
    /// HTTP/1.1.
    one: Builder<TokioExecutor>,
    /// HTTP/1.1 or HTTP/2, as the peer begins.
    any: Builder<TokioExecutor>,
}

impl Hyper {
    fn new(limits: &Limits) -> Self {
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

async fn serve(shared: Arc<ServerState>, hyper: &Hyper, stream: TcpStream) {
    // An answer is written in one piece; waiting for more of it would only delay it.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!("TCP_NODELAY: {error}");
    }
    let activity = shared.welcome();
    let connection = Arc::new(HttpConnection { shared, activity: activity.clone() });
    let mut plain = Plain::new(Socket::new(stream, activity.clone()), connection.clone());
    let next = activity.drive(plain.serve(), |_| {}).await;
    let mut socket = plain.into_socket();
    match next {
        None => {}
        Some(Next::Over) => drop(activity.drive(socket.shutdown(), |_| {}).await),
        Some(Next::Unusual(answer)) => unusual(connection, hyper, socket, answer).await,
    }
}

/// Serves with hyper, for whatever may come.
async fn unusual(
    connection: Arc<HttpConnection>,
    hyper: &Hyper,
    socket: Socket,
    answer: Option<Answer>,
) {
    let builder = if socket.may_speak_two() { &hyper.any } else { &hyper.one };
    let activity = connection.activity.clone();
    let first = Mutex::new(answer);
    let service = service_fn(move |request: Request<_>| {
        let first = first.lock().unwrap_or_else(PoisonError::into_inner).take();
        let connection = connection.clone();
        async move {
            let reply = match first {
                Some(answer) => route::resume(answer, request.into_body()).await,
                None => route::answer(&connection, request).await,
            };
            Ok::<_, Infallible>(Response::from(reply))
        }
    });
    let served = Box::pin(builder.serve_connection(TokioIo::new(socket), service));
    activity.drive(served, |served| served.get_mut().as_mut().graceful_shutdown()).await;
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("address", &self.address).finish_non_exhaustive()
    }
}
