//! Outgoing HTTP, for everything in Sabir that calls another server. Start at [`HttpClient`].
//!
//! A [`Policy`] says which hosts and addresses may be reached. It is checked on each request, on
//! each redirect, and on each resolved address, so that a name which resolves to a private address
//! is refused. [`Limits`] bound the time and the size of each exchange. Proxies of the environment
//! are not used.

mod address; // which addresses are public
mod body; // the body of a response: streamed, decompressed, bounded
mod client; // one request, with its redirects
mod connector; // name resolution, TCP and TLS
mod error; // why a request fails
mod policy; // the allowed servers, and the limits
mod pool; // the pool of plain HTTP/1.1 connections

pub use body::Body;
pub use client::{HttpClient, Upgraded};
pub use error::Error;
pub use policy::{Addresses, HostPattern, Limits, PlainHttp, Policy, Redirects};
