//! Real requests to servers on this machine.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod bodies;
mod kept;
mod redirects;
mod rules;
mod server;
mod tls;
