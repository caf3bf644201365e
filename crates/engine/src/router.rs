//! Maps a request to the work that answers it. One arm per method.

use sabir_registry::List;
use sabir_wire::Request;

use crate::context::{Answering, MethodContext};
use crate::methods;
use crate::methods::lists::list;

pub(crate) fn route(request: Request, context: MethodContext) -> Answering {
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
        Request::GetTask(id) => methods::tasks::get(&context, &id).into(),
        Request::UpdateTask(update) => methods::tasks::update(&context, update).into(),
        Request::CancelTask(id) => methods::tasks::cancel(context, id),
        Request::TaskResult(wanted) => methods::tasks::result(context, wanted),
        Request::ListSkills(page) => list(context, List::Skills, page),
        Request::GetSkill(uri) => methods::skills::get(&context, &uri).into(),
        Request::ReadFolder(read) => methods::skills::read_folder(&context, &read).into(),
        Request::ListTasks(page) => methods::tasks::list(&context, &page).into(),
    }
}
