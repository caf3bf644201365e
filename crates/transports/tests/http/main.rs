//! The HTTP transport over real sockets, with a client that can send any bytes.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "these are tests")]

mod callers; // sessions and sources by caller
mod client; // a raw HTTP client
mod cluster; // several nodes
mod cost; // WebSocket beside HTTP
mod crowds; // addresses that send too much, and proxies
mod dialects; // dialects of deployments
mod expiry; // credentials that expire
mod frames; // a raw WebSocket client
mod h2; // HTTP/2
mod legacy; // sessions: POST, GET, DELETE
mod limits; // limits, and raw invalid input
mod modern; // one POST, one answer
mod old_sse; // the transport of the first revision
mod plain; // our own reader and hyper read the same requests
mod resume; // clients that resume their streams
mod safety; // who may call
mod scale; // many clients at once, and their cost
mod server; // a server under test
mod simulation; // a hundred nodes, and a clock that is not real
mod sources; // its sources
mod stopping; // a graceful stop
mod tls; // certificates and handshakes
mod websocket; // WebSocket
