//! Subscriptions of both eras.

use std::collections::BTreeSet;

use bytes::Bytes;
use sabir_wire::types::{SubscriptionFilter, Topic};
use sabir_wire::{Id, Task, render};
use serde::{Deserialize, Serialize};

use crate::io::StreamId;

/// The filter of a subscription.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Subscriptions {
    /// Legacy: resources by URI. List changes go to every legacy client that is ready.
    resources: Vec<Box<str>>,
    /// Modern: requests that listen.
    listeners: Vec<Listener>,
}

/// A request that listens.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Listener {
    pub(crate) id: Id,
    pub(crate) stream: StreamId,
    filter: SubscriptionFilter,
}

impl Subscriptions {
    /// How many there are, of either era; a listener counts as many as it has resources.
    pub(crate) fn len(&self) -> usize {
        let listened = self.listeners.iter().map(|listener| listener.filter.weight());
        self.resources.len() + listened.sum::<usize>()
    }

    /// The size of their URIs in bytes.
    pub(crate) fn size(&self) -> usize {
        let listened = self.listeners.iter().map(|listener| listener.filter.size());
        self.resources.iter().map(|uri| uri.len()).chain(listened).sum()
    }

    pub(crate) fn subscribe(&mut self, uri: Box<str>) {
        if !self.is_subscribed(&uri) {
            self.resources.push(uri);
        }
    }

    pub(crate) fn is_subscribed(&self, uri: &str) -> bool {
        self.resources.iter().any(|known| &**known == uri)
    }

    pub(crate) fn unsubscribe(&mut self, uri: &str) {
        self.resources.retain(|known| &**known != uri);
    }

    /// Takes over the resources that were subscribed to or given up elsewhere since `base`.
    pub(crate) fn merge(&mut self, base: &Self, theirs: &Self) {
        let added = theirs.resources.iter().filter(|uri| !base.is_subscribed(uri));
        added.for_each(|uri| self.subscribe(uri.clone()));
        let removed = base.resources.iter().filter(|uri| !theirs.is_subscribed(uri));
        removed.for_each(|uri| self.unsubscribe(uri));
    }

    /// Begins to tell a listener; its first message is the acknowledgement.
    pub(crate) fn listen(&mut self, id: Id, stream: StreamId, filter: SubscriptionFilter) -> Bytes {
        let acknowledged = render::acknowledged(&id, &filter);
        self.listeners.push(Listener { id, stream, filter });
        acknowledged
    }

    /// Ends the listener that `id` opened, without a word: its client does not want one.
    pub(crate) fn forget(&mut self, id: &Id) {
        self.listeners.retain(|listener| listener.id != *id);
    }

    /// Ends all listeners.
    pub(crate) fn end(&mut self) -> Vec<Listener> {
        std::mem::take(&mut self.listeners)
    }

    pub(crate) fn is_listening(&self, stream: StreamId) -> bool {
        self.listeners.iter().any(|listener| listener.stream == stream)
    }

    pub(crate) fn has_listener(&self, id: &Id) -> bool {
        self.listeners.iter().any(|listener| listener.id == *id)
    }

    /// The resources that anybody listens to, each once.
    pub(crate) fn watched(&self) -> Vec<Box<str>> {
        let listened = self.listeners.iter().flat_map(|l| &l.filter.resource_subscriptions);
        let all: BTreeSet<_> = self.resources.iter().chain(listened).cloned().collect();
        all.into_iter().collect()
    }

    /// The messages that tell of a change. `expected` says whether a legacy client is there that
    /// was promised notifications of its kind.
    pub(crate) fn announce(&self, topic: &Topic, expected: bool) -> Vec<(Option<StreamId>, Bytes)> {
        let legacy_wants = match topic {
            Topic::Resource(uri) => self.is_subscribed(uri),
            _ => expected,
        };
        let modern = self.listeners.iter().filter(|listener| listener.filter.wants(topic));
        let modern = modern
            .map(|listener| (Some(listener.stream), render::changed(topic, Some(&listener.id))));
        legacy_wants
            .then(|| (None, render::changed(topic, None)))
            .into_iter()
            .chain(modern)
            .collect()
    }

    /// The tasks that anybody listens to, each once.
    pub(crate) fn watched_tasks(&self) -> Vec<Box<str>> {
        let all: BTreeSet<_> = self.listeners.iter().flat_map(|l| &l.filter.task_ids).collect();
        all.into_iter().cloned().collect()
    }

    /// The messages that tell of the state of a task.
    pub(crate) fn announce_task(&self, task: &Task) -> Vec<(StreamId, Bytes)> {
        let wants = |listener: &&Listener| listener.filter.task_ids.contains(&task.id);
        let told = self
            .listeners
            .iter()
            .filter(wants)
            .map(|listener| (listener.stream, render::task_changed(task, &listener.id)));
        told.collect()
    }

    /// Whether there is none.
    pub(crate) fn is_unused(&self) -> bool {
        self.resources.is_empty() && self.listeners.is_empty()
    }
}
