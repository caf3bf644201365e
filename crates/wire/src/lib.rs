//! Bytes to MCP messages and back, in every revision of the protocol. Pure: no I/O, no clock.
//!
//! The inside of Sabir speaks only the newest revision. What older ones lack is told by one
//! table ([`Revision::features`]) and applied in one place ([`render`]).

mod parsed; // a request, its params read
mod caller; // who makes a request
mod error; // what can be wrong, and the code that each revision gives it
mod framing; // bytes to lines, with a bound
mod id; // request ids, kept exactly
pub mod render; // newest shape to older shapes
mod message; // the JSON-RPC envelope
mod meta; // what a request says about itself
mod method; // every method and its params
mod raw; // JSON left as text
mod revision; // the dated revisions
pub mod scan; // JSON in one pass, where it is plain
mod strict; // an object is an object
pub mod types; // one file per page of the specification
mod uri; // URI templates

pub use bytestring::ByteString;
pub use caller::Caller;
pub use error::{Code, ErrorObject, Problem};
pub use framing::{Line, LineSplitter};
pub use id::Id;
pub use message::{Incoming, MAX_BATCH, Malformed, MalformedKind, Message, decode};
pub use message::{write_batch, write_error, write_notification, write_request, write_result};
pub use meta::{Meta, ProgressToken, TraceContext};
pub use method::{CallTool, Cancelled, Complete, GetPrompt, Initialize, Listen};
pub use method::{Method, Page, ReadResource, Request, Resume};
pub use parsed::ParsedRequest;
pub use raw::Raw;
pub use revision::{Era, Features, Revision};
pub use uri::{BadTemplate, UriTemplate};
