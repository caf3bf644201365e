//! A whole API as a source.
//!
//! It is offered from the start, without operations, and reads its description while it starts:
//! clients never wait for a slow server. A copy of an earlier time is used first, if there is one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use sabir_openapi::{Description, Method, Operation, Request};
use sabir_outbound::HostPattern;
use sabir_registry::{
    Closing, Context, Figure, Offer, Outcome, Pending, ResourceCall, Source, SourceHandle,
    StartError, Starting, ToolCall,
};
use sabir_wire::types::{ResourceReply, ResourceTemplate, Tool, ToolAnnotations, ToolReply};
use sabir_wire::{Problem, Raw};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::task::JoinHandle;

use super::catalog::{Catalog, Choice, Offered};
use super::folder::Folder;
use super::large::{self, Large, LargeTool};
use super::load::{From, Loader};
use super::reply::{ReplyLimits, reply};
use super::sender::{Sender, SenderSettings, Sent};
use super::stored::Stored;
use crate::age::age;

/// An API.
#[derive(Debug)]
pub struct Api {
    /// Its name for operators.
    pub name: String,
    /// Reads its description.
    pub loader: Loader,
    /// Which operations are offered.
    pub choice: Choice,
    /// How requests are sent. The hosts of its policy are allowed, and that of `base_url`.
    pub sender: SenderSettings,
    /// Whether the hosts of the description's servers are allowed too.
    pub trusts_servers: bool,
    /// The base URL, if it is not that of the description.
    pub base_url: Option<String>,
    /// How much of an answer a result contains.
    pub limits: ReplyLimits,
    /// Files that callers may send by their path.
    pub folder: Folder,
}

/// Serves an API.
#[derive(Clone, Debug)]
pub struct ApiSource(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    api: Api,
    state: RwLock<Arc<State>>,
    stored: Stored,
    /// When the description was read, and from where.
    read: Mutex<Option<(Instant, From)>>,
    /// Reads the description again, or for the first time.
    refresher: Mutex<Option<JoinHandle<()>>>,
}

/// The API as its description says.
#[derive(Debug, Default)]
struct State {
    hash: u128,
    tools: Vec<Tool>,
    operations: HashMap<String, Arc<Operation>>,
    large: Option<Large>,
    /// The base URL, if the operation has none.
    base: Option<String>,
    /// Sends the requests.
    sender: Option<Sender>,
    problems: Vec<String>,
}

/// The wait after a description could not be read; it doubles up to [`LONGEST_RETRY`].
const FIRST_RETRY: Duration = Duration::from_secs(5);

/// The longest wait between two attempts.
const LONGEST_RETRY: Duration = Duration::from_secs(300);

/// How many problems are reported one by one.
const MAX_PROBLEMS: usize = 20;

impl ApiSource {
    /// Serves an API.
    pub fn new(api: Api) -> Self {
        let stored = Stored::new(&api.name);
        let (state, read, refresher) = (RwLock::default(), Mutex::default(), Mutex::default());
        Self(Arc::new(Inner { api, state, stored, read, refresher }))
    }
}

impl Source for ApiSource {
    fn offer(&self) -> Offer {
        let state = self.0.state();
        let template = ResourceTemplate {
            uri_template: self.0.stored.template(),
            name: format!("{} answers", self.0.api.name),
            description: Some("Answers that were too long for a result".to_owned()),
            ..ResourceTemplate::default()
        };
        Offer {
            tools: state.tools.clone(),
            // An empty offer counts as one whose tools are not known yet.
            templates: if state.tools.is_empty() { Vec::new() } else { vec![template] },
            tolerant: true,
            changes: true,
            ..Offer::default()
        }
    }

    fn name(&self) -> String {
        format!("openapi {}", self.0.api.name)
    }

    fn start(&self, handle: SourceHandle) -> Starting {
        let inner = self.0.clone();
        Box::pin(async move {
            if inner.api.loader.has_cache() && inner.load(From::Cache, &handle).await.is_ok() {
                inner.clone().refresh_later(handle, Duration::ZERO);
                return Ok(());
            }
            inner.load(From::Origin, &handle).await.map_err(|reason| {
                inner.clone().refresh_later(handle, FIRST_RETRY);
                let place = &inner.api.loader.location;
                StartError::new(format!("cannot read the description {place}: {reason}"))
            })
        })
    }

    fn close(&self, _patience: Duration) -> Closing {
        if let Some(refresher) = lock(&self.0.refresher).take() {
            refresher.abort();
        }
        Box::pin(async {})
    }

    fn call_tool(&self, call: ToolCall) -> Pending<ToolReply> {
        let inner = self.0.clone();
        let state = inner.state();
        Box::pin(async move {
            if let Some(operation) = state.operations.get(&*call.name) {
                return inner.call(&state, operation, &call.arguments, &call.context).await;
            }
            let tool = LargeTool::named(&call.name, &inner.api.choice.prefix);
            let Some(tool) = tool.filter(|_| state.large.is_some()) else {
                return Err(Problem::UnknownTool((&*call.name).into()));
            };
            inner.call_large(&state, tool, &call.arguments, &call.context).await
        })
    }

    fn read_resource(&self, call: ResourceCall) -> Pending<ResourceReply> {
        let found = self.0.stored.read(&call.context.caller, &call.uri);
        Box::pin(async move {
            let contents = found.ok_or_else(|| Problem::UnknownResource(call.uri.clone()))?;
            Ok(Outcome::Done(contents.into()))
        })
    }

    fn problems(&self) -> Vec<String> {
        self.0.state().problems.clone()
    }

    /// How old the description is.
    fn condition(&self) -> Option<String> {
        let (at, from) = (*lock(&self.0.read))?;
        let copy = match from {
            From::Cache => " (a copy of an earlier time)",
            From::Origin => "",
        };
        Some(format!("description read {} ago{copy}", age(at.elapsed())))
    }

    fn figures(&self) -> Vec<Figure> {
        let state = self.0.state();
        let count = state.large.as_ref().map_or(state.operations.len(), Large::count);
        let help = "Operations of an API that can be called.";
        vec![Figure::gauge("sabir.openapi.operations", help, count)]
    }
}

impl Inner {
    fn state(&self) -> Arc<State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads the description, and offers its operations if they have changed.
    async fn load(self: &Arc<Self>, from: From, handle: &SourceHandle) -> Result<(), String> {
        let loaded = self.api.loader.load_from(from).await?;
        *lock(&self.read) = Some((Instant::now(), from));
        if self.state().hash == loaded.hash {
            return Ok(());
        }
        let inner = self.clone();
        let settled = tokio::task::spawn_blocking(move || {
            inner.settle(Arc::new(loaded.description), loaded.hash)
        });
        let state = settled.await.map_err(|_| "it could not be read".to_owned())?;
        *self.state.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(state);
        handle.changed().map_err(|bad| bad.to_string())
    }

    /// Reads the description in the background, until it succeeds.
    fn refresh_later(self: Arc<Self>, handle: SourceHandle, wait: Duration) {
        let inner = self.clone();
        let refresher = tokio::spawn(async move {
            let mut wait = wait;
            loop {
                tokio::time::sleep(wait).await;
                match inner.load(From::Origin, &handle).await {
                    Ok(()) => return,
                    Err(reason) => {
                        let name = &inner.api.name;
                        tracing::warn!("openapi {name}: cannot read the description: {reason}");
                    }
                }
                wait = (wait * 2).clamp(FIRST_RETRY, LONGEST_RETRY);
            }
        });
        if let Some(earlier) = lock(&self.refresher).replace(refresher) {
            earlier.abort();
        }
    }

    /// Decides what is offered of a description.
    fn settle(&self, description: Arc<Description>, hash: u128) -> State {
        let choice = &self.api.choice;
        let catalog = Catalog::new(&description, choice);
        let mut problems: Vec<String> =
            catalog.problems.iter().take(MAX_PROBLEMS).map(ToString::to_string).collect();
        if catalog.problems.len() > MAX_PROBLEMS {
            let rest = catalog.problems.len() - MAX_PROBLEMS;
            problems.push(format!("{rest} more problems (`sabir openapi` prints all)"));
        }
        let servers = description.servers(&choice.read.variables);
        let sender = self.sender(&servers);
        let base = self.api.base_url.clone().or_else(|| servers.into_iter().next());
        match (&base, &sender) {
            (None, _) => problems.push("no server URL (set `base_url`)".to_owned()),
            (Some(base), Ok(sender)) => {
                let refused = sender.check(base).err();
                problems
                    .extend(refused.map(|error| format!("{error} (set `base_url` or `hosts`)")));
            }
            (Some(_), Err(error)) => problems.push(error.to_string()),
        }
        let problems = problems.into_iter().map(|what| format!("{}: {what}", self.api.name));
        let (problems, sender) = (problems.collect(), sender.ok());
        let mut state = State { hash, base, sender, problems, ..State::default() };
        state.tools = tools(&catalog, &description, &choice.prefix);
        match catalog.offered {
            Offered::Tools(tools) => state.operations = tools.into_iter().collect(),
            Offered::Search => {
                let large = Large::new(description, catalog.listed, choice.read.clone());
                state.large = Some(large);
            }
        }
        state
    }

    /// A sender that reaches the configured hosts and, if they are trusted, those of the servers.
    fn sender(&self, servers: &[String]) -> Result<Sender, sabir_outbound::Error> {
        let mut settings = self.api.sender.clone();
        let hosts = &mut settings.policy.hosts;
        let trusted = servers.iter().filter(|_| self.api.trusts_servers);
        for host in trusted.chain(&self.api.base_url).filter_map(|url| host_of(url)) {
            hosts.extend(HostPattern::parse(host));
        }
        if hosts.is_empty() {
            // An empty list would allow all. No host has this name (RFC 2606).
            hosts.push(HostPattern::parse("none.invalid")?);
        }
        Sender::new(settings)
    }

    async fn call_large(
        self: &Arc<Self>,
        state: &Arc<State>,
        tool: LargeTool,
        arguments: &Raw,
        context: &Context,
    ) -> Result<Outcome<ToolReply>, Problem> {
        #[derive(Deserialize)]
        struct Asked {
            query: Option<String>,
            limit: Option<usize>,
            operation: Option<String>,
            arguments: Option<Box<RawValue>>,
        }
        let wrong = |what: String| Problem::Arguments(what.into());
        let asked: Asked = arguments.read().map_err(|error| wrong(error.to_string()))?;
        let Some(large) = &state.large else { return Err(wrong("nothing is offered".into())) };
        let wanted = asked.operation.unwrap_or_default();
        let told = |text: String| Outcome::Done(ToolReply::text(text));
        match tool {
            LargeTool::Search => {
                let (state, query) = (state.clone(), asked.query.unwrap_or_default());
                // The first search makes the index, which takes up to a second.
                let found = tokio::task::spawn_blocking(move || {
                    state
                        .large
                        .as_ref()
                        .map(|large| large.search(&query, asked.limit.unwrap_or(10)))
                });
                let found = found.await.ok().flatten();
                let found = found.unwrap_or_else(|| Err("the search failed".to_owned()));
                found.map(told).map_err(|what| Problem::ToolFailed(what.into()))
            }
            LargeTool::Describe => large.describe(&wanted).map(told).map_err(wrong),
            LargeTool::Call => {
                let found = large.find(&wanted).map_err(wrong)?;
                let arguments = match asked.arguments {
                    Some(given) => {
                        Raw::parse(given.get().to_owned()).map_err(|e| wrong(e.to_string()))?
                    }
                    None => Raw::empty_object(),
                };
                found.check(&arguments).map_err(wrong)?;
                self.call(state, &found.operation, &arguments, context).await
            }
        }
    }

    async fn call(
        self: &Arc<Self>,
        state: &State,
        operation: &Arc<Operation>,
        arguments: &Raw,
        context: &Context,
    ) -> Result<Outcome<ToolReply>, Problem> {
        let failed = |what: String| Problem::ToolFailed(what.into());
        let own = operation.servers.as_ref().and_then(|servers| servers.first());
        // `base_url` replaces the servers of the description, not those of single operations.
        let base = own.or(state.base.as_ref());
        let base = base.ok_or_else(|| failed("the API has no server URL".to_owned()))?;
        let mut request = self.request(operation, base, arguments).await?;
        let mut is_repeatable = operation.entry.method.is_idempotent();
        if operation.has_idempotency_key() {
            add_idempotency_key(&mut request);
            is_repeatable = true;
        }
        let security = Some(&*operation.security);
        let sender =
            state.sender.as_ref().ok_or_else(|| failed("nothing can be sent".to_owned()))?;
        let sent = sender.send(&request, security, is_repeatable, context).await.map_err(failed)?;
        let answer = match sent {
            Sent::Answered(answer) => answer,
            Sent::Asks(ask) => return Ok(Outcome::NeedInput(ask)),
        };
        let is_structured = operation.output.is_some();
        let mut reply =
            reply(answer, &context.caller, self.api.limits, &self.stored, is_structured);
        if is_structured && !reply.structured.as_ref().is_some_and(Raw::is_object) {
            // The tool has promised an object, and the API has answered something else.
            reply.structured = Some(Raw::empty_object());
        }
        Ok(Outcome::Done(reply))
    }

    /// The request of a call. Files are read on a thread of their own.
    async fn request(
        self: &Arc<Self>,
        operation: &Arc<Operation>,
        base: &str,
        arguments: &Raw,
    ) -> Result<Request, Problem> {
        let (inner, operation) = (self.clone(), operation.clone());
        let (base, arguments) = (base.to_owned(), arguments.clone());
        let reads_files = inner.api.folder.is_open();
        let build = move || {
            let raw: &RawValue = arguments.read().map_err(|error| error.to_string())?;
            let request = operation.request(&base, raw, &inner.api.folder);
            request.map_err(|error| error.to_string())
        };
        let built = if reads_files {
            let lost = |_| Err("the file could not be read".to_owned());
            tokio::task::spawn_blocking(build).await.unwrap_or_else(lost)
        } else {
            build()
        };
        built.map_err(|what| Problem::Arguments(what.into()))
    }
}

/// The host of a URL, without its port.
pub fn host_of(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?;
    let end = match host.find(']') {
        Some(bracket) => bracket + 1,
        None => host.find(':').unwrap_or(host.len()),
    };
    Some(&host[..end]).filter(|host| !host.is_empty())
}

/// A random key, unless the caller gave one.
fn add_idempotency_key(request: &mut Request) {
    const NAME: &str = "Idempotency-Key";
    if !request.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(NAME)) {
        request.headers.push((NAME.to_owned(), nanoid::nanoid!()));
    }
}

/// The tools that offer the operations of a catalog. `prefix` begins the names of the three tools
/// for many operations.
pub fn tools(catalog: &Catalog, description: &Description, prefix: &str) -> Vec<Tool> {
    match &catalog.offered {
        Offered::Tools(tools) => {
            tools.iter().map(|(name, operation)| tool(name, operation)).collect()
        }
        Offered::Search if catalog.listed.is_empty() => Vec::new(),
        Offered::Search => large::tools(description, &catalog.listed, prefix),
    }
}

/// The definition of an operation as a tool.
fn tool(name: &str, operation: &Operation) -> Tool {
    // A `Value` can always be written as JSON.
    let raw = |value| Raw::of(value).unwrap_or_else(|_| Raw::empty_object());
    Tool {
        annotations: Some(annotations(operation.entry.method)),
        output_schema: operation.output.as_ref().map(raw),
        ..Tool::new(name, operation.description.as_str(), raw(&operation.schema))
    }
}

/// The hints that a method gives.
pub(super) fn annotations(method: Method) -> ToolAnnotations {
    let is_safe = method.is_safe();
    ToolAnnotations {
        read_only_hint: Some(is_safe),
        // The effect of a POST is unknown; it adds more often than it overwrites.
        destructive_hint: (!is_safe).then_some(method != Method::Post),
        idempotent_hint: (!is_safe).then_some(method.is_idempotent()),
        open_world_hint: Some(true),
        ..ToolAnnotations::default()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
