//! A client for any MCP server, of every revision. Needs the feature `client`.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use sabir::client::Client;
//! use serde_json::json;
//!
//! let client = Client::connect("http://127.0.0.1:7331/mcp").await?;
//! for tool in client.list_tools().await? {
//!     eprintln!("{}: {}", tool.name, tool.description.unwrap_or_default());
//! }
//! let reply = client.call_tool("add", json!({ "a": 1, "b": 2 })).await?;
//! assert!(!reply.is_error);
//! # Ok(())
//! # }
//! ```
//!
//! The client finds out which era the server belongs to, and speaks it. The handle can be cloned and
//! shared; many calls may run at once; a call that is dropped is cancelled. When the link ends, the
//! running calls fail and the next call opens it again. A call that may have happened is never
//! repeated.
//!
//! # Questions
//!
//! A server may ask the user, the client's model or for its folders. Declare what can be answered,
//! and give an [`Answerer`]; it works the same way for servers of both eras.
//!
//! ```no_run
//! use std::sync::Arc;
//! use sabir::client::{Answerer, Answering, Client, ClientConfig};
//! use sabir::{ClientCapabilities, Question, Raw};
//! use serde_json::json;
//!
//! #[derive(Debug)]
//! struct Yes;
//!
//! impl Answerer for Yes {
//!     fn answer(&self, _question: Question) -> Answering<'_> {
//!         Box::pin(async { Ok(Raw::from(json!({ "action": "accept", "content": {} }))) })
//!     }
//! }
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let capabilities = ClientCapabilities { elicitation_form: true, ..Default::default() };
//! let config = ClientConfig { capabilities, ..ClientConfig::new("my-app", "1.0.0") };
//! let client = Client::connect_with("https://example.com/mcp", config, Arc::new(Yes)).await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Servers that demand a login
//!
//! [`OAuth`] gets the access token that a server demands, and renews it: a person logs in, or the
//! client has credentials of its own. It belongs to [`HttpTarget::auth`].
//!
//! # Programs
//!
//! [`ChildTransport`] starts a program and talks to it over its standard streams. A supervisor makes
//! sure that the program never outlives this process, even after `kill -9`; for that, call
//! [`hidden_mode`] first in `main`, and return the exit code if it gives one.
//!
//! # Below
//!
//! [`Client::start`] gives a [`Call`], with its progress, log messages and questions as they come;
//! [`Client::events`] what the server sends outside of calls; [`Client::watch`] selects the changes to be notified of.

pub use sabir_client::{
    Answerer, Answering, Asked, AuthError, Call, CallError, CallEvent, CallOptions, CallRequest,
    ChildTransport, Client, ClientConfig, ClientEvent, ClientKey, Events, Grant, HttpTarget,
    HttpTransport, InMemory, Keep, Keeping, Kept, Limits, Locked, Login, NoAnswers, OAuth,
    OAuthSettings, OpenError, PipeTransport, Program, Reconnect, Registration, Reply, RequestBody,
    ServerInfo, SubjectType, Transport, Visit, Visiting,
};
pub use sabir_supervisor::{GracePeriod, Supervisor, SupervisorSettings, hidden_mode};
pub use sabir_wire::types::{ListPage, Prompt, Questions, ResourceTemplate, SubscriptionFilter};
pub use sabir_wire::types::{Skill, SkillFile, SkillFiles, Tool, Topic};
pub use sabir_wire::{CallTool, Complete, Era, GetPrompt, Page, ReadResource, Request, Resume};
