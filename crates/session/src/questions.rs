//! Calls that need the client's input, for clients of the legacy era.
//!
//! A modern client receives the questions as a result and repeats the request with its answers. For
//! a legacy client the session does that: it sends each question as a request, collects the answers
//! and starts the call again.

use bytes::Bytes;
use sabir_wire::types::Questions;
use sabir_wire::{ErrorObject, Id, Method, Problem, Raw, Resume, Revision, render, write_request};
use serde::{Deserialize, Serialize};

use crate::config::ElicitationIds;
use crate::io::CallKey;

/// All calls of a session that wait for the client's answers.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct PendingQuestions {
    calls: Vec<PendingCall>,
    /// The last id that was given to a request of ours.
    last_id: i64,
}

/// A call that waits for answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct PendingCall {
    call: CallKey,
    open: Vec<OpenQuestion>,
    answers: Vec<(String, Raw)>,
    /// The errors that the client answered with, if the call takes them.
    #[serde(default)]
    refusals: Option<Vec<(String, ErrorObject)>>,
    state: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct OpenQuestion {
    id: Id,
    key: String,
    method: Box<str>,
}

/// The effect of an answer.
#[derive(Debug)]
pub(crate) enum Answered {
    /// It answers no open question, or more answers are awaited.
    Nothing,
    /// All questions of the call are answered: start it again.
    Complete(CallKey, Resume),
    /// The client refused to answer, which ends the call. Its other questions are withdrawn.
    Refused(CallKey, Problem, Vec<Id>),
}

impl PendingQuestions {
    /// Records the questions of a call, and returns the requests to send. Each request gets the
    /// metadata of them all: this era has no result around them to carry it.
    pub(crate) fn ask(
        &mut self,
        call: CallKey,
        questions: &Questions,
        takes_refusals: bool,
        revision: Revision,
        elicitation_ids: &ElicitationIds,
    ) -> Result<Vec<Bytes>, Problem> {
        let mut open = Vec::new();
        let mut frames = Vec::new();
        for (key, question) in &questions.questions {
            self.last_id += 1;
            let id = elicitation_ids.question().unwrap_or_else(|| Id::from(self.last_id));
            let params = render::question(question, revision, || elicitation_ids.next())
                .map_err(|unsayable| Problem::Request(unsayable.to_string().into()))?;
            let params = match &questions.meta {
                Some(meta) => Some(with_meta(params.unwrap_or_else(Raw::empty_object), meta)),
                None => params,
            };
            let method = question.method();
            frames.push(write_request(&id, method, params.as_ref()));
            open.push(OpenQuestion { id, key: key.clone(), method: method.into() });
        }
        let state = questions.state.clone();
        let refusals = takes_refusals.then(Vec::new);
        self.calls.push(PendingCall { call, open, answers: Vec::new(), refusals, state });
        Ok(frames)
    }

    /// Records the client's response to one of our requests.
    pub(crate) fn answer(&mut self, id: &Id, result: Result<Raw, ErrorObject>) -> Answered {
        let position = |call: &PendingCall| call.open.iter().position(|open| open.id == *id);
        let found =
            self.calls.iter().enumerate().find_map(|(at, call)| Some((at, position(call)?)));
        let Some((at, nth)) = found else { return Answered::Nothing };
        let call = &mut self.calls[at];
        let question = call.open.swap_remove(nth);
        match (result, &mut call.refusals) {
            (Ok(answer), _) => call.answers.push((question.key, answer)),
            (Err(error), Some(refusals)) => refusals.push((question.key, error)),
            (Err(error), None) => {
                let call = self.calls.swap_remove(at);
                let reason = format!("the client refused {}: {}", question.method, error.message);
                let others = call.open.into_iter().map(|question| question.id).collect();
                return Answered::Refused(call.call, Problem::ToolFailed(reason.into()), others);
            }
        }
        if !call.open.is_empty() {
            return Answered::Nothing;
        }
        let PendingCall { call, answers, refusals, state, .. } = self.calls.swap_remove(at);
        let (refusals, state) = (refusals.unwrap_or_default(), state.map(Into::into));
        Answered::Complete(call, Resume { answers, refusals, state })
    }

    /// Removes a call; returns the ids of its open questions, or `None` if it waited for none.
    pub(crate) fn forget(&mut self, call: CallKey) -> Option<Vec<Id>> {
        let at = self.calls.iter().position(|pending| pending.call == call)?;
        let open = self.calls.swap_remove(at).open;
        Some(open.into_iter().map(|question| question.id).collect())
    }

    /// Whether a call waits for answers.
    pub(crate) fn is_waiting(&self, call: CallKey) -> bool {
        self.calls.iter().any(|pending| pending.call == call)
    }

    /// Whether no question was ever asked.
    pub(crate) fn is_unused(&self) -> bool {
        self.last_id == 0
    }
}

/// The same params, with more metadata beside their own.
fn with_meta(params: Raw, more: &Raw) -> Raw {
    let own = params.member("_meta").unwrap_or_else(Raw::empty_object);
    let more = more.members();
    let more: Vec<_> = more.iter().map(|(name, value)| (&**name, Some(value.text()))).collect();
    params.with_members(&[("_meta", Some(own.with_members(&more).text()))])
}

/// Whether a call of this method may ask the client.
pub(crate) fn may_ask_client(method: &Method) -> bool {
    matches!(
        method,
        Method::CallTool | Method::GetPrompt | Method::ReadResource | Method::TaskResult
    )
}
