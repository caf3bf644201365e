//! The transports, one module each. A transport frames bytes and moves them; the rules of the
//! protocol are in `session` and `engine`.

mod expiry; // when credentials expire
pub mod http; // both eras over HTTP, the old HTTP+SSE, and WebSocket by upgrade
mod metered; // a stream that takes memory while a message arrives
mod pump; // messages between a link and a connection
mod received; // a received message
pub mod stdio; // the standard streams of this process
pub mod stream; // any byte stream, by lines
mod ws; // one message a WebSocket frame
