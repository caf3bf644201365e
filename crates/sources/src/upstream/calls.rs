//! One call: begun, asked, resumed.

use std::time::Duration;

use sabir_budget::RunningCall;
use sabir_client::{Asked, Call, CallError, CallEvent, CallKey, Reply};
use sabir_registry::{CallHandle, Outgoing};
use sabir_wire::types::Question;
use sabir_wire::{Caller, Code, ErrorObject, Method, Raw};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::instance::{InUse, Routed};
use super::tasks::RemoteTask;

/// How long to wait for further questions after the first, so that questions that are asked
/// together are also shown together.
const GATHER: Duration = Duration::from_millis(10);

/// A call in flight at the upstream. Dropping it cancels it and refuses its questions. Questions
/// that another call may have asked are routed again.
#[derive(Debug)]
pub(super) struct LiveCall {
    call: Call,
    pub(super) method: Method,
    /// Messages of the upstream that name no call and may belong to this one.
    routed: mpsc::Receiver<Routed>,
    caller: Caller,
    /// The questions that its client has not answered, by their keys; whether another call may have
    /// asked.
    questions: Vec<(String, Asked, bool)>,
    asked: usize,
    in_use: InUse,
    /// Reports the end of the call to observers.
    pub(super) outgoing: Outgoing,
    /// `None` once the call was parked: calls that wait for people must not block others.
    permit: Option<RunningCall>,
    /// The task whose result it waits for.
    task: Option<RemoteTask>,
}

/// The state of a call when [`LiveCall::advance`] returns.
#[derive(Debug)]
pub(super) enum Step {
    /// It ended.
    Done(Result<Reply, CallError>),
    /// The upstream has asked questions.
    Asked,
    /// The client cancelled the call.
    Cancelled,
}

impl LiveCall {
    pub(super) fn new(
        call: Call,
        method: Method,
        routed: mpsc::Receiver<Routed>,
        caller: Caller,
        in_use: InUse,
        permit: Option<RunningCall>,
    ) -> Self {
        Self {
            call,
            method,
            routed,
            caller,
            questions: Vec::new(),
            asked: 0,
            in_use,
            outgoing: Outgoing::default(),
            permit,
            task: None,
        }
    }

    /// Sets the task whose result this call waits for.
    pub(super) fn result_of(&mut self, task: RemoteTask) {
        self.task = Some(task);
    }

    pub(super) fn caller(&self) -> &Caller {
        &self.caller
    }

    pub(super) fn key(&self) -> CallKey {
        self.call.key()
    }

    #[cfg(test)]
    pub(super) fn routed(&mut self) -> &mut mpsc::Receiver<Routed> {
        &mut self.routed
    }

    pub(super) fn in_use(&self) -> &InUse {
        &self.in_use
    }

    /// Follows the call until it ends or the upstream asks; reports go to its client.
    pub(super) async fn advance(&mut self, client: &dyn CallHandle) -> Step {
        let cancelled = client.cancelled();
        tokio::pin!(cancelled);
        let mut gathered = (!self.questions.is_empty()).then(|| Instant::now() + GATHER);
        loop {
            let enough = async {
                match gathered {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = &mut cancelled => return Step::Cancelled,
                event = self.call.next() => match event {
                    CallEvent::Done(result) => {
                        // Without an answer, the task may still run.
                        let is_known = result.as_ref().err().is_none_or(|error| error.rpc().is_some());
                        self.task.iter_mut().filter(|_| is_known).for_each(RemoteTask::set_ended);
                        return Step::Done(result);
                    }
                    CallEvent::Question(asked) => self.ask(asked, false),
                    CallEvent::Progress(progress) => {
                        client.progress(progress.progress, progress.total, progress.message);
                    }
                    CallEvent::Log(message) => {
                        client.log(message.level, message.logger, message.data);
                    }
                    CallEvent::Notification { method, params } => client.notify(&method, params),
                    _ => {}
                },
                Some(routed) = self.routed.recv() => match routed {
                    Routed::Question(asked) => self.ask(asked, true),
                    Routed::Log { message, .. } => client.log(message.level, message.logger, message.data),
                    Routed::Notification { method, params, .. } => client.notify(&method, params),
                },
                () = enough => return Step::Asked,
            }
            if !self.questions.is_empty() {
                gathered.get_or_insert_with(|| Instant::now() + GATHER);
            }
        }
    }

    fn ask(&mut self, asked: Asked, is_uncertain: bool) {
        // Servers also ask for roots by themselves when a session begins. This must not end a call
        // that only happens to run.
        let question = asked.question();
        if matches!(question, Question::Roots { .. })
            && !self.in_use.0.can_answer(self.key(), question)
        {
            let error = ErrorObject::new(Code::METHOD_NOT_FOUND, "the client has no roots");
            return asked.refuse(error);
        }
        self.asked += 1;
        self.questions.push((format!("question-{}", self.asked), asked, is_uncertain));
    }

    /// The questions that are not answered.
    pub(super) fn questions(&self) -> Vec<(String, Question)> {
        let questions = self.questions.iter();
        questions.map(|(key, asked, _)| (key.clone(), asked.question().clone())).collect()
    }

    /// Hands the client's answers and errors to the upstream.
    pub(super) fn answer(&mut self, answers: &[(String, Raw)], refusals: &[(String, ErrorObject)]) {
        for (key, answer) in answers {
            if let Some(asked) = self.take_question(key) {
                asked.answer(answer.clone());
            }
        }
        for (key, error) in refusals {
            if let Some(asked) = self.take_question(key) {
                asked.refuse(error.clone());
            }
        }
    }

    fn take_question(&mut self, key: &str) -> Option<Asked> {
        let at = self.questions.iter().position(|(asked, ..)| asked == key)?;
        Some(self.questions.swap_remove(at).1)
    }

    /// Parks the call while its client is asked: other calls may run instead.
    pub(super) fn rest(&mut self) {
        self.permit = None;
        self.in_use.0.set_parked(self.key(), true);
    }

    /// Unparks the call: its client has answered.
    pub(super) fn wake(&mut self) {
        self.in_use.0.set_parked(self.key(), false);
    }
}

impl Drop for LiveCall {
    fn drop(&mut self) {
        self.in_use.forget(self.call.key());
        self.routed.close();
        let uncertain = self.questions.drain(..).filter(|(.., is_uncertain)| *is_uncertain);
        let mut questions: Vec<_> =
            uncertain.map(|(_, asked, _)| Routed::Question(asked)).collect();
        let routed = std::iter::from_fn(|| self.routed.try_recv().ok());
        questions.extend(routed.filter(|routed| matches!(routed, Routed::Question(_))));
        // Another call may have asked: it still waits for the answer.
        for question in questions {
            self.in_use.0.route(question);
        }
    }
}
