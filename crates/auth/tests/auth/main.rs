//! A resource server over real sockets, with a small issuer that really signs.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "these are tests, and some measure")]

mod challenges; // the challenges of refusals
mod costs; // measurements, which are not tests
mod documents; // the metadata
mod handles; // states and tasks belong to their caller
mod issuer; // an issuer under the control of a test
mod keys; // issuers that rotate their keys
mod opaque; // tokens that the issuer is asked about
mod server; // a server under test, and requests to it
mod sessions; // a session belongs to its caller
mod tokens; // forged tokens of every kind
