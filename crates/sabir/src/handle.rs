//! A server that can be served in several ways and changed while it serves.

use std::io;
use std::sync::Arc;

use sabir_engine::Engine;
use sabir_registry::{BadOffer, SourceId};
use sabir_sources::function::{FunctionOptions, Handler, IntoReply, IntoSource, ToolFunction};
use sabir_transports::http::{
    self, BindError, HttpService, Listener, Server as HttpServer, Settings as HttpSettings,
};
use sabir_transports::{stdio, stream};
use sabir_wire::{Caller, Raw};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::Handle as Runtime;

/// Why a server does not serve.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
#[non_exhaustive]
pub enum ServeError {
    /// Something that it offers is invalid.
    Offer(#[from] BadOffer),
    /// Reading or writing failed.
    Io(#[from] io::Error),
    /// The address could not be bound.
    Bind(#[from] BindError),
}

/// A server that can be served in several ways and changed while it serves. Clones are the same
/// server.
///
/// Sources are started when serving begins, or when they are added later; [`Handle::close`] closes
/// them.
///
/// ```
/// use sabir::Server;
///
/// # fn main() -> Result<(), sabir::BadOffer> {
/// let handle = Server::new("editor", "0.1.0").handle()?;
/// handle.add_tool("open_file", "Opens a file", async || "opened")?;
/// assert!(handle.remove_tool("open_file"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Handle<S = ()> {
    pub(crate) engine: Arc<Engine>,
    pub(crate) http: HttpSettings,
    pub(crate) state: S,
    pub(crate) options: FunctionOptions,
}

impl<S: Clone + Send + Sync + 'static> Handle<S> {
    /// Adds a tool, as [`Server::tool`](crate::Server::tool) does; clients are notified.
    pub fn add_tool<H, Form>(
        &self,
        name: impl Into<String>,
        description: impl Into<String>,
        handler: H,
    ) -> Result<SourceId, BadOffer>
    where
        H: Handler<S, Form, Output: IntoReply>,
    {
        self.add_source(ToolFunction::new(name, description, handler))
    }

    /// Adds a source, as [`Server::source`](crate::Server::source) does; clients are notified.
    pub fn add_source(&self, source: impl IntoSource<S>) -> Result<SourceId, BadOffer> {
        let source = source.into_source(self.state.clone(), self.options);
        let id = self.engine.registry().add(source)?;
        self.start();
        Ok(id)
    }

    /// Removes the tool of this name, with everything that its source offers; clients are notified.
    /// Returns `false` if there is none.
    pub fn remove_tool(&self, name: &str) -> bool {
        let source = self.engine.registry().provider_of_tool(name);
        source.is_some_and(|source| self.remove_source(source))
    }

    /// Removes a source; clients are notified. Returns `false` if it was removed before.
    pub fn remove_source(&self, source: SourceId) -> bool {
        let Some(removed) = self.engine.registry().remove(source) else { return false };
        if let Ok(runtime) = Runtime::try_current() {
            runtime.spawn(removed.close(self.engine.settings().limits.grace));
        }
        true
    }

    /// Notifies subscribed clients that the contents of a resource have changed.
    pub fn resource_updated(&self, uri: impl Into<Box<str>>) {
        self.engine.registry().updated(uri);
    }

    /// Sends a notification that the protocol does not know to every legacy client that has
    /// completed its handshake.
    pub fn notify(&self, method: &str, params: Option<&Raw>) {
        self.engine.registry().notify(method, params);
    }

    /// Whether a client is connected that has completed its handshake.
    pub fn is_connected(&self) -> bool {
        self.engine.ready_clients() > 0
    }

    /// Serves the client that started this process until it has left, or until [`Handle::stop`].
    pub async fn serve_stdio(&self) -> Result<(), ServeError> {
        self.start();
        Ok(stdio::serve(&self.engine).await?)
    }

    /// Serves one client over any byte stream, one message a line.
    pub async fn serve_stream<R, W>(&self, reader: R, writer: W) -> Result<(), ServeError>
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        self.start();
        Ok(stream::serve(&self.engine, Caller::local(), reader, writer).await?)
    }

    /// Serves HTTP on any listener until `shutdown` completes, as
    /// [`Server::serve`](crate::Server::serve) does, but leaves the sources open.
    pub async fn serve<L: Listener>(&self, listener: L, shutdown: impl Future<Output = ()>) {
        http::serve(self.http_service(self.http.clone()), listener, shutdown).await;
    }

    /// Binds an HTTP server, which serves any number of clients once it is
    /// [run](HttpServer::run).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use sabir::{HttpSettings, Server};
    ///
    /// let handle = Server::new("port", "1.0.0").handle()?;
    /// let server = handle.bind_http(HttpSettings::new("127.0.0.1:0".parse()?)).await?;
    /// println!("http://{}/mcp", server.address());
    /// let shutdown = async { /* completes when the server should stop */ };
    /// server.run(shutdown).await;
    /// handle.close().await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn bind_http(&self, settings: HttpSettings) -> Result<HttpServer, ServeError> {
        self.start();
        Ok(HttpServer::bind(self.engine.clone(), settings).await?)
    }

    /// Returns the HTTP endpoint as a `tower::Service`, to be mounted in an axum or hyper
    /// application. Must be called inside a tokio runtime.
    ///
    /// ```no_run
    /// # async fn serve() -> Result<(), Box<dyn std::error::Error>> {
    /// use axum::{Router, routing::get};
    /// use sabir::{HttpSettings, Server};
    ///
    /// let handle = Server::new("port", "1.0.0").handle()?;
    /// let mcp = handle.http_service(HttpSettings::default());
    /// let app = Router::new()
    ///     .route("/", get(async || "hello"))
    ///     .route_service("/mcp", mcp.clone());
    ///
    /// let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    /// let shutdown = async move {
    ///     let _ = tokio::signal::ctrl_c().await;
    ///     mcp.stop(); // Ends the event streams, which axum would wait for.
    /// };
    /// axum::serve(listener, app).with_graceful_shutdown(shutdown).await?;
    /// handle.close().await;
    /// # Ok(())
    /// # }
    /// ```
    pub fn http_service(&self, settings: HttpSettings) -> HttpService {
        self.start();
        HttpService::new(self.engine.clone(), settings)
    }

    /// Starts the sources that are not started. Outside of a runtime they stay so until serving
    /// begins.
    fn start(&self) {
        if let Ok(runtime) = Runtime::try_current() {
            let engine = self.engine.clone();
            runtime.spawn(async move { engine.start().await });
        }
    }

    /// Serves to the end, then closes the sources.
    pub(crate) async fn until_closed<T>(&self, serving: impl Future<Output = T>) -> T {
        let served = serving.await;
        self.engine.close().await;
        served
    }

    /// Ends all connections; running calls may finish within the grace period.
    pub fn stop(&self) {
        self.engine.stop();
    }

    /// Ends all connections and closes the sources, within the grace period.
    pub async fn close(&self) {
        self.stop();
        self.engine.close().await;
    }

    /// The engine that all transports of this server share.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }
}

impl<S> std::fmt::Debug for Handle<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handle").field("engine", &self.engine).finish_non_exhaustive()
    }
}
