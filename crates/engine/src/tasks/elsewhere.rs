//! Tasks of other nodes. Their states are in the store that the nodes share; the calls stay where
//! they began, and learn of answers and cancellations from this node.

use std::time::Duration;

use sabir_tasks::{StoreError, TaskRecord};
use sabir_wire::{Caller, Raw, Task, TaskState};
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;

use super::{Tasks, counted};
use crate::peers::PeerNews;

/// The kept tasks of other nodes. When full, the oldest is dropped: its listeners are not notified,
/// and have to ask.
const MAX_SEEN: usize = 64;

/// The poll interval of a waiter for a task. Its node announces changes earlier, unless it is gone.
const LOOK: Duration = Duration::from_secs(1);

/// How long a client waits until the node of its task has taken its answers, and how often that is
/// checked.
const TAKEN: Duration = Duration::from_secs(5);
const TAKING: Duration = Duration::from_millis(20);

impl Tasks {
    /// The node of a task, if it is another one.
    pub(super) fn node_of<'a>(&self, id: &'a str) -> Option<&'a str> {
        let own = self.settings.store.as_ref()?.node()?;
        let (node, _) = id.split_once('-')?;
        (node != own).then_some(node)
    }

    /// A task of another node. If that node is gone and the task had not ended, the task has
    /// failed.
    pub(super) async fn fetch(
        &self,
        caller: &Caller,
        id: &str,
    ) -> Result<Option<TaskRecord>, StoreError> {
        let Some(store) = &self.settings.store else { return Ok(None) };
        match store.find(caller, id).await? {
            Some(record) => self.checked(record).await.map(Some),
            None => Ok(None),
        }
    }

    /// The same record, marked as failed if its node is gone.
    pub(super) async fn checked(&self, record: TaskRecord) -> Result<TaskRecord, StoreError> {
        let node = self.node_of(&record.task.id).filter(|_| !record.task.state.is_final());
        let (Some(node), Some(store)) = (node, &self.settings.store) else { return Ok(record) };
        if self.tell(node, &PeerNews::Ping).await? {
            return Ok(record);
        }
        let mut failed = record.interrupted();
        failed.task.updated_ms = self.clock.now();
        // It may have ended just before its node did.
        let known = store.save(&failed).await?;
        Ok(known.unwrap_or(failed))
    }

    /// Sends a message to a node. `false` if the node is gone, or without a bus.
    async fn tell(&self, node: &str, news: &PeerNews) -> Result<bool, StoreError> {
        match &self.peers {
            Some(peers) => peers.tell(Some(node), news).await.map_err(StoreError::new),
            None => Ok(false),
        }
    }

    /// Passes answers on, and waits until they were taken: the client may read the task next.
    pub(super) async fn answer_elsewhere(
        &self,
        caller: &Caller,
        id: &str,
        node: &str,
        answers: Vec<(String, Raw)>,
    ) -> Result<bool, StoreError> {
        let Some(record) = self.fetch(caller, id).await? else { return Ok(false) };
        let keys: Vec<String> = answers.iter().map(|(key, _)| key.clone()).collect();
        if !waits_for(&record, &keys) {
            return Ok(true);
        }
        let (caller, id) = (Caller::new(caller.issuer(), caller.subject()), id.into());
        let news = PeerNews::Answers { caller: caller.clone(), id, answers };
        let is_told = self.tell(node, &news).await?;
        let end = Instant::now() + TAKEN;
        while is_told && Instant::now() < end {
            let Some(store) = &self.settings.store else { break };
            match store.find(&caller, &record.task.id).await? {
                Some(record) if waits_for(&record, &keys) => tokio::time::sleep(TAKING).await,
                _ => break,
            }
        }
        Ok(true)
    }

    /// Cancels a task of another node, in the store and then on that node.
    pub(super) async fn cancel_elsewhere(
        &self,
        caller: &Caller,
        id: &str,
        node: &str,
    ) -> Result<Option<(Task, bool)>, StoreError> {
        let Some(mut record) = self.fetch(caller, id).await? else { return Ok(None) };
        let Some(store) = &self.settings.store else { return Ok(None) };
        if record.task.state.is_final() {
            return Ok(Some((record.task, false)));
        }
        record.task.state = TaskState::Cancelled;
        record.task.updated_ms = self.clock.now();
        if let Some(known) = store.save(&record).await? {
            return Ok(Some((known.task, false)));
        }
        if let Err(error) = self.tell(node, &PeerNews::Cancelled(id.into())).await {
            // The node finds out when it writes the next state.
            tracing::warn!("the node of a cancelled task was not told: {error}");
        }
        Ok(Some((record.task, true)))
    }

    /// Waits until a task of another node has ended or has questions.
    pub(super) async fn settled_elsewhere(
        &self,
        caller: &Caller,
        id: &str,
    ) -> Result<Option<Task>, StoreError> {
        let mut changes = self.changes();
        loop {
            match self.fetch(caller, id).await? {
                Some(record) if matches!(record.task.state, TaskState::Working) => {}
                other => return Ok(other.map(|record| record.task)),
            }
            let changed = async {
                loop {
                    match changes.recv().await {
                        Ok(changed) if *changed == *id => return,
                        Ok(_) => {}
                        Err(RecvError::Lagged(_) | RecvError::Closed) => return,
                    }
                }
            };
            let _ = tokio::time::timeout(LOOK, changed).await;
        }
    }

    /// A task has changed on its node. Its listeners here are notified.
    pub(crate) async fn changed_elsewhere(&self, caller: &Caller, id: &str) {
        if self.changes.receiver_count() == 0 || self.node_of(id).is_none() {
            return;
        }
        let Some(store) = &self.settings.store else { return };
        match store.find(caller, id).await {
            Ok(Some(record)) => {
                self.see(record.task);
                self.announce(id);
            }
            Ok(None) => {}
            Err(error) => tracing::debug!("a task that has changed cannot be read: {error}"),
        }
    }

    /// A task of this node was cancelled on another one.
    pub(crate) async fn cancelled_elsewhere(&self, id: &str) {
        if let Err(error) = self.settle(id, TaskState::Cancelled).await {
            tracing::warn!("a cancelled task goes on: {error}");
        }
    }

    /// Keeps the state of a task of another node for its listeners.
    pub(super) fn see(&self, mut task: Task) {
        task.state = counted(task.state);
        let mut state = self.lock();
        state.seen.retain(|seen| seen.id != task.id);
        state.seen.push_back(task);
        if state.seen.len() > MAX_SEEN {
            state.seen.pop_front();
        }
    }
}

/// Whether a task waits for the answer to one of these questions.
fn waits_for(record: &TaskRecord, keys: &[String]) -> bool {
    match &record.task.state {
        TaskState::InputRequired(open) => open.iter().any(|(key, _)| keys.contains(key)),
        _ => false,
    }
}
