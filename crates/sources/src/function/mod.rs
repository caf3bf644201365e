//! A Rust function, as a tool, a prompt or a resource.
//!
//! Each is a source of its own, so that it can be added and removed while the server runs. Generic
//! at the door, boxed inside: what is typed here is forgotten once it is registered.

mod context; // what a function may say and ask while it works
mod error; // why a function gives no result
mod handler; // which functions can be tools
mod prompt; // a function that fills in a prompt
mod reply; // what a tool may return
mod resource; // a function that reads a resource
mod schema; // JSON Schemas of Rust types
mod tool; // a function that is a tool

pub use context::{Context, Elicited};
pub use error::Error;
pub use handler::Handler;
pub use prompt::{PromptBuilder, PromptFunction};
pub use reply::{IntoReply, Json};
pub use resource::{ResourceBuilder, ResourceFunction, TemplateBuilder, TemplateFunction};
pub use tool::{ToolBuilder, ToolFunction};
