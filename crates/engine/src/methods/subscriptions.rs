//! Listening to changes. Spec: basic/patterns/subscriptions.

use sabir_session::Outcome;
use sabir_wire::Listen;
use sabir_wire::types::SubscriptionFilter;

use crate::context::MethodContext;

/// The part of the requested filter that can be served; the session acknowledges it.
pub(crate) fn listen(context: &MethodContext, listen: Listen) -> Outcome {
    let has = context.catalog.capabilities();
    let wish = listen.filter;
    let resource_subscriptions =
        if has.subscribe { wish.resource_subscriptions } else { Vec::new() };
    Outcome::Listening(SubscriptionFilter {
        tools_list_changed: wish.tools_list_changed && has.tools_list_changed,
        prompts_list_changed: wish.prompts_list_changed && has.prompts_list_changed,
        resources_list_changed: wish.resources_list_changed && has.resources_list_changed,
        resource_subscriptions,
        ..SubscriptionFilter::default()
    })
}
