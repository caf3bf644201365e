//! Serve what you have to every MCP client.
//!
//! A server is a name and what it offers. It speaks all five revisions of the Model Context
//! Protocol, to each client its own, and your functions know none of them.
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
//!         .tool("add", "Adds two numbers", async |Add { a, b }| Ok(format!("{}", a + b)))
//!         .serve_stdio()
//!         .await
//! }
//! ```
//!
//! # What a function can do
//!
//! It takes its arguments as a type of yours, from which the schema is made, and, if it likes, the
//! [`Context`] of its call. With that it reports progress, writes to the client's log, sees that it
//! is cancelled, and asks: the user, the client's model, or for the client's folders.
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
//!         Elicited::Accepted(Confirm { sure: true }) => Ok(format!("{path} is gone")),
//!         _ => Err(Error::failed("the user would rather keep it")),
//!     }
//! }
//!
//! let server = Server::new("files", "1.0.0").tool("delete", "Deletes a file", delete);
//! # let _ = server;
//! ```
//!
//! # What it can return
//!
//! Text, a [`Content`] or several (pictures, sounds, resources, links), a [`Json`] value, a whole
//! [`ToolReply`], or an [`Error`], which the model reads.

mod server;

pub use sabir_engine::{ClientEvent, Engine, EngineLimits, SealKey};
pub use sabir_registry::{BadOffer, Source, SourceId};
pub use sabir_session::{Dialect, Limits};
pub use sabir_session::{MissingMethod, NullId, RequireReady, ToolFailure, UnknownTool};
pub use sabir_sources::function::{Context, Elicited, Error, Handler, IntoReply, Json};
pub use sabir_sources::function::{PromptBuilder, PromptFunction, ResourceBuilder};
pub use sabir_sources::function::{
    ResourceFunction, TemplateBuilder, TemplateFunction, ToolBuilder, ToolFunction,
};
pub use sabir_transports::http::{
    Authenticate, BindError, HttpService, Limits as HttpLimits, NamedToken, Server as HttpServer,
    Settings as HttpSettings, Token,
};
pub use sabir_wire::types::{
    Annotations, ClientCapabilities, Completion, Content, Elicit, Icon, Implementation, Level,
    PromptReply, Question, Resource, ResourceContents, ResourceReply, Role, Sample, Sampled,
    ToolAnnotations, ToolReply,
};
pub use sabir_wire::{Caller, ErrorObject, Raw, Revision, TraceContext};
pub use server::{Handle, ServeError, Server};
