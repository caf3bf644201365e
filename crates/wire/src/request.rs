//! The requests of a client, with their params.

mod params; // what each method reads
mod write; // what a client writes

use std::collections::BTreeMap;

use bytestring::ByteString;

use crate::raw::Raw;
use crate::types::{ClientCapabilities, Level, Reference, SubscriptionFilter};

pub(crate) use self::params::Fields;

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
