//! The kinds of sources, one module each.

#[cfg(any(feature = "apis", feature = "upstreams"))]
mod age; // how old something is
pub mod app; // HTML views of tools
#[cfg(feature = "articles")]
pub mod articles; // a folder of Markdown
#[cfg(feature = "commands")]
pub mod command; // command-line programs as tools
pub mod function; // a Rust function
#[cfg(feature = "apis")]
pub mod http; // HTTP APIs
#[cfg(feature = "commands")]
mod hidden; // hidden modes of the executable
#[cfg(feature = "host")]
pub mod host; // the process that started us
#[cfg(feature = "logins")]
pub mod login; // users' own credentials at APIs and upstreams
#[cfg(feature = "skills")]
pub mod skills; // a folder of skills
#[cfg(feature = "upstreams")]
pub mod upstream; // another MCP server
#[cfg(feature = "commands")]
pub mod text; // prompts and resources from the configuration

#[cfg(feature = "commands")]
pub use hidden::hidden_mode;
