//! A call of our client becomes a call of the upstream, and its outcome that of our client's.

use std::sync::Arc;

use sabir_budget::QueueFull;
use sabir_client::{CallError, CallOptions, CallRequest, Reply};
use sabir_registry::{Answer, Ask, Context, Outcome, Pending};
use sabir_wire::types::{ClientCapabilities, Questions};
use sabir_wire::{Code, Problem, Raw, Request, Resume, raise};

use super::calls::{LiveCall, Step};
use super::instance::Instance;
use super::parked::{Parked, State};
use super::server::Upstream;

/// How often a request that certainly did not arrive is sent again.
const MAX_RESENDS: usize = 2;

impl Upstream {
    /// Makes a request of our client at the upstream.
    pub(super) fn relay<T: 'static>(
        self: &Arc<Self>,
        request: Request,
        context: Context,
    ) -> Pending<T> {
        let upstream = self.clone();
        Box::pin(async move { upstream.attempt(request, context).await })
    }

    async fn attempt<T>(self: Arc<Self>, request: Request, context: Context) -> Answer<T> {
        let state = context.state.as_ref();
        let state = state.map(|state| State::read(state).ok_or_else(ended)).transpose()?;
        match state {
            Some(State::Parked(name)) => {
                let mut live = self.parked.take(&name, &context.caller).ok_or_else(ended)?;
                live.wake();
                live.answer(&context.answers);
                self.go_on(live, &context).await
            }
            Some(State::Repeat { asked, state }) => {
                let answers = context.answers.iter().filter(|(key, _)| asked.contains(key));
                let answers = answers.cloned().collect();
                let resume = Resume { answers, state: Some(state.into()) };
                self.begin(request.resumed(resume), context).await
            }
            None => {
                // An upstream that keeps no state needs the answers alone.
                let resume = Resume { answers: context.answers.clone(), state: None };
                self.begin(request.resumed(resume), context).await
            }
        }
    }

    async fn begin<T>(self: Arc<Self>, request: Request, context: Context) -> Answer<T> {
        let request = CallRequest::new(request).with(options(&context));
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
            let beginning = instance.begin(request.clone(), &context, permit);
            let begun = tokio::select! {
                begun = beginning => begun,
                () = context.call.cancelled() => return Err(cancelled()),
            };
            let error = match begun {
                Ok(mut live) => match live.advance(&*context.call).await {
                    Step::Done(Err(error)) => error,
                    step => return self.finish(live, step),
                },
                Err(error) => error,
            };
            let is_unknown_header = |error: &CallError| {
                error.rpc().is_some_and(|error| error.code == Code::HEADER_MISMATCH)
            };
            match error {
                CallError::Unsent(_) if resends < MAX_RESENDS => {}
                error if is_unknown_header(&error) && resends < 1 => {
                    // The tool wants arguments repeated that its last known schema did not.
                    let _ = instance.client.list_tools().await;
                }
                error => return self.fail(&instance, &request, error),
            }
        }
        Err(cancelled())
    }

    async fn go_on<T>(self: &Arc<Self>, mut live: LiveCall, context: &Context) -> Answer<T> {
        let step = live.advance(&*context.call).await;
        self.finish(live, step)
    }

    fn finish<T>(self: &Arc<Self>, mut live: LiveCall, step: Step) -> Answer<T> {
        match step {
            Step::Done(Ok(reply)) => self.succeed(&reply),
            Step::Done(Err(error)) => {
                let instance = live.in_use().0.clone();
                self.fail_method(&instance, &live.method.clone(), error)
            }
            Step::Cancelled => Err(cancelled()),
            Step::Asked => {
                let questions = live.questions();
                live.rest();
                let Some(name) = self.parked.insert(live) else {
                    let max = Parked::MAX;
                    let reason = format!("too many calls wait for answers (limit {max})");
                    return Err(Problem::Internal(reason.into()));
                };
                self.end_later(name.clone());
                Ok(Outcome::NeedInput(Ask { questions, state: State::Parked(name).write() }))
            }
        }
    }

    /// A call whose client does not answer ends.
    fn end_later(self: &Arc<Self>, name: String) {
        let (upstream, time) = (Arc::downgrade(self), self.settings.question_time);
        tokio::spawn(async move {
            tokio::time::sleep(time).await;
            if let Some(upstream) = upstream.upgrade() {
                upstream.parked.end(&name);
            }
        });
    }

    fn succeed<T>(&self, reply: &Reply) -> Answer<T> {
        let invalid = |error: CallError| {
            Problem::ToolFailed(format!("upstream `{}`: {error}", self.settings.name).into())
        };
        if let Some(questions) = reply.questions().map_err(invalid)? {
            return Ok(Outcome::NeedInput(repeat(questions)));
        }
        let json = reply.raise().map_err(invalid)?;
        Ok(Outcome::Relayed(self.mapping.uris.outward_json(&json)))
    }

    fn fail<T>(&self, instance: &Instance, request: &CallRequest, error: CallError) -> Answer<T> {
        self.fail_method(instance, &request.method(), error)
    }

    fn fail_method<T>(
        &self,
        instance: &Instance,
        method: &sabir_wire::Method,
        error: CallError,
    ) -> Answer<T> {
        let error = match error {
            CallError::Rpc(error) => error,
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

/// The upstream ended its call with questions, and with its state, if it keeps any.
fn repeat(questions: Questions) -> Ask {
    let Questions { questions, state, .. } = questions;
    let asked = questions.iter().map(|(key, _)| key.clone()).collect();
    let state = state.map(|state| State::Repeat { asked, state });
    Ask { questions, state: state.and_then(|state| state.write()) }
}

/// What the upstream learns of our client: its trace, what it can be asked, what it wants to hear.
/// Never its credentials.
fn options(context: &Context) -> CallOptions {
    CallOptions {
        meta: context.meta.clone(),
        capabilities: Some(capabilities(&context.capabilities)),
        log_level: context.call.log_level(),
        progress: context.call.wants_progress(),
        ..CallOptions::default()
    }
}

/// Extensions that change how a call is made end here; those of the client's display pass.
fn capabilities(own: &ClientCapabilities) -> ClientCapabilities {
    const UI: &str = "io.modelcontextprotocol/ui";
    let ui = own.extra.get("extensions").and_then(|all| all.member(UI));
    let mut passed = ClientCapabilities { extra: sabir_wire::Extra::NONE, ..own.clone() };
    let extensions = ui.and_then(|ui| Raw::parse(format!("{{\"{UI}\":{}}}", ui.text())).ok());
    if let Some(extensions) = extensions {
        passed.extra.set("extensions", extensions);
    }
    passed
}

fn ended() -> Problem {
    let reason = "invalid `requestState`: the call has ended, or its time for answers is over";
    Problem::Params(reason.into())
}

fn cancelled() -> Problem {
    Problem::Internal("the call was cancelled".into())
}
