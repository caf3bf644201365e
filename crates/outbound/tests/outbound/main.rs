//! Real requests to servers on this machine.

mod bodies;
mod redirects;
mod rules;
mod server;
mod tls;
