//! Calls that may ask their client: each start is one attempt, which gets the state that the last
//! one saved. Spec: basic/patterns/mrtr.

use std::sync::Arc;

use sabir_budget::{compute, memory};
use sabir_registry::{Answer, Ask, Context, Outcome as SourceOutcome, Source};
use sabir_session::Outcome;
use sabir_wire::types::{Questions, Relayed, ServerResult};
use sabir_wire::{ByteString, Caller, ErrorObject, Method, Problem, Raw, Resume, Revision, render};
use serde_json::Value;

use super::busy;
use crate::admitted::refused;
use crate::calls::{Parked, RunningCall};
use crate::context::MethodContext;
use crate::engine::Engine;
use crate::peers::{split_route, with_route};
use crate::seal::{Binding, SavedState};

/// One start of a call that may ask its client.
pub(crate) struct Attempt {
    engine: Arc<Engine>,
    source: Arc<dyn Source>,
    call: Arc<RunningCall>,
    caller: Caller,
    revision: Revision,
    method: &'static str,
    name: ByteString,
    arguments: Option<Raw>,
    saved: SavedState,
    refusals: Vec<(String, ErrorObject)>,
}

impl Attempt {
    /// Takes in the answers of the client, and the state that it kept for us.
    pub(crate) fn open(
        context: &MethodContext,
        source: &Arc<dyn Source>,
        method: &'static str,
        name: ByteString,
        arguments: Option<&Raw>,
        resume: Resume,
    ) -> Result<Self, Problem> {
        let mut attempt = Self {
            engine: context.engine.clone(),
            source: source.clone(),
            call: context.call.clone(),
            caller: context.from.caller.clone(),
            revision: context.from.revision,
            method,
            name,
            arguments: arguments.cloned(),
            saved: SavedState::default(),
            refusals: resume.refusals,
        };
        if let Some(state) = resume.state {
            let (_, sealed) = split_route(&state);
            let opened = context.engine.seal.open(sealed, &attempt.binding());
            attempt.saved = opened.ok_or_else(|| {
                Problem::Params(
                    "invalid `requestState`: it expired, or belongs to another request".into(),
                )
            })?;
        }
        // A client that answers was asked, even if there was no state to keep.
        if !resume.answers.is_empty() {
            attempt.saved.asked = attempt.saved.asked.max(1);
        }
        check_answers(&resume.answers)?;
        for (key, answer) in resume.answers {
            // A newer answer replaces an older one: the source may have asked again.
            attempt.saved.answers.retain(|(known, _)| *known != key);
            attempt.saved.answers.push((key, answer));
        }
        Ok(attempt)
    }

    /// Turns a source's answer into the call's outcome; questions are sealed for the way out.
    pub(crate) async fn close<T: Into<ServerResult>>(self, answer: Answer<T>) -> Outcome {
        let result = match answer {
            Ok(SourceOutcome::Done(reply)) => reply.into(),
            Ok(SourceOutcome::Relayed(json)) => relayed(self.method, json),
            Ok(SourceOutcome::NeedInput(ask)) => return self.ask(ask),
            Err(problem) => return Outcome::Failed(problem),
        };
        match is_long(&result) {
            false => Outcome::Done(result),
            true => self.write(result).await,
        }
    }

    /// Lets the pool write a long result, so that the thread that sends it has little to do.
    async fn write(&self, result: ServerResult) -> Outcome {
        // The value, and its rendered text.
        let mut hold = match memory().take(2 * result.size()) {
            Ok(hold) => hold,
            Err(full) => return refused(full),
        };
        let (revision, server) = (self.revision, self.engine.session_config.server.clone());
        let written = compute(self.caller.share(), move |_| {
            let text = render::result(&result, revision, &server);
            drop(result);
            hold.shrink_to(text.len());
            Ok(hold.keep(text))
        });
        written.await.map(ServerResult::Ready).map_err(busy).into()
    }

    fn ask(self, ask: Ask) -> Outcome {
        let limit = self.engine.settings.engine_limits.questions;
        if self.saved.asked >= limit {
            let reason = format!("the call asked its client too often (limit {limit})");
            return Outcome::Failed(Problem::Internal(reason.into()));
        }
        let Ask { questions, state, takes_refusals, only_here, extra } = ask;
        if questions.is_empty() && state.is_none() {
            return Outcome::Failed(Problem::Internal("the call asked nothing".into()));
        }
        if let Some(state) = &state {
            let (source, state) = (self.source.clone(), state.clone());
            self.call.park(Parked { source, state });
        }
        // Without state the answers alone are enough.
        let nothing_saved = self.saved.asked == 0 && state.is_none();
        let state = if nothing_saved {
            None
        } else {
            let asked = self.saved.asked + 1;
            let saved = SavedState { asked, answers: self.saved.answers.clone(), state };
            match self.engine.seal.seal(&saved, &self.binding()) {
                Some(sealed) => Some(self.routed(sealed, only_here)),
                None => return Outcome::Failed(Problem::Internal("Internal error".into())),
            }
        };
        let questions = Questions { questions, state, extra, ..Questions::default() };
        Outcome::NeedInput { questions, takes_refusals }
    }

    /// The same state, which names this node if no other can go on with the call.
    fn routed(&self, sealed: String, only_here: bool) -> String {
        let peers = self.engine.settings.peers.as_ref().filter(|_| only_here);
        match peers.and_then(|peers| peers.route()) {
            Some(route) => with_route(&route, &sealed),
            None => sealed,
        }
    }

    /// The params by which a client would resume the call from a state that its source has kept.
    pub(crate) fn resume_from(&self, state: Raw) -> Option<Resume> {
        let saved = SavedState { state: Some(state), ..SavedState::default() };
        let state = self.engine.seal.seal(&saved, &self.binding())?;
        Some(Resume { state: Some(state.into()), ..Resume::default() })
    }

    fn binding(&self) -> Binding<'_> {
        Binding {
            caller: &self.caller,
            method: self.method,
            name: &self.name,
            // Arguments that cannot be parsed, such as 1e400, are bound as text.
            arguments: self.arguments.as_ref().map(|arguments| {
                arguments.read().unwrap_or_else(|_| Value::String(arguments.text().into()))
            }),
        }
    }
}

/// The size from which a result is written by the pool.
const LONG: usize = 128 << 10;

fn is_long(result: &ServerResult) -> bool {
    // A dialect may make an error of a failed tool.
    let is_failure = matches!(result, ServerResult::Tool(reply) if reply.is_error);
    !is_failure && result.size() >= LONG
}

/// Refuses answers that no question can have.
pub(crate) fn check_answers(answers: &[(String, Raw)]) -> Result<(), Problem> {
    match answers.iter().find(|(_, answer)| !answer.is_object()) {
        None => Ok(()),
        Some((key, _)) => {
            let reason = format!("`inputResponses[\"{key}\"]` must be an object");
            Err(Problem::Params(reason.into()))
        }
    }
}

/// The result of another server.
pub(crate) fn relayed(method: &str, json: Raw) -> ServerResult {
    ServerResult::Relayed(Relayed { method: Method::named(method), json })
}

/// The context of a call that may ask its client.
pub(crate) fn context(context: MethodContext, attempt: &Attempt) -> Context {
    let SavedState { answers, state, .. } = attempt.saved.clone();
    let refusals = attempt.refusals.clone();
    Context { answers, refusals, state, ..plain_context(context) }
}

/// The context of any other call.
pub(crate) fn plain_context(context: MethodContext) -> Context {
    Context {
        caller: context.from.caller,
        conversation: context.conversation,
        capabilities: context.from.capabilities,
        client: context.from.client,
        meta: context.from.meta.raw,
        extra: context.extra,
        answers: Vec::new(),
        refusals: Vec::new(),
        state: None,
        call: context.call,
    }
}
