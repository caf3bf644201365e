//! A folder of articles as a source: tools, and each article as a resource.
//!
//! The articles themselves are in `sabir-articles`, which knows nothing of MCP.

mod appearance; // how a folder appears to clients
mod budget; // keeps results within their length
mod embeddings; // vectors of texts, for a search by meaning
mod follow; // announces changes to clients
mod git; // commits changes
mod mistakes; // questions that cannot be answered
mod plain; // `search` and `fetch`
mod pdf; // the text of PDF files, by a program
mod resources; // articles as resources
mod schema; // the schemas of the tools
mod source; // a store as a source
mod text; // results as text
mod tools; // the three tools
mod writing; // the tools that change articles

pub use appearance::{Appearance, NotFound};
pub use embeddings::Embeddings;
pub use git::Git;
pub use pdf::{PDFTOTEXT, pdf_reader, pdftotext};
pub use source::{ArticleSource, Services};
