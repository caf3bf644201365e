//! Tools. Spec: server/tools.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use sabir_budget::{Computing, compute};
use sabir_registry::{Answer, CallHandle as _, Outcome as SourceOutcome, Pending};
use sabir_registry::{ToolCall, ToolEntry};
use sabir_session::Outcome;
use sabir_wire::types::ToolReply;
use sabir_wire::{ByteString, CallTool, Problem, Raw, Resume};
use tokio::time::Instant;

use super::attempt::{self, Attempt};
use super::background::{self, Repeatable};
use super::{busy, declared};
use crate::calls::RunningCall;
use crate::context::{Answering, MethodContext};

pub(crate) fn call(context: MethodContext, call: CallTool) -> Answering {
    begin(context, call).unwrap_or_else(|problem| Outcome::Failed(problem).into())
}

fn begin(context: MethodContext, mut call: CallTool) -> Result<Answering, Problem> {
    declared(context.catalog.capabilities().tools, "tools/call")?;
    let Some(entry) = context.catalog.tool(&call.name).cloned() else {
        return Err(Problem::UnknownTool((&*call.name).into()));
    };
    let arguments = call.arguments.take().unwrap_or_else(Raw::empty_object);
    let share = context.from.caller.share();
    let check = checking(share, &entry, &arguments, |entry, value| entry.input.check(value));
    let wrong = |reason: String| Problem::Arguments(reason.into());
    match check {
        Checking::Done(checked) => checked.map_err(wrong)?,
        Checking::Computing(checked) => {
            return Ok(Answering::Running(Box::pin(async move {
                let checked = checked.await.map_err(busy).and_then(|c| c.map_err(wrong));
                match checked.and_then(|()| start(context, call, entry, arguments)) {
                    Ok(answering) => answering.outcome().await,
                    Err(problem) => Outcome::Failed(problem),
                }
            })));
        }
    }
    start(context, call, entry, arguments)
}

/// Starts the call, once its arguments are valid.
fn start(
    context: MethodContext,
    call: CallTool,
    entry: Arc<ToolEntry>,
    arguments: Raw,
) -> Result<Answering, Problem> {
    let CallTool { name, resume, task, .. } = call;
    let Some(plan) = background::plan(&context, task.as_ref(), &entry)? else {
        return run(context, name, resume, entry, arguments);
    };
    let call = repeatable(&context, name, entry, arguments);
    background::begin(context, plan, resume, call)
}

/// A call that can be made again, with answers or from a state.
pub(super) fn repeatable(
    context: &MethodContext,
    tool: ByteString,
    entry: Arc<ToolEntry>,
    arguments: Raw,
) -> Repeatable {
    let (context, name, given) = (context.clone(), tool.clone(), arguments.clone());
    let start =
        move |resume| run(context.clone(), name.clone(), resume, entry.clone(), given.clone());
    Repeatable { tool, arguments, start: Box::new(start) }
}

/// Resumes a call from a state that its source has kept.
pub(super) fn resume_from(
    context: &MethodContext,
    tool: &ByteString,
    entry: &ToolEntry,
    arguments: &Raw,
    state: Raw,
) -> Result<Resume, Problem> {
    let (source, name, resume) = (entry.source(), tool.clone(), Resume::default());
    let attempt = Attempt::open(context, source, "tools/call", name, Some(arguments), resume)?;
    attempt.resume_from(state).ok_or_else(|| Problem::Internal("Internal error".into()))
}

/// Hands the call to its source.
fn run(
    context: MethodContext,
    name: ByteString,
    resume: Resume,
    entry: Arc<ToolEntry>,
    arguments: Raw,
) -> Result<Answering, Problem> {
    let share = context.from.caller.share();
    let (call, beat) = (context.call.clone(), context.engine.settings.engine_limits.heartbeat);
    let attempt = Attempt::open(
        &context,
        entry.source(),
        "tools/call",
        name.clone(),
        Some(&arguments),
        resume,
    )?;
    let context = attempt::context(context, &attempt);
    // The source knows its tools by their listed names only.
    let is_listed = *name == *entry.tool.name;
    let name = if is_listed { name } else { entry.tool.name.as_str().into() };
    let answer = entry.source().call_tool(ToolCall { name, arguments, context });
    Ok(Answering::Running(Box::pin(async move {
        let answer = match call.wants_progress() {
            true => accompanied(&call, beat, answer).await,
            false => answer.await,
        };
        let answer = match answer {
            Ok(outcome) => checked(share, outcome, &entry).await,
            Err(problem) => Err(problem),
        };
        attempt.close(answer).await
    })))
}

/// Waits for an answer, and tells the client meanwhile that the call goes on.
async fn accompanied<T>(call: &RunningCall, beat: Duration, mut answer: Pending<T>) -> Answer<T> {
    // An immediate answer needs no timer.
    let first = std::future::poll_fn(|cx| Poll::Ready(answer.as_mut().poll(cx))).await;
    if let Poll::Ready(answer) = first {
        return answer;
    }
    let began = Instant::now();
    loop {
        match tokio::time::timeout(beat, &mut answer).await {
            Ok(answer) => return answer,
            Err(_) => call.still_runs(began.elapsed()),
        }
    }
}

/// A result that breaks the tool's output schema is our failure, not the model's.
async fn checked(
    share: u64,
    outcome: SourceOutcome<ToolReply>,
    entry: &Arc<ToolEntry>,
) -> Result<SourceOutcome<ToolReply>, Problem> {
    let reply = match &outcome {
        SourceOutcome::Done(reply) => reply,
        SourceOutcome::Relayed(json) => {
            warn_of_broken_promise(share, json, entry).await;
            return Ok(outcome);
        }
        SourceOutcome::NeedInput(_) => return Ok(outcome),
    };
    if entry.output.is_none() || reply.is_error {
        return Ok(outcome);
    }
    let broken = |reason: String| {
        tracing::error!("tool `{}` broke its output schema: {reason}", entry.tool.name);
        let name = &entry.tool.name;
        Problem::Internal(
            format!("`{name}` gave a result that does not fit its output schema").into(),
        )
    };
    let Some(structured) = &reply.structured else {
        return Err(broken("there is no structured content".into()));
    };
    match checking(share, entry, structured, check_output) {
        Checking::Done(checked) => checked.map_err(broken)?,
        Checking::Computing(checked) => checked.await.map_err(busy)?.map_err(broken)?,
    }
    Ok(outcome)
}

/// Only warns: the result of another server is passed on unchanged.
async fn warn_of_broken_promise(share: u64, json: &Raw, entry: &Arc<ToolEntry>) {
    if entry.output.is_none() || ToolReply::is_failure(json) {
        return;
    }
    let reason = match json.member("structuredContent") {
        None => Some("there is no structured content".to_owned()),
        Some(structured) => match checking(share, entry, &structured, check_output) {
            Checking::Done(checked) => checked.err(),
            Checking::Computing(checked) => checked.await.ok().and_then(Result::err),
        },
    };
    if let Some(reason) = reason {
        tracing::warn!("tool `{}` broke its output schema: {reason}", entry.tool.name);
    }
}

/// A value that is longer is checked by the pool.
const CHECKED_IN_PLACE: usize = 32 << 10;

/// A check, done or begun.
enum Checking {
    Done(Result<(), String>),
    Computing(Computing<Result<(), String>>),
}

/// The error is logged, so it quotes nothing of the result.
fn check_output(entry: &ToolEntry, value: &Raw) -> Result<(), String> {
    entry.output.as_ref().map_or(Ok(()), |checker| checker.check_unquoted(value))
}

/// Checks a value with one of a tool's checkers.
fn checking(
    share: u64,
    entry: &Arc<ToolEntry>,
    value: &Raw,
    check: fn(&ToolEntry, &Raw) -> Result<(), String>,
) -> Checking {
    if value.text().len() <= CHECKED_IN_PLACE {
        return Checking::Done(check(entry, value));
    }
    let (entry, value) = (entry.clone(), value.clone());
    Checking::Computing(compute(share, move |_| Ok(check(&entry, &value))))
}
