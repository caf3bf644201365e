//! Maps a request to the work that answers it. One arm per method.

use sabir_registry::List;
use sabir_session::Outcome;
use sabir_wire::types::Questions;
use sabir_wire::{Era, Problem, Request};

use crate::context::{Answering, MethodContext};
use crate::methods;
use crate::methods::attempt::check_answers;
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

fn answer(mut request: Request, context: MethodContext) -> Answering {
    let resume = request.resume_mut();
    let has_only_answers = resume.is_some_and(|r| r.state.is_none() && !r.answers.is_empty());
    // A legacy client was asked by its session.
    if has_only_answers && context.from.revision.era() == Era::Modern {
        return Answering::Running(Box::pin(ask_first(request, context)));
    }
    start(request, context)
}

/// Runs a call whose client answers without a state. A call that keeps a state needs it back with
/// the answers, and only the call knows whether it keeps one: it runs without the answers first,
/// and again with them if its questions come without a state.
async fn ask_first(mut request: Request, context: MethodContext) -> Outcome {
    let mut resume = request.resume_mut().map(std::mem::take).unwrap_or_default();
    if let Err(problem) = check_answers(&resume.answers) {
        return Outcome::Failed(problem);
    }
    let outcome = start(request.clone(), context.clone()).outcome().await;
    let Outcome::NeedInput { questions: Questions { questions, state: None, .. }, .. } = &outcome
    else {
        return outcome;
    };
    resume.answers.retain(|(key, _)| questions.iter().any(|(asked, _)| asked == key));
    if resume.answers.is_empty() {
        return outcome;
    }
    start(request.resumed(resume), context).outcome().await
}

fn start(request: Request, context: MethodContext) -> Answering {
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
        Request::Listen(listen) => {
            Answering::Running(Box::pin(methods::subscriptions::listen(context, listen)))
        }
        Request::GetTask(id) => methods::tasks::get(context, id),
        Request::UpdateTask(update) => methods::tasks::update(context, update),
        Request::CancelTask(id) => methods::tasks::cancel(context, id),
        Request::TaskResult(wanted) => methods::tasks::result(context, wanted),
        Request::ListSkills(page) => list(context, List::Skills, page),
        Request::GetSkill(uri) => methods::skills::get(&context, &uri).into(),
        Request::ReadFolder(read) => methods::skills::read_folder(context, read),
        Request::ListTasks(page) => methods::tasks::list(context, page),
    }
}
