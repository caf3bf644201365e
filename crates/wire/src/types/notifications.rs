//! Notifications of a server. Spec: basic/utilities; server/utilities/logging;
//! basic/patterns/subscriptions.

use crate::id::Id;
use crate::json::{Extra, Invalid, MemberReader, MemberWriter, Number, Object, ReadJson};
use crate::json::{SUBSCRIPTION, object};
use crate::method::Method;
use crate::raw::Raw;
use crate::revision::Features;
use crate::types::{Level, SubscriptionFilter, Topic};

/// A notification of a server with its params.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerNotification {
    /// `notifications/progress`.
    Progress(Progress),
    /// `notifications/message`.
    Log(LogMessage),
    /// `notifications/cancelled`: the server withdraws a request, or ends a subscription.
    Cancelled(Cancelled),
    /// One of the `list_changed` notifications, or `notifications/resources/updated`.
    Changed(Changed),
    /// `notifications/subscriptions/acknowledged`.
    Acknowledged(Acknowledged),
    /// `notifications/elicitation/complete`, which only 2025-11-25 has.
    ElicitationComplete(ElicitationComplete),
}

impl ServerNotification {
    /// Reads the params of a notification; `None` if `method` is not a notification of a server.
    pub fn read(method: &Method, params: Option<&Raw>) -> Result<Option<Self>, Invalid> {
        let empty = Raw::empty_object();
        let params = params.unwrap_or(&empty);
        let changed = |topic| Changed::about(topic, params).map(Self::Changed);
        Ok(Some(match method {
            Method::Progress => Self::Progress(ReadJson::read_json(params)?),
            Method::LogMessage => Self::Log(ReadJson::read_json(params)?),
            Method::Cancelled => Self::Cancelled(ReadJson::read_json(params)?),
            Method::Acknowledged => Self::Acknowledged(ReadJson::read_json(params)?),
            Method::ElicitationComplete => Self::ElicitationComplete(ReadJson::read_json(params)?),
            Method::ToolsChanged => changed(Topic::Tools)?,
            Method::PromptsChanged => changed(Topic::Prompts)?,
            Method::ResourcesChanged => changed(Topic::Resources)?,
            Method::ResourceUpdated => changed(Topic::Resource("".into()))?,
            _ => return Ok(None),
        }))
    }

    /// The subscription on whose stream it was sent: the id of the request that opened it.
    pub fn subscription(&self) -> Option<Id> {
        let meta = match self {
            Self::Progress(progress) => &progress.meta,
            Self::Log(message) => &message.meta,
            Self::Cancelled(cancelled) => &cancelled.meta,
            Self::Changed(changed) => &changed.meta,
            Self::Acknowledged(acknowledged) => &acknowledged.meta,
            Self::ElicitationComplete(_) => &None,
        };
        meta.as_ref()?.member(SUBSCRIPTION).and_then(|id| Id::read_json(&id).ok())
    }
}

/// The `_meta` object of a notification on the stream of a subscription.
pub(crate) fn subscription_meta(subscription: &Id) -> Raw {
    Raw::written(format!("{{\"{SUBSCRIPTION}\":{subscription}}}").into_bytes())
}

object! {
    /// Progress of a request.
    #[derive(Clone, Debug, PartialEq)]
    Progress |progress, to| {
        /// The `_meta` object.
        meta: Option<Raw> = optional "_meta";
        /// Token that the request gave.
        token: Id = required "progressToken";
        /// Progress so far; it only grows.
        progress: f64 = required "progress" as (&Number(progress.progress));
        /// Progress at the end, if known.
        total: Option<f64> = optional "total" as (&progress.total.map(Number));
        /// Description for people, since 2025-03-26.
        message: Option<String> = optional "message" if to.audio;
    }
}

object! {
    /// A log message.
    #[derive(Clone, Debug, PartialEq)]
    LogMessage {
        /// The `_meta` object.
        meta: Option<Raw> = optional "_meta";
        /// Severity.
        level: Level = required "level";
        /// Name of the component that sent it.
        logger: Option<String> = optional "logger";
        /// The message: any JSON value.
        data: Raw = required "data";
    }
}

object! {
    /// A request that is no longer wanted, or a subscription that ends.
    #[derive(Clone, Debug, PartialEq)]
    Cancelled {
        /// The `_meta` object.
        meta: Option<Raw> = optional "_meta";
        /// Id of the request.
        request: Id = required "requestId";
        /// Reason, for the log.
        reason: Option<String> = optional "reason";
    }
}

impl Cancelled {
    /// Reads the params; `None` if they name no request. A wrong notification is not answered.
    pub fn parse(params: Option<&Raw>) -> Option<Self> {
        Self::read_json(params?).ok()
    }
}

/// A change of a list, or of a resource.
#[derive(Clone, Debug, PartialEq)]
pub struct Changed {
    /// The `_meta` object.
    pub meta: Option<Raw>,
    /// The changed list or resource.
    pub topic: Topic,
    /// Unknown members.
    pub extra: Extra,
}

impl Changed {
    fn about(topic: Topic, params: &Raw) -> Result<Self, Invalid> {
        let mut members = MemberReader::new(params)?;
        let topic = match topic {
            Topic::Resource(_) => Topic::Resource(members.take("uri")?),
            list => list,
        };
        Ok(Self { meta: members.take("_meta")?, topic, extra: members.rest() })
    }
}

/// The method names the topic of a list change; read without a method, it is a resource.
impl Object for Changed {
    fn read_members(members: &mut MemberReader) -> Result<Self, Invalid> {
        let topic = Topic::Resource(members.take("uri")?);
        Ok(Self { meta: members.take("_meta")?, topic, extra: members.rest() })
    }

    fn write_members(&self, writer: &mut MemberWriter<'_>) {
        writer.optional("_meta", &self.meta);
        if let Topic::Resource(uri) = &self.topic {
            writer.required("uri", uri);
        }
    }

    fn extra(&self, _: &Features) -> &Extra {
        &self.extra
    }
}

object! {
    /// The beginning of a subscription.
    #[derive(Clone, Debug, PartialEq)]
    Acknowledged {
        /// The `_meta` object.
        meta: Option<Raw> = optional "_meta";
        /// Changes that the listener will be notified of.
        filter: SubscriptionFilter = required "notifications";
    }
}

object! {
    /// The end of a visit to a web page.
    #[derive(Clone, Debug, PartialEq)]
    ElicitationComplete {
        /// Name of the visit.
        id: String = required "elicitationId";
    }
}
