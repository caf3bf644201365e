//! One call: its events and its result.

use std::sync::Arc;

use sabir_wire::types::{LogMessage, Progress, Question, Questions, SubscriptionFilter};
use sabir_wire::{Era, ErrorObject, Method, Raw, ReadJson, Revision, raise};

use crate::connection::{Begun, Connection, Notice, QuestionHandle};
use crate::error::CallError;
use crate::io::CallKey;

/// A running call. Dropping it cancels it.
#[derive(Debug)]
pub struct Call {
    connection: Arc<Connection>,
    begun: Begun,
    method: Method,
    revision: Revision,
    is_done: bool,
}

/// An event of a call.
#[derive(Debug)]
#[non_exhaustive]
pub enum CallEvent {
    /// Progress, if [`CallOptions::progress`](crate::CallOptions::progress) is set.
    Progress(Progress),
    /// A log message of the call.
    Log(LogMessage),
    /// A legacy server asks in the middle of the call. A modern server answers with questions
    /// instead; see [`Reply::questions`].
    Question(Asked),
    /// A subscription began: the server will announce these changes.
    Listening(SubscriptionFilter),
    /// A notification with an unknown method.
    Notification {
        /// Its method.
        method: String,
        /// Its params.
        params: Option<Raw>,
    },
    /// The call ended. This is the last event.
    Done(Result<Reply, CallError>),
}

/// The result of a call, as the server sent it.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// The method of the call.
    pub method: Method,
    /// The revision of the server.
    pub revision: Revision,
    /// The result, in that revision.
    pub json: Raw,
}

impl Reply {
    /// The result in the shape of the newest revision. The result of a modern server is not
    /// changed.
    pub fn raise(&self) -> Result<Raw, CallError> {
        raise::result(&self.method, self.revision, &self.json)
            .map_err(|error| CallError::Invalid(error.to_string()))
    }

    /// Reads the result as a type of the specification.
    pub fn read<T: ReadJson>(&self) -> Result<T, CallError> {
        T::read_json(&self.raise()?).map_err(|error| CallError::Invalid(error.to_string()))
    }

    /// Whether this is the result of a tool that failed.
    pub fn is_tool_error(&self) -> bool {
        // Only a result that contains the word is parsed.
        self.json.text().contains("\"isError\"")
            && self.json.member("isError").is_some_and(|value| value.text() == "true")
    }

    /// The questions that a modern server answered with instead of a result. Repeat the request
    /// with the answers and the state.
    pub fn questions(&self) -> Result<Option<Questions>, CallError> {
        const ASKING: &str = r#""input_required""#;
        // Most results do not have the word, and need not be parsed.
        let may_ask = self.revision.era() == Era::Modern && self.json.text().contains(ASKING);
        let kind = if may_ask { self.json.member("resultType") } else { None };
        if kind.is_none_or(|kind| kind.text() != ASKING) {
            return Ok(None);
        }
        let read = Questions::read_json(&self.json);
        read.map(Some).map_err(|error| CallError::Invalid(error.to_string()))
    }
}

impl Call {
    pub(crate) fn new(
        connection: Arc<Connection>,
        begun: Begun,
        method: Method,
        revision: Revision,
    ) -> Self {
        Self { connection, begun, method, revision, is_done: false }
    }

    /// Identifies the call within its link.
    pub fn key(&self) -> CallKey {
        self.begun.key
    }

    /// The next event. [`CallEvent::Done`] is the last one; after it, this never completes.
    ///
    /// Cancel safe.
    pub async fn next(&mut self) -> CallEvent {
        if self.is_done {
            return std::future::pending().await;
        }
        let lost = || Notice::Done(Err(CallError::Lost("the connection was closed".to_owned())));
        match self.begun.notices.recv().await.unwrap_or_else(lost) {
            Notice::Progress(progress) => CallEvent::Progress(progress),
            Notice::Log(message) => CallEvent::Log(message),
            Notice::Question(handle) => CallEvent::Question(Asked(handle)),
            Notice::Listening(filter) => CallEvent::Listening(filter),
            Notice::Notification { method, params } => CallEvent::Notification { method, params },
            Notice::Done(result) => {
                self.is_done = true;
                let (method, revision) = (self.method.clone(), self.revision);
                CallEvent::Done(result.map(|json| Reply { method, revision, json }))
            }
        }
    }

    /// The result. Questions are refused, everything else is ignored.
    pub async fn result(mut self) -> Result<Reply, CallError> {
        loop {
            if let CallEvent::Done(result) = self.next().await {
                return result;
            }
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if !self.is_done {
            self.connection.cancel(self.begun.key);
        }
    }
}

/// A question of a legacy server, which waits for its answer. Dropping it refuses the question.
#[derive(Debug)]
pub struct Asked(pub(crate) QuestionHandle);

impl Asked {
    /// The question.
    pub fn question(&self) -> &Question {
        self.0.question()
    }

    /// The calls that can have asked the question. On a pipe, the legacy era does not say which
    /// did.
    pub fn calls(&self) -> &[CallKey] {
        &self.0.calls
    }

    /// Answers the question with the result that the protocol demands: that of
    /// `elicitation/create`, `sampling/createMessage` or `roots/list`.
    pub fn answer(mut self, result: Raw) {
        self.0.answer(Ok(result));
    }

    /// Refuses the question.
    pub fn refuse(mut self, error: ErrorObject) {
        self.0.answer(Err(error));
    }

    /// Waits until the question needs no answer: the server withdrew it, its call ended, or the
    /// link ended.
    pub async fn withdrawn(&mut self) {
        self.0.withdrawn().await;
    }
}
