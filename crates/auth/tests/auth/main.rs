//! A resource server over real sockets, with a small issuer that really signs.

#![allow(clippy::unwrap_used, reason = "these are tests")]

mod challenges; // what a client that is refused is told
mod documents; // the metadata
mod issuer; // an issuer under the control of a test
mod keys; // keys come and go
mod opaque; // tokens that the issuer is asked about
mod server; // a server under test, and requests to it
mod sessions; // whose session it is
mod tokens; // forged tokens of every kind
