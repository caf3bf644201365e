//! `sabir check`: reads a configuration, starts its sources and reports every problem.

use std::path::Path;

use sabir_registry::SourceState;
use tokio::runtime;
use tokio::task::JoinSet;

use super::Opened;
use crate::config;
use crate::escape::escaped;
use crate::report::{Failure, say};

pub(crate) fn run(path: Option<&Path>, no_config: bool) -> Result<(), Failure> {
    let settings = config::read(path, no_config)?;
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let opened = Opened::new(settings).await?;
        let checked = check(&opened).await;
        opened.close().await;
        checked
    })
}

async fn check(opened: &Opened) -> Result<(), Failure> {
    let (engine, registry) = (&opened.engine, opened.engine.registry());
    // Not `Engine::start`, which writes the problems to the log.
    let starting: JoinSet<_> = registry.start().into_iter().collect();
    starting.join_all().await;
    let mut failed = Vec::new();
    for source in registry.status() {
        if let SourceState::Failed(reason) = source.state {
            failed.push(escaped(&format!("{}: {reason}", source.name)).into_owned());
        }
        for problem in source.problems {
            say(&format!("warning: {}", escaped(&problem.to_string())));
        }
    }
    if !failed.is_empty() {
        return Err(Failure::new(failed.join("\nerror: ")));
    }
    let offered = registry.snapshot();
    let count = |number: usize, what: &str| match number {
        1 => format!("1 {what}"),
        number => format!("{number} {what}s"),
    };
    say(&format!(
        "`{}` offers {}, {} and {}",
        engine.settings().server.name,
        count(offered.tools().len(), "tool"),
        count(offered.prompts().len(), "prompt"),
        count(offered.resources().len() + offered.templates().len(), "resource"),
    ));
    Ok(())
}
