//! Maps a request to the work that answers it. One arm per method.

use sabir_registry::List;
use sabir_session::Outcome;
use sabir_wire::{Problem, Request};

use crate::context::{Answering, MethodContext};
use crate::methods;
use crate::methods::lists::list;
use crate::overseen::oversee;

/// Answers a request, if its caller may make it.
pub(crate) fn route(request: Request, context: MethodContext) -> Answering {
    if let Some(overseer) = context.engine.settings.overseer.clone() {
        return oversee(overseer, request, context, answer);
    }
    if let Some(needed) = context.whole.missing_scopes(&request, &context.from.caller) {
        return Outcome::Failed(Problem::Scopes(needed)).into();
    }
    answer(request, context)
}

fn answer(request: Request, context: MethodContext) -> Answering {
    match request {
        Request::Initialize(_) => methods::discover::initialize(&context).into(),
        Request::Discover => methods::discover::discover(&context).into(),
        Request::Ping => methods::discover::ping().into(),
        Request::SetLevel(_) => methods::logging::set_level(&context).into(),
        Request::ListTools(page) => list(context, List::Tools, page),
        Request::CallTool(call) => methods::tools::call(context, call),
        Request::ListPrompts(page) => list(context, List::Prompts, page),
        Request::GetPrompt(get) => methods::prompts::get(context, get),
        Request::ListResources(page) => list(context, List::Resources, page),
        Request::ListTemplates(page) => list(context, List::Templates, page),
        Request::ReadResource(read) => methods::resources::read(context, read),
        Request::Subscribe(uri) => methods::resources::subscribe(&context, &uri).into(),
        Request::Unsubscribe(_) => methods::resources::unsubscribe(&context).into(),
        Request::Complete(complete) => methods::completion::complete(context, complete),
        Request::Listen(listen) => methods::subscriptions::listen(&context, listen).into(),
    }
}
