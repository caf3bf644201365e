//! The ways in, one module each. A transport frames bytes and moves them; it knows no rule of the
//! protocol.

pub mod http; // both eras over HTTP, and the old HTTP+SSE
mod pace; // how fast a client asks
pub mod stdio; // the standard streams of this process
pub mod stream; // any byte stream, by lines
