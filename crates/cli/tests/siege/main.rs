//! Attacks on the real binary over real sockets and pipes: one test for each, with the figures that
//! must hold, and all of them mixed with normal clients.
//!
//! `SABIR_SIEGE_SECONDS` is how long the mix goes on (default 10; `./test` 60, `cargo xtask
//! siege` half an hour). The tests run one after the other: each measures a process.
#![allow(clippy::unwrap_used, reason = "a test may fail")]
#![allow(clippy::print_stderr, clippy::print_stdout, reason = "the figures are printed")]

mod client;
mod h2;
mod mix;
mod quiet;
mod rows;
mod server;
