//! A task as it is stored.

use sabir_wire::WriteJson as _;
use sabir_wire::types::{ClientCapabilities, Questions};
use sabir_wire::{Caller, Code, ErrorObject, Raw, ReadJson as _, Revision, Task, TaskState};
use serde::{Deserialize, Serialize};

/// A task with its owner.
#[derive(Clone, Debug)]
pub struct TaskRecord {
    /// The caller who made the call. To others the task does not exist.
    pub owner: Caller,
    /// The session of the legacy era in which it was made, as long as the process lives.
    pub conversation: Option<u64>,
    /// The task.
    pub task: Task,
    /// How a process that finds it unfinished goes on with it.
    pub continuation: Option<Continuation>,
}

/// How a call whose work is done elsewhere goes on after a restart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Continuation {
    /// The tool that was called.
    pub tool: Box<str>,
    /// Its arguments.
    pub arguments: Raw,
    /// The capabilities of its client.
    pub capabilities: ClientCapabilities,
    /// The state from which its source goes on.
    pub state: Raw,
}

/// A record in a store.
#[derive(Serialize, Deserialize)]
struct Stored {
    issuer: String,
    subject: String,
    id: Box<str>,
    created_ms: u64,
    updated_ms: u64,
    ttl_ms: u64,
    poll_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    result: Option<Raw>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<ErrorObject>,
    /// Its open questions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    questions: Option<Raw>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    cancelled: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    continuation: Option<Continuation>,
}

impl TaskRecord {
    /// When it expires.
    pub fn expires_ms(&self) -> u64 {
        self.task.created_ms.saturating_add(self.task.ttl_ms)
    }

    /// The bytes for a store.
    pub fn to_bytes(&self) -> Result<Vec<u8>, serde_json::Error> {
        let Task { id, created_ms, updated_ms, ttl_ms, poll_ms, state } = &self.task;
        let (result, error, questions) = match state {
            TaskState::Completed(result) => (Some(result.clone()), None, None),
            TaskState::Failed(error) => (None, Some(error.clone()), None),
            TaskState::InputRequired(open) => {
                let questions = Questions { questions: open.clone(), ..Questions::default() };
                (None, None, Some(questions.to_raw(Revision::NEWEST)))
            }
            TaskState::Working | TaskState::Cancelled => (None, None, None),
        };
        serde_json::to_vec(&Stored {
            issuer: self.owner.issuer().to_owned(),
            subject: self.owner.subject().to_owned(),
            id: id.clone(),
            created_ms: *created_ms,
            updated_ms: *updated_ms,
            ttl_ms: *ttl_ms,
            poll_ms: *poll_ms,
            result,
            error,
            questions,
            cancelled: matches!(state, TaskState::Cancelled),
            continuation: self.continuation.clone().filter(|_| !state.is_final()),
        })
    }

    /// Reads the bytes of a store.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        let stored: Stored = serde_json::from_slice(bytes)?;
        let questions = stored.questions.as_ref().map(Questions::read_json).transpose();
        let questions = questions.map_err(serde::de::Error::custom)?;
        let state = match (stored.result, stored.error, questions) {
            (Some(result), ..) => TaskState::Completed(result),
            (None, Some(error), _) => TaskState::Failed(error),
            (None, None, _) if stored.cancelled => TaskState::Cancelled,
            (None, None, Some(asked)) => TaskState::InputRequired(asked.questions),
            (None, None, None) => TaskState::Working,
        };
        Ok(Self {
            owner: Caller::new(stored.issuer, stored.subject),
            conversation: None,
            continuation: stored.continuation,
            task: Task {
                id: stored.id,
                created_ms: stored.created_ms,
                updated_ms: stored.updated_ms,
                ttl_ms: stored.ttl_ms,
                poll_ms: stored.poll_ms,
                state,
            },
        })
    }

    /// The same task as the next process finds it: a task that can go on does so, and asks its
    /// questions again.
    #[must_use]
    pub(crate) fn found(mut self) -> Self {
        if self.continuation.is_none() || self.task.state.is_final() {
            return self.interrupted();
        }
        self.task.state = TaskState::Working;
        self
    }

    /// The same task, marked as failed if it had not ended.
    #[must_use]
    pub fn interrupted(mut self) -> Self {
        if !self.task.state.is_final() {
            let reason = "the task was interrupted: the server stopped while it ran";
            self.task.state = TaskState::Failed(ErrorObject::new(Code::INTERNAL, reason));
        }
        self
    }
}
