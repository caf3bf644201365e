//! The `Source` trait, and the calls, answers and offers that pass through it.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use sabir_wire::mirror::BadAnnotation;
use sabir_wire::types::{
    CacheHint, CacheScope, Completion, CompletionArgument, CompletionContext, Prompt, PromptReply,
    Question, Reference, Resource, ResourceReply, ResourceTemplate, Skill, TaskSupport, Tool,
    ToolExecution, ToolReply, UiTool,
};
use sabir_wire::{ByteString, Extra, Problem, Raw};

use crate::context::Context;
use crate::figures::{Figure, LinkEnd};
use crate::names::BadName;
use crate::schema::BadSchema;

/// Something that offers tools, prompts or resources: a Rust function, a folder, another server.
///
/// A source knows only the newest revision, and never sees an id, a session or a transport.
///
/// Its life: it is added (its offer is listed from then on), started inside the runtime, called,
/// and closed. Calls may arrive before [`Source::start`] has completed.
pub trait Source: Send + Sync {
    /// Its current offer. Called again after [`SourceHandle::changed`], never under a lock.
    fn offer(&self) -> Offer;

    /// Its name in logs and reports: `articles content`, `command add`.
    fn name(&self) -> String {
        self.offer().first_name().unwrap_or_else(|| "empty source".to_owned())
    }

    /// Starts its work: watching a folder, connecting to a server. Called once, inside the runtime.
    /// Completes when the source is ready, or with the reason why it cannot be.
    fn start(&self, _handle: SourceHandle) -> Starting {
        Box::pin(async { Ok(()) })
    }

    /// Whether a server that starts should give it a moment to become ready. A source that did not
    /// answer the last time must not delay the others.
    fn is_awaited(&self) -> bool {
        true
    }

    /// Ends its work, after running calls have ended or been aborted. A source that is not closed
    /// after `patience` is dropped.
    fn close(&self, _patience: Duration) -> Closing {
        Box::pin(async {})
    }

    /// Runs a tool. The arguments are valid by its schema.
    fn call_tool(&self, call: ToolCall) -> Pending<ToolReply> {
        not_provided("tool", &call.name)
    }

    /// Fills in a prompt. The required arguments are present.
    fn get_prompt(&self, call: PromptCall) -> Pending<PromptReply> {
        not_provided("prompt", &call.name)
    }

    /// Reads a resource that it listed, or one that matches a template that it listed.
    fn read_resource(&self, call: ResourceCall) -> Pending<ResourceReply> {
        not_provided("resource", &call.uri)
    }

    /// Reads a folder that its offer does not have, of a skill that it lists as generated. Returns
    /// its direct children.
    fn read_folder(&self, call: FolderCall) -> Pending<Vec<Resource>> {
        let reason = format!("not a folder of a skill: {}", call.uri);
        Box::pin(async { Err(Problem::Params(reason.into())) })
    }

    /// Completes an argument of a prompt or a template that it listed.
    fn complete(&self, _call: CompleteCall) -> Pending<Completion> {
        Box::pin(async { Ok(Outcome::Done(Completion::default())) })
    }

    /// A client watches this resource. Called for the first watcher only, or when a watched
    /// resource becomes one of this source, which may not be started yet.
    fn watch(&self, _uri: &str) {}

    /// The last watcher of this resource is gone, or the resource is no longer one of this source.
    fn unwatch(&self, _uri: &str) {}

    /// The questions that were asked with this state will not be answered: work that waits for the
    /// answers can be ended.
    fn abandon(&self, _state: &Raw) {}

    /// One line about its contents, for operators: `12 articles, 2 hidden`.
    fn summary(&self) -> Option<String> {
        None
    }

    /// One line about its current condition, for operators: its connection, the age of its offer.
    fn condition(&self) -> Option<String> {
        None
    }

    /// Problems for operators, one sentence each: files that were skipped, a server that is down.
    fn problems(&self) -> Vec<String> {
        Vec::new()
    }

    /// Numbers for operators. Sources that report the same number use the same help text.
    fn figures(&self) -> Vec<Figure> {
        Vec::new()
    }

    /// Why a tool that it has is not in its offer, for operators; `None` if it has no such tool.
    fn withheld(&self, _tool: &str) -> Option<String> {
        None
    }
}

/// A source that is being started.
pub type Starting = Pin<Box<dyn Future<Output = Result<(), StartError>> + Send>>;

/// A source that is being closed.
pub type Closing = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Why a source could not be started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StartError(String);

impl StartError {
    /// An error for operators.
    pub fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

/// Receives what a source reports about itself.
pub(crate) trait Report: Send + Sync {
    fn changed(&self) -> Result<(), BadOffer>;
    fn updated(&self, uri: Box<str>);
    fn notify(&self, method: &str, params: Option<&Raw>);
    fn link_ended(&self, end: &LinkEnd<'_>);
}

/// How a source reports changes. Does nothing once the source was removed.
#[derive(Clone)]
pub struct SourceHandle(Arc<dyn Report>);

impl SourceHandle {
    pub(crate) fn new(report: impl Report + 'static) -> Self {
        Self(Arc::new(report))
    }

    /// The offer has changed: it is asked for again. If a strict offer is invalid, the old one
    /// stays; invalid parts of a tolerant one are left out and reported.
    pub fn changed(&self) -> Result<(), BadOffer> {
        self.0.changed()
    }

    /// The contents of a resource have changed.
    pub fn updated(&self, uri: impl Into<Box<str>>) {
        self.0.updated(uri.into());
    }

    /// Sends a notification that the protocol does not know to every client that has completed its
    /// handshake, see [`Registry::notify`](crate::Registry::notify).
    pub fn notify(&self, method: &str, params: Option<&Raw>) {
        self.0.notify(method, params);
    }

    /// A connection to another server has ended. Observers are notified.
    pub fn link_ended(&self, end: &LinkEnd<'_>) {
        self.0.link_ended(end);
    }
}

impl std::fmt::Debug for SourceHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SourceHandle")
    }
}

fn not_provided<T>(kind: &str, name: &str) -> Pending<T> {
    let reason = format!("the {kind} `{name}` is listed, but its source does not provide it");
    Box::pin(async { Err(Problem::Internal(reason.into())) })
}

/// An answer that is being computed.
pub type Pending<T> = Pin<Box<dyn Future<Output = Answer<T>> + Send>>;

/// The answer of a source, or its error.
pub type Answer<T> = Result<Outcome<T>, Problem>;

/// The outcome of a call: complete, or questions to the client.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome<T> {
    /// The call is complete.
    Done(T),
    /// The client must answer first; the source will be called again with the answers.
    NeedInput(Ask),
    /// Done: the result of another server, as JSON of the newest revision. It is passed on
    /// unparsed; a result that breaks its schema is passed on too, with a warning in the log.
    Relayed(Raw),
}

/// Questions to the client, and the state to keep until it has answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ask {
    /// By keys that are unique within the call.
    pub questions: Vec<(String, Question)>,
    /// Returned with the answers. The client stores it, but can neither read nor change it.
    pub state: Option<Raw>,
    /// Whether the source wants the errors that a legacy client answers with
    /// ([`Context::refusals`]). Otherwise such an error ends the call.
    pub takes_refusals: bool,
    /// Whether only this process can go on with the call: it is alive here, and `state` only names
    /// it. Where several nodes serve the same clients, the answers are forwarded to this one.
    pub only_here: bool,
    /// The unknown members of the result in which another server asked.
    pub extra: Extra,
}

/// Everything that a source offers.
#[derive(Clone, Debug, PartialEq)]
pub struct Offer {
    /// Tools, in the order in which they are listed.
    pub tools: Vec<Tool>,
    /// Prompts, in the order in which they are listed.
    pub prompts: Vec<Prompt>,
    /// Resources, in the order in which they are listed.
    pub resources: Vec<Resource>,
    /// Resource templates.
    pub templates: Vec<ResourceTemplate>,
    /// Skills, in the order in which they are listed. Their files are resources that it reads.
    pub skills: Vec<Skill>,
    /// The folders of its skills by URI, each with its direct children.
    pub folders: Vec<(String, Vec<Resource>)>,
    /// Views of tools, its own or those of other sources, by the names of the tools.
    pub apps: Vec<(String, UiTool)>,
    /// Further names that its tools can be called by, each with the listed name. They are not
    /// listed. A name that is listed, or that is a further name of two tools, calls no other tool.
    pub tool_aliases: Vec<(String, String)>,
    /// Prefixes of URIs that it reads although it lists neither them nor a template. The longest
    /// matching prefix decides; a prefix of two sources matches nothing.
    pub unlisted: Vec<String>,
    /// Instructions for the model. Sent with those of other sources, unless the operator has
    /// written the instructions of the server.
    pub instructions: Option<String>,
    /// Whether it completes arguments.
    pub completes: bool,
    /// Whether an invalid part is left out and reported instead of making the whole offer invalid.
    /// Set by sources whose offer comes from another server.
    pub tolerant: bool,
    /// Whether it writes to the client's log.
    pub logs: bool,
    /// Whether it reports changes of resources.
    pub updates: bool,
    /// Whether its offer may change.
    pub changes: bool,
    /// Its offer is not known yet. Meanwhile all capabilities are declared: clients with a session
    /// learn the capabilities only once.
    pub is_unknown: bool,
    /// How long clients may cache its part of a list.
    pub cache: CacheHint,
    /// Whether calls of its tools may become tasks.
    pub task: TaskPolicy,
}

/// Whether a call of a tool becomes a task: its client gets a handle, and fetches the result later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskPolicy {
    /// When a call becomes a task.
    pub mode: TaskMode,
    /// With [`TaskMode::Auto`], how long the client waits for the result before it gets a handle;
    /// the server's default if absent.
    pub after: Option<Duration>,
}

/// When a call of a tool becomes a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TaskMode {
    /// Never.
    #[default]
    Never,
    /// When it has not ended after some time and its client can take a task. A client of 2025-11-25
    /// decides itself, for each call.
    Auto,
    /// When its source reports that it takes long, see
    /// [`CallHandle::takes_long`](crate::CallHandle::takes_long): for a server that has tasks of
    /// its own. A client of 2025-11-25 decides itself.
    Passed,
    /// At once, if its client can take a task. Others wait for the result.
    Always,
    /// At once. A client that cannot take a task gets an error.
    Required,
}

impl TaskPolicy {
    /// The declaration for clients of 2025-11-25.
    pub(crate) fn execution(self) -> Option<ToolExecution> {
        let task_support = match self.mode {
            TaskMode::Never => return None,
            TaskMode::Auto | TaskMode::Passed | TaskMode::Always => TaskSupport::Optional,
            TaskMode::Required => TaskSupport::Required,
        };
        Some(ToolExecution { task_support: Some(task_support), ..ToolExecution::default() })
    }
}

impl From<TaskMode> for TaskPolicy {
    fn from(mode: TaskMode) -> Self {
        Self { mode, after: None }
    }
}

impl Offer {
    fn first_name(&self) -> Option<String> {
        let tool = self.tools.first().map(|tool| format!("tool {}", tool.name));
        let prompt = || self.prompts.first().map(|prompt| format!("prompt {}", prompt.name));
        let resource =
            || self.resources.first().map(|resource| format!("resource {}", resource.uri));
        let template =
            || self.templates.first().map(|template| format!("template {}", template.uri_template));
        tool.or_else(prompt).or_else(resource).or_else(template)
    }
}

impl Default for Offer {
    fn default() -> Self {
        Self {
            tools: Vec::new(),
            prompts: Vec::new(),
            resources: Vec::new(),
            templates: Vec::new(),
            skills: Vec::new(),
            folders: Vec::new(),
            apps: Vec::new(),
            tool_aliases: Vec::new(),
            unlisted: Vec::new(),
            instructions: None,
            completes: false,
            tolerant: false,
            logs: false,
            updates: false,
            changes: false,
            is_unknown: false,
            cache: CacheHint { ttl_ms: 300_000, scope: CacheScope::Public },
            task: TaskPolicy::default(),
        }
    }
}

/// Why an offer is invalid.
#[derive(Clone, Debug, thiserror::Error)]
pub enum BadOffer {
    /// A tool's name is invalid.
    #[error("tool `{tool}`: {reason}")]
    Name {
        /// The tool.
        tool: String,
        /// Why.
        #[source]
        reason: BadName,
    },
    /// A tool's schema is invalid.
    #[error("tool `{tool}`, {which}: {reason}")]
    Schema {
        /// The tool.
        tool: String,
        /// `input schema` or `output schema`.
        which: &'static str,
        /// Why.
        #[source]
        reason: BadSchema,
    },
    /// An `x-mcp-header` annotation is invalid.
    #[error("tool `{tool}`: {reason}")]
    Header {
        /// The tool.
        tool: String,
        /// Why.
        #[source]
        reason: BadAnnotation,
    },
    /// A URI template is invalid.
    #[error("resource template `{template}`: {reason}")]
    Template {
        /// The template.
        template: String,
        /// Why.
        #[source]
        reason: sabir_wire::BadTemplate,
    },
    /// The name is taken.
    #[error("there is a {kind} `{name}` already (from {by})")]
    Taken {
        /// `tool`, `prompt`, …
        kind: &'static str,
        /// Its name.
        name: String,
        /// The name of the source that offers it, for operators.
        by: String,
    },
}

impl BadOffer {
    /// Whether the source `loser` lost the name of a tool or a prompt to another one. A source that
    /// lists two items of one name is not refused.
    pub(crate) fn is_collision(&self, loser: &str) -> bool {
        matches!(self, Self::Taken { kind, by, .. } if *kind != "resource" && by != loser)
    }

    /// The name of the item that is invalid.
    pub(crate) fn item(&self) -> &str {
        match self {
            Self::Name { tool, .. } | Self::Schema { tool, .. } | Self::Header { tool, .. } => tool,
            Self::Template { template, .. } => template,
            Self::Taken { name, .. } => name,
        }
    }
}

/// A call of a tool.
#[derive(Clone, Debug)]
pub struct ToolCall {
    /// The name of the tool.
    pub name: ByteString,
    /// An object, valid by the tool's schema, as the client wrote it.
    pub arguments: Raw,
    /// The caller, the answers so far, and the way to report.
    pub context: Context,
}

/// A call of a prompt.
#[derive(Clone, Debug)]
pub struct PromptCall {
    /// The name of the prompt.
    pub name: Box<str>,
    /// Names and values, in the client's order.
    pub arguments: Vec<(String, String)>,
    /// The caller, the answers so far, and the way to report.
    pub context: Context,
}

/// A call of a resource.
#[derive(Clone, Debug)]
pub struct ResourceCall {
    /// The URI of the resource.
    pub uri: Box<str>,
    /// The template that it matches; `None` if it is listed itself.
    pub template: Option<String>,
    /// The values of the template's variables.
    pub variables: BTreeMap<String, String>,
    /// The caller, the answers so far, and the way to report.
    pub context: Context,
}

/// A call for the contents of a folder of a skill.
#[derive(Clone, Debug)]
pub struct FolderCall {
    /// The URI of the folder.
    pub uri: Box<str>,
    /// The cursor of the page that the source itself has given out; `None` for the first.
    pub cursor: Option<Box<str>>,
    /// The caller, and the way to report.
    pub context: Context,
}

/// A call for completion.
#[derive(Clone, Debug)]
pub struct CompleteCall {
    /// The prompt or template that has the argument.
    pub reference: Reference,
    /// The argument, and the text typed so far.
    pub argument: CompletionArgument,
    /// The other arguments, as far as they are known.
    pub given: CompletionContext,
    /// The caller, the answers so far, and the way to report.
    pub context: Context,
}
