//! Relays the calls of our clients to the upstream.

use std::fmt::Display;
use std::sync::Arc;

use sabir_budget::{QueueFull, compute};
use sabir_client::{AuthError, CallError, CallOptions, CallRequest, OpenError, Reply, RequestBody};
use sabir_registry::{Answer, Ask, Context, Outcome, Outgoing, OutgoingRequest, Pending};
use sabir_wire::types::{ClientCapabilities, Question, Questions, TASKS, UI};
use sabir_wire::{Code, Problem, Raw, Request, Resume, raise};

use super::calls::{LiveCall, Step};
use super::catalog::has_tasks;
use super::instance::Instance;
use super::parked::{Parked, State, Timer, Waiting};
use super::server::Upstream;
use super::tasks::{RemoteTask, needs_tasks};
use super::uris::UriNames;

/// How often a request that certainly did not arrive is sent again.
const MAX_RESENDS: usize = 2;

/// A longer result is parsed in the computing pool.
const READ_IN_PLACE: usize = 256 << 10;

impl Upstream {
    /// Relays a request of our client to the upstream.
    pub(super) fn relay<T: 'static>(
        self: &Arc<Self>,
        request: Request,
        context: Context,
    ) -> Pending<T> {
        let upstream = self.clone();
        Box::pin(async move { upstream.attempt(request, context).await })
    }

    /// Rare paths are boxed here and below: the future of every call is as large as its largest
    /// part.
    async fn attempt<T>(self: Arc<Self>, request: Request, context: Context) -> Answer<T> {
        let state = context.state.as_ref();
        let state = state.map(|state| State::read(state).ok_or_else(ended)).transpose()?;
        match state {
            Some(State::Parked(name)) => {
                match self.parked.take(&name, &context.caller).ok_or_else(ended)? {
                    Waiting::Task(task) => Box::pin(self.resume_task(task, &context)).await,
                    Waiting::Call(mut live) => {
                        live.wake();
                        live.answer(&context.answers, &context.refusals);
                        self.go_on(live, &context).await
                    }
                }
            }
            Some(State::Repeat { asked, state }) => {
                let answers = context.answers.iter().filter(|(key, _)| asked.contains(key));
                let answers = answers.cloned().collect();
                let resume = Resume { answers, state: Some(state.into()), ..Resume::default() };
                self.begin(request.resumed(resume), context, None).await
            }
            Some(State::Task(id)) => {
                let instance = self.instance(&context)?;
                let task = RemoteTask::known(id, &instance, &context);
                Box::pin(self.follow_task(task, &context)).await
            }
            // The upstream has not seen the request.
            login @ Some(State::Login) => self.begin(request, context, login).await,
            None => {
                // An upstream that keeps no state needs the answers alone.
                let answers = context.answers.clone();
                let resume = Resume { answers, ..Resume::default() };
                self.begin(request.resumed(resume), context, None).await
            }
        }
    }

    async fn begin<T>(
        self: Arc<Self>,
        request: Request,
        context: Context,
        state: Option<State>,
    ) -> Answer<T> {
        let instance = self.instance(&context)?;
        if let Some(ask) = self.ask_login(&instance, &context, state.as_ref()).await? {
            return Ok(Outcome::NeedInput(ask));
        }
        drop(instance);
        let mut outgoing = self.outgoing(&request, &context);
        // Tasks are declared to the upstream only if our client knows them.
        let knows_tasks = context.capabilities.has_extension(TASKS);
        let mut request = CallRequest::new(request).with(options(&context, &outgoing, knows_tasks));
        // Progress restarts the time limit, so it is requested even if our client does not want it.
        request.options.progress |= self.settings.timeout.is_some();
        for resends in 0.. {
            let refused = |full: QueueFull| {
                let reason = format!("upstream `{}`: {full}", self.settings.name);
                Problem::ToolFailed(reason.into())
            };
            let queued = self.queue.enter(context.caller.share()).map_err(refused)?;
            let permit = tokio::select! {
                permit = queued => permit.map_err(refused)?,
                () = context.call.cancelled() => return Err(cancelled()),
            };
            let instance = self.instance(&context)?;
            let beginning = instance.begin(request.clone(), &context, Some(permit));
            let begun = tokio::select! {
                begun = beginning => begun,
                () = context.call.cancelled() => return Err(cancelled()),
            };
            let error = match begun {
                Ok(mut live) => match live.advance(&*context.call).await {
                    Step::Done(Err(error)) => error,
                    step => {
                        live.outgoing = outgoing;
                        return self.conclude(live, step, &context).await;
                    }
                },
                Err(error) => error,
            };
            if demand_task(&mut request, &instance, &error, (&context, &outgoing)) {
                continue;
            }
            let is_unknown_header = |error: &CallError| {
                error.rpc().is_some_and(|error| error.code == Code::HEADER_MISMATCH)
            };
            match error {
                CallError::Unsent(_) if resends < MAX_RESENDS => {}
                error if is_unknown_header(&error) && resends < 1 => {
                    // The tool wants arguments in headers that its last known schema did not name.
                    let _ = Box::pin(instance.client.list_tools()).await;
                }
                error => {
                    let revision = instance.client.server().map(|server| server.revision);
                    outgoing.end(revision, Some(&error_type(&error)));
                    // The upstream may demand a new login, or one with more scopes.
                    if error.auth() == Some(&AuthError::LoginNeeded)
                        && let Some(ask) =
                            self.ask_login(&instance, &context, state.as_ref()).await?
                    {
                        return Ok(Outcome::NeedInput(ask));
                    }
                    return self.fail(&instance, &request, error);
                }
            }
        }
        Err(cancelled())
    }

    /// Reports the request to the upstream to the observers of the call.
    fn outgoing(&self, request: &Request, context: &Context) -> Outgoing {
        let name: Option<&str> = match request {
            Request::CallTool(call) => Some(&call.name),
            Request::GetPrompt(get) => Some(&get.name),
            Request::ReadResource(read) => Some(&read.uri),
            _ => None,
        };
        let (upstream, method) = (&*self.settings.name, &request.method());
        let transport = self.reach.network();
        context.call.outgoing(&OutgoingRequest { upstream, method, name, transport })
    }

    pub(super) async fn go_on<T>(
        self: &Arc<Self>,
        mut live: LiveCall,
        context: &Context,
    ) -> Answer<T> {
        let step = live.advance(&*context.call).await;
        self.finish(live, step).await
    }

    /// Finishes a call, or follows the task that it has become.
    async fn conclude<T>(
        self: &Arc<Self>,
        mut live: LiveCall,
        step: Step,
        context: &Context,
    ) -> Answer<T> {
        let task = match &step {
            Step::Done(Ok(reply)) => RemoteTask::of(reply, &live.in_use().0, context),
            _ => None,
        };
        match task {
            Some(task) => {
                let server = live.in_use().0.client.server();
                live.outgoing.end(server.map(|server| server.revision), None);
                // Frees the place of the call: others may run instead.
                drop(live);
                Box::pin(self.follow_task(task, context)).await
            }
            None => self.finish(live, step).await,
        }
    }

    async fn finish<T>(self: &Arc<Self>, mut live: LiveCall, step: Step) -> Answer<T> {
        let revision = live.in_use().0.client.server().map(|server| server.revision);
        match step {
            Step::Done(Ok(reply)) => {
                let read = self.read(live.caller().share(), reply).await;
                let has_failed = read.as_ref().is_ok_and(|read| read.is_tool_error);
                live.outgoing.end(revision, has_failed.then_some("tool_error"));
                Ok(read?.outcome.map_or_else(
                    |questions| Outcome::NeedInput(repeat(questions)),
                    Outcome::Relayed,
                ))
            }
            Step::Done(Err(error)) => {
                live.outgoing.end(revision, Some(&error_type(&error)));
                let instance = live.in_use().0.clone();
                self.fail_method(&instance, &live.method.clone(), error)
            }
            Step::Cancelled => Err(cancelled()),
            Step::Asked => {
                let questions = live.questions();
                live.rest();
                self.park(Waiting::Call(live), questions)
            }
        }
    }

    /// Keeps a call or a task while its client is asked.
    pub(super) fn park<T>(
        self: &Arc<Self>,
        waiting: Waiting,
        questions: Vec<(String, Question)>,
    ) -> Answer<T> {
        let takes_refusals = matches!(waiting, Waiting::Call(_));
        let Some(name) = self.parked.insert(waiting, |name| self.end_later(name)) else {
            let reason = format!("too many calls wait for answers (limit {})", Parked::MAX);
            return Err(Problem::Internal(reason.into()));
        };
        let state = State::Parked(name).write();
        Ok(Outcome::NeedInput(Ask {
            questions,
            state,
            takes_refusals,
            only_here: true,
            ..Ask::default()
        }))
    }

    /// Ends a parked call if its client does not answer in time.
    fn end_later(self: &Arc<Self>, name: String) -> Timer {
        let (upstream, time) = (Arc::downgrade(self), self.settings.question_time);
        let task = tokio::spawn(async move {
            tokio::time::sleep(time).await;
            if let Some(upstream) = upstream.upgrade() {
                upstream.parked.end(&name);
            }
        });
        Timer(task.abort_handle())
    }

    /// Parses a result; a long one in the computing pool.
    async fn read(self: &Arc<Self>, share: u64, reply: Reply) -> Result<ReadReply, Problem> {
        let failed = |error: &dyn Display| {
            Problem::ToolFailed(format!("upstream `{}`: {error}", self.settings.name).into())
        };
        if reply.json.text().len() <= READ_IN_PLACE {
            return ReadReply::of(&reply, &self.mapping.uris).map_err(|error| failed(&error));
        }
        let upstream = self.clone();
        let read = compute(share, move |_| Ok(ReadReply::of(&reply, &upstream.mapping.uris)));
        let read = read.await.map_err(|busy| failed(&busy))?;
        read.map_err(|error| failed(&error))
    }

    fn fail<T>(&self, instance: &Instance, request: &CallRequest, error: CallError) -> Answer<T> {
        self.fail_method(instance, &request.method(), error)
    }

    pub(super) fn fail_method<T>(
        &self,
        instance: &Instance,
        method: &sabir_wire::Method,
        error: CallError,
    ) -> Answer<T> {
        let error = match error {
            CallError::Rpc(error) => error,
            CallError::Auth(reason) | CallError::Down(OpenError::Auth(reason)) => {
                let reason = self.describe_failure(instance, &reason.to_string());
                return Err(Problem::ToolFailed(reason.into()));
            }
            CallError::Down(reason) => {
                let reason = self.describe_failure(instance, &format!("down: {reason}"));
                return Err(Problem::ToolFailed(reason.into()));
            }
            CallError::Lost(_) => {
                let reason = self.describe_failure(instance, &error.to_string());
                return Err(Problem::ToolFailed(reason.into()));
            }
            other => {
                let reason = format!("upstream `{}`: {other}", self.settings.name);
                return Err(Problem::ToolFailed(reason.into()));
            }
        };
        let revision = instance.client.server().map(|server| server.revision).unwrap_or_default();
        match raise::error(method, revision, error) {
            Ok(visits) => Ok(Outcome::NeedInput(repeat(visits))),
            Err(Problem::UnknownResource(uri)) => {
                Err(Problem::UnknownResource((&*self.mapping.uris.outward(&uri)).into()))
            }
            Err(problem) => Err(problem),
        }
    }
}

/// A parsed result.
struct ReadReply {
    is_tool_error: bool,
    /// The result for our client, or questions to it.
    outcome: Result<Raw, Questions>,
}

impl ReadReply {
    fn of(reply: &Reply, uris: &UriNames) -> Result<Self, CallError> {
        let outcome = match reply.questions()? {
            Some(questions) => Err(questions),
            None => Ok(uris.outward_json(&reply.raise()?)),
        };
        Ok(Self { is_tool_error: reply.is_tool_error(), outcome })
    }
}

/// The upstream ended its call with questions, and with its state, if it keeps any.
fn repeat(questions: Questions) -> Ask {
    let Questions { questions, state, extra, .. } = questions;
    let asked = questions.iter().map(|(key, _)| key.clone()).collect();
    let state = state.map(|state| State::Repeat { asked, state });
    // In the modern era a client cannot answer with an error.
    let state = state.and_then(|state| state.write());
    Ask { questions, state, extra, ..Ask::default() }
}

/// The options of a relayed call: the trace, capabilities and log level of our client, and whether
/// it wants progress. Never its credentials.
pub(super) fn options(context: &Context, outgoing: &Outgoing, with_tasks: bool) -> CallOptions {
    let mut meta = context.meta.clone();
    if let Some(trace) = outgoing.traceparent() {
        let trace = format!("\"{trace}\"");
        let own = meta.unwrap_or_else(Raw::empty_object);
        meta = Some(own.with_members(&[("traceparent", Some(&*trace))]));
    }
    CallOptions {
        meta,
        capabilities: Some(capabilities(&context.capabilities, with_tasks)),
        log_level: context.call.log_level(),
        progress: context.call.wants_progress(),
        origin: context.call.number(),
        ..CallOptions::default()
    }
}

/// The capabilities that the upstream sees. Of the extensions, only views and (if wanted) tasks are
/// passed on: others may change how a call is made.
fn capabilities(own: &ClientCapabilities, with_tasks: bool) -> ClientCapabilities {
    let ui = own.extra.get("extensions").and_then(|all| all.member(UI));
    let mut passed = ClientCapabilities { extra: sabir_wire::Extra::NONE, ..own.clone() };
    if let Some(ui) = ui {
        passed = passed.with_extension(UI, ui.text());
    }
    if with_tasks { passed.with_extension(TASKS, "{}") } else { passed }
}

/// Turns a call that was refused because it must be a task into a task; `false` if that was not the
/// reason. A client that knows no tasks waits for the result.
fn demand_task(
    request: &mut CallRequest,
    instance: &Instance,
    error: &CallError,
    (context, outgoing): (&Context, &Outgoing),
) -> bool {
    let RequestBody::Known(Request::CallTool(call)) = &mut request.body else { return false };
    let declared = request.options.capabilities.as_ref();
    if needs_tasks(error) && declared.is_none_or(|declared| !declared.has_extension(TASKS)) {
        let progress = request.options.progress;
        request.options = CallOptions { progress, ..options(context, outgoing, true) };
        return true;
    }
    let is_refused = error.rpc().is_some_and(|error| error.code == Code::METHOD_NOT_FOUND);
    let has_tasks = || {
        let server = instance.client.server();
        server.is_some_and(|server| {
            server.revision.features().core_tasks && has_tasks(&server.discovered.capabilities)
        })
    };
    let is_demanded = is_refused && call.task.is_none() && has_tasks();
    if is_demanded {
        call.task = Some(Raw::empty_object());
    }
    is_demanded
}

/// The attribute `error.type`.
fn error_type(error: &CallError) -> String {
    match error {
        CallError::Rpc(error) => error.code.to_string(),
        CallError::Timeout(_) => "timeout".to_owned(),
        CallError::Lost(_) => "lost".to_owned(),
        CallError::Unsent(_) | CallError::Down(_) => "unreachable".to_owned(),
        CallError::Status { status, .. } => format!("http_{status}"),
        _ => "_OTHER".to_owned(),
    }
}

fn ended() -> Problem {
    let reason = "invalid `requestState`: the call has ended, or its time for answers is over";
    Problem::Params(reason.into())
}

pub(super) fn cancelled() -> Problem {
    Problem::Internal("the call was cancelled".into())
}
