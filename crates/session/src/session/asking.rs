//! Questions of a call to the client of a legacy session.

use std::time::Duration;

use sabir_wire::types::{Questions, ServerResult};
use sabir_wire::{ErrorObject, Id, Problem, Raw, Request, Resume, render};

use super::{Session, notify};
use crate::inflight::{Restart, deadline};
use crate::io::{Call, CallKey, MessageKind, Output};
use crate::questions::Answered;

impl Session {
    pub(super) fn on_response(
        &mut self,
        now: Duration,
        id: &Id,
        result: Result<Raw, ErrorObject>,
        out: &mut Vec<Output>,
    ) {
        match self.state.questions.answer(id, result) {
            Answered::Nothing => {}
            Answered::Complete(key, resume) => {
                let deadline = deadline(now, self.config.limits.call_time);
                let Some(call) = self.state.calls.find(key) else { return };
                call.deadline = deadline;
                self.start_again(key, resume, out);
            }
            Answered::Refused(key, problem, others) => {
                self.withdraw(key, &others, "no longer needed", out);
                self.finish(key, Err(problem), out);
            }
        }
    }

    /// Cancels open questions of a call at the client, and notifies its source.
    pub(super) fn withdraw(
        &mut self,
        key: CallKey,
        open: &[Id],
        reason: &str,
        out: &mut Vec<Output>,
    ) {
        let stream = self.state.calls.find(key).map(|call| call.stream);
        let withdrawn = open.iter().map(|id| render::cancelled(id, reason));
        out.extend(withdrawn.map(|frame| notify(stream, frame)));
        out.push(Output::Abandon(key));
    }

    pub(super) fn on_questions(
        &mut self,
        now: Duration,
        key: CallKey,
        questions: Questions,
        takes_refusals: bool,
        out: &mut Vec<Output>,
    ) {
        let limits = &self.config.limits;
        let is_asked = !questions.questions.is_empty();
        let time = if is_asked { limits.question_time } else { limits.call_time };
        let Some(call) = self.state.calls.find(key) else {
            return out.push(Output::Abandon(key));
        };
        if let Some(missing) = call.capabilities.lacks(&questions.needs()) {
            out.push(Output::Abandon(key));
            return self.finish(key, Err(Problem::MissingCapability(missing)), out);
        }
        if call.restart.is_none() {
            return self.finish(key, Ok(ServerResult::InputRequired(questions)), out);
        }
        call.deadline = deadline(now, time);
        let (stream, revision) = (Some(call.stream), call.revision);
        if !is_asked {
            // No questions: the call is started again with its state.
            let state = questions.state.map(Into::into);
            let resume = Resume { state, ..Resume::default() };
            return self.start_again(key, resume, out);
        }
        let ids = &self.config.elicitation_ids;
        match self.state.questions.ask(key, &questions, takes_refusals, revision, ids) {
            Ok(frames) => {
                let kind = MessageKind::Question;
                out.extend(frames.into_iter().map(|frame| Output::Send { stream, frame, kind }));
            }
            Err(problem) => {
                out.push(Output::Abandon(key));
                self.finish(key, Err(problem), out);
            }
        }
    }

    /// Starts a call of a legacy client once more, with its answers.
    fn start_again(&mut self, key: CallKey, resume: Resume, out: &mut Vec<Output>) {
        let restart = self.state.calls.find(key).and_then(|call| call.restart.as_ref());
        let Some(Restart { caller, method, params }) = restart else { return };
        let (meta, request) = Request::parse(method, params.as_ref());
        match (meta, request) {
            (Ok(meta), Ok(request)) => {
                let from = self.state.client.describe(caller.clone(), meta);
                out.push(Output::Start(Call { key, from, request: request.resumed(resume) }));
            }
            // It was parsed before, so this does not happen; but the client must get a response.
            (Err(problem), _) | (_, Err(problem)) => self.finish(key, Err(problem), out),
        }
    }
}
