//! HTTP APIs, with a real server on a socket.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod loading; // where a description comes from
mod safety; // hostile descriptions and servers
mod sending; // what is sent, and how often
mod server; // an HTTP server
mod shop; // a registry that serves an API
