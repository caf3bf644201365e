//! A folder of articles as a source: three tools, and each article as a resource.
//!
//! The articles themselves are in `sabir-articles`, which knows nothing of MCP.

mod appearance; // how a folder appears to clients
mod follow; // announces changes to clients
mod resources; // articles as resources
mod schema; // the schemas of the tools
mod source; // a store as a source
mod text; // results as text
mod tools; // the three tools

pub use appearance::{Appearance, NotFound};
pub use source::ArticleSource;
