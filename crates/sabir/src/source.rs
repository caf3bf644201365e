//! Sources of your own: tools, prompts and resources that are known only at run time, come and go, or
//! must be started and closed. For functions see [`Server::tool`](crate::Server::tool).
//!
//! ```
//! use sabir::source::{Offer, Outcome, Pending, Source, Tool, ToolCall};
//! use sabir::{Raw, Server, ToolReply};
//! use serde_json::json;
//!
//! /// One tool per word.
//! struct Words(Vec<&'static str>);
//!
//! impl Source for Words {
//!     fn offer(&self) -> Offer {
//!         let schema = Raw::from(json!({ "type": "object" }));
//!         let tool = |word: &&str| Tool::new(*word, "Says its name", schema.clone());
//!         Offer { tools: self.0.iter().map(tool).collect(), ..Offer::default() }
//!     }
//!
//!     fn call_tool(&self, call: ToolCall) -> Pending<ToolReply> {
//!         Box::pin(async move { Ok(Outcome::Done(ToolReply::text(call.name))) })
//!     }
//! }
//!
//! let server = Server::new("words", "1.0.0").source(Words(vec!["ping", "pong"]));
//! ```

pub use sabir_registry::{
    Answer, Ask, CallHandle, Closing, CompleteCall, Context, FolderCall, Offer, Outcome, Pending,
    PromptCall, ResourceCall, Source, SourceHandle, StartError, Starting, ToolCall,
};
pub use sabir_wire::types::{Prompt, ResourceTemplate, Tool};
