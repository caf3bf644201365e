//! Tasks of the previous process whose work is done elsewhere: this process goes on with them.

use std::sync::Arc;
use std::time::Duration;

use sabir_registry::{CallHandle as _, ToolEntry};
use sabir_session::{CallKey, Outcome, RequestMeta};
use sabir_tasks::{Continuation, TaskRecord};
use sabir_wire::{ByteString, Code, ErrorObject, Extra, Meta, Revision, TaskState};
use tokio::time::Instant;

use super::background::work;
use super::tools::{repeatable, resume_from};
use crate::calls::{Observation, RunningCall};
use crate::context::{Answering, MethodContext};
use crate::engine::Engine;
use crate::events::EventQueue;
use crate::guard::Running;
use crate::observe::TransportKind;

/// How long a tool may take to be offered again, and how often that is checked.
const RETURN: Duration = Duration::from_secs(600);
const LOOK: Duration = Duration::from_millis(500);

/// Resumes all of them.
pub(crate) fn resume(engine: &Arc<Engine>) {
    for record in engine.tasks.continued() {
        let TaskRecord { task, continuation, owner, .. } = record;
        let Some(continuation) = continuation else { continue };
        // Its events have no receiver: clients see only the task.
        let events = EventQueue::new(0);
        let call = RunningCall::new(
            CallKey(0),
            Observation::default(),
            owner.share(),
            events,
            false,
            None,
        );
        call.detach();
        engine.tasks.adopt(&task.id, &call);
        let from = RequestMeta {
            caller: owner,
            revision: Revision::NEWEST,
            capabilities: continuation.capabilities.clone(),
            client: None,
            log_level: None,
            meta: Meta::default(),
        };
        tokio::spawn(go_on(engine.clone(), task.id, continuation, from, call));
    }
}

async fn go_on(
    engine: Arc<Engine>,
    id: Box<str>,
    continuation: Continuation,
    from: RequestMeta,
    call: Arc<RunningCall>,
) {
    let Continuation { tool, arguments, state, .. } = continuation;
    let Some(entry) = offered(&engine, &tool, &call).await else {
        let reason = format!("the task was interrupted: `{tool}` is not offered any more");
        let failed = TaskState::Failed(ErrorObject::new(Code::INTERNAL, reason));
        let state = if call.is_cancelled() { TaskState::Cancelled } else { failed };
        return engine.tasks.end(&id, state).await;
    };
    let whole = engine.registry.snapshot();
    let (catalog, conversation, transport) = (whole.clone(), None, TransportKind::Http);
    let extra = Extra::NONE;
    let context =
        MethodContext { engine, catalog, whole, from, extra, conversation, transport, call };
    let tool = ByteString::from(&*tool);
    let resume = resume_from(&context, &tool, &entry, &arguments, state);
    let repeat = repeatable(&context, tool, entry, arguments);
    let running: Running = match resume.and_then(&repeat.start) {
        Ok(Answering::Running(running)) => running,
        Ok(Answering::Done(outcome)) => Box::pin(async { outcome }),
        Err(problem) => Box::pin(async { Outcome::Failed(problem) }),
    };
    work(context, id, running, repeat).await;
}

/// Waits until the tool of a call is offered.
async fn offered(engine: &Engine, tool: &str, call: &RunningCall) -> Option<Arc<ToolEntry>> {
    let end = Instant::now() + RETURN;
    loop {
        if let Some(entry) = engine.registry.snapshot().tool(tool) {
            return Some(entry.clone());
        }
        if call.is_cancelled() || Instant::now() >= end {
            return None;
        }
        tokio::time::sleep(LOOK).await;
    }
}
