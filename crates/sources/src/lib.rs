//! What can be served, one module per kind of source.

pub mod articles; // a folder of Markdown
#[cfg(unix)]
pub mod command; // command-line programs as tools
pub mod function; // a Rust function
#[cfg(unix)]
mod hidden; // modes of the executable that need a process of their own
#[cfg(unix)]
pub mod keeper; // children that never outlive us
pub mod text; // prompts and resources that are written down

#[cfg(unix)]
pub use hidden::hidden_mode;
