//! A Rust function, as a tool, a prompt or a resource.
//!
//! Each is a source of its own, so that it can be added and removed while the server runs. The
//! types of a function are known where it is added and erased behind it.

mod call; // the parameters of handlers
mod context; // reports and questions of a running handler
mod error; // why a handler gives no result
mod handler; // which functions can be handlers
mod prompt; // a function that fills in a prompt
mod reply; // the return types of handlers
mod resource; // a function that reads resources
mod schema; // JSON Schemas of Rust types
mod source; // functions with their state are sources
mod tool; // a function that is a tool

pub use call::{Args, Call, Extractor, FromCall, FromRef, Plain, State, Uri};
pub use context::{Context, Elicited};
pub use error::{Error, FunctionOptions};
pub use handler::Handler;
pub use prompt::PromptFunction;
pub use reply::{IntoReply, Json};
pub use resource::ResourceFunction;
pub use source::IntoSource;
pub use tool::ToolFunction;
