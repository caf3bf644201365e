//! Every method of the protocol, in both directions.
//!
//! A new method needs a row in the table of [`Method`]; a client's request also an arm in
//! `request::Fields` and one in the engine's router, which the compiler finds.

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
    /// `tasks/get`.
    GetTask,
    /// `tasks/update`.
    UpdateTask,
    /// `tasks/cancel`.
    CancelTask,
    /// `tasks/result`.
    TaskResult,
    /// `tasks/list`.
    ListTasks,
    /// `skills/list`.
    ListSkills,
    /// `skills/get`.
    GetSkill,
    /// `resources/directory/read`.
    ReadFolder,
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

const TABLE: [(&str, Method, Sender); 37] = [
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
    ("tasks/get", Method::GetTask, Sender::Either),
    ("tasks/update", Method::UpdateTask, Sender::Client),
    ("tasks/cancel", Method::CancelTask, Sender::Either),
    ("tasks/result", Method::TaskResult, Sender::Either),
    ("tasks/list", Method::ListTasks, Sender::Either),
    ("skills/list", Method::ListSkills, Sender::Client),
    ("skills/get", Method::GetSkill, Sender::Client),
    ("resources/directory/read", Method::ReadFolder, Sender::Client),
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

/// As its name.
impl serde::Serialize for Method {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> serde::Deserialize<'de> for Method {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        std::borrow::Cow::<str>::deserialize(deserializer).map(|name| Self::named(&name))
    }
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
