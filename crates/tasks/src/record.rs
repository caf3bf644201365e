//! A task as it is kept.

use sabir_wire::{Caller, Code, ErrorObject, Raw, Task, TaskState};
use serde::{Deserialize, Serialize};

/// A task, with whom it belongs to.
#[derive(Clone, Debug)]
pub struct TaskRecord {
    /// Who made the call. To others the task does not exist.
    pub owner: Caller,
    /// The session of the legacy era in which it was made, as long as the process lives.
    pub conversation: Option<u64>,
    /// The task.
    pub task: Task,
}

/// A record in a store. Questions are not kept: a task that waits for answers does not survive the
/// process that asks.
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
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    cancelled: bool,
}

impl TaskRecord {
    /// When it may be forgotten.
    pub fn expires_ms(&self) -> u64 {
        self.task.created_ms.saturating_add(self.task.ttl_ms)
    }

    /// What a store keeps.
    pub fn to_bytes(&self) -> Result<Vec<u8>, serde_json::Error> {
        let Task { id, created_ms, updated_ms, ttl_ms, poll_ms, state } = &self.task;
        let (result, error) = match state {
            TaskState::Completed(result) => (Some(result.clone()), None),
            TaskState::Failed(error) => (None, Some(error.clone())),
            _ => (None, None),
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
            cancelled: matches!(state, TaskState::Cancelled),
        })
    }

    /// Reads what a store has kept. A task that had not ended has failed: nobody works on it.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        let stored: Stored = serde_json::from_slice(bytes)?;
        let state = match (stored.result, stored.error) {
            (Some(result), _) => TaskState::Completed(result),
            (None, Some(error)) => TaskState::Failed(error),
            (None, None) if stored.cancelled => TaskState::Cancelled,
            (None, None) => TaskState::Failed(interrupted()),
        };
        Ok(Self {
            owner: Caller::new(stored.issuer, stored.subject),
            conversation: None,
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
}

/// The error of a task whose process has ended.
pub(crate) fn interrupted() -> ErrorObject {
    ErrorObject::new(Code::INTERNAL, "the task was interrupted: the server stopped while it ran")
}
