//! Maps a request to the work that answers it. One arm per method.

use sabir_wire::Request;

use crate::context::{MethodContext, Work};
use crate::methods;

pub(crate) fn route(request: Request, desk: MethodContext) -> Work {
    match request {
        Request::Initialize(_) => methods::discover::initialize(&desk).into(),
        Request::Discover => methods::discover::discover(&desk).into(),
        Request::Ping => methods::discover::ping().into(),
        Request::SetLevel(_) => methods::logging::set_level(&desk).into(),
        Request::ListTools(page) => methods::tools::list(&desk, &page).into(),
        Request::CallTool(call) => methods::tools::call(desk, call),
        Request::ListPrompts(page) => methods::prompts::list(&desk, &page).into(),
        Request::GetPrompt(get) => methods::prompts::get(desk, get),
        Request::ListResources(page) => methods::resources::list(&desk, &page).into(),
        Request::ListTemplates(page) => methods::resources::templates(&desk, &page).into(),
        Request::ReadResource(read) => methods::resources::read(desk, read),
        Request::Subscribe(uri) => methods::resources::subscribe(&desk, &uri).into(),
        Request::Unsubscribe(_) => methods::resources::unsubscribe(&desk).into(),
        Request::Complete(complete) => methods::completion::complete(&desk, complete),
        Request::Listen(listen) => methods::subscriptions::listen(&desk, listen).into(),
    }
}
