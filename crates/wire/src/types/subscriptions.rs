//! Who listens to what. Spec: basic/patterns/subscriptions.

use serde::{Deserialize, Serialize};

/// What a listener wants to hear, or is going to hear.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SubscriptionFilter {
    /// The list of tools changed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub tools_list_changed: bool,
    /// The list of prompts changed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub prompts_list_changed: bool,
    /// The list of resources changed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub resources_list_changed: bool,
    /// One of these resources changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resource_subscriptions: Vec<Box<str>>,
}

/// Something that changed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Topic {
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The list of resources or of templates.
    Resources,
    /// What one resource holds.
    Resource(Box<str>),
}

impl Topic {
    /// The notification that tells of it.
    pub fn method(&self) -> &'static str {
        match self {
            Self::Tools => "notifications/tools/list_changed",
            Self::Prompts => "notifications/prompts/list_changed",
            Self::Resources => "notifications/resources/list_changed",
            Self::Resource(_) => "notifications/resources/updated",
        }
    }
}

impl SubscriptionFilter {
    /// Whether a listener with this filter hears of `topic`.
    pub fn wants(&self, topic: &Topic) -> bool {
        match topic {
            Topic::Tools => self.tools_list_changed,
            Topic::Prompts => self.prompts_list_changed,
            Topic::Resources => self.resources_list_changed,
            Topic::Resource(uri) => self.resource_subscriptions.contains(uri),
        }
    }

    /// How much it takes to keep: one for the filter and one for each resource.
    pub fn weight(&self) -> usize {
        1 + self.resource_subscriptions.len()
    }
}
