//! Every method that a client may use, and its params.
//!
//! Adding a method is adding a row to [`Method`], an arm to `Fields::request` and an arm to the
//! engine's router; the compiler finds the rest.

mod params; // what each method reads

use std::collections::BTreeMap;

use bytestring::ByteString;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::id::Id;
use crate::raw::Raw;
use crate::strict::Strict;
use crate::types::{ClientCapabilities, Level, Reference, SubscriptionFilter};

pub(crate) use self::params::Fields;

/// The name of a method.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// `initialize`: the legacy handshake.
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
    /// `notifications/initialized`.
    Initialized,
    /// `notifications/cancelled`.
    Cancelled,
    /// `notifications/progress`.
    Progress,
    /// `notifications/roots/list_changed`.
    RootsChanged,
    /// One that we do not know.
    Other(Box<str>),
}

const NAMES: [(&str, Method); 19] = [
    ("initialize", Method::Initialize),
    ("ping", Method::Ping),
    ("server/discover", Method::Discover),
    ("tools/list", Method::ListTools),
    ("tools/call", Method::CallTool),
    ("prompts/list", Method::ListPrompts),
    ("prompts/get", Method::GetPrompt),
    ("resources/list", Method::ListResources),
    ("resources/templates/list", Method::ListTemplates),
    ("resources/read", Method::ReadResource),
    ("resources/subscribe", Method::Subscribe),
    ("resources/unsubscribe", Method::Unsubscribe),
    ("completion/complete", Method::Complete),
    ("logging/setLevel", Method::SetLevel),
    ("subscriptions/listen", Method::Listen),
    ("notifications/initialized", Method::Initialized),
    ("notifications/cancelled", Method::Cancelled),
    ("notifications/progress", Method::Progress),
    ("notifications/roots/list_changed", Method::RootsChanged),
];

impl Method {
    /// The method of that name.
    pub fn named(name: &str) -> Self {
        match NAMES.iter().find(|(known, _)| *known == name) {
            Some((_, method)) => method.clone(),
            None => Self::Other(name.into()),
        }
    }

    /// Its name on the wire.
    pub fn name(&self) -> &str {
        if let Self::Other(name) = self {
            return name;
        }
        NAMES.iter().find(|(_, method)| method == self).map_or("", |(name, _)| name)
    }
}

/// As its name.
impl Serialize for Method {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Method {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        std::borrow::Cow::<str>::deserialize(deserializer).map(|name| Self::named(&name))
    }
}

/// A request, its params read.
#[derive(Clone, Debug)]
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

impl Request {
    /// The method that it belongs to.
    pub fn method(&self) -> Method {
        match self {
            Self::Initialize(_) => Method::Initialize,
            Self::Ping => Method::Ping,
            Self::Discover => Method::Discover,
            Self::ListTools(_) => Method::ListTools,
            Self::CallTool(_) => Method::CallTool,
            Self::ListPrompts(_) => Method::ListPrompts,
            Self::GetPrompt(_) => Method::GetPrompt,
            Self::ListResources(_) => Method::ListResources,
            Self::ListTemplates(_) => Method::ListTemplates,
            Self::ReadResource(_) => Method::ReadResource,
            Self::Subscribe(_) => Method::Subscribe,
            Self::Unsubscribe(_) => Method::Unsubscribe,
            Self::Complete(_) => Method::Complete,
            Self::SetLevel(_) => Method::SetLevel,
            Self::Listen(_) => Method::Listen,
        }
    }
}

/// The params of `initialize`.
#[derive(Clone, Debug)]
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
#[derive(Clone, Debug, Default)]
pub struct Resume {
    /// The answers by the keys of the questions.
    pub answers: Vec<(String, Raw)>,
    /// What we gave the client to keep, sealed.
    pub state: Option<Box<str>>,
}

/// The params of `tools/call`.
#[derive(Clone, Debug)]
pub struct CallTool {
    /// Which tool.
    pub name: ByteString,
    /// An object, unchecked; absent means empty.
    pub arguments: Option<Raw>,
    /// Answers, if this is a second start.
    pub resume: Resume,
}

/// The params of `prompts/get`.
#[derive(Clone, Debug)]
pub struct GetPrompt {
    /// Which prompt.
    pub name: Box<str>,
    /// By name.
    pub arguments: BTreeMap<String, String>,
    /// Answers, if this is a second start.
    pub resume: Resume,
}

/// The params of `resources/read`.
#[derive(Clone, Debug)]
pub struct ReadResource {
    /// Which resource.
    pub uri: Box<str>,
    /// Answers, if this is a second start.
    pub resume: Resume,
}

/// The params of `completion/complete`.
#[derive(Clone, Debug)]
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
#[derive(Clone, Debug)]
pub struct Listen {
    /// What the client wants to hear.
    pub filter: SubscriptionFilter,
}

/// The params of `notifications/cancelled`.
#[derive(Clone, Debug)]
pub struct Cancelled {
    /// The request that is no longer wanted.
    pub request: Id,
    /// Why, for the log.
    pub reason: Option<String>,
}
impl Cancelled {
    /// Reads the params; `None` if they name no request. A wrong notification is not answered.
    pub fn parse(params: Option<&Raw>) -> Option<Self> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Fields<'a> {
            #[serde(borrow)]
            request_id: &'a RawValue,
            reason: Option<String>,
        }
        let Strict(fields): Strict<Fields<'_>> = params?.read().ok()?;
        Some(Self { request: Id::parse(fields.request_id.get())?, reason: fields.reason })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_reads_back() {
        for (name, method) in &NAMES {
            assert_eq!(&Method::named(name), method);
            assert_eq!(method.name(), *name);
        }
        assert_eq!(Method::named("tools/cal"), Method::Other("tools/cal".into()));
    }
}
