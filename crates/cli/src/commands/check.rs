//! `sabir check`: reads a configuration, starts its sources, and reports what they offer and every
//! problem. Upstreams are started only with `--start`: they may be any program.

use sabir::Caller;
use sabir_auth::Grants;
use sabir_registry::{SourceId, SourceState, SourceStatus, ToolSight};
use serde_json::{Map, Value, json};
use tokio::runtime;
use tokio::task::JoinSet;

use super::Opened;
use super::serve::certificates;
use crate::args::Check;
use crate::config::{self, EMPTY, IDLE_CLUSTER, Mistake, Mistakes, NO_SOURCE, Unstarted};
use crate::escape::escaped;
use crate::report::{Failure, print, say};

/// How many names of one kind are printed. `--json` prints all.
const MAX_NAMES: usize = 12;

pub(crate) fn run(args: &Check) -> Result<(), Failure> {
    match (check(args), args.json) {
        (Ok(report), false) => report.say(),
        (Ok(report), true) => report.print(),
        (Err(Failure::Config(mistakes)), true) => {
            print(&json!({ "ok": false, "errors": in_json(mistakes.iter()) }));
            Err(Failure::Config(Mistakes::default()))
        }
        (Err(failure), _) => Err(failure),
    }
}

fn check(args: &Check) -> Result<Report, Failure> {
    let mut settings = config::read_all(&args.paths, args.no_config)?;
    settings.asks_anew = args.start;
    certificates::load(&settings)?;
    let mut warnings = std::mem::take(&mut settings.warnings);
    if let (Some(_), Some(file), false) =
        (&settings.cluster, &settings.file, settings.serves_http())
    {
        warnings.push(Mistake::of_file(file, IDLE_CLUSTER.0).hint(IDLE_CLUSTER.1));
    }
    let is_empty = args.paths.is_empty() && settings.is_empty();
    let grants = &settings.auth.grants;
    let caller = args.caller.as_ref().map(|caller| with_granted(caller, grants)).transpose()?;
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let upstreams = settings.sources.iter().map(|source| source.upstream().cloned());
        let upstreams: Vec<_> = upstreams.collect();
        let opened = Opened::new(settings).await?;
        let upstreams = opened.sources.iter().map(|(_, id)| *id).zip(upstreams);
        let unstarted: Vec<_> = upstreams
            .filter(|_| !args.start)
            .filter_map(|(id, upstream)| Some((id, upstream?)))
            .collect();
        let is_chosen = |id| unstarted.iter().all(|(upstream, _)| *upstream != id);
        // Not `Engine::start`, which writes the problems to the log.
        let registry = opened.engine.registry();
        let starting: JoinSet<_> = registry.start_chosen(is_chosen).into_iter().collect();
        starting.join_all().await;
        let whole = registry.snapshot();
        // The user who starts the server sees everything.
        let caller = caller.unwrap_or_else(Caller::local);
        let offered = whole.seen_by(&caller);
        let owned = |name: &str| name.to_owned();
        let report = Report {
            name: opened.engine.settings().server.name.clone(),
            warnings,
            is_empty,
            sources: registry.status(),
            unstarted,
            why: args.why.clone().map(|tool| (tool.clone(), registry.explain_tool(&tool, &caller))),
            tools: offered.tools().iter().map(|tool| owned(&tool.name)).collect(),
            prompts: offered.prompts().iter().map(|prompt| owned(&prompt.name)).collect(),
            resources: offered.resources().iter().map(|one| owned(&one.uri)).collect(),
            templates: offered.templates().iter().map(|one| owned(&one.uri_template)).collect(),
        };
        opened.close().await;
        Ok(report)
    })
}

/// The caller with all scopes that the claims grant. The operator writes the claims of a token.
fn with_granted(caller: &Caller, grants: &Grants) -> Result<Caller, Failure> {
    let claims = caller.claims().map_or("{}", |claims| claims.text());
    let claims: Map<String, Value> = serde_json::from_str(claims).unwrap_or_default();
    let is_read = |name: &str| name == "scope" || grants.claims().any(|claim| claim == name);
    if let Some(unknown) = claims.keys().find(|name| !is_read(name)) {
        let mut known: Vec<_> =
            ["sub", "iss", "scope"].into_iter().chain(grants.claims()).collect();
        known.dedup();
        let known = known.join(", ");
        let what = format!("no role is given by the claim `{unknown}` (expected {known})");
        return Err(Failure::new(format!("--as: {}", escaped(&what))));
    }
    Ok(caller.clone().with_scopes(grants.of(&claims)))
}

/// What a configuration offers, and what is wrong with it.
struct Report {
    name: String,
    warnings: Vec<Mistake>,
    /// Whether there is neither a file nor a folder.
    is_empty: bool,
    sources: Vec<SourceStatus>,
    /// The upstreams that were not started.
    unstarted: Vec<(SourceId, Unstarted)>,
    why: Option<(String, ToolSight)>,
    tools: Vec<String>,
    prompts: Vec<String>,
    resources: Vec<String>,
    templates: Vec<String>,
}

impl Report {
    /// The sources that could not be started, and why.
    fn failed(&self) -> Result<(), Failure> {
        let failed = self.sources.iter().filter_map(|source| {
            let reason = self.failure(source)?;
            Some(escaped(&format!("{}: {reason}", source.name)).into_owned())
        });
        let collisions = self.sources.iter().flat_map(collisions);
        let failed: Vec<_> = failed.chain(collisions).collect();
        if failed.is_empty() { Ok(()) } else { Err(Failure::new(failed.join("\nerror: "))) }
    }

    /// Why a source cannot be started, as far as that is known.
    fn failure(&self, source: &SourceStatus) -> Option<String> {
        match &source.state {
            SourceState::Failed(reason) => Some(reason.to_string()),
            _ => {
                let missing = self.unstarted(source)?.missing_program.as_ref()?;
                Some(format!("program `{}` not found", missing.display()))
            }
        }
    }

    /// The upstream, if this is one that was not started.
    fn unstarted(&self, source: &SourceStatus) -> Option<&Unstarted> {
        let found = self.unstarted.iter().find(|(id, _)| *id == source.id);
        found.map(|(_, upstream)| upstream)
    }

    /// For a person.
    fn say(&self) -> Result<(), Failure> {
        for warning in &self.warnings {
            say(&warning.labelled("warning"));
        }
        for problem in self.sources.iter().flat_map(warnings) {
            say(&format!("warning: {}", escaped(problem)));
        }
        if let Some((tool, sight)) = &self.why {
            let listed = if sight.is_listed { "listed" } else { "not listed" };
            say(&escaped(&format!("`{tool}`: {listed}")));
            sight.reasons.iter().for_each(|reason| say(&escaped(&format!("  {reason}"))));
            return Ok(());
        }
        self.failed()?;
        if self.is_empty {
            say(EMPTY);
        } else if self.sources.is_empty() {
            say(NO_SOURCE);
        }
        for source in &self.sources {
            if let Some(summary) = &source.summary {
                say(&escaped(&format!("{}: {summary}", source.name)));
            }
            if self.unstarted(source).is_some() {
                say(&escaped(&format!("{}: not started (--start starts it)", source.name)));
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
            json!({
                "name": source.name,
                "summary": source.summary,
                "started": self.unstarted(source).is_none(),
                "error": self.failure(source),
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
            "why": self.why.as_ref().map(|(tool, sight)| json!({
                "tool": tool,
                "listed": sight.is_listed,
                "reasons": sight.reasons,
            })),
        }));
        failed
    }
}

/// The problems of a source that are not errors.
fn warnings(source: &SourceStatus) -> impl Iterator<Item = &String> {
    source.problems.iter().filter(|problem| !source.collisions.contains(problem))
}

/// The names that a source lost to another one, for people.
pub(super) fn collisions(source: &SourceStatus) -> impl Iterator<Item = String> {
    let lost = source.collisions.iter();
    lost.map(|lost| escaped(&format!("{}: {lost}", source.name)).into_owned())
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
