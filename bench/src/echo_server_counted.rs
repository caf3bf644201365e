//! `echo-server` with a counting allocator. When its input ends, or on SIGTERM, it prints the number
//! of allocations of all threads to standard error.

#![allow(clippy::print_stderr, reason = "printing a figure is its job")]

use std::alloc::System;
use std::process::ExitCode;

use sabir_bench::echo::Options;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use tokio::signal::unix::{SignalKind, signal};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let Some(options) = Options::parse(&words) else { return ExitCode::from(2) };
    let Ok(mut terminated) = signal(SignalKind::terminate()) else { return ExitCode::FAILURE };
    let ended = tokio::select! {
        ended = options.serve() => ended,
        _ = terminated.recv() => Ok(()),
    };
    let stats = ALLOCATOR.stats();
    eprintln!("allocations: {}", stats.allocations + stats.reallocations);
    if ended.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
