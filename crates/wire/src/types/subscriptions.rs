//! Subscriptions to changes. Spec: basic/patterns/subscriptions.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::json::{WriteJson as _, deserialize, object};
use crate::revision::Revision;

object! {
    /// The changes that a listener asked for, or will be notified of.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    SubscriptionFilter {
        /// Changes in the list of tools.
        tools_list_changed: bool = optional "toolsListChanged";
        /// Changes in the list of prompts.
        prompts_list_changed: bool = optional "promptsListChanged";
        /// Changes in the list of resources.
        resources_list_changed: bool = optional "resourcesListChanged";
        /// Changes in the contents of the resources with these URIs.
        resource_subscriptions: Vec<Box<str>> = optional "resourceSubscriptions";
        /// Changes in the state of the tasks with these ids; of the tasks extension.
        task_ids: Vec<Box<str>> = optional "taskIds";
    }
}

impl Serialize for SubscriptionFilter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_raw(Revision::NEWEST).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for SubscriptionFilter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize(deserializer)
    }
}

/// Something that can change.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
    /// Whether a listener with this filter is notified of `topic`.
    pub fn wants(&self, topic: &Topic) -> bool {
        match topic {
            Topic::Tools => self.tools_list_changed,
            Topic::Prompts => self.prompts_list_changed,
            Topic::Resources => self.resources_list_changed,
            Topic::Resource(uri) => self.resource_subscriptions.contains(uri),
        }
    }

    /// Its weight towards a limit: one for the filter and one for each resource and task.
    pub fn weight(&self) -> usize {
        1 + self.names().count()
    }

    /// The size of the names of its resources and tasks in bytes.
    pub fn size(&self) -> usize {
        self.names().map(|name| name.len()).sum()
    }

    fn names(&self) -> impl Iterator<Item = &Box<str>> {
        self.resource_subscriptions.iter().chain(&self.task_ids)
    }
}
