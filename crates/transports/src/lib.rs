//! The ways in, one module each. A transport frames bytes and moves them; it knows no rule of the
//! protocol.

pub mod http; // both eras over HTTP, and the old HTTP+SSE
pub mod stdio; // the standard streams of this process
pub mod stream; // any byte stream, by lines
