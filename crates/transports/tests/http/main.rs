//! The HTTP transport over real sockets, with a client that can say anything.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "these are tests")]

mod callers; // who calls
mod client; // a raw HTTP client
mod cluster; // several nodes
mod cost; // WebSocket beside HTTP
mod crowds; // addresses that send too much, and proxies
mod dialects; // deployments that deviate
mod expiry; // credentials that expire
mod frames; // a raw WebSocket client
mod h2; // HTTP/2
mod legacy; // sessions: POST, GET, DELETE
mod limits; // bounds, and raw bad input
mod modern; // one POST, one answer
mod old_sse; // the transport of the first revision
mod plain; // our own reader and hyper hear the same
mod resume; // clients that come back
mod safety; // who may call
mod scale; // many at once, and what they cost
mod server; // a server under test
mod simulation; // a hundred nodes, and a clock that is not real
mod sources; // what it offers
mod stopping; // a graceful stop
mod tls; // certificates and handshakes
mod websocket; // WebSocket
