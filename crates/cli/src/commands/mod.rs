//! The subcommands.

mod check;
mod doctor;
mod import;
mod init;
mod install;
mod openapi;
mod secrets;
mod serve;

use std::sync::Arc;

use sabir_engine::Engine;

use clap::CommandFactory as _;

use crate::args::{Args, Command};
use crate::config::{Mistakes, OpenContext, Settings, SourceDescription};
use crate::report::Failure;

/// Runs a subcommand.
pub(crate) fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Serve(serve) => serve::run(&serve),
        Command::Check { path, no_config, json } => check::run(path.as_deref(), no_config, json),
        Command::Init => init::run(),
        Command::Openapi(args) => openapi::run(&args),
        Command::Install(args) => install::install(&args),
        Command::Uninstall(args) => install::uninstall(&args),
        Command::Import { client } => import::run(client),
        Command::Doctor => doctor::run(),
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Args::command(), "sabir", &mut std::io::stdout());
            Ok(())
        }
        Command::Man => Ok(clap_mangen::Man::new(Args::command()).render(&mut std::io::stdout())?),
    }
}

/// An engine whose sources are open, and not started yet.
struct Opened {
    engine: Arc<Engine>,
    context: Arc<OpenContext>,
}

impl Opened {
    async fn new(settings: Settings) -> Result<Self, Mistakes> {
        let engine = Engine::new(settings.engine);
        let context = OpenContext::new(settings.folder);
        SourceDescription::open_all(settings.sources, &context, engine.registry()).await?;
        Ok(Self { engine, context })
    }

    /// Closes all sources, and stops their programs.
    async fn close(self) {
        self.engine.close().await;
        self.context.close().await;
    }
}
