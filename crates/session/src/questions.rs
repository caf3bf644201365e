//! Calls that need the client's input, for clients of the legacy era.
//!
//! A modern client is given the questions as a result, and asks again with the answers. For a
//! legacy client the session plays that part: it sends each question as a request, gathers the
//! answers and starts the call restart.

use bytes::Bytes;
use sabir_wire::types::Questions;
use sabir_wire::{
    ErrorObject, Id, Method, Problem, Raw, Request, Resume, Revision, render, write_request,
};

use crate::config::ElicitationIds;
use crate::io::CallKey;

/// All calls of a session that wait for the client. Rare, so a session that never asked keeps one
/// pointer.
#[derive(Debug, Default)]
pub(crate) struct PendingQuestions(Option<Box<Waiting>>);

#[derive(Debug, Default)]
struct Waiting {
    rounds: Vec<PendingCall>,
    /// The last id that was given to a request of ours.
    last_id: i64,
}

/// A call that waits for answers.
#[derive(Debug)]
struct PendingCall {
    call: CallKey,
    open: Vec<OpenQuestion>,
    answers: Vec<(String, Raw)>,
    state: Option<String>,
}

#[derive(Debug)]
struct OpenQuestion {
    id: Id,
    key: String,
    method: &'static str,
}

/// What an answer led to.
#[derive(Debug)]
pub(crate) enum Progress {
    /// Nothing was asked that this answers, or more answers are awaited.
    None,
    /// All is answered: start the call restart.
    Complete(CallKey, Resume),
    /// The client would not answer; these other questions are open no more.
    Refused(CallKey, Problem, Vec<Id>),
}

impl PendingQuestions {
    /// Asks; gives the requests to send.
    pub(crate) fn begin(
        &mut self,
        call: CallKey,
        questions: &Questions,
        revision: Revision,
        pages: &ElicitationIds,
    ) -> Result<Vec<Bytes>, Problem> {
        let asked = self.0.get_or_insert_default();
        let mut open = Vec::new();
        let mut frames = Vec::new();
        for (key, question) in &questions.questions {
            asked.last_id += 1;
            let id = Id::from(asked.last_id);
            let params = render::question(question, revision, || pages.next())
                .map_err(|unsayable| Problem::Request(unsayable.to_string().into()))?;
            let method = question.method();
            frames.push(write_request(&id, method, params.as_ref()));
            open.push(OpenQuestion { id, key: key.clone(), method });
        }
        let state = questions.state.clone();
        asked.rounds.push(PendingCall { call, open, answers: Vec::new(), state });
        Ok(frames)
    }

    /// Takes an answer in.
    pub(crate) fn answered(&mut self, id: &Id, result: Result<Raw, ErrorObject>) -> Progress {
        let Some(Waiting { rounds, .. }) = self.0.as_deref_mut() else { return Progress::None };
        let asked = |round: &PendingCall| round.open.iter().position(|question| question.id == *id);
        let found = rounds.iter().enumerate().find_map(|(at, round)| Some((at, asked(round)?)));
        let Some((at, nth)) = found else { return Progress::None };
        let round = &mut rounds[at];
        let question = round.open.swap_remove(nth);
        match result {
            Ok(answer) => round.answers.push((question.key, answer)),
            Err(error) => {
                let round = rounds.swap_remove(at);
                let reason = format!("the client refused {}: {}", question.method, error.message);
                let others = round.open.into_iter().map(|question| question.id).collect();
                return Progress::Refused(round.call, Problem::ToolFailed(reason.into()), others);
            }
        }
        if !round.open.is_empty() {
            return Progress::None;
        }
        let round = rounds.swap_remove(at);
        let state = round.state.map(Into::into);
        Progress::Complete(round.call, Resume { answers: round.answers, state })
    }

    /// Forgets a call; gives the questions that are open no more.
    pub(crate) fn forget(&mut self, call: CallKey) -> Vec<Id> {
        let rounds = self.0.as_mut().map(|asked| &mut asked.rounds);
        let found = rounds.and_then(|rounds| {
            let at = rounds.iter().position(|round| round.call == call)?;
            Some(rounds.swap_remove(at))
        });
        let open = found.map(|round| round.open).unwrap_or_default();
        open.into_iter().map(|question| question.id).collect()
    }
}

/// Whether a call of this kind may ask the client.
pub(crate) fn may_ask(method: &Method) -> bool {
    matches!(method, Method::CallTool | Method::GetPrompt | Method::ReadResource)
}

/// The same request, with the answers.
pub(crate) fn resumed(mut request: Request, resume: Resume) -> Request {
    match &mut request {
        Request::CallTool(call) => call.resume = resume,
        Request::GetPrompt(get) => get.resume = resume,
        Request::ReadResource(read) => read.resume = resume,
        _ => {}
    }
    request
}
