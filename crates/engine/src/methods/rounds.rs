//! Calls that may ask their client: what was kept for them, and what to keep.
//! Spec: basic/patterns/mrtr.

use std::sync::Arc;

use sabir_registry::{Answer, Ask, Context, Outcome as SourceOutcome};
use sabir_session::Outcome;
use sabir_wire::types::{Questions, ServerResult};
use sabir_wire::{ByteString, Problem, Raw, Resume};

use crate::context::MethodContext;
use crate::engine::Engine;
use crate::seal::{Binding, SavedState};

/// One start of a call that may ask its client.
pub(crate) struct Round {
    engine: Arc<Engine>,
    caller: Option<Arc<str>>,
    method: &'static str,
    name: ByteString,
    arguments: Option<Raw>,
    kept: SavedState,
}

impl Round {
    /// Takes in what the client sends back: its answers, and what it kept for us.
    pub(crate) fn open(
        context: &MethodContext,
        method: &'static str,
        name: ByteString,
        arguments: Option<&Raw>,
        resume: Resume,
    ) -> Result<Self, Problem> {
        let mut round = Self {
            engine: context.engine.clone(),
            caller: context.caller.clone(),
            method,
            name,
            arguments: arguments.cloned(),
            kept: SavedState::default(),
        };
        if let Some(state) = resume.state {
            let opened = context.engine.seal.open(&state, &round.binding());
            round.kept = opened.ok_or_else(|| {
                Problem::Params(
                    "`requestState` is not ours, not of this request, or expired".into(),
                )
            })?;
        }
        // Whoever answers was asked, though there was nothing to keep.
        if !resume.answers.is_empty() {
            round.kept.rounds = round.kept.rounds.max(1);
        }
        for (key, answer) in resume.answers {
            if !answer.is_object() {
                let reason = format!("`inputResponses[\"{key}\"]` must be an object");
                return Err(Problem::Params(reason.into()));
            }
            // A newer answer replaces an older one: the source may have asked again.
            round.kept.answers.retain(|(known, _)| *known != key);
            round.kept.answers.push((key, answer));
        }
        Ok(round)
    }

    /// Turns a source's answer into the call's outcome; questions are sealed for the way out.
    pub(crate) fn close<T: Into<ServerResult>>(self, answer: Answer<T>) -> Outcome {
        match answer {
            Ok(SourceOutcome::Done(reply)) => Outcome::Done(reply.into()),
            Ok(SourceOutcome::NeedInput(ask)) => self.ask(ask),
            Err(problem) => Outcome::Failed(problem),
        }
    }

    fn ask(self, ask: Ask) -> Outcome {
        let limit = self.engine.settings.engine_limits.questions;
        if self.kept.rounds >= limit {
            let reason = format!("the call asked its client too often: the limit is {limit}");
            return Outcome::Failed(Problem::Internal(reason.into()));
        }
        let Ask { questions, state } = ask;
        if questions.is_empty() && state.is_none() {
            return Outcome::Failed(Problem::Internal("the call asked nothing".into()));
        }
        // Nothing to remember, nothing to carry: the answers alone are enough.
        let nothing_kept = self.kept.rounds == 0 && state.is_none();
        let state = if nothing_kept {
            None
        } else {
            let rounds = self.kept.rounds + 1;
            let kept = SavedState { rounds, answers: self.kept.answers.clone(), state };
            match self.engine.seal.seal(&kept, &self.binding()) {
                Some(sealed) => Some(sealed),
                None => return Outcome::Failed(Problem::Internal("Internal error".into())),
            }
        };
        Outcome::NeedInput(Questions { questions, state, ..Questions::default() })
    }

    fn binding(&self) -> Binding<'_> {
        Binding {
            caller: self.caller.as_deref(),
            method: self.method,
            name: &self.name,
            arguments: self.arguments.as_ref().and_then(|arguments| arguments.read().ok()),
        }
    }
}

/// What the source is told of the call.
pub(crate) fn context(context: MethodContext, round: &Round) -> Context {
    Context {
        capabilities: context.from.capabilities.clone(),
        client: context.from.client,
        meta: context.from.meta.raw,
        answers: round.kept.answers.clone(),
        state: round.kept.state.clone(),
        line: context.line,
    }
}
