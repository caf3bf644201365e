//! The trait of everything that can be served, and what goes through it.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use sabir_wire::mirror::BadAnnotation;
use sabir_wire::types::{
    CacheHint, CacheScope, Completion, Prompt, PromptReply, Question, Reference, Resource,
    ResourceReply, ResourceTemplate, Tool, ToolReply,
};
use sabir_wire::{ByteString, Problem, Raw};

use crate::context::Context;
use crate::names::BadName;
use crate::schema::BadSchema;

/// Something that offers tools, prompts or resources: a Rust function, a folder, another server.
///
/// A source knows only the newest revision, and never sees an id, a session or a transport.
///
/// Its life: it is added (its offer is listed from then on), started inside the runtime, called,
/// and closed. Calls may arrive before [`Source::start`] has completed.
pub trait Source: Send + Sync {
    /// What it offers now. Asked again after [`SourceHandle::changed`], never under a lock.
    fn offer(&self) -> Offer;

    /// What operators call it, in logs and reports: `articles content`, `command add`.
    fn name(&self) -> String {
        self.offer().first_name().unwrap_or_else(|| "empty source".to_owned())
    }

    /// Starts its work: watching a folder, connecting to a server. Called once, inside the runtime.
    /// Completes when the source is ready, or with the reason why it cannot be.
    fn start(&self, _handle: SourceHandle) -> Starting {
        Box::pin(async { Ok(()) })
    }

    /// Ends its work: running calls have ended or been aborted. What is not closed after `patience`
    /// is dropped.
    fn close(&self, _patience: Duration) -> Closing {
        Box::pin(async {})
    }

    /// Runs a tool. The arguments fit its schema.
    fn call_tool(&self, call: ToolCall) -> Pending<ToolReply> {
        not_provided("tool", &call.name)
    }

    /// Fills in a prompt. The required arguments are there.
    fn get_prompt(&self, call: PromptCall) -> Pending<PromptReply> {
        not_provided("prompt", &call.name)
    }

    /// Reads a resource that it listed, or one that matches a template that it listed.
    fn read_resource(&self, call: ResourceCall) -> Pending<ResourceReply> {
        not_provided("resource", &call.uri)
    }

    /// Completes an argument of a prompt or a template that it listed.
    fn complete(&self, _call: CompleteCall) -> Pending<Completion> {
        Box::pin(async { Ok(Outcome::Done(Completion::default())) })
    }

    /// Somebody wants to know when this resource changes. Called once, however many do.
    fn watch(&self, _uri: &str) {}

    /// Nobody wants to know any more when this resource changes.
    fn unwatch(&self, _uri: &str) {}

    /// The questions that were asked with this state will not be answered: whatever waits for the
    /// answers can be ended.
    fn abandon(&self, _state: &Raw) {}

    /// What an operator should know, one sentence each: files that were skipped, a server that is
    /// down.
    fn problems(&self) -> Vec<String> {
        Vec::new()
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
}

/// How a source reports changes. Does nothing once the source was removed.
#[derive(Clone)]
pub struct SourceHandle(Arc<dyn Report>);

impl SourceHandle {
    pub(crate) fn new(report: impl Report + 'static) -> Self {
        Self(Arc::new(report))
    }

    /// The offer has changed: it is asked for again. If a strict offer is invalid, the old one
    /// stays; of a tolerant one, what is invalid is left out and reported.
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

/// Work that will have an answer.
pub type Pending<T> = Pin<Box<dyn Future<Output = Answer<T>> + Send>>;

/// What came of it.
pub type Answer<T> = Result<Outcome<T>, Problem>;

/// Done, or not yet.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome<T> {
    /// Done.
    Done(T),
    /// The client must answer first; the source will be called again with the answers.
    NeedInput(Ask),
}

/// Questions to the client, and what to keep until it has answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ask {
    /// By keys that are unique within the call.
    pub questions: Vec<(String, Question)>,
    /// Given back with the answers. The client keeps it, but can neither read nor change it.
    pub state: Option<Raw>,
}

/// What a source offers.
#[derive(Clone, Debug, PartialEq)]
pub struct Offer {
    /// Tools, in the order in which they are listed.
    pub tools: Vec<Tool>,
    /// Prompts, in the order in which they are listed.
    pub prompts: Vec<Prompt>,
    /// Resources, in the order in which they are listed.
    pub resources: Vec<Resource>,
    /// Families of resources.
    pub templates: Vec<ResourceTemplate>,
    /// It completes arguments.
    pub completes: bool,
    /// An invalid part is left out and reported; otherwise it makes the whole offer invalid. Set by
    /// sources whose offer comes from somebody else.
    pub tolerant: bool,
    /// It writes to the client's log.
    pub logs: bool,
    /// It tells when a resource has changed.
    pub updates: bool,
    /// What it offers may change.
    pub changes: bool,
    /// How long its part of a list may be kept.
    pub cache: CacheHint,
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
            completes: false,
            tolerant: false,
            logs: false,
            updates: false,
            changes: false,
            cache: CacheHint { ttl_ms: 300_000, scope: CacheScope::Public },
        }
    }
}

/// Why an offer is refused.
#[derive(Clone, Debug, thiserror::Error)]
pub enum BadOffer {
    /// A tool's name is no good.
    #[error("tool `{tool}`: {reason}")]
    Name {
        /// Which one.
        tool: String,
        /// Why.
        #[source]
        reason: BadName,
    },
    /// A tool's schema is no good.
    #[error("tool `{tool}`, {which}: {reason}")]
    Schema {
        /// Which one.
        tool: String,
        /// `input schema` or `output schema`.
        which: &'static str,
        /// Why.
        #[source]
        reason: BadSchema,
    },
    /// An `x-mcp-header` stands where it may not.
    #[error("tool `{tool}`: {reason}")]
    Header {
        /// Which one.
        tool: String,
        /// Why.
        #[source]
        reason: BadAnnotation,
    },
    /// A URI template is no good.
    #[error("resource template `{template}`: {reason}")]
    Template {
        /// Which one.
        template: String,
        /// Why.
        #[source]
        reason: sabir_wire::BadTemplate,
    },
    /// Something of this name is offered already.
    #[error("there is a {kind} `{name}` already")]
    Taken {
        /// `tool`, `prompt`, …
        kind: &'static str,
        /// Its name.
        name: String,
    },
}

/// A call of a tool.
#[derive(Clone, Debug)]
pub struct ToolCall {
    /// Which one.
    pub name: ByteString,
    /// An object that fits the tool's schema, as the client wrote it.
    pub arguments: Raw,
    /// Who asks.
    pub context: Context,
}

/// A call of a prompt.
#[derive(Clone, Debug)]
pub struct PromptCall {
    /// Which one.
    pub name: Box<str>,
    /// By name.
    pub arguments: BTreeMap<String, String>,
    /// Who asks.
    pub context: Context,
}

/// A call of a resource.
#[derive(Clone, Debug)]
pub struct ResourceCall {
    /// Which one.
    pub uri: Box<str>,
    /// The family that it belongs to, unless it was listed by itself.
    pub template: Option<String>,
    /// What the variables of the family are here.
    pub variables: BTreeMap<String, String>,
    /// Who asks.
    pub context: Context,
}

/// A call for completion.
#[derive(Clone, Debug)]
pub struct CompleteCall {
    /// What the argument belongs to.
    pub reference: Reference,
    /// The argument.
    pub argument: Box<str>,
    /// What was typed so far.
    pub value: Box<str>,
    /// Arguments that were given already.
    pub given: BTreeMap<String, String>,
    /// Who asks.
    pub context: Context,
}
