//! The tool `await_result`, for clients that know no tasks: they get a handle in words and fetch the
//! result by a call.

use std::sync::Arc;
use std::time::Duration;

use sabir_registry::{Ask, Offer, Outcome, Pending, Source, ToolCall};
use sabir_tasks::StoreError;
use sabir_wire::types::{Tool, ToolAnnotations, ToolReply};
use sabir_wire::{Problem, Raw, TaskState};
use serde::Deserialize;

use crate::tasks::Tasks;

/// The name of the tool.
pub(crate) const AWAIT_RESULT: &str = "await_result";

const INPUT: &str = r#"{"type":"object","properties":{"task":{"type":"string","description":"The id of the task"}},"required":["task"],"additionalProperties":false}"#;

/// How long an unknown client waits.
const PATIENCE: Duration = Duration::from_secs(30);

/// Offers the tool.
pub(crate) struct AwaitResult(pub(crate) Arc<Tasks>);

#[derive(Deserialize)]
struct Arguments {
    task: Box<str>,
}

/// The reply to a client whose call goes on in the background; `patience` is how long the tool
/// waits.
pub(crate) fn handle_in_words(id: &str, patience: Duration) -> ToolReply {
    ToolReply::text(format!(
        "The call takes long and goes on in the background as task {id}. Call the tool \
         `{AWAIT_RESULT}` with {{\"task\": \"{id}\"}} to get its result: it waits up to {} s, and \
         can be called again.",
        patience.as_secs()
    ))
}

impl Source for AwaitResult {
    fn name(&self) -> String {
        AWAIT_RESULT.to_owned()
    }

    fn offer(&self) -> Offer {
        let input = Raw::parse(INPUT).unwrap_or_else(|_| Raw::empty_object());
        let description = "Waits for the result of a call that goes on in the background. Call it \
                           again if the call is not done by then.";
        let tool = Tool {
            annotations: Some(ToolAnnotations {
                read_only_hint: Some(true),
                ..ToolAnnotations::default()
            }),
            ..Tool::new(AWAIT_RESULT, description, input)
        };
        Offer { tools: vec![tool], ..Offer::default() }
    }

    fn call_tool(&self, call: ToolCall) -> Pending<ToolReply> {
        let tasks = self.0.clone();
        Box::pin(async move {
            let misfit = |error: serde_json::Error| Problem::Arguments(error.to_string().into());
            let Arguments { task: id } = call.arguments.read().map_err(misfit)?;
            let (caller, answers) = (&call.context.caller, call.context.answers);
            let patience = tasks.settings.patience_of(call.context.client.as_ref());
            let patience = patience.or(tasks.settings.in_words).unwrap_or(PATIENCE);
            let settled = tasks.answered(caller, &id, answers);
            let settled = tokio::time::timeout(patience, settled).await;
            let Ok(settled) = settled else {
                return Ok(Outcome::Done(ToolReply::text(format!(
                    "Task {id} is not done yet, {} s later. Call `{AWAIT_RESULT}` again.",
                    patience.as_secs()
                ))));
            };
            let unknown = || format!("there is no task {id}, or it has expired");
            let away = |error: StoreError| {
                Problem::ToolFailed(format!("the store of tasks cannot be reached: {error}").into())
            };
            let task = settled.map_err(away)?;
            let task = task.ok_or_else(|| Problem::ToolFailed(unknown().into()))?;
            match task.state {
                TaskState::Completed(result) => Ok(Outcome::Relayed(result)),
                TaskState::InputRequired(questions) => {
                    Ok(Outcome::NeedInput(Ask { questions, ..Ask::default() }))
                }
                TaskState::Failed(error) => Err(Problem::ToolFailed((&*error.message).into())),
                TaskState::Working | TaskState::Cancelled => {
                    Err(Problem::ToolFailed("the task was cancelled".into()))
                }
            }
        })
    }
}
