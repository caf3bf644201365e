//! What each command does.

mod check;
mod init;
mod serve;

use std::sync::Arc;

use sabir_engine::Engine;

use crate::args::Command;
use crate::config::{Mistake, Offered, Programs, Settings};
use crate::report::Failure;

/// Does what was asked for.
pub(crate) fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Serve(serve) => serve::run(&serve),
        Command::Check { path } => check::run(path.as_deref()),
        Command::Init => init::run(),
    }
}

/// A server as its configuration describes it, and the programs that it runs.
fn engine(settings: Settings) -> Result<(Arc<Engine>, Programs), Mistake> {
    let engine = Engine::new(settings.engine);
    Offered::add_all(settings.sources, engine.registry())?;
    Ok((engine, settings.programs))
}
