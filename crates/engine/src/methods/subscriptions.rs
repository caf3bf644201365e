//! Listening to changes. Spec: basic/patterns/subscriptions.

use sabir_session::Outcome;
use sabir_wire::Listen;
use sabir_wire::types::{SubscriptionFilter, TASKS};

use super::background::missing;
use crate::context::MethodContext;

/// The part of the requested filter that can be served; the session acknowledges it.
pub(crate) fn listen(context: &MethodContext, listen: Listen) -> Outcome {
    let has = context.catalog.capabilities();
    let wish = listen.filter;
    let knows_tasks = context.from.capabilities.has_extension(TASKS);
    if has.tasks && !wish.task_ids.is_empty() && !knows_tasks {
        return Outcome::Failed(missing());
    }
    let tasks = &context.engine.tasks;
    let mut task_ids = wish.task_ids;
    task_ids.retain(|id| tasks.get(&context.from.caller, id).is_some());
    // What has happened before the subscription is told first.
    task_ids.iter().for_each(|id| tasks.announce(id));
    let resource_subscriptions =
        if has.subscribe { wish.resource_subscriptions } else { Vec::new() };
    Outcome::Listening(SubscriptionFilter {
        tools_list_changed: wish.tools_list_changed && has.tools_list_changed,
        prompts_list_changed: wish.prompts_list_changed && has.prompts_list_changed,
        resources_list_changed: wish.resources_list_changed && has.resources_list_changed,
        resource_subscriptions,
        task_ids,
        ..SubscriptionFilter::default()
    })
}
