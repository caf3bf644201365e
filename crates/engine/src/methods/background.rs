//! A call that becomes a task: it goes on without its connection, and asks its client through the
//! task.

use std::time::Duration;

use bytes::Bytes;
use sabir_registry::{CallHandle as _, TaskMode, ToolEntry};
use sabir_session::Outcome;
use sabir_tasks::Continuation;
use sabir_wire::TaskState;
use sabir_wire::types::{ClientCapabilities, Questions, ServerResult, TASKS};
use sabir_wire::{ByteString, Code, ErrorObject, Method, Problem, Raw, Resume, Revision};
use sabir_wire::{WriteJson as _, raise, render};
use tracing::Instrument as _;

use super::attempt::relayed;
use crate::await_result::handle_in_words;
use crate::context::{Answering, MethodContext};
use crate::guard::{Guarded, Running};
use crate::tasks::knows_tasks;

/// How a call becomes a task.
pub(crate) struct Plan {
    /// How long its client waits for the result first.
    after: Option<Duration>,
    /// The life that the client asks for.
    ttl_ms: Option<u64>,
    /// Whether it fails if it cannot become a task.
    is_required: bool,
    /// Whether its client knows no tasks, and gets a handle in words.
    in_words: bool,
}

/// Begins the work of a call, with the answers of its client.
pub(crate) type Start = Box<dyn Fn(Resume) -> Result<Answering, Problem> + Send>;

/// A call of a tool, which can be made again.
pub(crate) struct Repeatable {
    pub(crate) tool: ByteString,
    pub(crate) arguments: Raw,
    pub(crate) start: Start,
}

impl Repeatable {
    /// How the next process goes on with the call, if its source can.
    fn continuation(&self, context: &MethodContext) -> Option<Continuation> {
        let (tool, arguments) = ((&*self.tool).into(), self.arguments.clone());
        let capabilities = context.from.capabilities.clone();
        context.call.continuing().map(|state| Continuation { tool, arguments, capabilities, state })
    }
}

/// Decides whether a call may become a task; `None` if it does not. `wish` is the `task` param of a
/// client of 2025-11-25, which decides itself.
pub(crate) fn plan(
    context: &MethodContext,
    wish: Option<&Raw>,
    entry: &ToolEntry,
) -> Result<Option<Plan>, Problem> {
    let policy = entry.task;
    if policy.mode == TaskMode::Never && wish.is_none() {
        return Ok(None);
    }
    let to = context.from.revision.features();
    let knows = knows_tasks(&context.from);
    let plan = |after, is_required| Plan { after, ttl_ms: None, is_required, in_words: false };
    let unavailable = |reason| Problem::Chosen(ErrorObject::new(Code::METHOD_NOT_FOUND, reason));
    match (policy.mode, wish.filter(|_| to.core_tasks)) {
        (TaskMode::Never, Some(_)) if context.catalog.capabilities().tasks => {
            Err(unavailable("calls of this tool cannot be tasks"))
        }
        (TaskMode::Never, _) => Ok(None),
        (_, Some(wish)) => Ok(Some(Plan { ttl_ms: wished_ttl(wish)?, ..plan(None, true) })),
        (TaskMode::Required, None) if !knows => Err(match to.stateless {
            true => missing(),
            false => unavailable("calls of this tool must be tasks"),
        }),
        (_, None) if !knows => {
            // A handle in words is not a structured result, which some clients require.
            let patience = context.engine.tasks.settings.patience_of(context.from.client.as_ref());
            let can_await = entry.output.is_none() && context.engine.can_await(&context.catalog);
            let after = patience.filter(|_| can_await);
            Ok(after.map(|after| Plan { in_words: true, ..plan(Some(after), false) }))
        }
        (TaskMode::Auto, None) => {
            let after = policy.after.unwrap_or(context.engine.tasks.settings.after);
            Ok(Some(plan(Some(after), false)))
        }
        // The source reports when.
        (TaskMode::Passed, None) => Ok(Some(plan(Some(Duration::MAX), false))),
        (TaskMode::Always, None) => Ok(Some(plan(None, false))),
        (TaskMode::Required, None) => Ok(Some(plan(None, true))),
    }
}

/// The client has not declared the extension.
pub(crate) fn missing() -> Problem {
    Problem::MissingCapability(ClientCapabilities::extension(TASKS))
}

fn wished_ttl(wish: &Raw) -> Result<Option<u64>, Problem> {
    let wrong = || Problem::Params("`task` must be an object with an optional `ttl`".into());
    if !wish.is_object() {
        return Err(wrong());
    }
    let ttl = wish.member("ttl").filter(|ttl| !ttl.is_null());
    // A client may well write 60000.0.
    let ttl = ttl.map(|ttl| ttl.read::<f64>().ok().filter(|ttl| *ttl >= 0.0).ok_or_else(wrong));
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    Ok(ttl.transpose()?.map(|ttl| ttl as u64))
}

/// Begins a call that may become a task.
pub(crate) fn begin(
    context: MethodContext,
    plan: Plan,
    resume: Resume,
    call: Repeatable,
) -> Result<Answering, Problem> {
    let mut running = match (call.start)(resume)? {
        Answering::Running(running) => running,
        done @ Answering::Done(_) => return Ok(done),
    };
    Ok(Answering::Running(Box::pin(async move {
        if let Some(after) = plan.after {
            tokio::select! {
                biased;
                outcome = &mut running => return outcome,
                () = context.call.long(), if !plan.in_words => {}
                () = tokio::time::sleep(after) => {}
            }
        }
        let MethodContext { engine, from, .. } = &context;
        let conversation = context.conversation_number();
        let continuation = call.continuation(&context);
        let created = engine
            .tasks
            .create(&context.call, &from.caller, conversation, plan.ttl_ms, continuation)
            .await;
        match created {
            Ok(task) => {
                context.call.detach();
                let result = match plan.after.filter(|_| plan.in_words) {
                    Some(patience) => handle_in_words(&task.id, patience).into(),
                    None => relayed("tools/call", task.created(from.revision)),
                };
                let work = work(context, task.id, running, call);
                tokio::spawn(work.instrument(tracing::Span::current()));
                Outcome::Done(result)
            }
            Err(reason) if plan.is_required => Outcome::Failed(Problem::Internal(reason.into())),
            // There is no room for a task: the client waits.
            Err(_) => running.await,
        }
    })))
}

/// Works on a task until it ends.
pub(super) async fn work(
    context: MethodContext,
    id: Box<str>,
    mut running: Running,
    repeat: Repeatable,
) {
    let MethodContext { engine, from, call, .. } = &context;
    let mut is_kept = call.continuing().is_some();
    let state = loop {
        let grace = engine.settings.engine_limits.abort_grace;
        let cancelled = async {
            call.cancelled().await;
            tokio::time::sleep(grace).await;
        };
        let mut guarded = Guarded(running);
        tokio::pin!(cancelled);
        let outcome = loop {
            tokio::select! {
                biased;
                outcome = &mut guarded => break Some(outcome),
                () = call.long(), if !is_kept => {
                    is_kept = true;
                    if let Some(continuation) = repeat.continuation(&context) {
                        engine.tasks.keep(&id, continuation).await;
                    }
                }
                () = &mut cancelled => break None,
            }
        };
        let Some(outcome) = outcome else { break TaskState::Cancelled };
        if call.is_cancelled() {
            break TaskState::Cancelled;
        }
        let questions = match outcome {
            Outcome::NeedInput { questions, .. } => questions,
            Outcome::Done(result) => break completed(&result, from.revision),
            Outcome::Failed(problem) => break failed(&problem),
            Outcome::Listening(_) => break failed(&Problem::Internal("Internal error".into())),
        };
        match ask(&context, &id, questions).await.and_then(&repeat.start) {
            Ok(Answering::Running(next)) => running = next,
            Ok(Answering::Done(outcome)) => running = Box::pin(async { outcome }),
            Err(_) if call.is_cancelled() => break TaskState::Cancelled,
            Err(problem) => break failed(&problem),
        }
    };
    // The source of a question without an answer can give up.
    if let Some(parked) = call.take_parked().filter(|_| !call.is_left()) {
        parked.abandon();
    }
    engine.tasks.end(&id, state).await;
    tracing::debug!(caller = %from.caller, "task ended");
}

/// Asks the client through the task, and waits for all answers.
async fn ask(context: &MethodContext, id: &str, questions: Questions) -> Result<Resume, Problem> {
    let MethodContext { engine, from, call, .. } = context;
    if let Some(missing) = from.capabilities.lacks(&questions.needs()) {
        return Err(Problem::MissingCapability(missing));
    }
    let state = questions.state.map(Into::into);
    let gone = || Problem::Internal("the task has ended".into());
    if !questions.questions.is_empty() && !engine.tasks.ask(id, questions.questions).await {
        return Err(gone());
    }
    let time = engine.settings.limits.question_time.unwrap_or(Duration::MAX);
    let answers = tokio::select! {
        answers = tokio::time::timeout(time, engine.tasks.answers(id)) => answers,
        () = call.cancelled() => return Err(gone()),
    };
    match answers {
        Ok(Some(answers)) => {
            // The call goes on: its source will ask again, if it wants to.
            drop(call.take_parked());
            Ok(Resume { answers, state, ..Resume::default() })
        }
        Ok(None) => Err(gone()),
        Err(_) => Err(Problem::ToolFailed("the questions were not answered in time".into())),
    }
}

/// The state of a task that has a result. A long one is written in `revision` already.
fn completed(result: &ServerResult, revision: Revision) -> TaskState {
    let result = match result {
        ServerResult::Tool(reply) => Ok(reply.to_raw(Revision::NEWEST)),
        ServerResult::Relayed(relayed) => Ok(relayed.json.clone()),
        ServerResult::Ready(text) => written(text.clone(), revision),
        _ => Err(()),
    };
    match result {
        Ok(result) => TaskState::Completed(result),
        Err(()) => failed(&Problem::Internal("Internal error".into())),
    }
}

fn written(text: Bytes, revision: Revision) -> Result<Raw, ()> {
    let result = Raw::parse(text).map_err(drop)?;
    raise::result(&Method::CallTool, revision, &result).map_err(drop)
}

fn failed(problem: &Problem) -> TaskState {
    match render::settle(problem, Revision::NEWEST) {
        Ok(result) => completed(&result, Revision::NEWEST),
        Err(error) => TaskState::Failed(error),
    }
}
