//! Settles a file: defaults and environment variables are filled in, values are checked.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use sabir::{
    Dialect, HttpSettings, Implementation, Limits, MissingMethod, NullId, RequireReady, Revision,
    SealKey, TaskSettings, TlsSettings,
};
use sabir::{ToolFailure, UnknownTool};
use sabir_client::Registration;
use sabir_cluster::Cluster;
use sabir_sources::login::Connect;
use toml::{Spanned, Value};

use super::auth::{self, AuthSettings, Scopes};
use super::cluster::{self, ClusterStore};
use super::expand::expand;
use super::file::{self, File};
use super::mistake::{Mistake, Mistakes, RELATIVE, Text};
use super::oversight::{self, Oversight};
use super::sources::SourceDescription;
use super::upstream;
use super::values::{duration, one_of, positive, size, time, variable};
use super::{
    app, articles, command, http, import, openapi, prompt, request, resource, skills, tls,
};

/// A configuration, as decided.
#[derive(Debug)]
pub(crate) struct Settings {
    /// How the server behaves.
    pub(crate) engine: sabir_engine::Settings,
    /// How HTTP clients are served.
    pub(crate) http: HttpSettings,
    /// Their TLS, of which no file is read yet.
    pub(crate) tls: Option<TlsSettings>,
    /// Who issues tokens for them, and what scopes cover.
    pub(crate) auth: AuthSettings,
    /// How often callers may call, and the audit log.
    pub(crate) oversight: Oversight,
    /// Whether the file contains an address for them.
    pub(crate) listens_http: bool,
    /// Where WebSocket clients are served, if the file contains an address for them.
    pub(crate) ws: Option<SocketAddr>,
    /// An environment variable with a token for them.
    pub(crate) token_env: Option<String>,
    /// Whether the file asks for stdio.
    pub(crate) stdio: bool,
    /// The file in which tasks survive the process, not opened yet.
    pub(crate) task_store: Option<PathBuf>,
    /// Where sessions survive the process, not opened yet.
    pub(crate) cluster: Option<ClusterStore>,
    /// The sources, not opened yet.
    pub(crate) sources: Vec<SourceDescription>,
    /// The other tables of the file, as written.
    pub(crate) tables: Tables,
    /// The folder of the file.
    pub(crate) folder: PathBuf,
    /// The file, if there is one.
    pub(crate) file: Option<PathBuf>,
    /// The file, if it was found in a folder and not named.
    pub(crate) found: Option<PathBuf>,
    /// Where browsers reach this server, if the file says it, and who it is at its issuers.
    pub(crate) page: PageSettings,
    /// The page on which callers log in at upstreams, once it is known where it is.
    pub(crate) connect: Option<Arc<dyn Connect>>,
    /// The nodes that share the credentials at upstreams, once their store is open.
    pub(crate) nodes: Option<Cluster>,
    /// Whether upstreams are asked what they offer although it is remembered.
    pub(crate) asks_anew: bool,
    /// Warnings about settings that are probably mistakes.
    pub(crate) warnings: Vec<Mistake>,
    /// Whether it has values of environment variables or of files with secrets.
    pub(crate) has_secrets: bool,
    /// What the process may use, if the file says so.
    pub(crate) process: ProcessLimits,
}

impl Settings {
    /// Whether HTTP is served, unless the command line says otherwise. It is the default.
    pub(crate) fn serves_http(&self) -> bool {
        self.listens_http || !(self.stdio || self.ws.is_some())
    }

    /// Whether there is neither a file nor a folder to be served.
    pub(crate) fn is_empty(&self) -> bool {
        self.file.is_none() && self.found.is_none() && self.sources.is_empty()
    }
}

/// `[connect]`, as decided.
#[derive(Clone, Debug, Default)]
pub(crate) struct PageSettings {
    /// Where browsers reach this server.
    pub(crate) url: Option<String>,
    /// Our registration at the issuers of `[auth]`.
    pub(crate) client: Option<Registration>,
    /// Whether authorization servers may read a document about us instead of registering us.
    pub(crate) has_document: bool,
}

impl PageSettings {
    fn settle(file: &file::Connect, text: &Text<'_>) -> Result<Self, Mistake> {
        let secret =
            file.client_secret_env.as_ref().map(|name| variable(name, text)).transpose()?;
        let client = file.client_id.clone().map(|id| Registration::new(id, secret));
        let is_web = |url: &str| url.starts_with("https://") || url.starts_with("http://");
        if let Some(url) = file.url.as_ref().filter(|url| !is_web(url.get_ref())) {
            return Err(text.invalid(url, "url", "one with https://"));
        }
        let url = file.url.as_ref().map(|url| url.get_ref().clone());
        Ok(Self { url, client, has_document: file.document.unwrap_or(true) })
    }
}

/// What the process may use.
#[derive(Debug, Default)]
pub(crate) struct ProcessLimits {
    /// Bytes of requests, answers and queues.
    pub(crate) memory: Option<usize>,
    /// How long one request may compute.
    pub(crate) compute_time: Option<Duration>,
}

impl ProcessLimits {
    fn settle(file: &file::Limits, text: &Text<'_>) -> Result<Self, Mistake> {
        let memory = size(file.memory.as_ref(), text)?;
        if let (Some(written), Some(bytes)) = (&file.memory, memory)
            && bytes < LEAST_MEMORY
        {
            return Err(text.invalid(written, "size", "at least \"16MB\""));
        }
        let compute_time = duration(file.compute_time.as_ref(), text)?;
        Ok(Self { memory, compute_time })
    }

    /// Applies them to this process.
    pub(crate) fn apply(&self) {
        if let Some(bytes) = self.memory {
            sabir_budget::memory().set_limit(bytes);
        }
        if let Some(time) = self.compute_time {
            sabir_budget::set_compute_time(time);
        }
    }
}

/// The least memory budget.
const LEAST_MEMORY: usize = 16 << 20;

/// Settles a file. Mistakes that were found when it was read are returned, too.
pub(crate) fn settle(file: &File, text: &Text<'_>) -> Result<Settings, Mistakes> {
    let mut engine = sabir_engine::Settings {
        dialect: dialect(&file.dialect, text),
        instructions: file.server.instructions.clone(),
        seal_key: text.checked(seal_key(&file.seal, text)).flatten(),
        ..sabir_engine::Settings::default()
    };
    describe(&mut engine.server, &file.server);
    limit(&mut engine, &file.limits, text);
    let task_store = tasks(&mut engine.tasks, &file.tasks, text);
    for (name, written) in &file.clients {
        let patience = text.checked(time(Some(written), text, None)).flatten();
        engine.tasks.clients.insert(name.clone(), patience);
    }
    let has_key = engine.seal_key.is_some() || file.seal.key_env.is_some();
    let cluster = cluster::settle(&file.cluster, file.tasks.store.as_ref(), has_key, text);
    let cluster = text.checked(cluster).flatten();
    let oversight = oversight::settle(&file.limit, file.audit.as_ref(), text);
    let auth = auth::settle(&file.auth, text);
    let (http, listens_http) = http::settle(file, &auth.grants, text);
    let tls =
        file.tls.as_ref().and_then(|file| text.checked(tls::settle(file, &auth.grants, text)));
    let mut written = Written::new(text.text);
    let mut sources = sources(file, text, &engine.limits, &mut written);
    let imported = imported(file, text, engine.limits.question_time);
    sources.extend(text.checked(imported).unwrap_or_default());
    let has_scopes = auth.tokens.is_some()
        || http.tokens.iter().any(|one| !one.scopes.is_empty())
        || tls.as_ref().is_some_and(|tls| tls.clients.is_some());
    if !has_scopes && sources.iter().any(SourceDescription::is_restricted) {
        let what = "`scopes` are demanded, but no HTTP client can have any";
        let hint = "add a [[token]] with `scopes`, or [auth] with an `issuer`";
        text.warn(Mistake::of_file(text.path, what).hint(hint));
    }
    let ws = text.checked(http::address(file.listen.ws.as_ref(), text)).flatten();
    let stdio = file.listen.stdio.unwrap_or(false);
    let first = file.token.first().and_then(|token| token.env.as_ref());
    let token_env = file.http.token_env.as_ref().or(first).map(|env| env.get_ref().clone());
    let process = text.checked(ProcessLimits::settle(&file.limits, text)).unwrap_or_default();
    let page = text.checked(PageSettings::settle(&file.connect, text)).unwrap_or_default();
    if text.is_refused() {
        // Mistakes that opening the sources would find are reported with the rest.
        for source in &sources {
            text.checked(source.look());
        }
    }
    let (folder, warnings) = (text.folder(), text.finish()?);
    Ok(Settings {
        engine,
        http,
        tls,
        auth,
        oversight,
        listens_http,
        ws,
        token_env,
        stdio,
        task_store,
        cluster,
        sources,
        tables: written.rest(),
        folder,
        file: (!text.text.is_empty()).then(|| text.path.to_owned()),
        found: None,
        page,
        connect: None,
        asks_anew: false,
        nodes: None,
        warnings,
        has_secrets: text.has_secrets(),
        process,
    })
}

/// The tables of a file that describe no sources, by their names.
pub(crate) type Tables = BTreeMap<String, String>;

/// A source that was settled, or what is wrong with it.
type Settled = Result<SourceDescription, Mistake>;

/// The tables of a file, as written. Those of sources are taken out, kind by kind. A kind that is not
/// taken out is never reloaded.
struct Written<'t> {
    file: toml::Table,
    text: &'t str,
}

impl<'t> Written<'t> {
    fn new(text: &'t str) -> Self {
        let mut file = text.parse::<toml::Table>().unwrap_or_default();
        // Its servers are sources.
        file.remove("import");
        Self { file, text }
    }

    /// Says of each source of a kind how it is written. A file in another format, or none, is one
    /// text for all.
    fn take(&mut self, kind: &str, settled: impl IntoIterator<Item = Settled>) -> Vec<Settled> {
        // `[http]` is not a source: it stays.
        let is_list = self.file.get(kind).is_some_and(Value::is_array);
        let tables = match is_list.then(|| self.file.remove(kind)).flatten() {
            Some(Value::Array(tables)) => tables,
            _ => Vec::new(),
        };
        let written = tables.iter().map(|table| format!("{kind} {table}"));
        let written = written.chain(std::iter::repeat(self.text.to_owned()));
        let sources = settled.into_iter().zip(written);
        sources.map(|(source, written)| source.map(|one| one.written(written))).collect()
    }

    fn rest(self) -> Tables {
        self.file.into_iter().map(|(name, table)| (name, table.to_string())).collect()
    }
}

/// Settles the descriptions of all sources, in the order of the file within each kind.
fn sources(
    file: &File,
    text: &Text<'_>,
    limits: &Limits,
    written: &mut Written<'_>,
) -> Vec<SourceDescription> {
    let is_only = file.articles.len() == 1;
    let (seal, call_time) = (&file.seal, limits.call_time);
    let needing = |scopes: Scopes<'_>, source: Settled| {
        let access = scopes.settle(text);
        source.map(|source| source.needs(access))
    };
    let all = Scopes::of_all;
    let articles = file.articles.iter();
    let articles =
        articles.map(|file| needing(all(&file.scopes), articles::settle(file, text, is_only)));
    let commands = file.command.iter();
    let commands =
        commands.map(|file| needing(all(&file.scopes), command::settle(file, text, call_time)));
    let request = |file: &request::Request| {
        needing(Scopes::of_all(&file.scopes), request::settle(file, seal, text, call_time))
    };
    let requests = file.request.iter().map(request);
    let http_requests = file.http_request.iter().map(request);
    let apis = file.openapi.iter().map(|file| {
        let scopes = Scopes { all: &file.scopes, tools: Some(&file.tool_scopes) };
        needing(scopes, openapi::settle(file, seal, text, call_time))
    });
    let prompts = file.prompt.iter();
    let prompts = prompts.map(|file| needing(all(&file.scopes), prompt::settle(file, text)));
    let resources = file.resource.iter();
    let resources = resources.map(|file| needing(all(&file.scopes), resource::settle(file, text)));
    let upstreams = upstream::settle_all(&file.upstream, seal, text, limits.question_time);
    let upstreams = file.upstream.iter().zip(upstreams).map(|(file, settled)| {
        let scopes = Scopes { all: &file.scopes, tools: Some(&file.tool_scopes) };
        needing(scopes, settled)
    });
    let skills = file.skills.iter();
    let skills = skills.map(|file| needing(all(&file.scopes), skills::settle(file, text)));
    let apps = file.app.iter().zip(app::settle_all(&file.app, text));
    let apps = apps.map(|(file, settled)| needing(all(&file.scopes), settled));
    let all = [
        written.take("articles", articles),
        written.take("command", commands),
        written.take("request", requests),
        written.take("http", http_requests),
        written.take("openapi", apis),
        written.take("prompt", prompts),
        written.take("resource", resources),
        written.take("skills", skills),
        written.take("upstream", upstreams),
        written.take("app", apps),
    ];
    all.into_iter().flatten().filter_map(|source| text.checked(source)).collect()
}

/// Settles the upstreams of an imported file. Its mistakes are reported with those of this one.
fn imported(
    file: &File,
    text: &Text<'_>,
    question_time: Option<Duration>,
) -> Result<Vec<SourceDescription>, Mistake> {
    let Some(file::Import { path }) = &file.import else { return Ok(Vec::new()) };
    let wrong = |reason: String| text.mistake(path.span(), format!("import: {reason}"));
    let whole = text.resolve(&expand(path.get_ref(), text).map_err(wrong)?);
    let json = std::fs::read_to_string(&whole).map_err(|error| {
        wrong(format!("cannot read {}: {error}", whole.display())).hint(RELATIVE)
    })?;
    let inner = Text::new(&whole, &json);
    let settled = import::upstreams(&inner).and_then(|upstreams| {
        let settled = upstream::settle_all(&upstreams, &file.seal, &inner, question_time);
        let settled: Vec<_> = settled.into_iter().filter_map(|one| inner.checked(one)).collect();
        inner.finish().map(|_| settled)
    });
    text.include(&inner);
    let settled = settled.map(|all| {
        all.into_iter().enumerate().map(|(nth, one)| one.written(format!("{nth} {json}"))).collect()
    });
    Ok(settled.unwrap_or_else(|mistakes| {
        mistakes.iter().for_each(|mistake| text.report(mistake.clone()));
        Vec::new()
    }))
}

fn describe(server: &mut Implementation, file: &file::Server) {
    if let Some(name) = &file.name {
        server.name.clone_from(name);
    }
    if let Some(version) = &file.version {
        server.version.clone_from(version);
    }
    server.title.clone_from(&file.title);
    server.description.clone_from(&file.description);
    server.website_url.clone_from(&file.website);
}

fn dialect(file: &file::Dialect, text: &Text<'_>) -> Dialect {
    let revision = file.revision.as_ref().and_then(|date| text.checked(revision(date, text)));
    let unknown_tool = text.checked(one_of(
        file.unknown_tool.as_ref(),
        text,
        &[
            ("-32602", UnknownTool::InvalidParams),
            ("-32601", UnknownTool::MethodNotFound),
            ("\"result\"", UnknownTool::Result),
        ],
    ));
    let tool_failure = text.checked(one_of(
        file.tool_failure.as_ref(),
        text,
        &[("\"result\"", ToolFailure::Result), ("-32603", ToolFailure::InternalError)],
    ));
    let missing_method = text.checked(one_of(
        file.missing_method.as_ref(),
        text,
        &[("-32600", MissingMethod::InvalidRequest), ("-32700", MissingMethod::ParseError)],
    ));
    let require_ready = text.checked(one_of(
        as_value(file.require_ready.as_ref()).as_ref(),
        text,
        &[
            ("\"none\"", RequireReady::None),
            ("\"tools\"", RequireReady::Tools),
            ("\"all\"", RequireReady::All),
        ],
    ));
    let null_id = text.checked(one_of(
        as_value(file.null_id.as_ref()).as_ref(),
        text,
        &[("\"refuse\"", NullId::Refuse), ("\"answer\"", NullId::Answer)],
    ));
    Dialect {
        revision,
        unknown_tool: unknown_tool.flatten().unwrap_or_default(),
        tool_failure: tool_failure.flatten().unwrap_or_default(),
        require_ready: require_ready.flatten(),
        missing_method: missing_method.flatten().unwrap_or_default(),
        null_id: null_id.flatten().unwrap_or_default(),
        flat_server_info: file.flat_server_info.unwrap_or(false),
    }
}

fn revision(date: &Spanned<String>, text: &Text<'_>) -> Result<Revision, Mistake> {
    Revision::parse(date.get_ref()).ok_or_else(|| {
        let known = Revision::ALL.map(Revision::date).join(", ");
        text.invalid(date, "revision", &format!("one of {known}"))
    })
}

fn as_value(text: Option<&Spanned<String>>) -> Option<Spanned<Value>> {
    text.map(|text| Spanned::new(text.span(), Value::String(text.get_ref().clone())))
}

fn limit(engine: &mut sabir_engine::Settings, file: &file::Limits, text: &Text<'_>) {
    let (limits, engine) = (&mut engine.limits, &mut engine.engine_limits);
    let or_none = |written: &Option<_>, default| {
        text.checked(time(written.as_ref(), text, default)).unwrap_or(default)
    };
    limits.call_time = or_none(&file.call_time, limits.call_time);
    limits.question_time = or_none(&file.question_time, limits.question_time);
    limits.subscriptions = file.subscriptions.unwrap_or(limits.subscriptions);
    text.set(&mut limits.calls, positive(file.calls.as_ref(), text));
    text.set(&mut limits.grace, duration(file.grace.as_ref(), text));
    text.set(&mut engine.message_size, size(file.message_size.as_ref(), text));
    text.set(&mut engine.depth, positive(file.depth.as_ref(), text));
    text.set(&mut engine.notifications, positive(file.notifications.as_ref(), text));
    text.set(&mut engine.page_size, positive(file.page_size.as_ref(), text));
    text.set(&mut engine.abort_grace, duration(file.abort_grace.as_ref(), text));
    text.set(&mut engine.heartbeat, duration(file.heartbeat.as_ref(), text));
    text.set(&mut limits.subscription_bytes, size(file.subscription_size.as_ref(), text));
    text.set(&mut limits.batch_bytes, size(file.batch_size.as_ref(), text));
    engine.questions = file.questions.unwrap_or(engine.questions);
}

/// Settles how calls become tasks. Gives the file in which they are kept.
fn tasks(tasks: &mut TaskSettings, file: &file::Tasks, text: &Text<'_>) -> Option<PathBuf> {
    let limits = &mut tasks.limits;
    text.set(&mut tasks.after, duration(file.after.as_ref(), text));
    tasks.in_words = text.checked(duration(file.in_words.as_ref(), text)).flatten();
    text.set(&mut limits.total, positive(file.total.as_ref(), text));
    text.set(&mut limits.per_caller, positive(file.per_caller.as_ref(), text));
    text.set(&mut limits.result_bytes, size(file.result_size.as_ref(), text));
    let millis = |written: &Option<Spanned<String>>| {
        let time = text.checked(duration(written.as_ref(), text)).flatten()?;
        u64::try_from(time.as_millis()).ok()
    };
    limits.ttl_ms = millis(&file.ttl).unwrap_or(limits.ttl_ms);
    limits.poll_ms = millis(&file.poll).unwrap_or(limits.poll_ms);
    file.store.as_ref().map(|path| text.resolve(path.get_ref()))
}

fn seal_key(file: &file::Seal, text: &Text<'_>) -> Result<Option<SealKey>, Mistake> {
    let Some(name) = &file.key_env else { return Ok(None) };
    let hint = "`openssl rand -base64 32` prints a key";
    let key = variable(name, text).map_err(|mistake| mistake.hint(hint))?;
    let key = SealKey::parse(&key).ok_or_else(|| {
        let what = format!("invalid key in `{}` (expected 32 bytes in Base64)", name.get_ref());
        text.mistake(name.span(), what).hint(hint)
    })?;
    Ok(Some(key))
}
