//! The ways in, one module each. A transport frames bytes and moves them; it knows no rule of the
//! protocol.

pub mod http; // both eras over HTTP, the old HTTP+SSE, and WebSocket by upgrade
mod pump; // messages between a link and a connection
pub mod stdio; // the standard streams of this process
pub mod stream; // any byte stream, by lines
mod ws; // one message a WebSocket frame
