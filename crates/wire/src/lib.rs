//! Bytes to MCP messages and back, in every revision of the protocol. Pure: no I/O, no clock.
//!
//! All values in memory have the shape of the newest revision. One table ([`Revision::features`]) says
//! what older revisions do not have; [`WriteJson`] and [`render`] leave it out, [`ReadJson`] and
//! [`raise`] read it.

mod caller; // who makes a request
mod error; // reasons for failure, and their codes
mod framing; // bytes to lines and server-sent events, with bounds
mod id; // request ids, kept exactly
mod json; // reading and writing without loss
mod message; // the JSON-RPC envelope
mod meta; // the metadata of a request
mod method; // every method of the protocol
pub mod mirror; // arguments that HTTP repeats in headers
mod parsed; // a request with parsed params
pub mod raise; // messages of another server in the newest shape
mod raw; // JSON left as text
pub mod render; // messages of a server in the client's revision
mod request; // the requests of a client
mod revision; // the dated revisions
pub mod scan; // a one-pass scanner for plain JSON
mod strict; // types that are read only from an object
mod tap; // observers of every message of a link
mod task; // calls whose results are fetched later
pub mod types; // one file per page of the specification
mod uri; // URI templates

pub use bytestring::ByteString;
pub use caller::{Caller, Remote};
pub use error::{Code, ErrorObject, Problem};
pub use framing::{EventTooLong, Line, LineSplitter, SseEvent, SseReader};
pub use id::Id;
pub use json::{Extra, Invalid, ReadJson, WriteJson};
pub use message::{Incoming, MAX_BATCH, Malformed, MalformedKind, Message, decode};
pub use message::{write_batch, write_error, write_notification, write_request, write_result};
pub use meta::{Meta, ProgressToken, TraceContext};
pub use method::{Method, Sender};
pub use parsed::ParsedRequest;
pub use raw::Raw;
pub use request::{CallTool, Complete, GetPrompt, Initialize, Listen, Page, ReadResource};
pub use request::{ReadFolder, Request, Resume, TaskResult, UpdateTask};
pub use revision::{Era, Features, Revision};
pub use tap::{HttpExchange, MASK, Peer, Tap, Taps};
pub use task::{Task, TaskState};
pub use types::Cancelled;
pub use uri::{BadTemplate, UriTemplate};
