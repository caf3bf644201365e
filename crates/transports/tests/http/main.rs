//! The HTTP transport over real sockets, with a client that can say anything.

mod client; // a raw HTTP client
mod legacy; // sessions: POST, GET, DELETE
mod modern; // one POST, one answer
mod old_sse; // the transport of the first revision
mod resume; // clients that come back
mod server; // a server under test
mod sources; // what it offers
