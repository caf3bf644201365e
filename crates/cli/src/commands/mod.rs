//! The subcommands.

mod call;
mod check;
mod cluster;
mod completions;
mod doctor;
mod explain;
mod import;
mod init;
mod install;
mod list;
mod man;
mod openapi;
mod replay;
mod secrets;
mod serve;
mod target;
mod token;
mod upstream;

use std::sync::Arc;

use sabir_engine::{Engine, Observer};

use crate::args::{Cluster, Command, Token};
use crate::config::{Mistakes, OpenContext, ServedSources, Settings, SourceDescription};
use crate::logging::Log;
use crate::report::Failure;

/// Runs a subcommand.
pub(crate) fn run(command: Command, log: &Log) -> Result<(), Failure> {
    // What is served decides what is logged.
    if !matches!(command, Command::Serve(_)) {
        log.start(false);
    }
    match command {
        Command::Serve(serve) => serve::run(&serve, log),
        Command::Check(args) => check::run(&args),
        Command::Token(Token::New { name, scope }) => token::new(&name, &scope),
        Command::Upstream(upstream) => upstream::run(&upstream),
        Command::Cluster(Cluster::Status { path, json }) => cluster::status(path.as_deref(), json),
        Command::Init => init::run(),
        Command::List(list) => list::run(&list),
        Command::Call(call) => call::run(&call),
        Command::Openapi(args) => openapi::run(&args),
        Command::Replay(args) => replay::run(&args),
        Command::Explain { file, call } => explain::run(&file, call),
        Command::Install(args) => install::install(&args),
        Command::Uninstall(args) => install::uninstall(&args),
        Command::Import { client } => import::run(client),
        Command::Doctor => doctor::run(),
        Command::Completions { shell } => Ok(completions::run(shell)?),
        Command::Man => Ok(man::run()?),
    }
}

/// Runs a command that talks to a server. A thread that waits for the user's answer does not delay
/// the end.
fn block_on(work: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let done = runtime.block_on(work);
    runtime.shutdown_timeout(std::time::Duration::ZERO);
    done
}

/// An engine whose sources are open, and not started yet.
struct Opened {
    engine: Arc<Engine>,
    context: Arc<OpenContext>,
    /// The sources, each with how it is written in the configuration.
    sources: ServedSources,
}

impl Opened {
    async fn new(settings: Settings) -> Result<Self, Mistakes> {
        Self::observed(settings, Vec::new()).await
    }

    /// The same, with observers.
    async fn observed(
        settings: Settings,
        observers: Vec<Arc<dyn Observer>>,
    ) -> Result<Self, Mistakes> {
        let tap = settings.engine.tap.clone();
        let (connect, cluster) = (settings.connect, settings.nodes);
        let context = OpenContext::new(settings.folder, tap, connect, cluster, settings.asks_anew);
        let engine = Engine::observed(settings.engine, observers);
        let opening =
            SourceDescription::open_all(settings.sources, &context, engine.registry(), &[]);
        let sources = opening.await?.added;
        Ok(Self { engine, context, sources })
    }

    /// Closes all sources, and stops their programs.
    async fn close(self) {
        self.engine.close().await;
        self.context.close().await;
    }
}
