//! The endpoint as a `tower::Service`, to be mounted in any application or served by ourselves.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use sabir_engine::Engine;

use super::reply::Body;
use super::route;
use super::settings::Settings;
use super::state::{HttpConnection, ServerState};
use super::sweep::sweep;

/// Both eras on one endpoint, as a service. Clones are the same server.
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
        Self { state }
    }

    /// Refuses new requests and stops the engine; running calls may finish within the grace period.
    pub fn stop(&self) {
        self.state.stop();
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
        let connection = HttpConnection::new(&self.state, None, None);
        Box::pin(async move { Ok(route::answer(&connection, request).await.into()) })
    }
}

impl std::fmt::Debug for HttpService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpService").field("settings", &self.state.settings).finish()
    }
}
