//! The tasks of a server while it runs: the table, the calls behind it, and the waiters.

mod elsewhere; // tasks of other nodes
mod ending; // how tasks end, and what is kept of them
mod settings; // how calls become tasks, and for which clients

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use sabir_budget::memory;
use sabir_tasks::{Answered, Continuation, StoreError, TaskRecord, TaskTable, page};
use sabir_wire::types::Question;
use sabir_wire::{Caller, Raw, Task, TaskState};
use tokio::sync::{Notify, broadcast};
use tokio::time::Instant;

use crate::calls::RunningCall;
use crate::peers::{Outbox, Peers};
use crate::seal::random_secret;

pub use self::settings::TaskSettings;
pub(crate) use self::settings::knows_tasks;

/// All tasks of an engine.
pub(crate) struct Tasks {
    pub(crate) settings: TaskSettings,
    state: Mutex<State>,
    /// The ids of tasks whose state has changed. A listener that is too slow reads all of its tasks
    /// again.
    changes: broadcast::Sender<Box<str>>,
    clock: Clock,
    /// Other nodes, and the changes that they do not know yet.
    peers: Option<Arc<dyn Peers>>,
    outbox: Arc<Outbox>,
    /// A new task expires before all others.
    earlier: Arc<Notify>,
}

struct State {
    table: TaskTable,
    /// The tasks that have not ended.
    live: HashMap<Box<str>, Arc<Live>>,
    /// Tasks of other nodes that have changed, for their listeners.
    seen: VecDeque<Task>,
    is_sweeping: bool,
}

/// A task that has not ended.
struct Live {
    call: Arc<RunningCall>,
    changed: Notify,
}

/// Wall-clock time that never goes back, and that tests can pause.
struct Clock {
    began: Instant,
    began_ms: u64,
}

impl Clock {
    fn new() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { began: Instant::now(), began_ms: millis(since) }
    }

    fn now(&self) -> u64 {
        self.began_ms + millis(self.began.elapsed())
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Changes that may wait for one listener.
const CHANGES: usize = 1024;

/// How long the sweep sleeps at most: it ends when the server is gone.
const SWEEP: Duration = Duration::from_secs(60);

impl Tasks {
    /// The tasks that the store has kept, if there is one.
    pub(crate) fn new(
        settings: TaskSettings,
        peers: Option<Arc<dyn Peers>>,
        outbox: Arc<Outbox>,
    ) -> Arc<Self> {
        let mut table = TaskTable::new(settings.limits.clone());
        match settings.store.as_ref().map(|store| store.load()) {
            None => {}
            Some(Ok(kept)) => kept.into_iter().for_each(|mut record| {
                record.task.state = counted(record.task.state);
                table.restore(record);
            }),
            Some(Err(error)) => tracing::error!("cannot read the tasks that were kept: {error}"),
        }
        let (changes, _) = broadcast::channel(CHANGES);
        let (live, seen) = (HashMap::new(), VecDeque::new());
        let state = Mutex::new(State { table, live, seen, is_sweeping: false });
        let (clock, earlier) = (Clock::new(), Arc::default());
        Arc::new(Self { settings, state, changes, clock, peers, outbox, earlier })
    }

    /// Creates a task for a running call. When this completes, clients can ask for the task, also
    /// after a restart and on other nodes. Dropped before, it is removed. With a continuation, the
    /// next process goes on with it.
    pub(crate) async fn create(
        self: &Arc<Self>,
        call: &Arc<RunningCall>,
        owner: &Caller,
        conversation: Option<u64>,
        ttl_ms: Option<u64>,
        continuation: Option<Continuation>,
    ) -> Result<Task, String> {
        let record = {
            let mut state = self.lock();
            let id: Box<str> = match self.settings.store.as_ref().and_then(|store| store.node()) {
                Some(node) => format!("{node}-{}", random_secret()).into(),
                None => random_secret().into(),
            };
            let now = self.clock.now();
            let created = state.table.create(now, id.clone(), owner, conversation, ttl_ms);
            let record = created.map_err(|full| full.to_string())?;
            let kept = continuation.filter(|_| !self.is_shared());
            let kept = kept.and_then(|continuation| state.table.keep(&id, continuation));
            let record = kept.unwrap_or(record);
            state.live.insert(id, Arc::new(Live { call: call.clone(), changed: Notify::new() }));
            if state.table.next_expiry() == Some(record.expires_ms()) {
                self.earlier.notify_one();
            }
            record
        };
        let mut unclaimed = Unclaimed { tasks: self, id: Some(record.task.id.clone()) };
        if let Err(error) = self.save(&record).await {
            tracing::error!("cannot keep a task: {error}");
            return Err("the task could not be stored".into());
        }
        unclaimed.id = None;
        self.sweep();
        Ok(record.task)
    }

    /// Stores how a running task goes on after a restart. A task that nodes share does not: its
    /// node has another name then.
    pub(crate) async fn keep(&self, id: &str, continuation: Continuation) {
        if self.is_shared() {
            return;
        }
        let kept = self.lock().table.keep(id, continuation);
        if let Some(record) = kept {
            // Without other nodes a failure is only logged.
            let _ = self.save_or_log(&record).await;
        }
    }

    /// The tasks of the previous process that are to be resumed.
    pub(crate) fn continued(&self) -> Vec<TaskRecord> {
        let state = self.lock();
        let mut continued = state.table.continued();
        continued.retain(|record| !state.live.contains_key(&record.task.id));
        continued
    }

    /// Attaches a call to a task of the previous process.
    pub(crate) fn adopt(&self, id: &str, call: &Arc<RunningCall>) {
        let live = Live { call: call.clone(), changed: Notify::new() };
        self.lock().live.insert(id.into(), Arc::new(live));
    }

    /// The caller's task of that id, on any node.
    pub(crate) async fn get(&self, caller: &Caller, id: &str) -> Result<Option<Task>, StoreError> {
        match self.node_of(id) {
            Some(_) => Ok(self.fetch(caller, id).await?.map(|record| record.task)),
            None => Ok(self.get_here(caller, id)),
        }
    }

    fn get_here(&self, caller: &Caller, id: &str) -> Option<Task> {
        self.lock().table.get(self.clock.now(), caller, id).cloned()
    }

    /// The ids among these of the caller's own tasks, whose states [`Tasks::current`] knows.
    pub(crate) async fn watch(&self, caller: &Caller, ids: Vec<Box<str>>) -> Vec<Box<str>> {
        let mut own = Vec::new();
        for id in ids {
            let Ok(Some(task)) = self.get(caller, &id).await else { continue };
            if self.node_of(&id).is_some() {
                self.see(task);
            }
            own.push(id);
        }
        own
    }

    /// The task of that id, for a listener whose access was checked.
    pub(crate) fn current(&self, id: &str) -> Option<Task> {
        let state = self.lock();
        let here = state.table.record(id).map(|record| &record.task);
        here.or_else(|| state.seen.iter().find(|task| *task.id == *id)).cloned()
    }

    /// A page of the caller's tasks. It includes those of other nodes, if an issuer vouches for the
    /// caller.
    pub(crate) async fn list(
        &self,
        caller: &Caller,
        conversation: Option<u64>,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<(Vec<Task>, Option<String>), StoreError> {
        let has_others = self.is_shared() && caller.is_vouched_for();
        let Some(store) = self.settings.store.as_ref().filter(|_| has_others) else {
            let state = self.lock();
            return Ok(state.table.list(self.clock.now(), caller, conversation, cursor, limit));
        };
        let mut tasks = Vec::new();
        for record in store.list(caller).await? {
            tasks.push(self.checked(record).await?.task);
        }
        Ok(page(tasks.iter().collect(), cursor, limit))
    }

    /// Whether there is none, and no other node can have any.
    pub(crate) fn is_empty(&self) -> bool {
        !self.is_shared() && self.lock().table.is_empty()
    }

    /// Whether other nodes know the tasks of this one.
    fn is_shared(&self) -> bool {
        self.settings.store.as_ref().is_some_and(|store| store.node().is_some())
    }

    /// The ids of tasks whose state changes from now on.
    pub(crate) fn changes(&self) -> broadcast::Receiver<Box<str>> {
        self.changes.subscribe()
    }

    /// Notifies all listeners of a task's state.
    pub(crate) fn announce(&self, id: &str) {
        // Without a listener the event is dropped.
        let _ = self.changes.send(id.into());
    }

    /// Records the questions of a task. `false` if it has ended.
    pub(crate) async fn ask(&self, id: &str, questions: Vec<(String, Question)>) -> bool {
        let is_asked = self.lock().table.ask(self.clock.now(), id, questions);
        self.publish(id).await;
        self.changed(id);
        is_asked
    }

    /// Takes in a client's answers. `false` if the caller has no such task.
    pub(crate) async fn answer(
        &self,
        caller: &Caller,
        id: &str,
        answers: Vec<(String, Raw)>,
    ) -> Result<bool, StoreError> {
        if let Some(node) = self.node_of(id) {
            return self.answer_elsewhere(caller, id, node, answers).await;
        }
        let answered = self.lock().table.answer(self.clock.now(), caller, id, answers);
        if answered != Answered::Unknown {
            self.publish(id).await;
            self.changed(id);
        }
        Ok(answered != Answered::Unknown)
    }

    /// Waits until all questions of a task are answered. `None` if it has ended before.
    pub(crate) async fn answers(&self, id: &str) -> Option<Vec<(String, Raw)>> {
        let live = self.lock().live.get(id).cloned()?;
        loop {
            let changed = live.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            {
                let mut state = self.lock();
                match &state.table.record(id)?.task.state {
                    TaskState::InputRequired(_) => {}
                    TaskState::Working => return state.table.take_answers(id),
                    _ => return None,
                }
            }
            changed.await;
        }
    }

    /// Waits until a task of the caller has ended or has questions. `None` if there is none.
    pub(crate) async fn settled(
        &self,
        caller: &Caller,
        id: &str,
    ) -> Result<Option<Task>, StoreError> {
        if self.node_of(id).is_some() {
            return self.settled_elsewhere(caller, id).await;
        }
        loop {
            let live = self.lock().live.get(id).cloned();
            let changed = live.as_ref().map(|live| live.changed.notified());
            tokio::pin!(changed);
            if let Some(changed) = changed.as_mut().as_pin_mut() {
                changed.enable();
            }
            let Some(task) = self.get_here(caller, id) else { return Ok(None) };
            match changed.as_pin_mut() {
                Some(changed) if matches!(task.state, TaskState::Working) => changed.await,
                _ => return Ok(Some(task)),
            }
        }
    }

    /// The same, with the answers to its questions.
    pub(crate) async fn answered(
        &self,
        caller: &Caller,
        id: &str,
        answers: Vec<(String, Raw)>,
    ) -> Result<Option<Task>, StoreError> {
        if !answers.is_empty() {
            self.answer(caller, id, answers).await?;
        }
        self.settled(caller, id).await
    }

    /// Starts to remove expired tasks, unless that is running.
    pub(crate) fn sweep(self: &Arc<Self>) {
        let is_needed = {
            let mut state = self.lock();
            !state.table.is_empty() && !std::mem::replace(&mut state.is_sweeping, true)
        };
        if !is_needed {
            return;
        }
        let (tasks, earlier) = (Arc::downgrade(self), self.earlier.clone());
        tokio::spawn(async move {
            while let Some(next) = tasks.upgrade().and_then(|tasks| tasks.expire()) {
                // Wakes up early if a new task is the next to expire.
                let _ = tokio::time::timeout(next.min(SWEEP), earlier.notified()).await;
            }
        });
    }

    /// Removes expired tasks. Returns the time until the next one expires; `None` if no task is
    /// left.
    fn expire(&self) -> Option<Duration> {
        let (expired, next) = {
            let mut state = self.lock();
            let now = self.clock.now();
            let expired = state.table.expire(now);
            for live in expired.iter().filter_map(|id| state.live.remove(id)) {
                live.call.cancel();
                live.changed.notify_waiters();
            }
            let next = state.table.next_expiry();
            state.is_sweeping = next.is_some();
            (expired, next.map(|at| Duration::from_millis(at.saturating_sub(now))))
        };
        if let Some(store) = self.settings.store.clone().filter(|_| !expired.is_empty()) {
            tokio::spawn(async move {
                if let Err(error) = store.remove(&expired).await {
                    tracing::error!("cannot remove tasks that have expired: {error}");
                }
            });
        }
        next
    }

    fn changed(&self, id: &str) {
        let state = self.lock();
        if let Some(live) = state.live.get(id) {
            live.changed.notify_waiters();
        }
        if let Some(record) = state.table.record(id).filter(|_| self.peers.is_some()) {
            self.outbox.change_task(&record.owner, id);
        }
        drop(state);
        self.announce(id);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The same state, whose result takes from the memory of the process as long as it is kept. A
/// result that exists is not refused: the table has a limit of its own.
fn counted(state: TaskState) -> TaskState {
    match state {
        TaskState::Completed(result) => {
            let text = memory().count(Bytes::copy_from_slice(result.as_bytes()));
            TaskState::Completed(Raw::parse(text).unwrap_or(result))
        }
        other => other,
    }
}

/// A task that no client knows yet. Dropping this removes it.
struct Unclaimed<'t> {
    tasks: &'t Tasks,
    id: Option<Box<str>>,
}

impl Drop for Unclaimed<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            let mut state = self.tasks.lock();
            state.table.remove(&id);
            state.live.remove(&id);
        }
    }
}

impl std::fmt::Debug for Tasks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tasks")
    }
}
