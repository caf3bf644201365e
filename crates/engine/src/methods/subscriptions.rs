//! Listening to changes. Spec: basic/patterns/subscriptions.

use sabir_session::Outcome;
use sabir_wire::Listen;
use sabir_wire::types::{SubscriptionFilter, TASKS};

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
    // One that exists, but not for this caller.
    let is_hidden = |uri: &str| {
        context.catalog.resource(uri).is_none() && context.whole.resource(uri).is_some()
    };
    if !std::sync::Arc::ptr_eq(&context.catalog, &context.whole) {
        resource_subscriptions.retain(|uri| !is_hidden(uri));
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
