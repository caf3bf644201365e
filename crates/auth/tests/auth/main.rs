//! A resource server over real sockets, with a small issuer that really signs.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "these are tests, and some measure")]

mod challenges; // what a client that is refused is told
mod costs; // measurements, which are not tests
mod documents; // the metadata
mod handles; // whose states and tasks they are
mod issuer; // an issuer under the control of a test
mod keys; // keys come and go
mod opaque; // tokens that the issuer is asked about
mod server; // a server under test, and requests to it
mod sessions; // whose session it is
mod tokens; // forged tokens of every kind
