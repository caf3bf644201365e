//! Serve what you have to every MCP client.
//!
//! A server has a name and offers tools, prompts and resources. It speaks all five revisions of the
//! Model Context Protocol, to each client its own; your functions need not know them.
//!
//! ```no_run
//! use sabir::Server;
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Add {
//!     a: f64,
//!     b: f64,
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), sabir::ServeError> {
//!     Server::new("calculator", "1.0.0")
//!         .tool("add", "Adds two numbers", async |Add { a, b }| format!("{}", a + b))
//!         .serve_stdio()
//!         .await
//! }
//! ```
//!
//! # Parameters and state
//!
//! A handler is an async function. Each of its parameters says by its type where it comes from, in
//! any order:
//!
//! | parameter | value |
//! |---|---|
//! | `add: Add`, or `Args(add): Args<Add>` | the arguments; their schema is derived from the type |
//! | `State(pool): State<Pool>` | a clone of the server's [state](Server::state), or of a part of it ([`FromRef`]) |
//! | `context: Context` | reports progress, logs, learns of cancellation, asks the client |
//! | `caller: Caller` | who makes the call, as the transport has established |
//! | `Uri(uri): Uri` | the URI of the resource that is read |
//! | `arguments: Raw` | the arguments as the client wrote them |
//! | any type with [`FromCall`] | computed from the call |
//!
//! ```
//! use std::sync::{Arc, Mutex};
//! use sabir::{Caller, Server, State};
//!
//! type Notes = Arc<Mutex<Vec<String>>>;
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Note {
//!     /// What to remember
//!     text: String,
//! }
//!
//! async fn remember(State(notes): State<Notes>, caller: Caller, Note { text }: Note) -> String {
//!     let mut notes = notes.lock().unwrap();
//!     notes.push(format!("{}: {text}", caller.subject()));
//!     format!("{} notes", notes.len())
//! }
//!
//! let server = Server::new("notes", "1.0.0")
//!     .state(Notes::default())
//!     .tool("remember", "Remembers a note", remember);
//! ```
//!
//! A closure may capture variables instead, but not an `async move` closure: the calls run at the
//! same time, so each needs a clone of its own.
//!
//! ```
//! # use sabir::Server;
//! # #[derive(serde::Deserialize, schemars::JsonSchema)] struct Greet { name: String }
//! let greeting = std::sync::Arc::new(String::from("Good morning"));
//! let greet = move |Greet { name }| {
//!     let greeting = greeting.clone();
//!     async move { format!("{greeting}, {name}!") }
//! };
//! let server = Server::new("greeter", "1.0.0").tool("greet", "Greets somebody", greet);
//! ```
//!
//! # Tools of one struct
//!
//! Methods with `self: Arc<Self>` are handlers of a server whose state is that `Arc`. The next
//! `.state(…)` begins another group.
//!
//! ```
//! use std::sync::Arc;
//! use sabir::{Error, Server};
//!
//! #[derive(Default)]
//! struct Shop {
//!     sold: std::sync::atomic::AtomicU32,
//! }
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Buy {
//!     article: String,
//! }
//!
//! impl Shop {
//!     async fn buy(self: Arc<Self>, Buy { article }: Buy) -> Result<String, Error> {
//!         self.sold.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
//!         Ok(format!("here is your {article}"))
//!     }
//!
//!     async fn report(self: Arc<Self>) -> String {
//!         format!("{:?} articles sold", self.sold)
//!     }
//! }
//!
//! let server = Server::new("shop", "1.0.0")
//!     .state(Arc::new(Shop::default()))
//!     .tool("buy", "Buys an article", Shop::buy)
//!     .tool("report", "Reports what was sold", Shop::report);
//! ```
//!
//! # Results and errors
//!
//! A tool returns text, a [`Content`] or several (pictures, sounds, resources, links), a [`Json`]
//! value, or a whole [`ToolReply`]: see [`IntoReply`]. Or it returns a `Result`: any error can be
//! passed on with `?`, those of `anyhow` included. The model reads its message, so that it can
//! correct itself; the log gets the causes too. [`Error::internal`] and [`Server::mask_errors`]
//! keep the message from the model.
//!
//! ```
//! use sabir::Error;
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Open {
//!     path: String,
//! }
//!
//! async fn size(Open { path }: Open) -> Result<String, Error> {
//!     let size = std::fs::metadata(path)?.len();
//!     if size == 0 {
//!         return Err(Error::failed("the file is empty; choose another one"));
//!     }
//!     Ok(format!("{size} bytes"))
//! }
//!
//! // A function may as well keep its own error type.
//! async fn read(Open { path }: Open) -> Result<String, std::io::Error> {
//!     std::fs::read_to_string(path)
//! }
//! # sabir::Server::new("", "").tool("size", "", size).tool("read", "", read);
//! ```
//!
//! # Questions
//!
//! With its [`Context`] a handler asks the user, the client's model, or for the client's folders.
//! The same code serves clients of both eras.
//!
//! ```
//! use sabir::{Context, Elicited, Error, Server};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Delete {
//!     /// Which file to delete
//!     path: String,
//! }
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Confirm {
//!     sure: bool,
//! }
//!
//! async fn delete(Delete { path }: Delete, context: Context) -> Result<String, Error> {
//!     match context.elicit("confirm", &format!("Delete {path}?"))? {
//!         Elicited::Accepted(Confirm { sure: true }) => Ok(format!("{path} is deleted")),
//!         _ => Err(Error::failed("the user wants to keep the file")),
//!     }
//! }
//!
//! let server = Server::new("files", "1.0.0").tool("delete", "Deletes a file", delete);
//! ```
//!
//! # Prompts and resources
//!
//! Their handlers take the same parameters. The arguments of a prompt and the variables of a URI
//! template are the fields of the argument type.
//!
//! ```
//! use sabir::{ResourceFunction, Server, Uri};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Review {
//!     /// What to review
//!     code: String,
//!     /// What to look for
//!     topic: Option<String>,
//! }
//!
//! async fn review(Review { code, topic }: Review) -> String {
//!     format!("Review this for {}:\n{code}", topic.as_deref().unwrap_or("errors"))
//! }
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Page {
//!     number: u32,
//! }
//!
//! async fn page(Uri(uri): Uri, Page { number }: Page) -> String {
//!     format!("{uri} is page {number}")
//! }
//!
//! let server = Server::new("book", "1.0.0")
//!     .prompt("review", "Reviews code", review)
//!     .resource("book://motto", "motto", async || "Deal!")
//!     .source(ResourceFunction::template("book://pages/{number}", "pages", page));
//! ```
//!
//! # Serving
//!
//! | | |
//! |---|---|
//! | the client that started this process | [`Server::serve_stdio`] |
//! | HTTP on an address | [`Server::serve_http`] |
//! | WebSocket on an address | [`Server::serve_ws`] |
//! | HTTP on any listener, with graceful shutdown | [`Server::serve`] |
//! | inside an axum or hyper application | [`Handle::http_service`] |
//! | several of these, or tools that come and go | [`Server::handle`] |
//!
//! # Tests
//!
//! [`test::connect`] is a client without a transport.

mod handle; // a server that serves, and can be changed meanwhile
mod server; // a server before it serves
#[cfg(feature = "client")]
pub mod client; // a client for any server
pub mod source; // what a source of your own needs
pub mod test; // a client in memory

pub use handle::{Handle, ServeError};
pub use sabir_engine::{ClientEvent, ClientEventKind, Engine, EngineLimits, SealKey, TaskSettings};
pub use sabir_registry::{BadOffer, Source, SourceId, TaskMode, TaskPolicy};
pub use sabir_session::{Dialect, Limits};
pub use sabir_session::{MissingMethod, NullId, RequireReady, ToolFailure, UnknownTool};
pub use sabir_sources::app::{App, AppSource, Permission, Visibility};
pub use sabir_sources::function::{Args, Call, FromCall, FromRef, State, Uri};
pub use sabir_sources::function::{Context, Elicited, Error, Handler, IntoReply, IntoSource, Json};
pub use sabir_sources::function::{PromptFunction, ResourceFunction, ToolFunction};
pub use sabir_tasks::{DiskStore, StoreError, TaskLimits, TaskRecord, TaskStore};
pub use sabir_transports::http::{
    AcmeSettings, Authenticate, Authenticating, BindError, CertificateEvent, ClientCertificates,
    Denied, Document, HttpService, Limits as HttpLimits, Listener, NamedToken, Peer,
    Server as HttpServer, ServerCertificate, Settings as HttpSettings, Tls, TlsError, TlsListener,
    TlsSettings, Token,
};
pub use sabir_wire::types::{
    Annotations, ClientCapabilities, Completion, Content, Elicit, Icon, Implementation, Level,
    PromptArgument, PromptReply, Question, Resource, ResourceContents, ResourceReply, Role, Sample,
    Sampled, ToolAnnotations, ToolReply, UiCsp,
};
pub use sabir_wire::{Caller, ErrorObject, Raw, Revision, TraceContext};
pub use server::Server;
