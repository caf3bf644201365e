//! Subscriptions to changes. Spec: basic/patterns/subscriptions.

use crate::json::{Extra, object};

/// The changes that a listener wants to hear of, or will hear of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubscriptionFilter {
    /// Changes in the list of tools.
    pub tools_list_changed: bool,
    /// Changes in the list of prompts.
    pub prompts_list_changed: bool,
    /// Changes in the list of resources.
    pub resources_list_changed: bool,
    /// Changes in the contents of the resources with these URIs.
    pub resource_subscriptions: Vec<Box<str>>,
    /// Unknown members.
    pub extra: Extra,
}

object!(SubscriptionFilter, filter, to {
    optional "toolsListChanged": tools_list_changed;
    optional "promptsListChanged": prompts_list_changed;
    optional "resourcesListChanged": resources_list_changed;
    optional "resourceSubscriptions": resource_subscriptions;
});

/// Something that can change.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Topic {
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The list of resources or of resource templates.
    Resources,
    /// The contents of the resource with this URI.
    Resource(Box<str>),
}

impl Topic {
    /// The notification that announces a change.
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

    /// What it counts towards a limit: one for the filter and one for each resource.
    pub fn weight(&self) -> usize {
        1 + self.resource_subscriptions.len()
    }
}
