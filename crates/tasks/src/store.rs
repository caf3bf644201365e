//! Stores of tasks.

use std::pin::Pin;

use sabir_wire::Caller;

use crate::record::TaskRecord;

/// A pending answer of a store.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Keeps tasks beyond the life of a process. Its futures run inside a tokio runtime.
pub trait TaskStore: std::fmt::Debug + Send + Sync {
    /// All stored tasks of this process, at its start. Tasks that had not ended are marked as
    /// failed, unless they have a continuation. May block.
    fn load(&self) -> Result<Vec<TaskRecord>, StoreError>;

    /// Keeps a task, or its new state. When this completes, the task survives the end of the
    /// process. A task that has ended stays as it is, and is returned: states may be saved at once,
    /// and by several nodes.
    fn save<'a>(&'a self, record: &'a TaskRecord) -> Pending<'a, Option<TaskRecord>>;

    /// Removes expired tasks.
    fn remove<'a>(&'a self, ids: &'a [Box<str>]) -> Pending<'a, ()>;

    /// The name of this node, if several nodes share the store, or one keeps it over restarts. The
    /// ids of its tasks begin with it and a hyphen.
    fn node(&self) -> Option<&str> {
        None
    }

    /// The caller's task of that id, on any node.
    fn find<'a>(&'a self, _caller: &'a Caller, _id: &'a str) -> Pending<'a, Option<TaskRecord>> {
        Box::pin(async { Ok(None) })
    }

    /// The caller's tasks on all nodes.
    fn list<'a>(&'a self, _caller: &'a Caller) -> Pending<'a, Vec<TaskRecord>> {
        Box::pin(async { Ok(Vec::new()) })
    }
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
