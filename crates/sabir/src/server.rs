//! A server: what it is called, what it offers, and where it listens.

use std::io;
use std::sync::Arc;

use sabir_engine::{ClientEvent, Engine, EngineLimits, SealKey, Settings};
use sabir_registry::{BadOffer, Source, SourceId};
use sabir_session::{Dialect, Limits};
use sabir_sources::function::{Handler, IntoReply, ToolFunction};
use sabir_transports::http::{BindError, Server as HttpServer, Settings as HttpSettings};
use sabir_wire::types::Implementation;
use sabir_wire::{Caller, Raw};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};

/// A server, before it serves.
///
/// Everything is checked when serving begins; the first mistake is reported then.
pub struct Server {
    settings: Settings,
    sources: Vec<Arc<dyn Source>>,
    on_event: Option<Box<dyn Fn(ClientEvent) + Send + Sync>>,
}

/// Why a server does not serve.
#[derive(Debug)]
pub enum ServeError {
    /// Something that it offers is no good.
    Offer(BadOffer),
    /// It could not read or write.
    Io(io::Error),
    /// It could not listen.
    Bind(BindError),
}

impl std::fmt::Display for ServeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Offer(offer) => offer.fmt(f),
            Self::Io(error) => error.fmt(f),
            Self::Bind(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ServeError {}

impl From<BadOffer> for ServeError {
    fn from(offer: BadOffer) -> Self {
        Self::Offer(offer)
    }
}

impl From<io::Error> for ServeError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<BindError> for ServeError {
    fn from(error: BindError) -> Self {
        Self::Bind(error)
    }
}

impl Server {
    /// A server that offers nothing yet.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        let (name, version) = (name.into(), version.into());
        let server = Implementation { name, version, ..Implementation::default() };
        let settings = Settings { server, ..Settings::default() };
        Self { settings, sources: Vec::new(), on_event: None }
    }

    /// A name for people.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.settings.server.title = Some(title.into());
        self
    }

    /// How to use it, for the model.
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.settings.instructions = Some(instructions.into());
        self
    }

    /// All that it says about itself.
    pub fn implementation(mut self, server: Implementation) -> Self {
        self.settings.server = server;
        self
    }

    /// How it deviates from the specification.
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.settings.dialect = dialect;
        self
    }

    /// How much one client may have.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.settings.limits = limits;
        self
    }

    /// How much is taken in, whoever sends it.
    pub fn engine_limits(mut self, limits: EngineLimits) -> Self {
        self.settings.engine_limits = limits;
        self
    }

    /// Seals what clients keep for us between two rounds of a call. Replicas share it.
    pub fn seal_key(mut self, key: SealKey) -> Self {
        self.settings.seal_key = Some(key);
        self
    }

    /// Is told what happens to clients.
    ///
    /// ```
    /// use sabir::{ClientEvent, Server};
    ///
    /// let server = Server::new("editor", "0.1.0").on_event(|event| match event {
    ///     ClientEvent::Ready(client) => eprintln!("connected: {client:?}"),
    ///     ClientEvent::Left => eprintln!("gone"),
    /// });
    /// # let _ = server;
    /// ```
    pub fn on_event(mut self, on_event: impl Fn(ClientEvent) + Send + Sync + 'static) -> Self {
        self.on_event = Some(Box::new(on_event));
        self
    }

    /// Offers a function as a tool. Its argument type tells the schema.
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
    /// # let _ = server;
    /// ```
    pub fn tool<A, H, Form>(
        self,
        name: impl Into<String>,
        description: impl Into<String>,
        handler: H,
    ) -> Self
    where
        A: serde::de::DeserializeOwned + schemars::JsonSchema + Send,
        H: Handler<A, Form, Output: IntoReply>,
    {
        self.offer(ToolFunction::typed(name, description, handler).build())
    }

    /// Offers a function as a tool whose arguments are described by a JSON Schema and given to it
    /// as the client wrote them.
    ///
    /// ```
    /// use sabir::{Raw, Server};
    /// use serde_json::json;
    ///
    /// let schema = json!({ "type": "object", "properties": { "text": { "type": "string" } } });
    /// let server = Server::new("echo", "1.0.0")
    ///     .register_tool("echo", schema, async |arguments: Raw| arguments.text().to_owned());
    /// # let _ = server;
    /// ```
    pub fn register_tool<H, Form>(self, name: impl Into<String>, schema: Value, handler: H) -> Self
    where
        H: Handler<Raw, Form, Output: IntoReply>,
    {
        self.offer(raw_tool(name, &schema, handler))
    }

    /// Offers whatever a source offers: a described [`ToolFunction`], a
    /// [`PromptFunction`](crate::PromptFunction), a [`ResourceFunction`](crate::ResourceFunction),
    /// or a [`Source`] of your own.
    ///
    /// ```
    /// use sabir::{PromptFunction, PromptReply, ResourceContents, ResourceFunction, Server};
    ///
    /// let review = PromptFunction::named("review", "Reviews code")
    ///     .argument("code", "What to review")
    ///     .filled_in_by(async |arguments: std::collections::BTreeMap<String, String>| {
    ///         Ok(PromptReply::user(format!("Review this:\n{}", arguments["code"])))
    ///     });
    /// let motto = ResourceFunction::at("text://motto", "motto")
    ///     .read_by(async |uri: String| Ok(ResourceContents::text(uri, "text/plain", "Deal!").into()));
    /// let server = Server::new("port", "1.0.0").offer(review).offer(motto);
    /// # let _ = server;
    /// ```
    pub fn offer(mut self, source: impl Source + 'static) -> Self {
        self.sources.push(Arc::new(source));
        self
    }

    /// Checks everything, and gives the engine that all transports share.
    pub fn build(self) -> Result<Arc<Engine>, BadOffer> {
        let engine = Engine::observed(self.settings, self.on_event);
        engine.registry().add_all(self.sources).map_err(|(_, bad)| bad)?;
        Ok(engine)
    }

    /// Serves, and gives a handle by which tools can be registered and removed meanwhile. Clients
    /// are told.
    ///
    /// ```
    /// use sabir::{Raw, Server};
    /// use serde_json::json;
    ///
    /// # fn main() -> Result<(), sabir::BadOffer> {
    /// let handle = Server::new("editor", "0.1.0").handle()?;
    /// handle.register_tool("openFile", json!({ "type": "object" }), async |_: Raw| "opened")?;
    /// assert!(handle.remove_tool("openFile"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn handle(self) -> Result<Handle, BadOffer> {
        let engine = self.build()?;
        engine.registry().allow_changes();
        Ok(Handle { engine })
    }

    /// Serves the client that started this process, until it has left.
    pub async fn serve_stdio(self) -> Result<(), ServeError> {
        Ok(sabir_transports::stdio::serve(&self.build()?).await?)
    }

    /// Serves any number of clients over HTTP, of both eras on one endpoint (`/mcp`), until the
    /// process ends.
    ///
    /// ```no_run
    /// use sabir::{HttpSettings, Server};
    ///
    /// # async fn serve() -> Result<(), Box<dyn std::error::Error>> {
    /// let settings = HttpSettings { address: "127.0.0.1:7331".parse()?, ..Default::default() };
    /// Server::new("port", "1.0.0").serve_http(settings).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn serve_http(self, settings: HttpSettings) -> Result<(), ServeError> {
        let server = HttpServer::bind(self.build()?, settings).await?;
        server.run(std::future::pending()).await;
        Ok(())
    }

    /// Serves one client over any byte stream, one message a line.
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
        Ok(sabir_transports::stream::serve(&self.build()?, Caller::local(), reader, writer).await?)
    }
}

/// A server that can be changed while it serves. Clones are the same server.
#[derive(Clone, Debug)]
pub struct Handle {
    engine: Arc<Engine>,
}

impl Handle {
    /// Offers one more tool; clients are told.
    pub fn register_tool<H, Form>(
        &self,
        name: impl Into<String>,
        schema: Value,
        handler: H,
    ) -> Result<(), BadOffer>
    where
        H: Handler<Raw, Form, Output: IntoReply>,
    {
        self.offer(raw_tool(name, &schema, handler)).map(drop)
    }

    /// Offers one more source; clients are told.
    pub fn offer(&self, source: impl Source + 'static) -> Result<SourceId, BadOffer> {
        self.engine.registry().add(Arc::new(source))
    }

    /// Takes a source away; clients are told. `false` if it is not there any more.
    pub fn withdraw(&self, source: SourceId) -> bool {
        self.engine.registry().remove(source).is_some()
    }

    /// Takes a tool away; clients are told. `false` if there is none of that name.
    pub fn remove_tool(&self, name: &str) -> bool {
        let registry = self.engine.registry();
        registry.provider_of_tool(name).is_some_and(|id| registry.remove(id).is_some())
    }

    /// Tells whoever listens that what a resource holds has changed.
    pub fn resource_updated(&self, uri: impl Into<Box<str>>) {
        self.engine.registry().updated(uri);
    }

    /// Whether a client is there that has completed its handshake.
    pub fn is_connected(&self) -> bool {
        self.engine.ready_clients() > 0
    }

    /// Serves the client that started this process, until it has left or [`Handle::stop`].
    pub async fn serve_stdio(&self) -> Result<(), ServeError> {
        Ok(sabir_transports::stdio::serve(&self.engine).await?)
    }

    /// Serves one client over any byte stream, one message a line.
    pub async fn serve_stream<R, W>(&self, reader: R, writer: W) -> Result<(), ServeError>
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        Ok(sabir_transports::stream::serve(&self.engine, Caller::local(), reader, writer).await?)
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
    /// let settings = HttpSettings { address: "127.0.0.1:0".parse()?, ..Default::default() };
    /// let server = handle.bind_http(settings).await?;
    /// println!("http://{}/mcp", server.address());
    /// let stop = async { /* until whatever you wait for */ };
    /// server.run(stop).await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn bind_http(&self, settings: HttpSettings) -> Result<HttpServer, ServeError> {
        Ok(HttpServer::bind(self.engine.clone(), settings).await?)
    }

    /// Ends all conversations; running calls may finish within the grace.
    pub fn stop(&self) {
        self.engine.stop();
    }

    /// What all transports share.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }
}

fn raw_tool<H, Form>(name: impl Into<String>, schema: &Value, handler: H) -> ToolFunction
where
    H: Handler<Raw, Form, Output: IntoReply>,
{
    // An editor's schema may carry its own description; a tool without one is hard to use.
    let description = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    let schema = Raw::of(schema).unwrap_or_else(|_| Raw::empty_object());
    ToolFunction::raw(name, description, schema, handler).build()
}
