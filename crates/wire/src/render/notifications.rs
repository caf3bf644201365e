//! Notifications. Each function gives the whole message.

use bytes::Bytes;

use crate::id::Id;
use crate::json::{Extra, WriteJson};
use crate::message::write_notification;
use crate::meta::ProgressToken;
use crate::raw::Raw;
use crate::revision::Revision;
use crate::task::Task;
use crate::types::{Acknowledged, Cancelled, Changed, LogMessage, Progress, subscription_meta};
use crate::types::{Level, SubscriptionFilter, Topic};

/// Reports the progress of a call.
pub fn progressed(
    token: &ProgressToken,
    progress: f64,
    total: Option<f64>,
    message: Option<&str>,
    revision: Revision,
) -> Bytes {
    let (token, message) = (token.clone(), message.map(str::to_owned));
    let params = Progress { meta: None, token, progress, total, message, extra: Extra::NONE };
    write_notification("notifications/progress", Some(&params.to_raw(revision)))
}

/// Sends a log message.
pub fn logged(level: Level, logger: Option<&str>, data: &Raw) -> Bytes {
    let (logger, data) = (logger.map(str::to_owned), data.clone());
    notification(
        "notifications/message",
        &LogMessage { meta: None, level, logger, data, extra: Extra::NONE },
    )
}

/// Withdraws a request of ours.
pub fn cancelled(request: &Id, reason: &str) -> Bytes {
    cancel(None, request, reason)
}

/// Ends a subscription, named by the request that opened it.
pub fn ended(subscription: &Id, reason: &str) -> Bytes {
    cancel(Some(subscription_meta(subscription)), subscription, reason)
}

fn cancel(meta: Option<Raw>, request: &Id, reason: &str) -> Bytes {
    let (request, reason) = (request.clone(), Some(reason.to_owned()));
    notification(
        "notifications/cancelled",
        &Cancelled { meta, request, reason, extra: Extra::NONE },
    )
}

/// Acknowledges a subscription; `filter` is the granted part.
pub fn acknowledged(subscription: &Id, filter: &SubscriptionFilter) -> Bytes {
    let (meta, filter) = (Some(subscription_meta(subscription)), filter.clone());
    notification(
        "notifications/subscriptions/acknowledged",
        &Acknowledged { meta, filter, extra: Extra::NONE },
    )
}

/// Announces a change; `subscription` names the request that listens, in the modern era.
pub fn changed(topic: &Topic, subscription: Option<&Id>) -> Bytes {
    if subscription.is_none() && !matches!(topic, Topic::Resource(_)) {
        return write_notification(topic.method(), None);
    }
    let meta = subscription.map(subscription_meta);
    notification(topic.method(), &Changed { meta, topic: topic.clone(), extra: Extra::NONE })
}

/// Notifies a listener of the state of a task; only the newest revision has such listeners.
pub fn task_changed(task: &Task, subscription: &Id) -> Bytes {
    write_notification("notifications/tasks", Some(&task.notification(subscription)))
}

/// A notification that is the same in every revision.
fn notification(method: &str, params: &impl WriteJson) -> Bytes {
    write_notification(method, Some(&params.to_raw(Revision::NEWEST)))
}
