//! `echo-server` with an allocator that counts. When its input ends, or at SIGTERM, it says on
//! standard error how often memory was asked for, on all threads.

#![allow(clippy::print_stderr, reason = "printing a figure is its job")]

use std::alloc::System;
use std::process::ExitCode;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use tokio::signal::unix::{SignalKind, signal};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let Ok(mut terminated) = signal(SignalKind::terminate()) else { return ExitCode::FAILURE };
    let ended = tokio::select! {
        ended = sabir_bench::echo::serve(&words) => ended,
        _ = terminated.recv() => Some(Ok(())),
    };
    let stats = ALLOCATOR.stats();
    eprintln!("allocations: {}", stats.allocations + stats.reallocations);
    match ended {
        Some(Ok(())) => ExitCode::SUCCESS,
        Some(Err(_)) => ExitCode::FAILURE,
        None => ExitCode::from(2),
    }
}
