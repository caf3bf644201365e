//! The subscription to changes at the server.

use std::sync::Arc;

use sabir_wire::types::SubscriptionFilter;
use sabir_wire::{Era, Listen, Request};

use crate::call::{Call, CallEvent};
use crate::connection::Connection;
use crate::io::ServerInfo;
use crate::request::CallRequest;

/// The subscription at a modern server.
#[derive(Default)]
pub(super) struct Listening {
    call: Option<Call>,
    /// The subscription before. It ends after the new one has begun, so that no change is missed.
    before: Option<Call>,
}

impl Listening {
    pub(super) fn replace(&mut self, call: Option<Call>) {
        let old = std::mem::replace(&mut self.call, call);
        self.before = self.before.take().or(old).filter(|_| self.call.is_some());
    }

    /// The next event of the subscription.
    pub(super) async fn next(&mut self) -> CallEvent {
        let Some(call) = &mut self.call else { return std::future::pending().await };
        let event = call.next().await;
        self.before = None;
        if matches!(event, CallEvent::Done(_)) {
            self.call = None;
        }
        event
    }
}

/// Subscribes to the wanted changes. At a modern server, the call is the subscription.
pub(super) async fn watch(
    connection: &Arc<Connection>,
    info: &ServerInfo,
    before: &SubscriptionFilter,
    wanted: &SubscriptionFilter,
) -> Option<Call> {
    let begin = async |request: Request| {
        let request = Arc::new(CallRequest::new(request));
        let begun = connection.begin(&request).await;
        Call::new(connection.clone(), begun, request.method(), info.revision)
    };
    if info.revision.era() == Era::Modern {
        if *wanted == SubscriptionFilter::default() {
            return None;
        }
        return Some(begin(Request::Listen(Listen { filter: wanted.clone() })).await);
    }
    let (old, new) = (&before.resource_subscriptions, &wanted.resource_subscriptions);
    let gone = old.iter().filter(|uri| !new.contains(uri)).cloned().map(Request::Unsubscribe);
    let added = new.iter().filter(|uri| !old.contains(uri)).cloned().map(Request::Subscribe);
    for request in gone.chain(added) {
        if let Err(error) = begin(request).await.result().await {
            tracing::warn!(%error, "the server refused a subscription");
        }
    }
    None
}
