//! Tools. Spec: server/tools.

use std::sync::Arc;

use sabir_registry::{Outcome as SourceOutcome, ToolCall, ToolEntry};
use sabir_session::Outcome;
use sabir_wire::types::{ServerResult, ToolReply};
use sabir_wire::{CallTool, Page, Problem, Raw};

use super::attempt::{self, Attempt};
use super::{Reply, declared};
use crate::context::{Answering, MethodContext};

pub(crate) fn list(context: &MethodContext, page: &Page) -> Reply {
    declared(context.catalog.capabilities().tools, "tools/list")?;
    let page = context.catalog.tools_page(page.cursor.as_deref(), context.from.revision)?;
    Ok(ServerResult::Ready(page))
}

pub(crate) fn call(context: MethodContext, call: CallTool) -> Answering {
    begin(context, call).unwrap_or_else(|problem| Outcome::Failed(problem).into())
}

fn begin(context: MethodContext, call: CallTool) -> Result<Answering, Problem> {
    declared(context.catalog.capabilities().tools, "tools/call")?;
    let Some(entry) = context.catalog.tool(&call.name).cloned() else {
        return Err(Problem::UnknownTool((&*call.name).into()));
    };
    let arguments = call.arguments.unwrap_or_else(Raw::empty_object);
    entry.input.check(&arguments).map_err(|reason| Problem::Arguments(reason.into()))?;
    let attempt = Attempt::open(
        &context,
        entry.source(),
        "tools/call",
        call.name.clone(),
        Some(&arguments),
        call.resume,
    )?;
    let context = attempt::context(context, &attempt);
    // The source knows its tools by their listed names only.
    let is_listed = *call.name == *entry.tool.name;
    let name = if is_listed { call.name } else { entry.tool.name.as_str().into() };
    let answer = entry.source().call_tool(ToolCall { name, arguments, context });
    Ok(Answering::Running(Box::pin(async move {
        let answer = answer.await.and_then(|outcome| checked(outcome, &entry));
        attempt.close(answer)
    })))
}

/// A result that breaks the tool's own promise is our failure, not the model's.
fn checked(
    outcome: SourceOutcome<ToolReply>,
    entry: &Arc<ToolEntry>,
) -> Result<SourceOutcome<ToolReply>, Problem> {
    let reply = match &outcome {
        SourceOutcome::Done(reply) => reply,
        SourceOutcome::Relayed(json) => {
            warn_of_broken_promise(json, entry);
            return Ok(outcome);
        }
        SourceOutcome::NeedInput(_) => return Ok(outcome),
    };
    let Some(output) = entry.output.as_ref().filter(|_| !reply.is_error) else {
        return Ok(outcome);
    };
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
    output.check(structured).map_err(broken)?;
    Ok(outcome)
}

/// Another server answers for its own results: its client gets them as they are.
fn warn_of_broken_promise(json: &Raw, entry: &ToolEntry) {
    let Some(output) = &entry.output else { return };
    let is_error = json.member("isError").is_some_and(|value| value.text() == "true");
    if is_error {
        return;
    }
    let reason = match json.member("structuredContent") {
        Some(structured) => output.check(&structured).err(),
        None => Some("there is no structured content".to_owned()),
    };
    if let Some(reason) = reason {
        tracing::warn!("tool `{}` broke its output schema: {reason}", entry.tool.name);
    }
}
