//! The subcommands.

mod check;
mod init;
mod openapi;
mod secrets;
mod serve;

use std::sync::Arc;

use sabir_engine::Engine;

use crate::args::Command;
use crate::config::{Mistakes, OpenContext, Settings, SourceDescription};
use crate::report::Failure;

/// Runs a subcommand.
pub(crate) fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Serve(serve) => serve::run(&serve),
        Command::Check { path, no_config, json } => check::run(path.as_deref(), no_config, json),
        Command::Init => init::run(),
        Command::Openapi(args) => openapi::run(&args),
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
