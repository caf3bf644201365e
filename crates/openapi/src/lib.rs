//! Descriptions of HTTP APIs (Swagger 2, OpenAPI 3.0 and 3.1), read as plain JSON.
//!
//! A [`Description`] is a set of files. It lists its operations as [`Entry`]s; an [`Operation`] is
//! read in full when it is needed: the JSON Schema of its arguments (one flat object), and the plan
//! that turns arguments into a [`Request`]. [`names`] gives each operation a stable name, and an
//! [`Answer`] is a parsed response.
//!
//! Real descriptions break the rules of their own format. A mistake costs its operation at most:
//! it becomes a [`Problem`], never a refusal of the whole description.
//!
//! This crate knows nothing of MCP and does no I/O: files that a description refers to are named by
//! [`Description::missing`] and handed in by the caller.

mod answer; // reads a response
mod argument; // the flat arguments of an operation
mod body; // the media types of a request body
mod definition; // the schema of the arguments, within a budget
mod description; // the files, and references between them
mod entry; // the list of operations
mod field; // the fields of form and multipart bodies
mod link; // the `Link` header
mod media; // media types
mod name; // names of tools and arguments
mod operation; // one operation, read in full
mod parameter; // parameters and their styles
mod problem; // mistakes in a description
mod render; // values as text: styles and encodings
mod request; // a request from arguments
mod schema; // JSON Schema from the schemas of a description
mod security; // how callers authenticate
mod server; // base URLs
mod uri; // references relative to a URI
mod values; // the arguments of one call
mod words; // shortening of texts
mod yaml; // YAML as JSON

pub use answer::{Answer, Content};
pub use definition::Budget;
pub use description::{Description, ParseError, Version};
pub use entry::{Entry, MAX_OPERATIONS, Method};
pub use name::{MAX_NAME, names};
pub use operation::{Operation, ReadOptions};
pub use problem::Problem;
pub use render::{encode_path, encode_query};
pub use request::{Files, NoFiles, Request};
pub use security::{KeyPlace, Scheme};
pub use uri::{is_absolute, join};
pub use values::ArgumentError;
pub use words::shortened;
pub use yaml::parse as parse_yaml;
