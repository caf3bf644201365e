//! The ends of tasks of this node, and their storage.

use std::time::Duration;

use sabir_tasks::{StoreError, TaskRecord};
use sabir_wire::{Caller, Task, TaskState};

use super::{Tasks, counted};

/// The interval at which the end of a task is written again after a failure of the store.
const RETRY: Duration = Duration::from_secs(1);

impl Tasks {
    /// A task has ended by itself. While the shared store cannot be reached, the task counts as
    /// running: its end must be the same everywhere.
    pub(crate) async fn end(&self, id: &str, state: TaskState) {
        // It has expired, or is left to the next process.
        if !self.lock().live.contains_key(id) {
            return;
        }
        let state = counted(state);
        while let Err(error) = self.settle(id, state.clone()).await {
            tracing::warn!("the end of a task is not stored yet: {error}");
            tokio::time::sleep(RETRY).await;
        }
        self.lock().live.remove(id);
    }

    /// Cancels a task of the caller. Returns the task, and whether this call ended it.
    pub(crate) async fn cancel(
        &self,
        caller: &Caller,
        id: &str,
    ) -> Result<Option<(Task, bool)>, StoreError> {
        match self.node_of(id) {
            Some(node) => self.cancel_elsewhere(caller, id, node).await,
            None if self.get_here(caller, id).is_none() => Ok(None),
            None => self.settle(id, TaskState::Cancelled).await,
        }
    }

    /// Ends a task of this node, first in the store and then in the table. Returns the task, and
    /// whether this call ended it.
    pub(super) async fn settle(
        &self,
        id: &str,
        state: TaskState,
    ) -> Result<Option<(Task, bool)>, StoreError> {
        let at = self.clock.now();
        let (mut next, state) = {
            let mut tasks = self.lock();
            let Some(record) = tasks.table.record(id).cloned() else { return Ok(None) };
            if record.task.state.is_final() {
                return Ok(Some((record.task, false)));
            }
            (record, tasks.table.reserve(id, state))
        };
        next.task.state = state.clone();
        next.task.updated_ms = at;
        // An end that was stored before takes precedence.
        let known = self.save_or_log(&next).await?.map(|record| counted(record.task.state));
        let is_ours = known.is_none();
        let state = known.unwrap_or(state);
        let ended = self.lock().table.end(at, id, state.clone());
        let live = self.lock().live.get(id).cloned();
        if let Some(live) = live.filter(|_| matches!(state, TaskState::Cancelled) || !is_ours) {
            live.call.cancel();
        }
        self.changed(id);
        if let Some(record) = ended {
            return Ok(Some((record.task, is_ours)));
        }
        // It has ended differently meanwhile, and that end stays.
        let record = self.lock().table.record(id).cloned();
        if let Some(record) = record.as_ref().filter(|record| record.task.state != state) {
            self.save_or_log(record).await?;
        }
        Ok(record.map(|record| (record.task, false)))
    }

    /// Ends all tasks: the server stops. Tasks that can go on after a restart are left as they are.
    pub(crate) async fn stop(&self) {
        let live: Vec<_> = self.lock().live.drain().collect();
        for (id, live) in live {
            let record = self.lock().table.record(&id).cloned();
            let Some(record) = record else { continue };
            if self.settings.store.is_some() && record.continuation.is_some() {
                live.call.leave();
                live.changed.notify_waiters();
                continue;
            }
            let record = record.interrupted();
            if let Err(error) = self.settle(&id, record.task.state).await {
                tracing::error!("the end of a task could not be stored: {error}");
            }
            live.call.cancel();
            live.changed.notify_waiters();
        }
    }

    /// Stores the state of a running task for other nodes. If it has ended there, it ends here.
    pub(super) async fn publish(&self, id: &str) {
        if !self.is_shared() {
            return;
        }
        loop {
            let record = self.lock().table.record(id).cloned();
            let Some(record) = record.filter(|record| !record.task.state.is_final()) else {
                return;
            };
            match self.save(&record).await {
                Ok(Some(known)) => return drop(self.settle(id, known.task.state).await),
                // It may have changed meanwhile, and the older state must not stay.
                Ok(None) => {
                    let is_same = |now: &TaskRecord| now.task == record.task;
                    if self.lock().table.record(id).is_none_or(is_same) {
                        return;
                    }
                }
                Err(error) => {
                    return tracing::warn!("the state of a task is not stored: {error}");
                }
            }
        }
    }

    pub(super) async fn save(&self, record: &TaskRecord) -> Result<Option<TaskRecord>, StoreError> {
        match &self.settings.store {
            Some(store) => store.save(record).await,
            None => Ok(None),
        }
    }

    /// The same. Without other nodes, a failure is only logged.
    pub(super) async fn save_or_log(
        &self,
        record: &TaskRecord,
    ) -> Result<Option<TaskRecord>, StoreError> {
        match self.save(record).await {
            Err(error) if !self.is_shared() => {
                tracing::error!("cannot keep the state of a task: {error}");
                Ok(None)
            }
            saved => saved,
        }
    }
}
