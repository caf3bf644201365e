//! Notifications of changes in the catalog and of tasks.

use sabir_wire::Task;
use sabir_wire::types::Topic;

use super::{Session, notify};
use crate::io::Output;
use crate::phase::Phase;
use crate::subscriptions::Subscriptions;

impl Session {
    /// The size in bytes of the URIs of its subscriptions.
    pub fn subscription_bytes(&self) -> usize {
        self.state.subscriptions.size()
    }

    /// The resources that the client watches.
    pub fn watched(&self) -> Vec<Box<str>> {
        self.state.subscriptions.watched()
    }

    /// The tasks that the client watches.
    pub fn watched_tasks(&self) -> Vec<Box<str>> {
        self.state.subscriptions.watched_tasks()
    }

    pub(super) fn on_change(&self, topic: &Topic, out: &mut Vec<Output>) {
        let is_ready = self.state.phase == Phase::Ready;
        let is_announced = is_ready && self.state.client.announced.includes(topic);
        let changes = self.state.subscriptions.announce(topic, is_announced);
        out.extend(changes.into_iter().map(|(stream, frame)| notify(stream, frame)));
    }

    pub(super) fn on_task(&self, task: &Task, out: &mut Vec<Output>) {
        let told = self.state.subscriptions.announce_task(task);
        out.extend(told.into_iter().map(|(stream, frame)| notify(Some(stream), frame)));
    }

    /// Changes the subscriptions, and outputs which resources are newly watched or no longer
    /// watched.
    pub(super) fn change_subscriptions(
        &mut self,
        out: &mut Vec<Output>,
        change: impl FnOnce(&mut Subscriptions),
    ) {
        let before = self.watched();
        change(&mut self.state.subscriptions);
        let after = self.watched();
        let added = after.iter().filter(|uri| !before.contains(uri));
        out.extend(added.map(|uri| Output::Watch(uri.clone())));
        let removed = before.iter().filter(|uri| !after.contains(uri));
        out.extend(removed.map(|uri| Output::Unwatch(uri.clone())));
    }
}
