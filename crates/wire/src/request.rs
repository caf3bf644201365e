//! The requests of a client, with their params.

mod params; // the params of each method, parsed
mod write; // the requests of a client, written

use bytestring::ByteString;

use crate::error::ErrorObject;
use crate::json::Extra;
use crate::raw::Raw;
use crate::types::{ClientCapabilities, CompletionArgument, CompletionContext, Level};
use crate::types::{Reference, SubscriptionFilter};

pub(crate) use self::params::Fields;

/// A request of a client with parsed params.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// `initialize`.
    Initialize(Initialize),
    /// `ping`.
    Ping,
    /// `server/discover`.
    Discover,
    /// `tools/list`.
    ListTools(Page),
    /// `tools/call`.
    CallTool(CallTool),
    /// `prompts/list`.
    ListPrompts(Page),
    /// `prompts/get`.
    GetPrompt(GetPrompt),
    /// `resources/list`.
    ListResources(Page),
    /// `resources/templates/list`.
    ListTemplates(Page),
    /// `resources/read`.
    ReadResource(ReadResource),
    /// `resources/subscribe` with the URI.
    Subscribe(Box<str>),
    /// `resources/unsubscribe` with the URI.
    Unsubscribe(Box<str>),
    /// `completion/complete`.
    Complete(Complete),
    /// `logging/setLevel`.
    SetLevel(Level),
    /// `subscriptions/listen`.
    Listen(Listen),
    /// `tasks/get` with the id of the task.
    GetTask(Box<str>),
    /// `tasks/update`.
    UpdateTask(UpdateTask),
    /// `tasks/cancel` with the id of the task.
    CancelTask(Box<str>),
    /// `tasks/result`.
    TaskResult(TaskResult),
    /// `tasks/list`.
    ListTasks(Page),
    /// `skills/list`.
    ListSkills(Page),
    /// `skills/get` with the URI.
    GetSkill(Box<str>),
    /// `resources/directory/read`.
    ReadFolder(ReadFolder),
}

impl Request {
    /// The answers of a client that repeats the request after questions; `None` for a method that
    /// never asks.
    pub fn resume_mut(&mut self) -> Option<&mut Resume> {
        match self {
            Self::CallTool(call) => Some(&mut call.resume),
            Self::GetPrompt(get) => Some(&mut get.resume),
            Self::ReadResource(read) => Some(&mut read.resume),
            Self::TaskResult(wanted) => Some(&mut wanted.resume),
            _ => None,
        }
    }

    /// The same, by shared reference.
    pub fn resume(&self) -> Option<&Resume> {
        match self {
            Self::CallTool(call) => Some(&call.resume),
            Self::GetPrompt(get) => Some(&get.resume),
            Self::ReadResource(read) => Some(&read.resume),
            Self::TaskResult(wanted) => Some(&wanted.resume),
            _ => None,
        }
    }

    /// Takes the unknown members of the params, which a relay passes on.
    pub fn take_extra(&mut self) -> Extra {
        match self {
            Self::CallTool(call) => std::mem::take(&mut call.extra),
            Self::GetPrompt(get) => std::mem::take(&mut get.extra),
            Self::ReadResource(read) => std::mem::take(&mut read.extra),
            Self::Complete(complete) => std::mem::take(&mut complete.extra),
            Self::ReadFolder(read) => std::mem::take(&mut read.extra),
            _ => Extra::NONE,
        }
    }

    /// The same request, with other answers.
    #[must_use]
    pub fn resumed(mut self, resume: Resume) -> Self {
        if let Some(place) = self.resume_mut() {
            *place = resume;
        }
        self
    }
}

/// The params of `initialize`.
#[derive(Clone, Debug, PartialEq)]
pub struct Initialize {
    /// The revision that the client proposes; possibly unknown.
    pub version: Box<str>,
    /// Capabilities of the client.
    pub capabilities: ClientCapabilities,
    /// Name and version of the client.
    pub client: Option<Raw>,
}

/// The params of a list request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// Cursor of the page; `None` for the first.
    pub cursor: Option<Box<str>>,
}

/// The answers of a client that repeats a request after questions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resume {
    /// Answers, by the keys of the questions.
    pub answers: Vec<(String, Raw)>,
    /// The errors that a legacy client answered with. The modern era has none: they are never written.
    pub refusals: Vec<(String, ErrorObject)>,
    /// The state that the questions came with.
    pub state: Option<Box<str>>,
}

/// The params of `tools/call`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallTool {
    /// Name of the tool.
    pub name: ByteString,
    /// Arguments, an object that is not yet validated; absent means empty.
    pub arguments: Option<Raw>,
    /// Answers, if the request is repeated after questions.
    pub resume: Resume,
    /// Set by a client of 2025-11-25 that wants the call to become a task; not yet read. No other
    /// revision has it.
    pub task: Option<Raw>,
    /// Unknown members.
    pub extra: Extra,
}

/// The params of `tasks/update`.
#[derive(Clone, Debug, PartialEq)]
pub struct UpdateTask {
    /// Id of the task.
    pub id: Box<str>,
    /// Answers, by the keys of the questions.
    pub answers: Vec<(String, Raw)>,
}

/// The params of `tasks/result`.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskResult {
    /// Id of the task.
    pub id: Box<str>,
    /// Answers to the questions of the task, which the session has asked meanwhile.
    pub resume: Resume,
}

/// The params of `resources/directory/read`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadFolder {
    /// URI of the folder.
    pub uri: Box<str>,
    /// Cursor of the page; `None` for the first.
    pub cursor: Option<Box<str>>,
    /// Unknown members.
    pub extra: Extra,
}

/// The params of `prompts/get`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GetPrompt {
    /// Name of the prompt.
    pub name: Box<str>,
    /// Names and values of the arguments, in the client's order.
    pub arguments: Vec<(String, String)>,
    /// Answers, if the request is repeated after questions.
    pub resume: Resume,
    /// Unknown members.
    pub extra: Extra,
}

/// The params of `resources/read`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadResource {
    /// URI of the resource.
    pub uri: Box<str>,
    /// Answers, if the request is repeated after questions.
    pub resume: Resume,
    /// Unknown members.
    pub extra: Extra,
}

/// The params of `completion/complete`.
#[derive(Clone, Debug, PartialEq)]
pub struct Complete {
    /// Owner of the argument.
    pub reference: Reference,
    /// The argument, and the text typed so far.
    pub argument: CompletionArgument,
    /// Arguments that already have a value.
    pub given: CompletionContext,
    /// Unknown members.
    pub extra: Extra,
}

/// The params of `subscriptions/listen`.
#[derive(Clone, Debug, PartialEq)]
pub struct Listen {
    /// Changes that the client asks to be notified of.
    pub filter: SubscriptionFilter,
}
