//! A server, before it serves: its name, what it offers, and how it behaves.

use std::sync::Arc;

use sabir_engine::{ClientEvent, Engine, EngineLimits, Observer, SealKey, Settings, TaskSettings};
use sabir_registry::{BadOffer, Source};
use sabir_session::{Dialect, Limits};
use sabir_sources::function::{
    FunctionOptions, Handler, IntoReply, IntoSource, PromptFunction, ResourceFunction, ToolFunction,
};
use sabir_transports::http::{Listener, Settings as HttpSettings};
use sabir_wire::types::{Implementation, PromptReply, ResourceReply};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::handle::{Handle, ServeError};

/// A server, before it serves. `S` is the state that its handlers share.
///
/// Everything is checked when serving begins; the first mistake is reported then.
#[must_use = "a server does nothing until it serves"]
pub struct Server<S = ()> {
    settings: Settings,
    http: HttpSettings,
    state: S,
    options: FunctionOptions,
    sources: Vec<Unbuilt>,
    on_event: Option<Arc<dyn Observer>>,
}

/// A source that waits for the options of the whole server.
type Unbuilt = Box<dyn FnOnce(FunctionOptions) -> Arc<dyn Source> + Send>;

impl Server {
    /// A server that offers nothing yet.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        let (name, version) = (name.into(), version.into());
        let server = Implementation { name, version, ..Implementation::default() };
        let settings = Settings { server, ..Settings::default() };
        Self {
            settings,
            http: HttpSettings::default(),
            state: (),
            options: FunctionOptions::default(),
            sources: Vec::new(),
            on_event: None,
        }
    }
}

impl<S: Clone + Send + Sync + 'static> Server<S> {
    /// Sets the state of the handlers that are added after it. They take it as
    /// [`State<T>`](crate::State), or as an `Arc<T>`; a handler that takes another one does not
    /// compile.
    ///
    /// ```
    /// use sabir::{Server, State};
    ///
    /// #[derive(Clone)]
    /// struct Pool;
    ///
    /// async fn ping(State(pool): State<Pool>) -> &'static str {
    ///     let _connection = pool;
    ///     "pong"
    /// }
    ///
    /// let server = Server::new("db", "1.0.0").state(Pool).tool("ping", "Asks the database", ping);
    /// ```
    ///
    /// ```compile_fail
    /// # use sabir::{Server, State};
    /// # #[derive(Clone)] struct Pool;
    /// # async fn ping(State(_): State<Pool>) -> &'static str { "pong" }
    /// let no_state = Server::new("db", "1.0.0").tool("ping", "Asks the database", ping);
    /// ```
    pub fn state<T: Clone + Send + Sync + 'static>(self, state: T) -> Server<T> {
        let Self { settings, http, options, sources, on_event, .. } = self;
        Server { settings, http, state, options, sources, on_event }
    }

    /// Sets a name for people.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.settings.server.title = Some(title.into());
        self
    }

    /// Sets what the model should know to use the server well.
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.settings.instructions = Some(instructions.into());
        self
    }

    /// Replaces everything that the server says about itself, its name and version included.
    pub fn implementation(mut self, server: Implementation) -> Self {
        self.settings.server = server;
        self
    }

    /// Changes where the server deviates from the specification.
    pub fn dialect(mut self, change: impl FnOnce(&mut Dialect)) -> Self {
        change(&mut self.settings.dialect);
        self
    }

    /// Changes the limits of each client.
    ///
    /// ```
    /// use sabir::Server;
    ///
    /// let server = Server::new("port", "1.0.0").limits(|limits| limits.calls = 8);
    /// ```
    pub fn limits(mut self, change: impl FnOnce(&mut Limits)) -> Self {
        change(&mut self.settings.limits);
        self
    }

    /// Changes the limits of messages and lists, which are the same for all clients.
    pub fn engine_limits(mut self, change: impl FnOnce(&mut EngineLimits)) -> Self {
        change(&mut self.settings.engine_limits);
        self
    }

    /// Changes how calls become tasks, and where these are kept. Which tools' calls do, the tools say:
    /// see [`ToolFunction::task`].
    ///
    /// ```no_run
    /// use std::sync::Arc;
    /// use sabir::{DiskStore, Server};
    ///
    /// let store = DiskStore::open("tasks.redb".as_ref())?;
    /// let server = Server::new("builder", "1.0.0").tasks(|tasks| tasks.store = Some(Arc::new(store)));
    /// # Ok::<(), sabir::StoreError>(())
    /// ```
    pub fn tasks(mut self, change: impl FnOnce(&mut TaskSettings)) -> Self {
        change(&mut self.settings.tasks);
        self
    }

    /// Changes how [`Server::serve`] serves HTTP. The `address` says who can reach the listener: if
    /// it is a loopback address, as by default, only requests to `localhost` are answered.
    pub fn http(mut self, change: impl FnOnce(&mut HttpSettings)) -> Self {
        change(&mut self.http);
        self
    }

    /// Sets the key that seals what clients keep between two parts of a call. Replicas of a server
    /// share it; without it a random key is used.
    pub fn seal_key(mut self, key: SealKey) -> Self {
        self.settings.seal_key = Some(key);
        self
    }

    /// Hides the messages of all errors from clients: the model reads "the tool failed", and the log
    /// has the rest. The text of [`Error::failed`](crate::Error::failed), which is written for the
    /// model, is still shown.
    pub fn mask_errors(mut self) -> Self {
        self.options.mask_errors = true;
        self
    }

    /// Calls `on_event` whenever a legacy client connects, is ready, sends a notification that the
    /// protocol does not know, or has left.
    ///
    /// ```
    /// use sabir::{ClientEventKind, Server};
    ///
    /// let server = Server::new("editor", "0.1.0").on_event(|event| match event.kind {
    ///     ClientEventKind::Ready => eprintln!("connected: {:?}", event.client),
    ///     ClientEventKind::Left => eprintln!("gone"),
    ///     _ => {}
    /// });
    /// ```
    pub fn on_event(mut self, on_event: impl Fn(ClientEvent) + Send + Sync + 'static) -> Self {
        self.on_event = Some(Arc::new(on_event));
        self
    }

    /// Adds a tool: its name, what the model reads about it, and the function that runs it. The
    /// input schema is derived from the argument type.
    ///
    /// ```
    /// use sabir::{Content, Server};
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Circle {
    ///     /// In pixels
    ///     radius: u32,
    /// }
    ///
    /// async fn circle(Circle { radius }: Circle) -> Content {
    ///     let svg = format!("<svg><circle r='{radius}'/></svg>");
    ///     Content::image(svg.as_bytes(), "image/svg+xml")
    /// }
    ///
    /// let server = Server::new("shapes", "1.0.0").tool("circle", "Draws a circle", circle);
    /// ```
    ///
    /// A title, annotations, an output schema or a schema of your own: see [`ToolFunction`] and
    /// [`Server::source`].
    pub fn tool<H, Form>(
        self,
        name: impl Into<String>,
        description: impl Into<String>,
        handler: H,
    ) -> Self
    where
        H: Handler<S, Form, Output: IntoReply>,
    {
        self.source(ToolFunction::new(name, description, handler))
    }

    /// Adds a prompt: its name, its description, and the function that fills it in.
    ///
    /// The fields of its argument type are its arguments; see [`PromptFunction`].
    pub fn prompt<H: Handler<S, Form, Output: IntoReply<PromptReply>>, Form>(
        self,
        name: impl Into<String>,
        description: impl Into<String>,
        handler: H,
    ) -> Self {
        self.source(PromptFunction::new(name, description, handler))
    }

    /// Adds a resource: its URI, its name, and the function that reads it.
    ///
    /// A description, a media type or a URI template: see [`ResourceFunction`] and
    /// [`Server::source`].
    pub fn resource<H, Form>(
        self,
        uri: impl Into<String>,
        name: impl Into<String>,
        handler: H,
    ) -> Self
    where
        H: Handler<S, Form, Output: IntoReply<ResourceReply>>,
    {
        self.source(ResourceFunction::new(uri, name, handler))
    }

    /// Adds a described [`ToolFunction`], [`PromptFunction`] or [`ResourceFunction`], or a
    /// [`Source`] of your own.
    ///
    /// ```
    /// use sabir::{Raw, Server, ToolFunction};
    /// use serde_json::json;
    ///
    /// let schema = json!({ "type": "object", "properties": { "text": { "type": "string" } } });
    /// let echo = ToolFunction::new("echo", "Repeats", async |given: Raw| given.text().to_owned())
    ///     .input_schema(schema)
    ///     .read_only();
    /// let server = Server::new("echo", "1.0.0").source(echo);
    /// ```
    pub fn source(mut self, source: impl IntoSource<S> + Send + 'static) -> Self {
        let state = self.state.clone();
        self.sources.push(Box::new(move |options| source.into_source(state, options)));
        self
    }

    /// Checks everything and returns the engine, to be served by transports of your own.
    pub fn build(self) -> Result<Arc<Engine>, BadOffer> {
        self.into_handle().map(|handle| handle.engine().clone())
    }

    /// Checks everything and returns a handle, which serves in several ways at once, and can add and
    /// remove tools while clients are connected.
    pub fn handle(self) -> Result<Handle<S>, BadOffer> {
        let handle = self.into_handle()?;
        handle.engine().registry().allow_changes();
        Ok(handle)
    }

    fn into_handle(self) -> Result<Handle<S>, BadOffer> {
        let Self { settings, http, state, options, sources, on_event } = self;
        let engine = Engine::observed(settings, on_event.into_iter().collect());
        let sources = sources.into_iter().map(|source| source(options)).collect();
        engine.registry().add_all(sources).map_err(|(_, bad)| bad)?;
        Ok(Handle { engine, http, state, options })
    }

    /// Serves the client that started this process, over its standard input and output, until the
    /// client has left.
    pub async fn serve_stdio(self) -> Result<(), ServeError> {
        let handle = self.into_handle()?;
        handle.until_closed(handle.serve_stdio()).await
    }

    /// Serves one client over any byte stream, one message a line, until the client has left.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use sabir::Server;
    /// use tokio::io::{AsyncReadExt, AsyncWriteExt};
    ///
    /// let (client, server) = tokio::io::duplex(4096);
    /// let (reader, writer) = tokio::io::split(server);
    /// let serving = tokio::spawn(Server::new("s", "1").serve_stream(reader, writer));
    ///
    /// let (mut answers, mut requests) = tokio::io::split(client);
    /// requests.write_all(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).await?;
    /// requests.shutdown().await?;
    /// let mut answer = String::new();
    /// answers.read_to_string(&mut answer).await?;
    /// assert_eq!(answer, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n");
    /// serving.await??;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn serve_stream<R, W>(self, reader: R, writer: W) -> Result<(), ServeError>
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        let handle = self.into_handle()?;
        handle.until_closed(handle.serve_stream(reader, writer)).await
    }

    /// Serves any number of clients over HTTP, of both eras on one endpoint (`/mcp`), until the
    /// process ends. [`Server::serve`] can be shut down.
    ///
    /// ```no_run
    /// use sabir::{HttpSettings, Server};
    ///
    /// # async fn serve() -> Result<(), Box<dyn std::error::Error>> {
    /// let settings = HttpSettings::new("127.0.0.1:7331".parse()?);
    /// Server::new("port", "1.0.0").serve_http(settings).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn serve_http(self, settings: HttpSettings) -> Result<(), ServeError> {
        let handle = self.into_handle()?;
        let server = handle.bind_http(settings).await?;
        handle.until_closed(server.run(std::future::pending())).await;
        Ok(())
    }

    /// Serves any number of clients over WebSocket until the process ends: one message a text
    /// frame, subprotocol `mcp`, at `/` and at the endpoint. [`Server::serve_http`] serves WebSocket
    /// clients too, at its endpoint.
    ///
    /// ```no_run
    /// use sabir::{HttpSettings, Server};
    ///
    /// # async fn serve() -> Result<(), Box<dyn std::error::Error>> {
    /// let settings = HttpSettings::new("127.0.0.1:7332".parse()?);
    /// Server::new("editor", "0.1.0").serve_ws(settings).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn serve_ws(self, mut settings: HttpSettings) -> Result<(), ServeError> {
        settings.only_websocket = true;
        self.serve_http(settings).await
    }

    /// Serves HTTP on any listener (TCP, a Unix socket, a socket of systemd) until `shutdown`
    /// completes. Then running calls may finish within the grace period, and the sources are closed.
    ///
    /// ```no_run
    /// # async fn serve() -> Result<(), Box<dyn std::error::Error>> {
    /// use sabir::Server;
    /// use tokio::net::TcpListener;
    ///
    /// let listener = TcpListener::bind("127.0.0.1:7331").await?;
    /// let shutdown = async { drop(tokio::signal::ctrl_c().await) };
    /// Server::new("port", "1.0.0").serve(listener, shutdown).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn serve<L: Listener>(
        self,
        listener: L,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), ServeError> {
        let handle = self.into_handle()?;
        handle.until_closed(handle.serve(listener, shutdown)).await;
        Ok(())
    }
}

impl<S> std::fmt::Debug for Server<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("name", &self.settings.server.name).finish_non_exhaustive()
    }
}
