//! The endpoint as a `tower::Service`, to be mounted in any application or served by ourselves.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use sabir_cluster::{ANNOUNCE, Cluster, NodeStatus};
use sabir_engine::Engine;
use tokio::time::Instant;

use super::listener::Peer;
use super::notices;
use super::reply::Body;
use super::route;
use super::settings::Settings;
use super::state::{HttpConnection, ServerState};
use super::stats::{Stats, stats};
use super::sweep::sweep;

/// Both eras on one endpoint, as a service. Clones share one server.
///
/// It answers the paths of its [`Settings`] and 404 for all others. `Host` and `Origin` are checked
/// by its settings; a body that takes too long is refused. Limits of connections (idle, stalled)
/// belong to the server that has the connections.
#[derive(Clone)]
pub struct HttpService {
    pub(crate) state: Arc<ServerState>,
}

impl HttpService {
    /// A service for `engine`. Must be called inside a tokio runtime: a task looks after the
    /// sessions until the last clone is dropped.
    pub fn new(engine: Arc<Engine>, settings: Settings) -> Self {
        let state = Arc::new(ServerState::new(engine, settings));
        tokio::spawn(sweep(Arc::downgrade(&state)));
        if let Some(sharing) = &state.sharing {
            if let Some(bus) = &sharing.cluster.bus {
                set_address(&sharing.cluster, &state.settings, state.settings.address.ip());
                tokio::spawn(notices::listen(Arc::downgrade(&state), bus.listen()));
                tokio::spawn(announce(Arc::downgrade(&state)));
            }
            tokio::spawn(reach(Arc::downgrade(&state)));
        }
        Self { state }
    }

    /// Refuses new requests and stops the engine; running calls may finish within the grace period.
    pub fn stop(&self) {
        self.state.stop();
    }
}

/// Sets the address at which other nodes reach this one, unless it is set already.
fn set_address(cluster: &Cluster, settings: &Settings, ip: IpAddr) {
    // Other nodes cannot connect to the unspecified address.
    if !ip.is_unspecified() {
        let scheme = if settings.tls.is_some() { "https" } else { "http" };
        let address = SocketAddr::new(ip, settings.address.port());
        cluster.address.get_or_init(|| format!("{scheme}://{address}").into());
    }
}

/// Asks the bus for the address of this node, if it is not set.
async fn find_address(cluster: &Cluster, settings: &Settings) {
    if let (Some(bus), None) = (&cluster.bus, cluster.address.get())
        && let Ok(Some(ip)) = bus.own_address().await
    {
        set_address(cluster, settings, ip);
    }
}

/// Publishes the status of this node for operators.
async fn announce(state: Weak<ServerState>) {
    let started = Instant::now();
    let mut lag = 0;
    while let Some(state) = state.upgrade() {
        let Some(sharing) = &state.sharing else { return };
        find_address(&sharing.cluster, &state.settings).await;
        let Stats { requests, streams, sessions, .. } = stats(&state);
        let status = NodeStatus {
            node: (*sharing.cluster.node).to_owned(),
            address: state.settings.address.to_string(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            uptime: started.elapsed().as_secs(),
            sessions,
            calls: requests.saturating_sub(streams),
            streams,
            lag,
        };
        let asked = Instant::now();
        // The store logs a warning if it cannot be reached.
        let _ = sharing.cluster.announce(&status).await;
        lag = u64::try_from(asked.elapsed().as_millis()).unwrap_or(u64::MAX);
        drop(state);
        tokio::time::sleep(ANNOUNCE).await;
    }
}

/// Waits until the store of sessions has answered once.
async fn reach(state: Weak<ServerState>) {
    while let Some(state) = state.upgrade() {
        match &state.sharing {
            Some(sharing) if !sharing.reach().await => {}
            _ => return,
        }
        drop(state);
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

impl<B> tower_service::Service<Request<B>> for HttpService
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let connection = HttpConnection::new(&self.state, None, None, Peer::default());
        Box::pin(async move { Ok(route::answer(&connection, request).await.into()) })
    }
}

impl std::fmt::Debug for HttpService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpService").field("settings", &self.state.settings).finish()
    }
}
