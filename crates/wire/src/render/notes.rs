//! Notifications, as each revision says them. Each function gives the whole message.

use bytes::Bytes;
use serde::{Serialize, Serializer};

use super::object;
use crate::id::Id;
use crate::message::write_notification;
use crate::meta::ProgressToken;
use crate::raw::Raw;
use crate::revision::Revision;
use crate::types::{Level, SubscriptionFilter, Topic};

/// How far a call has come.
pub fn progressed(
    token: &ProgressToken,
    progress: f64,
    total: Option<f64>,
    message: Option<&str>,
    revision: Revision,
) -> Bytes {
    let message = message.filter(|_| revision.features().audio);
    note("notifications/progress", &Progress { token, progress, total, message })
}

struct Progress<'a> {
    token: &'a ProgressToken,
    progress: f64,
    total: Option<f64>,
    message: Option<&'a str>,
}

impl Serialize for Progress<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = object(serializer)?;
        map.set("progressToken", &JsonId(self.token))?;
        map.set("progress", &Number(self.progress))?;
        map.may("total", self.total.map(Number).as_ref())?;
        map.may("message", self.message)?;
        map.end()
    }
}

/// A log message.
pub fn logged(level: Level, logger: Option<&str>, data: &Raw) -> Bytes {
    #[derive(Serialize)]
    struct Log<'a> {
        level: Level,
        #[serde(skip_serializing_if = "Option::is_none")]
        logger: Option<&'a str>,
        data: &'a Raw,
    }
    note("notifications/message", &Log { level, logger, data })
}

/// A request of ours is no longer wanted.
pub fn cancelled(request: &Id, reason: &str) -> Bytes {
    cancel(&Cancelled { meta: None, request_id: JsonId(request), reason })
}

/// We end a subscription, named by the request that opened it. Like all that is said on its stream
/// it carries the subscription's id.
pub fn ended(subscription: &Id, reason: &str) -> Bytes {
    let meta = Some(SubscriptionMeta(subscription));
    cancel(&Cancelled { meta, request_id: JsonId(subscription), reason })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Cancelled<'a> {
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<SubscriptionMeta<'a>>,
    request_id: JsonId<'a>,
    reason: &'a str,
}

fn cancel(cancelled: &Cancelled<'_>) -> Bytes {
    note("notifications/cancelled", cancelled)
}

/// A subscription begins: what it will be told.
pub fn acknowledged(subscription: &Id, filter: &SubscriptionFilter) -> Bytes {
    #[derive(Serialize)]
    struct Acknowledged<'a> {
        #[serde(rename = "_meta")]
        meta: SubscriptionMeta<'a>,
        notifications: &'a SubscriptionFilter,
    }
    let acknowledged = Acknowledged { meta: SubscriptionMeta(subscription), notifications: filter };
    note("notifications/subscriptions/acknowledged", &acknowledged)
}

/// Something changed; `subscription` names the request that listens, where the era has such.
pub fn changed(topic: &Topic, subscription: Option<&Id>) -> Bytes {
    #[derive(Serialize)]
    struct Changed<'a> {
        #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
        meta: Option<SubscriptionMeta<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        uri: Option<&'a str>,
    }
    let uri = match topic {
        Topic::Resource(uri) => Some(uri.as_ref()),
        _ => None,
    };
    if uri.is_none() && subscription.is_none() {
        return write_notification(topic.method(), None);
    }
    note(topic.method(), &Changed { meta: subscription.map(SubscriptionMeta), uri })
}

fn note(method: &str, params: &impl Serialize) -> Bytes {
    write_notification(method, Raw::of(params).ok().as_ref())
}

struct SubscriptionMeta<'a>(&'a Id);

impl Serialize for SubscriptionMeta<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = object(serializer)?;
        map.set("io.modelcontextprotocol/subscriptionId", &JsonId(self.0))?;
        map.end()
    }
}

/// An id as a JSON value.
struct JsonId<'a>(&'a Id);

impl Serialize for JsonId<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Raw::parse(self.0.to_string()).map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}

/// A number as people write it: `50`, not `50.0`.
struct Number(f64);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        const EXACT: f64 = 9_007_199_254_740_992.0;
        if self.0.fract() == 0.0 && self.0.abs() < EXACT {
            serializer.serialize_i64(self.0 as i64)
        } else {
            serializer.serialize_f64(self.0)
        }
    }
}
