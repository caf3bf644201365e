//! The client against real servers: our own, in every revision and over every transport, and servers
//! that misbehave.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod auth;
mod grid;
mod http;
mod long;
mod opening;
mod support;
mod websocket;
