//! Every method of the protocol, in both directions, and the params of a client's requests.
//!
//! A new method needs a row in the table of [`Method`]; a client's request also an arm in
//! `Fields::request` and one in the engine's router, which the compiler finds.

mod params; // what each method reads
mod write; // what a client writes

use std::collections::BTreeMap;

use bytestring::ByteString;

use crate::raw::Raw;
use crate::types::{ClientCapabilities, Level, Reference, SubscriptionFilter};

pub(crate) use self::params::Fields;

/// The name of a method.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// `initialize`: the handshake of the legacy era.
    Initialize,
    /// `ping`.
    Ping,
    /// `server/discover`.
    Discover,
    /// `tools/list`.
    ListTools,
    /// `tools/call`.
    CallTool,
    /// `prompts/list`.
    ListPrompts,
    /// `prompts/get`.
    GetPrompt,
    /// `resources/list`.
    ListResources,
    /// `resources/templates/list`.
    ListTemplates,
    /// `resources/read`.
    ReadResource,
    /// `resources/subscribe`.
    Subscribe,
    /// `resources/unsubscribe`.
    Unsubscribe,
    /// `completion/complete`.
    Complete,
    /// `logging/setLevel`.
    SetLevel,
    /// `subscriptions/listen`.
    Listen,
    /// `elicitation/create`.
    Elicit,
    /// `sampling/createMessage`.
    CreateMessage,
    /// `roots/list`.
    ListRoots,
    /// `notifications/initialized`.
    Initialized,
    /// `notifications/roots/list_changed`.
    RootsChanged,
    /// `notifications/cancelled`.
    Cancelled,
    /// `notifications/progress`.
    Progress,
    /// `notifications/message`.
    LogMessage,
    /// `notifications/tools/list_changed`.
    ToolsChanged,
    /// `notifications/prompts/list_changed`.
    PromptsChanged,
    /// `notifications/resources/list_changed`.
    ResourcesChanged,
    /// `notifications/resources/updated`.
    ResourceUpdated,
    /// `notifications/subscriptions/acknowledged`.
    Acknowledged,
    /// `notifications/elicitation/complete`.
    ElicitationComplete,
    /// A method that is not in the table.
    Other(Box<str>),
}

/// Who may send a request or a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// Clients only.
    Client,
    /// Servers only.
    Server,
    /// Clients and servers.
    Either,
}

const TABLE: [(&str, Method, Sender); 29] = [
    ("initialize", Method::Initialize, Sender::Client),
    ("ping", Method::Ping, Sender::Either),
    ("server/discover", Method::Discover, Sender::Client),
    ("tools/list", Method::ListTools, Sender::Client),
    ("tools/call", Method::CallTool, Sender::Client),
    ("prompts/list", Method::ListPrompts, Sender::Client),
    ("prompts/get", Method::GetPrompt, Sender::Client),
    ("resources/list", Method::ListResources, Sender::Client),
    ("resources/templates/list", Method::ListTemplates, Sender::Client),
    ("resources/read", Method::ReadResource, Sender::Client),
    ("resources/subscribe", Method::Subscribe, Sender::Client),
    ("resources/unsubscribe", Method::Unsubscribe, Sender::Client),
    ("completion/complete", Method::Complete, Sender::Client),
    ("logging/setLevel", Method::SetLevel, Sender::Client),
    ("subscriptions/listen", Method::Listen, Sender::Client),
    ("elicitation/create", Method::Elicit, Sender::Server),
    ("sampling/createMessage", Method::CreateMessage, Sender::Server),
    ("roots/list", Method::ListRoots, Sender::Server),
    ("notifications/initialized", Method::Initialized, Sender::Client),
    ("notifications/roots/list_changed", Method::RootsChanged, Sender::Client),
    ("notifications/cancelled", Method::Cancelled, Sender::Either),
    ("notifications/progress", Method::Progress, Sender::Either),
    ("notifications/message", Method::LogMessage, Sender::Server),
    ("notifications/tools/list_changed", Method::ToolsChanged, Sender::Server),
    ("notifications/prompts/list_changed", Method::PromptsChanged, Sender::Server),
    ("notifications/resources/list_changed", Method::ResourcesChanged, Sender::Server),
    ("notifications/resources/updated", Method::ResourceUpdated, Sender::Server),
    ("notifications/subscriptions/acknowledged", Method::Acknowledged, Sender::Server),
    ("notifications/elicitation/complete", Method::ElicitationComplete, Sender::Server),
];

impl Method {
    /// The method of that name.
    pub fn named(name: &str) -> Self {
        match TABLE.iter().find(|(known, ..)| *known == name) {
            Some((_, method, _)) => method.clone(),
            None => Self::Other(name.into()),
        }
    }

    /// The name on the wire.
    pub fn name(&self) -> &str {
        match (self, self.row()) {
            (Self::Other(name), _) => name,
            (_, row) => row.map_or("", |(name, ..)| name),
        }
    }

    /// Who may send it; `None` for a method that is not in the table.
    pub fn sender(&self) -> Option<Sender> {
        self.row().map(|(.., sender)| *sender)
    }

    /// Whether it is a notification, which is never answered.
    pub fn is_notification(&self) -> bool {
        self.name().starts_with("notifications/")
    }

    fn row(&self) -> Option<&'static (&'static str, Self, Sender)> {
        TABLE.iter().find(|(_, method, _)| method == self)
    }
}

/// A request, its params read.
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
    /// `resources/subscribe`, the URI.
    Subscribe(Box<str>),
    /// `resources/unsubscribe`, the URI.
    Unsubscribe(Box<str>),
    /// `completion/complete`.
    Complete(Complete),
    /// `logging/setLevel`.
    SetLevel(Level),
    /// `subscriptions/listen`.
    Listen(Listen),
}

/// The params of `initialize`.
#[derive(Clone, Debug, PartialEq)]
pub struct Initialize {
    /// The revision that the client would like, known to us or not.
    pub version: Box<str>,
    /// What the client can do.
    pub capabilities: ClientCapabilities,
    /// Who the client is.
    pub client: Option<Raw>,
}

/// Which part of a list is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// Where the last part ended; the first part without it.
    pub cursor: Option<Box<str>>,
}

/// What a client sends when it asks again with the answers to our questions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resume {
    /// The answers by the keys of the questions.
    pub answers: Vec<(String, Raw)>,
    /// What we gave the client to keep, sealed.
    pub state: Option<Box<str>>,
}

/// The params of `tools/call`.
#[derive(Clone, Debug, PartialEq)]
pub struct CallTool {
    /// Which tool.
    pub name: ByteString,
    /// An object, unchecked; absent means empty.
    pub arguments: Option<Raw>,
    /// Answers, if this is a second start.
    pub resume: Resume,
}

/// The params of `prompts/get`.
#[derive(Clone, Debug, PartialEq)]
pub struct GetPrompt {
    /// Which prompt.
    pub name: Box<str>,
    /// By name.
    pub arguments: BTreeMap<String, String>,
    /// Answers, if this is a second start.
    pub resume: Resume,
}

/// The params of `resources/read`.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadResource {
    /// Which resource.
    pub uri: Box<str>,
    /// Answers, if this is a second start.
    pub resume: Resume,
}

/// The params of `completion/complete`.
#[derive(Clone, Debug, PartialEq)]
pub struct Complete {
    /// What the argument belongs to.
    pub reference: Reference,
    /// The argument's name.
    pub argument: Box<str>,
    /// What was typed so far.
    pub value: Box<str>,
    /// Arguments that were given already.
    pub given: BTreeMap<String, String>,
}

/// The params of `subscriptions/listen`.
#[derive(Clone, Debug, PartialEq)]
pub struct Listen {
    /// What the client wants to hear.
    pub filter: SubscriptionFilter,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_reads_back() {
        for (name, method, _) in &TABLE {
            assert_eq!(&Method::named(name), method);
            assert_eq!(method.name(), *name);
        }
        assert_eq!(Method::named("tools/cal"), Method::Other("tools/cal".into()));
    }
}
