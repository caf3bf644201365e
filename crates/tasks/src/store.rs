//! Where tasks are kept.

use crate::record::TaskRecord;

/// Keeps tasks beyond the life of a process. Its methods may block.
pub trait TaskStore: std::fmt::Debug + Send + Sync {
    /// All tasks that were kept. Those that had not ended come back as failed.
    fn load(&self) -> Result<Vec<TaskRecord>, StoreError>;

    /// Keeps a task, or its new state. When this returns, the task survives the end of the process.
    fn save(&self, record: &TaskRecord) -> Result<(), StoreError>;

    /// Forgets tasks.
    fn remove(&self, ids: &[Box<str>]) -> Result<(), StoreError>;
}

/// A store failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StoreError(String);

impl StoreError {
    /// An error for operators.
    pub fn new(reason: impl ToString) -> Self {
        Self(reason.to_string())
    }
}
