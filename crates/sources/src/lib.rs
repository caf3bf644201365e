//! What can be served, one module per kind of source.

pub mod articles; // a folder of Markdown
pub mod command; // command-line programs as tools
pub mod function; // a Rust function
mod hidden; // modes of the executable that need a process of their own
pub mod keeper; // children that never outlive us
pub mod text; // prompts and resources that are written down

pub use hidden::hidden_mode;
