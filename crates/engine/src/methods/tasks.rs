//! Tasks. Spec: the extension `io.modelcontextprotocol/tasks`; basic/utilities/tasks of 2025-11-25.

use sabir_session::Outcome;
use sabir_tasks::{StoreError, is_cursor};
use sabir_wire::UpdateTask;
use sabir_wire::types::{Question, Questions, ServerResult, TASKS};
use sabir_wire::{Code, ErrorObject, Method, Page, Problem, Raw, Task, TaskResult, TaskState};

use super::attempt::relayed;
use super::background::missing;
use super::{Reply, declared};
use crate::context::{Answering, MethodContext};

pub(crate) fn get(context: MethodContext, id: Box<str>) -> Answering {
    running(async move {
        allowed(&context, &Method::GetTask)?;
        let task = context.engine.tasks.get(&context.from.caller, &id).await.map_err(away)?;
        let server = &context.engine.session_config.server;
        let response = task.ok_or_else(unknown)?.response(context.from.revision, server);
        Ok(ServerResult::Ready(response))
    })
}

pub(crate) fn update(context: MethodContext, update: UpdateTask) -> Answering {
    running(async move {
        allowed(&context, &Method::UpdateTask)?;
        if let Some((key, _)) = update.answers.iter().find(|(_, answer)| !answer.is_object()) {
            let reason = format!("`inputResponses[\"{key}\"]` must be an object");
            return Err(Problem::Params(reason.into()));
        }
        let MethodContext { engine, from, .. } = &context;
        match engine.tasks.answer(&from.caller, &update.id, update.answers).await.map_err(away)? {
            true => Ok(ServerResult::Empty),
            false => Err(unknown()),
        }
    })
}

pub(crate) fn cancel(context: MethodContext, id: Box<str>) -> Answering {
    running(async move {
        allowed(&context, &Method::CancelTask)?;
        let MethodContext { engine, from, .. } = &context;
        let cancelled = engine.tasks.cancel(&from.caller, &id).await.map_err(away)?;
        let (task, is_ended_by_this) = cancelled.ok_or_else(unknown)?;
        match (from.revision.features().stateless, is_ended_by_this) {
            (true, _) => Ok(ServerResult::Empty),
            (false, true) => Ok(relayed("tasks/cancel", task.detailed(from.revision))),
            (false, false) => Err(Problem::Params("the task has ended already".into())),
        }
    })
}

pub(crate) fn list(context: MethodContext, page: Page) -> Answering {
    running(async move {
        allowed(&context, &Method::ListTasks)?;
        let MethodContext { engine, from, .. } = &context;
        let conversation = context.conversation_number();
        let (cursor, limit) = (page.cursor.as_deref(), engine.settings.engine_limits.page_size);
        if cursor.is_some_and(|cursor| !is_cursor(cursor)) {
            return Err(Problem::Params(
                "invalid cursor (expected one from the previous page)".into(),
            ));
        }
        let listed = engine.tasks.list(&from.caller, conversation, cursor, limit).await;
        let (tasks, next) = listed.map_err(away)?;
        Ok(relayed("tasks/list", Task::page(&tasks, next.as_deref(), from.revision)))
    })
}

fn running(reply: impl Future<Output = Reply> + Send + 'static) -> Answering {
    Answering::Running(Box::pin(async move { reply.await.into() }))
}

/// Waits for the result of a task. Meanwhile its questions are asked by this request: the session
/// starts the request again with the answers.
pub(crate) fn result(context: MethodContext, wanted: TaskResult) -> Answering {
    Answering::Running(Box::pin(async move {
        let MethodContext { engine, from, .. } = &context;
        if let Err(problem) = allowed(&context, &Method::TaskResult) {
            return Outcome::Failed(problem);
        }
        let TaskResult { id, resume } = wanted;
        let settled = engine.tasks.answered(&from.caller, &id, resume.answers).await;
        let task = match settled {
            Ok(Some(task)) => task,
            Ok(None) => return Outcome::Failed(unknown()),
            Err(error) => return Outcome::Failed(away(error)),
        };
        match &task.state {
            TaskState::InputRequired(questions) => {
                Outcome::NeedInput { questions: asked(&task, questions), takes_refusals: false }
            }
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

/// The questions of a task, with metadata that names the task: the session adds it to each of them.
fn asked(task: &Task, questions: &[(String, Question)]) -> Questions {
    let meta = task.related(&Raw::empty_object()).member("_meta");
    Questions { questions: questions.to_vec(), meta, ..Questions::default() }
}

/// Refuses a client that does not know tasks in the form of its revision, before the id is looked
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

/// The store of tasks has failed.
fn away(error: StoreError) -> Problem {
    tracing::warn!("the store of tasks: {error}");
    Problem::Internal("the store of tasks cannot be reached; try again".into())
}

fn unknown() -> Problem {
    Problem::Params("there is no such task, or it has expired".into())
}
