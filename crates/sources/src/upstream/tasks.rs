//! A task of the upstream, followed to its end. For our client it is a call that takes long, or a
//! task of ours.

use std::sync::Arc;
use std::time::Duration;

use sabir_client::{CallError, CallOptions, CallRequest, Reply};
use sabir_registry::{Answer, Context, Outcome, Outgoing};
use sabir_wire::types::{Questions, TASKS};
use sabir_wire::{Caller, Code, ErrorObject, Problem, Raw, ReadJson as _, Request, Resume};
use sabir_wire::{TaskResult, UpdateTask};
use serde::Deserialize;

use super::instance::{InUse, Instance};
use super::parked::{State, Waiting};
use super::reach::Reach;
use super::relay::{cancelled, options};
use super::server::Upstream;
use super::settings::Scope;

/// The poll interval of a task whose server names none, and the bounds of a named one.
const POLL: Duration = Duration::from_secs(1);
const SHORTEST_POLL: Duration = Duration::from_millis(50);
const LONGEST_POLL: Duration = Duration::from_secs(60);

/// The time limit of one poll.
const LOOK: Duration = Duration::from_secs(30);

/// How many polls in a row may fail before the call does: the upstream may be restarting.
const MAX_FAILED_LOOKS: usize = 5;

/// A task of the upstream. Dropping it before the task has ended cancels the task, unless it is
/// left to the next process.
#[derive(Debug)]
pub(super) struct RemoteTask {
    in_use: InUse,
    id: Box<str>,
    options: CallOptions,
    context: Context,
    poll: Duration,
    /// The keys of the questions that our client is asked.
    asked: Vec<String>,
    has_ended: bool,
}

/// The state of a task, in the form of either era.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Seen {
    task_id: Box<str>,
    status: Box<str>,
    #[serde(alias = "pollInterval")]
    poll_interval_ms: Option<f64>,
    result: Option<Raw>,
    error: Option<ErrorObject>,
}

impl RemoteTask {
    /// The task that a call has become, if any.
    pub(super) fn of(reply: &Reply, instance: &Arc<Instance>, context: &Context) -> Option<Self> {
        // Most results do not have the word, and need not be parsed.
        if !reply.json.text().contains(r#""task""#) {
            return None;
        }
        let is_task = |kind: Raw| kind.text() == r#""task""#;
        let task = match reply.revision.features().stateless {
            true if reply.json.member("resultType").is_some_and(is_task) => reply.json.clone(),
            false if reply.json.member("content").is_none() => reply.json.member("task")?,
            _ => return None,
        };
        let seen: Seen = task.read().ok()?;
        let poll = seen.poll();
        let mut task = Self::known(seen.task_id, instance, context);
        task.poll = poll;
        Some(task)
    }

    /// The task of this id, which an earlier process may have begun.
    pub(super) fn known(id: Box<str>, instance: &Arc<Instance>, context: &Context) -> Self {
        let options = CallOptions {
            progress: false,
            log_level: None,
            timeout: Some(LOOK),
            ..options(context, &Outgoing::default(), true)
        };
        Self {
            in_use: InUse::new(instance),
            id,
            options,
            context: context.clone(),
            poll: SHORTEST_POLL,
            asked: Vec::new(),
            has_ended: false,
        }
    }

    pub(super) fn caller(&self) -> &Caller {
        &self.context.caller
    }

    /// Marks the task as ended, so that it is not cancelled.
    pub(super) fn set_ended(&mut self) {
        self.has_ended = true;
    }

    fn request(&self, request: Request) -> CallRequest {
        CallRequest::new(request).with(self.options.clone())
    }

    /// The current state of the task, parsed and as the upstream sent it.
    async fn look(&self) -> Result<(Seen, Raw), CallError> {
        let request = self.request(Request::GetTask(self.id.clone()));
        let Reply { json, .. } = self.in_use.0.client.call(request).await?;
        let seen = json.read().map_err(|error| CallError::Invalid(error.to_string()))?;
        Ok((seen, json))
    }

    async fn answer(&self, answers: Vec<(String, Raw)>) -> Result<(), CallError> {
        let request = Request::UpdateTask(UpdateTask { id: self.id.clone(), answers });
        self.in_use.0.client.call(self.request(request)).await.map(drop)
    }
}

impl Seen {
    fn poll(&self) -> Duration {
        let named = self.poll_interval_ms.map(|ms| Duration::try_from_secs_f64(ms / 1000.0));
        named.map_or(POLL, |time| time.unwrap_or(POLL)).clamp(SHORTEST_POLL, LONGEST_POLL)
    }
}

impl Drop for RemoteTask {
    fn drop(&mut self) {
        if self.has_ended || self.context.call.is_left() {
            return;
        }
        let request = self.request(Request::CancelTask(self.id.clone()));
        let in_use = InUse::new(&self.in_use.0);
        // Without a runtime nothing can be sent to the upstream.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                // The task may have ended meanwhile.
                let _ = in_use.0.client.call(request).await;
            });
        }
    }
}

impl Upstream {
    /// Follows a task to its end, or to its questions.
    pub(super) async fn follow_task<T>(
        self: &Arc<Self>,
        mut task: RemoteTask,
        context: &Context,
    ) -> Answer<T> {
        let revision = task.in_use.0.client.server().map(|server| server.revision);
        if revision.is_some_and(|revision| revision.features().core_tasks) {
            context.call.takes_long(None);
            return self.await_result(task, context).await;
        }
        context.call.takes_long(self.outliving(&task));
        let mut failed = 0;
        loop {
            let looking = async {
                tokio::time::sleep(task.poll).await;
                task.look().await
            };
            let looked = tokio::select! {
                looked = looking => looked,
                () = context.call.cancelled() => return Err(cancelled()),
            };
            let (seen, json) = match looked {
                Ok(seen) => seen,
                Err(error) if error.rpc().is_none() && failed < MAX_FAILED_LOOKS => {
                    failed += 1;
                    continue;
                }
                Err(error) => {
                    task.has_ended = error.rpc().is_some();
                    let method = sabir_wire::Method::GetTask;
                    return self.fail_method(&task.in_use.0.clone(), &method, error);
                }
            };
            failed = 0;
            task.poll = seen.poll();
            match &*seen.status {
                "working" => {}
                "input_required" => {
                    let questions = self.questions(&json, context)?;
                    // Answered questions may still be listed for a moment.
                    if !questions.is_empty() {
                        task.asked = questions.iter().map(|(key, _)| key.clone()).collect();
                        return self.park(Waiting::Task(task), questions);
                    }
                }
                _ => {
                    task.has_ended = true;
                    return self.ended(seen);
                }
            }
        }
    }

    /// The state from which another process can follow a task. `None` if the task ends with us,
    /// such as that of a program.
    fn outliving(&self, task: &RemoteTask) -> Option<Raw> {
        let is_remote = matches!(self.reach, Reach::Web(_));
        let state = || State::Task(task.id.clone()).write();
        (is_remote && self.settings.scope == Scope::Shared).then(state).flatten()
    }

    /// Sends the answers of our client, and follows the task further.
    pub(super) async fn resume_task<T>(
        self: &Arc<Self>,
        mut task: RemoteTask,
        context: &Context,
    ) -> Answer<T> {
        let asked = std::mem::take(&mut task.asked);
        let answers = context.answers.iter().filter(|(key, _)| asked.contains(key));
        if let Err(error) = task.answer(answers.cloned().collect()).await {
            let method = sabir_wire::Method::UpdateTask;
            return self.fail_method(&task.in_use.0.clone(), &method, error);
        }
        self.follow_task(task, context).await
    }

    /// Waits for the result of a task of 2025-11-25, whose questions are asked meanwhile.
    async fn await_result<T>(self: &Arc<Self>, task: RemoteTask, context: &Context) -> Answer<T> {
        let wanted = TaskResult { id: task.id.clone(), resume: Resume::default() };
        let request = CallRequest::new(Request::TaskResult(wanted)).with(options(
            context,
            &Outgoing::default(),
            true,
        ));
        let instance = task.in_use.0.clone();
        let begun = tokio::select! {
            begun = instance.begin(request.clone(), context, None) => begun,
            () = context.call.cancelled() => return Err(cancelled()),
        };
        match begun {
            Ok(mut live) => {
                live.result_of(task);
                self.go_on(live, context).await
            }
            Err(error) => self.fail_method(&instance, &request.method(), error),
        }
    }

    /// The open questions of a task, without those that our client has answered.
    fn questions(
        &self,
        json: &Raw,
        context: &Context,
    ) -> Result<Vec<(String, sabir_wire::types::Question)>, Problem> {
        let read = Questions::read_json(json).map_err(|error| self.invalid(&error.to_string()))?;
        let mut questions = read.questions;
        questions.retain(|(key, _)| context.answer(key).is_none());
        Ok(questions)
    }

    fn ended<T>(&self, seen: Seen) -> Answer<T> {
        match (&*seen.status, seen.result, seen.error) {
            ("completed", Some(result), _) if result.is_object() => {
                let result = match result.member("resultType") {
                    Some(_) => result,
                    None => result.with_members(&[("resultType", Some(r#""complete""#))]),
                };
                Ok(Outcome::Relayed(self.mapping.uris.outward_json(&result)))
            }
            ("failed", _, Some(error)) => Err(Problem::Chosen(error)),
            ("cancelled", ..) => Err(self.invalid("the task was cancelled")),
            (status, ..) => Err(self.invalid(&format!("invalid task of status `{status}`"))),
        }
    }

    fn invalid(&self, reason: &str) -> Problem {
        Problem::ToolFailed(format!("upstream `{}`: {reason}", self.settings.name).into())
    }
}

/// Whether a modern upstream refuses a call because tasks were not declared.
pub(super) fn needs_tasks(error: &CallError) -> bool {
    let Some(error) = error.rpc().filter(|error| error.code == Code::MISSING_CAPABILITY) else {
        return false;
    };
    let needed = error.data.as_ref().and_then(|data| data.member("requiredCapabilities"));
    let extensions = needed.and_then(|needed| needed.member("extensions"));
    extensions.is_some_and(|extensions| extensions.member(TASKS).is_some())
}
