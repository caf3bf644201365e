//! Listening to changes. Spec: basic/patterns/subscriptions.

use std::sync::Arc;

use sabir_session::Outcome;
use sabir_wire::types::{SubscriptionFilter, TASKS};
use sabir_wire::{Listen, Request};

use super::background::missing;
use crate::context::MethodContext;

/// The part of the requested filter that can be served; the session acknowledges it.
pub(crate) async fn listen(context: MethodContext, listen: Listen) -> Outcome {
    let has = context.catalog.capabilities();
    let wish = listen.filter;
    let knows_tasks = context.from.capabilities.has_extension(TASKS);
    if has.tasks && !wish.task_ids.is_empty() && !knows_tasks {
        return Outcome::Failed(missing());
    }
    let task_ids = context.engine.tasks.watch(&context.from.caller, wish.task_ids).await;
    let mut resource_subscriptions =
        if has.subscribe { wish.resource_subscriptions } else { Vec::new() };
    // A caller who may not see everything needs what `resources/subscribe` demands.
    let (whole, caller) = (&context.whole, &context.from.caller);
    if !Arc::ptr_eq(&whole.seen_by(caller), whole) {
        let is_allowed = |uri: &str| {
            let subscribe = Request::Subscribe(uri.into());
            whole.resource(uri).is_some() && whole.missing_scopes(&subscribe, caller).is_none()
        };
        resource_subscriptions.retain(|uri| is_allowed(uri));
    }
    Outcome::Listening(SubscriptionFilter {
        tools_list_changed: wish.tools_list_changed && has.tools_list_changed,
        prompts_list_changed: wish.prompts_list_changed && has.prompts_list_changed,
        resources_list_changed: wish.resources_list_changed && has.resources_list_changed,
        resource_subscriptions,
        task_ids,
        ..SubscriptionFilter::default()
    })
}
