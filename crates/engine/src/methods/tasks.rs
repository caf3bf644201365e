//! Tasks. Spec: the extension `io.modelcontextprotocol/tasks`; basic/utilities/tasks of 2025-11-25.

use sabir_session::Outcome;
use sabir_wire::types::{Elicit, Question, Questions, ServerResult, TASKS, Task, TaskState};
use sabir_wire::{Code, ErrorObject, Method, Page, Problem, Raw, TaskResult, UpdateTask};

use super::attempt::relayed;
use super::background::missing;
use super::{Reply, declared};
use crate::context::{Answering, MethodContext};

pub(crate) fn get(context: &MethodContext, id: &str) -> Reply {
    allowed(context, &Method::GetTask)?;
    let task = context.engine.tasks.get(&context.from.caller, id).ok_or_else(unknown)?;
    Ok(relayed("tasks/get", task.detailed(context.from.revision)))
}

pub(crate) fn update(context: &MethodContext, update: UpdateTask) -> Reply {
    allowed(context, &Method::UpdateTask)?;
    if let Some((key, _)) = update.answers.iter().find(|(_, answer)| !answer.is_object()) {
        let reason = format!("`inputResponses[\"{key}\"]` must be an object");
        return Err(Problem::Params(reason.into()));
    }
    match context.engine.tasks.answer(&context.from.caller, &update.id, update.answers) {
        true => Ok(ServerResult::Empty),
        false => Err(unknown()),
    }
}

pub(crate) fn cancel(context: MethodContext, id: Box<str>) -> Answering {
    Answering::Running(Box::pin(async move {
        let cancelled: Reply = async {
            allowed(&context, &Method::CancelTask)?;
            let MethodContext { engine, from, .. } = &context;
            let cancelled = engine.tasks.cancel(&from.caller, &id).await;
            let (task, is_ended_by_this) = cancelled.ok_or_else(unknown)?;
            match (from.revision.features().stateless, is_ended_by_this) {
                (true, _) => Ok(ServerResult::Empty),
                (false, true) => Ok(relayed("tasks/cancel", task.detailed(from.revision))),
                (false, false) => Err(Problem::Params("the task has ended already".into())),
            }
        }
        .await;
        cancelled.into()
    }))
}

pub(crate) fn list(context: &MethodContext, page: &Page) -> Reply {
    allowed(context, &Method::ListTasks)?;
    let MethodContext { engine, from, .. } = context;
    let conversation = context.conversation_number();
    let (cursor, limit) = (page.cursor.as_deref(), engine.settings.engine_limits.page_size);
    let (tasks, next) = engine.tasks.list(&from.caller, conversation, cursor, limit);
    Ok(relayed("tasks/list", Task::page(&tasks, next.as_deref(), from.revision)))
}

/// Waits for the result of a task. Its questions are those of this request meanwhile: the session
/// asks them and starts it again with the answers.
pub(crate) fn result(context: MethodContext, wanted: TaskResult) -> Answering {
    Answering::Running(Box::pin(async move {
        let MethodContext { engine, from, .. } = &context;
        if let Err(problem) = allowed(&context, &Method::TaskResult) {
            return Outcome::Failed(problem);
        }
        let TaskResult { id, resume } = wanted;
        if !resume.answers.is_empty() {
            engine.tasks.answer(&from.caller, &id, resume.answers);
        }
        let Some(task) = engine.tasks.settled(&from.caller, &id).await else {
            return Outcome::Failed(unknown());
        };
        match &task.state {
            TaskState::InputRequired(questions) => Outcome::NeedInput(asked(&task, questions)),
            TaskState::Completed(result) => {
                Outcome::Done(relayed("tools/call", task.related(result)))
            }
            TaskState::Failed(error) => Outcome::Failed(Problem::Chosen(error.clone())),
            TaskState::Working | TaskState::Cancelled => {
                let cancelled = ErrorObject::new(Code::INTERNAL, "the task was cancelled");
                Outcome::Failed(Problem::Chosen(cancelled))
            }
        }
    }))
}

/// The questions of a task, each of which names it.
fn asked(task: &Task, questions: &[(String, Question)]) -> Questions {
    let related = task.related(&Raw::empty_object()).member("_meta");
    let mut questions = questions.to_vec();
    for (_, question) in &mut questions {
        let extra = match question {
            Question::Elicit(Elicit::Form { extra, .. } | Elicit::Url { extra, .. }) => extra,
            Question::Sample(sample) => &mut sample.extra,
            Question::Roots => continue,
        };
        if let Some(meta) = &related {
            extra.set("_meta", meta.clone());
        }
    }
    Questions { questions, ..Questions::default() }
}

/// Refuses a client that does not know tasks in the form of its revision, before any id is looked
/// up.
fn allowed(context: &MethodContext, method: &Method) -> Result<(), Problem> {
    let MethodContext { engine, catalog, from, .. } = context;
    let to = from.revision.features();
    let has_tasks = catalog.capabilities().tasks || !engine.tasks.is_empty();
    declared(has_tasks && (to.stateless || to.core_tasks), method.name())?;
    if to.stateless && !from.capabilities.has_extension(TASKS) {
        return Err(missing());
    }
    Ok(())
}

fn unknown() -> Problem {
    Problem::Params("there is no such task, or it has expired".into())
}
