//! What can be served, one module per kind of source.

#[cfg(feature = "articles")]
pub mod articles; // a folder of Markdown
#[cfg(feature = "commands")]
pub mod command; // command-line programs as tools
pub mod function; // a Rust function
#[cfg(feature = "commands")]
mod hidden; // modes of the executable that need a process of their own
#[cfg(feature = "commands")]
pub mod text; // prompts and resources that are written down

#[cfg(feature = "commands")]
pub use hidden::hidden_mode;
