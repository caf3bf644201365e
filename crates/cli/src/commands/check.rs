//! `sabir check`: reads a configuration, starts its sources, and reports what they offer and every
//! problem.

use std::path::PathBuf;

use sabir_registry::{SourceState, SourceStatus};
use serde_json::{Value, json};
use tokio::runtime;
use tokio::task::JoinSet;

use super::Opened;
use crate::config::{self, Mistake, Mistakes};
use crate::escape::escaped;
use crate::report::{Failure, print, say};

/// How many names of one kind are printed. `--json` prints all.
const MAX_NAMES: usize = 12;

pub(crate) fn run(paths: &[PathBuf], no_config: bool, as_json: bool) -> Result<(), Failure> {
    let checked = check(paths, no_config);
    match (checked, as_json) {
        (Ok(report), false) => report.say(),
        (Ok(report), true) => report.print(),
        (Err(Failure::Config(mistakes)), true) => {
            print(&json!({ "ok": false, "errors": in_json(mistakes.iter()) }));
            Err(Failure::Config(Mistakes::default()))
        }
        (Err(failure), _) => Err(failure),
    }
}

fn check(paths: &[PathBuf], no_config: bool) -> Result<Report, Failure> {
    let mut settings = config::read_all(paths, no_config)?;
    let warnings = std::mem::take(&mut settings.warnings);
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let opened = Opened::new(settings).await?;
        // Not `Engine::start`, which writes the problems to the log.
        let registry = opened.engine.registry();
        let starting: JoinSet<_> = registry.start().into_iter().collect();
        starting.join_all().await;
        let offered = registry.snapshot();
        let owned = |name: &str| name.to_owned();
        let report = Report {
            name: opened.engine.settings().server.name.clone(),
            warnings,
            sources: registry.status(),
            tools: offered.tools().iter().map(|tool| owned(&tool.name)).collect(),
            prompts: offered.prompts().iter().map(|prompt| owned(&prompt.name)).collect(),
            resources: offered.resources().iter().map(|one| owned(&one.uri)).collect(),
            templates: offered.templates().iter().map(|one| owned(&one.uri_template)).collect(),
        };
        opened.close().await;
        Ok(report)
    })
}

/// What a configuration offers, and what is wrong with it.
struct Report {
    name: String,
    warnings: Vec<Mistake>,
    sources: Vec<SourceStatus>,
    tools: Vec<String>,
    prompts: Vec<String>,
    resources: Vec<String>,
    templates: Vec<String>,
}

impl Report {
    /// The sources that could not be started, and why.
    fn failed(&self) -> Result<(), Failure> {
        let failed = self.sources.iter().filter_map(|source| match &source.state {
            SourceState::Failed(reason) => {
                Some(escaped(&format!("{}: {reason}", source.name)).into_owned())
            }
            _ => None,
        });
        let failed: Vec<_> = failed.collect();
        if failed.is_empty() { Ok(()) } else { Err(Failure::new(failed.join("\nerror: "))) }
    }

    /// For a person.
    fn say(&self) -> Result<(), Failure> {
        for warning in &self.warnings {
            say(&warning.labelled("warning"));
        }
        for problem in self.sources.iter().flat_map(|source| &source.problems) {
            say(&format!("warning: {}", escaped(problem)));
        }
        self.failed()?;
        for source in &self.sources {
            if let Some(summary) = &source.summary {
                say(&escaped(&format!("{}: {summary}", source.name)));
            }
        }
        say_names("tools", &self.tools);
        say_names("prompts", &self.prompts);
        say_names("resources", &self.resources);
        say(&format!(
            "`{}` offers {}, {} and {}",
            self.name,
            count(self.tools.len(), "tool"),
            count(self.prompts.len(), "prompt"),
            count(self.resources.len() + self.templates.len(), "resource"),
        ));
        Ok(())
    }

    /// For a program.
    fn print(&self) -> Result<(), Failure> {
        let failed = self.failed();
        let sources = self.sources.iter().map(|source| {
            let failure = match &source.state {
                SourceState::Failed(reason) => Some(reason.to_string()),
                _ => None,
            };
            json!({
                "name": source.name,
                "summary": source.summary,
                "error": failure,
                "problems": source.problems,
            })
        });
        print(&json!({
            "ok": failed.is_ok(),
            "name": self.name,
            "sources": sources.collect::<Vec<_>>(),
            "tools": self.tools,
            "prompts": self.prompts,
            "resources": self.resources,
            "templates": self.templates,
            "warnings": in_json(self.warnings.iter()),
        }));
        failed
    }
}

fn in_json<'m>(mistakes: impl Iterator<Item = &'m Mistake>) -> Vec<Value> {
    mistakes.map(Mistake::to_json).collect()
}

pub(super) fn count(number: usize, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        number => format!("{number} {what}s"),
    }
}

fn say_names(what: &str, names: &[String]) {
    let shown = &names[..names.len().min(MAX_NAMES)];
    let listed = shown.join(", ");
    match names.len() - shown.len() {
        _ if names.is_empty() => {}
        0 => say(&format!("{what}: {}", escaped(&listed))),
        more => say(&format!("{what}: {} and {more} more", escaped(&listed))),
    }
}
