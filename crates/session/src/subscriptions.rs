//! Subscriptions of both eras.

use std::collections::BTreeSet;

use bytes::Bytes;
use sabir_wire::types::{SubscriptionFilter, Topic};
use sabir_wire::{Id, Task, render};
use serde::{Deserialize, Serialize};

use crate::io::StreamId;

/// All subscriptions of a session.
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
    /// The number of subscriptions of both eras; a listener counts with the weight of its filter.
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

    /// Takes over the subscriptions that another node has added or removed since `base`.
    pub(crate) fn merge(&mut self, base: &Self, theirs: &Self) {
        let added = theirs.resources.iter().filter(|uri| !base.is_subscribed(uri));
        added.for_each(|uri| self.subscribe(uri.clone()));
        let removed = base.resources.iter().filter(|uri| !theirs.is_subscribed(uri));
        removed.for_each(|uri| self.unsubscribe(uri));
    }

    /// Adds a listener, and returns its first message, the acknowledgement.
    pub(crate) fn listen(&mut self, id: Id, stream: StreamId, filter: SubscriptionFilter) -> Bytes {
        let acknowledged = render::acknowledged(&id, &filter);
        self.listeners.push(Listener { id, stream, filter });
        acknowledged
    }

    /// Removes the listener that `id` opened, without a message: its client has cancelled it.
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

    /// The watched resources, each once.
    pub(crate) fn watched(&self) -> Vec<Box<str>> {
        let listened = self.listeners.iter().flat_map(|l| &l.filter.resource_subscriptions);
        let all: BTreeSet<_> = self.resources.iter().chain(listened).cloned().collect();
        all.into_iter().collect()
    }

    /// The notifications of a change. `expected`: a legacy client was promised those of this topic.
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

    /// The watched tasks, each once.
    pub(crate) fn watched_tasks(&self) -> Vec<Box<str>> {
        let all: BTreeSet<_> = self.listeners.iter().flat_map(|l| &l.filter.task_ids).collect();
        all.into_iter().cloned().collect()
    }

    /// The notifications of the state of a task.
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
