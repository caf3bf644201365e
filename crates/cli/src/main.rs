//! The binary `sabir`.
//!
//! Messages for people go to standard error; standard output belongs to the protocol.

#[cfg(not(unix))]
compile_error!("sabir supports Unix only");

mod args;
mod clients;
mod commands;
mod config;
mod escape;
mod logging;
mod progress;
mod report;
mod shell;

use std::process::ExitCode;

use clap::Parser as _;

/// Gives memory back to the system within seconds, from a thread of its own. The allocator of glibc
/// keeps large buffers for ever once it has seen some, and others give memory back only when the
/// thread that used it allocates again.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    // This executable is also the supervisor process of the programs that it runs.
    if let Some(code) = sabir_sources::hidden_mode() {
        return code;
    }
    let args = args::Args::parse();
    match commands::run(args.command, &args.log) {
        Ok(()) => report::Exit::Done,
        Err(failure) => report::show(&failure),
    }
    .into()
}
