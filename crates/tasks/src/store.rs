//! Where tasks are kept.

use std::pin::Pin;

use sabir_wire::Caller;

use crate::record::TaskRecord;

/// What a store is asked for.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Keeps tasks beyond the life of a process. Its futures run inside a tokio runtime.
pub trait TaskStore: std::fmt::Debug + Send + Sync {
    /// All tasks of this process that were kept, at its start. Those that had not ended have failed,
    /// unless they have a continuation. It may block.
    fn load(&self) -> Result<Vec<TaskRecord>, StoreError>;

    /// Keeps a task, or its new state. When this completes, the task survives the end of the process.
    /// Where several nodes share the store, a task that has ended stays as it is: then it is given.
    fn save<'a>(&'a self, record: &'a TaskRecord) -> Pending<'a, Option<TaskRecord>>;

    /// Forgets tasks that have expired.
    fn remove<'a>(&'a self, ids: &'a [Box<str>]) -> Pending<'a, ()>;

    /// The name of this node, where several share the store, or one with the processes that it was
    /// before. The ids of its tasks begin with it and a hyphen.
    fn node(&self) -> Option<&str> {
        None
    }

    /// The caller's task of that id, whatever node it is on.
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
