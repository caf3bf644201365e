//! `[[upstream]]`: another MCP server, whose tools, prompts and resources are passed on.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use etcetera::BaseStrategy as _;
use sabir_sources::upstream::{
    self, Filter, Memory, Naming, Reach, Scope, Settings, UpstreamSource, WebTarget,
};
use serde::Deserialize;
use toml::Spanned;

use super::expand::expand;
use super::file::Seal;
use super::json::Entries;
use super::mistake::{Mistake, RELATIVE, Text};
use super::sources::{SourceDescription, Unstarted};
use super::upstream_auth::{self, Login, Settled};
use super::values::{duration, one_of, positive, task, time};

/// An `[[upstream]]`, as written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Upstream {
    pub(crate) name: Spanned<String>,
    pub(super) run: Option<Spanned<Vec<String>>>,
    pub(super) url: Option<Spanned<String>>,
    pub(super) env: Option<Entries>,
    pub(super) cwd: Option<Spanned<String>>,
    pub(super) headers: Option<Entries>,
    auth: Option<Spanned<toml::Value>>,
    prefix: Option<Spanned<String>>,
    tools: Option<Spanned<Choice>>,
    prompts: Option<Spanned<Choice>>,
    resources: Option<Spanned<Choice>>,
    #[serde(default)]
    rename: BTreeMap<String, Spanned<String>>,
    #[serde(default)]
    descriptions: BTreeMap<String, String>,
    start: Option<Spanned<toml::Value>>,
    idle_stop: Option<Spanned<String>>,
    timeout: Option<Spanned<String>>,
    concurrency: Option<Spanned<usize>>,
    scope: Option<Spanned<toml::Value>>,
    memory: Option<String>,
    task: Option<Spanned<toml::Value>>,
    task_after: Option<Spanned<String>>,
    pub(super) scopes: Option<Vec<Spanned<String>>>,
    #[serde(default)]
    pub(super) tool_scopes: BTreeMap<String, Vec<Spanned<String>>>,
}

/// Which names are passed on.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Choice {
    allow: Option<Vec<String>>,
    deny: Vec<String>,
}

impl Upstream {
    /// An upstream with all defaults.
    pub(super) fn named(name: Spanned<String>) -> Self {
        Self {
            name,
            run: None,
            url: None,
            env: None,
            cwd: None,
            headers: None,
            auth: None,
            prefix: None,
            tools: None,
            prompts: None,
            resources: None,
            rename: BTreeMap::new(),
            descriptions: BTreeMap::new(),
            start: None,
            idle_stop: None,
            timeout: None,
            concurrency: None,
            scope: None,
            memory: None,
            task: None,
            task_after: None,
            scopes: None,
            tool_scopes: BTreeMap::new(),
        }
    }
}

/// Settles the upstreams of a file. Their names must differ.
pub(super) fn settle_all(
    upstreams: &[Upstream],
    seal: &Seal,
    text: &Text<'_>,
    question_time: Option<Duration>,
) -> Vec<Result<SourceDescription, Mistake>> {
    let settled = upstreams.iter().enumerate().map(|(nth, file)| {
        let name = file.name.get_ref();
        if upstreams[..nth].iter().any(|before| before.name.get_ref() == name) {
            let what = format!("there are two upstreams `{name}`");
            return Err(text.mistake(file.name.span(), what));
        }
        settle(file, seal, text, question_time)
    });
    settled.collect()
}

/// Settles an upstream. A parked question waits as long as a client may take for its answer.
fn settle(
    file: &Upstream,
    seal: &Seal,
    text: &Text<'_>,
    question_time: Option<Duration>,
) -> Result<SourceDescription, Mistake> {
    let name = file.name.get_ref();
    if name.is_empty() || name.chars().any(char::is_control) {
        return Err(text.invalid(&file.name, "name", "some letters"));
    }
    let owner = format!("upstream `{name}`");
    let reach = text.checked(reach(file, &owner, text));
    let auth = file.auth.as_ref().map(|auth| upstream_auth::settle(auth, seal, &owner, text));
    let auth = text.checked(auth.transpose());
    let mut settings = settings(file, &owner, text);
    let (Some(mut reach), Some(auth)) = (reach, auth) else { return Err(text.reported()) };
    let plan = match (auth, &mut reach) {
        (Some(_), Reach::Program { .. }) => {
            let place = file.auth.as_ref().map_or(0..0, Spanned::span);
            return Err(text.mistake(place, format!("{owner}: `auth` belongs to `url`")));
        }
        (Some(Settled::Header(name, value)), Reach::Web(target)) => {
            target.add_header(&name, &value).map_err(|reason| {
                text.mistake(file.name.span(), format!("{owner}: auth: {reason}"))
            })?;
            None
        }
        (Some(Settled::Tokens(plan)), _) => Some(*plan),
        (None, _) => None,
    };
    settings.memory = memory(file, &reach, text);
    settings.question_time = question_time.unwrap_or(settings.question_time);
    let place = text.place(file.name.span()).hint(COLLISION);
    let runs = match &reach {
        Reach::Program { program, .. } => Some(program.display().to_string()),
        Reach::Web(_) => None,
    };
    let login = plan.clone().zip(reach.login_server(name));
    let login = login.map(|(plan, server)| Login { server, plan });
    let unstarted = Unstarted { missing_program: reach.missing_program().map(ToOwned::to_owned) };
    let described = SourceDescription::new(place, move |context| async move {
        settings.memory = settings.memory.filter(|_| !context.asks_anew);
        settings.tap.clone_from(&context.tap);
        let supervisor = context.supervisor(upstream::EXIT_TIME);
        let reach = match plan {
            Some(plan) => reach.with_auth(plan.open(context.connect(), context.cluster())?),
            None => reach,
        };
        Ok(UpstreamSource::new(settings, reach, &supervisor))
    });
    let described = described.relays(unstarted).logs_in(login).owned_by(&owner);
    Ok(match runs {
        Some(program) => described.runs(&program),
        None => described,
    })
}

/// The settings that do not depend on how the server is reached. Mistakes are reported.
fn settings(file: &Upstream, owner: &str, text: &Text<'_>) -> Settings {
    let mut settings = Settings::new(file.name.get_ref().clone(), naming(file, owner, text));
    let starts = [("\"first use\"", false), ("\"eager\"", true)];
    text.set(&mut settings.eager, one_of(file.start.as_ref(), text, &starts));
    let scopes = [("\"shared\"", Scope::Shared), ("\"session\"", Scope::Session)];
    text.set(&mut settings.scope, one_of(file.scope.as_ref(), text, &scopes));
    let idle_stop = time(file.idle_stop.as_ref(), text, settings.idle_stop);
    settings.idle_stop = text.checked(idle_stop).flatten();
    settings.timeout = text.checked(duration(file.timeout.as_ref(), text)).flatten();
    text.set(&mut settings.concurrency, positive(file.concurrency.as_ref(), text));
    settings.task = task(file.task.as_ref(), file.task_after.as_ref(), owner, text);
    settings
}

/// What helps when two sources offer the same name.
pub(crate) const COLLISION: &str = "give one of them a `prefix` of its own, or `rename` the tool";

/// How the server is reached.
fn reach(file: &Upstream, owner: &str, text: &Text<'_>) -> Result<Reach, Mistake> {
    let expanded = |value: &str, place| {
        expand(value, text).map_err(|reason| text.mistake(place, format!("{owner}: {reason}")))
    };
    match (&file.run, &file.url) {
        (Some(run), None) => {
            if let Some(headers) = &file.headers {
                text.report(misplaced(headers, "headers", "url", owner, text));
            }
            let env = pairs(file.env.as_ref(), "env", owner, text);
            let cwd = text.checked(cwd(file, owner, text));
            let line = run.get_ref().iter().map(|word| expanded(word, run.span()));
            let line = line.collect::<Result<Vec<_>, _>>()?;
            let Some((program, arguments)) = line.split_first() else {
                return Err(text.mistake(run.span(), format!("{owner}: `run` is empty")));
            };
            let program =
                if program.contains('/') { text.resolve(program) } else { program.into() };
            let cwd = cwd.ok_or_else(|| text.reported())?;
            Ok(Reach::Program { program, arguments: arguments.to_vec(), env, cwd })
        }
        (None, Some(url)) => {
            if let Some(env) = &file.env {
                text.report(misplaced(env, "env", "run", owner, text));
            }
            let headers = pairs(file.headers.as_ref(), "headers", owner, text);
            let target = WebTarget::new(&expanded(url.get_ref(), url.span())?, headers);
            let target =
                target.map_err(|reason| text.mistake(url.span(), format!("{owner}: {reason}")))?;
            Ok(Reach::Web(target))
        }
        _ => {
            let what = format!("{owner}: expected either `run` or `url`");
            let hint = "add e.g. `run = [\"npx\", \"-y\", \"some-server\"]`, or \
                        `url = \"https://wiki.example.com/mcp\"`";
            Err(text.lacking(file.name.span(), what).hint(hint))
        }
    }
}

/// The folder in which the program runs.
fn cwd(file: &Upstream, owner: &str, text: &Text<'_>) -> Result<PathBuf, Mistake> {
    let Some(written) = &file.cwd else { return Ok(text.folder()) };
    let wrong = |what: String| text.mistake(written.span(), format!("{owner}: {what}"));
    let cwd = text.resolve(&expand(written.get_ref(), text).map_err(wrong)?);
    match cwd.is_dir() {
        true => Ok(cwd),
        false => Err(wrong(format!("folder not found: {}", cwd.display())).hint(RELATIVE)),
    }
}

fn misplaced(table: &Entries, key: &str, with: &str, owner: &str, text: &Text<'_>) -> Mistake {
    let place = table.0.first().map_or(0..0, |(name, _)| name.span());
    text.mistake(place, format!("{owner}: `{key}` belongs to `{with}`"))
}

/// Names and values, with their references replaced. `true` means the variable of that name. Mistakes
/// are reported.
fn pairs(
    table: Option<&Entries>,
    key: &str,
    owner: &str,
    text: &Text<'_>,
) -> Vec<(String, String)> {
    let pairs = table.into_iter().flat_map(|table| &table.0).map(|(name, value)| {
        let wrong = |reason: String| {
            let what = format!("{owner}: {key}: `{}`: {reason}", name.get_ref());
            text.mistake(name.span(), what)
        };
        let value = match value {
            toml::Value::String(value) => expand(value, text),
            toml::Value::Boolean(true) => expand(&format!("${{{}}}", name.get_ref()), text),
            _ => Err("invalid value (expected a string or true)".to_owned()),
        };
        let value = value.map_err(wrong)?;
        if name.get_ref().is_empty() || name.get_ref().contains(['=', '\0']) || value.contains('\0')
        {
            return Err(wrong("invalid name or value".to_owned()));
        }
        Ok((name.get_ref().clone(), value))
    });
    pairs.filter_map(|pair| text.checked(pair)).collect()
}

/// How its names appear. Mistakes are reported.
fn naming(file: &Upstream, owner: &str, text: &Text<'_>) -> Naming {
    let legal = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    let prefix = match &file.prefix {
        Some(prefix) => {
            if !prefix.get_ref().chars().all(legal) {
                text.report(text.invalid(prefix, "prefix", LEGAL));
            }
            prefix.get_ref().clone()
        }
        None => {
            let plain = |c: char| if legal(c) { c } else { '_' };
            format!("{}_", file.name.get_ref().chars().map(plain).collect::<String>())
        }
    };
    let filter = |choice: &Option<Spanned<Choice>>| match choice {
        None => Filter::default(),
        Some(choice) => {
            let Choice { allow, deny } = choice.get_ref();
            let filter = Filter::new(allow.as_deref(), deny)
                .map_err(|bad| text.mistake(choice.span(), format!("{owner}: {bad}")));
            text.checked(filter).unwrap_or_default()
        }
    };
    let mut renames = BTreeMap::new();
    for (old, new) in &file.rename {
        if new.get_ref().is_empty() || !new.get_ref().chars().all(legal) {
            text.report(text.invalid(new, "name", LEGAL));
            continue;
        }
        if renames.insert(old.clone(), new.get_ref().clone()).is_none()
            && file.rename.values().filter(|other| other.get_ref() == new.get_ref()).count() > 1
        {
            let what = format!("{owner}: two names are renamed to `{}`", new.get_ref());
            text.report(text.mistake(new.span(), what));
        }
    }
    Naming {
        prefix,
        tools: filter(&file.tools),
        prompts: filter(&file.prompts),
        resources: filter(&file.resources),
        renames,
        descriptions: file.descriptions.clone(),
    }
}

/// The characters of names.
const LEGAL: &str = "letters, digits, `_`, `-` and `.`";

/// The folder for remembered catalogs: by default, the user's cache folder.
fn memory(file: &Upstream, reach: &Reach, text: &Text<'_>) -> Option<Memory> {
    let folder: PathBuf = match file.memory.as_deref() {
        Some("none") => return None,
        Some(path) => text.folder().join(path),
        None => {
            let base = etcetera::choose_base_strategy().ok()?;
            base.cache_dir().join("sabir").join("upstreams")
        }
    };
    Some(Memory::new(&folder, file.name.get_ref(), &reach.identity()))
}
