//! The ways in, one module each. A transport frames bytes and moves them; it knows no rule of the
//! protocol.

mod expiry; // when credentials expire
pub mod http; // both eras over HTTP, the old HTTP+SSE, and WebSocket by upgrade
mod metered; // a stream that takes memory while a message arrives
mod pump; // messages between a link and a connection
mod received; // a message as it came
pub mod stdio; // the standard streams of this process
pub mod stream; // any byte stream, by lines
mod ws; // one message a WebSocket frame
