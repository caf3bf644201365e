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

/// Gives memory back to the system soon after it was used: the allocator of glibc keeps large
/// buffers for ever once it has seen them.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // This executable is also the supervisor process of the programs that it runs.
    if let Some(code) = sabir_sources::hidden_mode() {
        return code;
    }
    let args = args::Args::parse();
    logging::start(args.log);
    match commands::run(args.command) {
        Ok(()) => report::Exit::Done,
        Err(failure) => report::show(&failure),
    }
    .into()
}
