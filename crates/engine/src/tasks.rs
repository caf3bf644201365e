//! The tasks of a server while it runs: the table, the calls behind it, and those who wait.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sabir_tasks::{Answered, StoreError, TaskLimits, TaskRecord, TaskStore, TaskTable};
use sabir_wire::types::Question;
use sabir_wire::{Caller, Code, ErrorObject, Raw, Task, TaskState};
use tokio::sync::{Notify, broadcast};
use tokio::time::Instant;

use crate::calls::RunningCall;
use crate::seal::random_secret;

/// How calls become tasks, and where these are kept.
#[derive(Clone, Debug)]
pub struct TaskSettings {
    /// The bounds of all tasks together.
    pub limits: TaskLimits,
    /// How long a client waits for a result before it gets a handle, unless the tool says otherwise.
    pub after: Duration,
    /// How long a client that knows no tasks waits for the result of a tool whose calls may become
    /// tasks, before it gets a handle in words and the tool `await_result`. Without, it waits for the
    /// result.
    pub in_words: Option<Duration>,
    /// Where tasks survive the process; nowhere without.
    pub store: Option<Arc<dyn TaskStore>>,
}

impl Default for TaskSettings {
    fn default() -> Self {
        let after = Duration::from_secs(10);
        Self { limits: TaskLimits::default(), after, in_words: None, store: None }
    }
}

/// All tasks of an engine.
pub(crate) struct Tasks {
    pub(crate) settings: TaskSettings,
    state: Mutex<State>,
    /// The ids of tasks whose state has changed. A listener that is too slow asks for all of its own.
    changes: broadcast::Sender<Box<str>>,
    clock: Clock,
}

struct State {
    table: TaskTable,
    /// Those that have not ended.
    live: HashMap<Box<str>, Arc<Live>>,
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

/// How often tasks that have expired are swept. For their owners they are gone before.
const SWEEP: Duration = Duration::from_secs(60);

impl Tasks {
    /// The tasks that the store has kept, if there is one.
    pub(crate) fn new(settings: TaskSettings) -> Arc<Self> {
        let mut table = TaskTable::new(settings.limits.clone());
        match settings.store.as_ref().map(|store| store.load()) {
            None => {}
            Some(Ok(kept)) => kept.into_iter().for_each(|record| table.restore(record)),
            Some(Err(error)) => tracing::error!("cannot read the tasks that were kept: {error}"),
        }
        let (changes, _) = broadcast::channel(CHANGES);
        let state = State { table, live: HashMap::new(), is_sweeping: false };
        Arc::new(Self { settings, state: Mutex::new(state), changes, clock: Clock::new() })
    }

    /// Creates a task for a running call. When this completes, the task can be asked for, also after
    /// a restart. Dropped before, there is none.
    pub(crate) async fn create(
        self: &Arc<Self>,
        call: &Arc<RunningCall>,
        owner: &Caller,
        conversation: Option<u64>,
        ttl_ms: Option<u64>,
    ) -> Result<Task, String> {
        let record = {
            let mut state = self.lock();
            let id: Box<str> = random_secret().into();
            let now = self.clock.now();
            let created = state.table.create(now, id.clone(), owner, conversation, ttl_ms);
            let record = created.map_err(|full| full.to_string())?;
            state.live.insert(id, Arc::new(Live { call: call.clone(), changed: Notify::new() }));
            record
        };
        let mut unclaimed = Unclaimed { tasks: self, id: Some(record.task.id.clone()) };
        if let Err(error) = self.save(record.clone()).await {
            tracing::error!("cannot keep a task: {error}");
            return Err("the task could not be stored".into());
        }
        unclaimed.id = None;
        self.sweep();
        Ok(record.task)
    }

    /// The caller's task of that id.
    pub(crate) fn get(&self, caller: &Caller, id: &str) -> Option<Task> {
        self.lock().table.get(self.clock.now(), caller, id).cloned()
    }

    /// The task of that id, for a listener who was allowed to hear of it.
    pub(crate) fn current(&self, id: &str) -> Option<Task> {
        self.lock().table.record(id).map(|record| record.task.clone())
    }

    /// A page of the caller's tasks.
    pub(crate) fn list(
        &self,
        caller: &Caller,
        conversation: Option<u64>,
        cursor: Option<&str>,
        limit: usize,
    ) -> (Vec<Task>, Option<String>) {
        self.lock().table.list(self.clock.now(), caller, conversation, cursor, limit)
    }

    /// Whether there is any, which may have been kept from before.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().table.is_empty()
    }

    /// The ids of tasks whose state changes from now on.
    pub(crate) fn changes(&self) -> broadcast::Receiver<Box<str>> {
        self.changes.subscribe()
    }

    /// Tells all listeners of a task's state.
    pub(crate) fn announce(&self, id: &str) {
        // Without a listener there is nobody to tell.
        let _ = self.changes.send(id.into());
    }

    /// A task has questions. Says whether it still runs.
    pub(crate) fn ask(&self, id: &str, questions: Vec<(String, Question)>) -> bool {
        let is_asked = self.lock().table.ask(self.clock.now(), id, questions);
        self.changed(id);
        is_asked
    }

    /// Takes in a client's answers. `false` if the caller has no such task.
    pub(crate) fn answer(&self, caller: &Caller, id: &str, answers: Vec<(String, Raw)>) -> bool {
        let answered = self.lock().table.answer(self.clock.now(), caller, id, answers);
        if answered != Answered::Unknown {
            self.changed(id);
        }
        answered != Answered::Unknown
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
    pub(crate) async fn settled(&self, caller: &Caller, id: &str) -> Option<Task> {
        loop {
            let live = self.lock().live.get(id).cloned();
            let changed = live.as_ref().map(|live| live.changed.notified());
            tokio::pin!(changed);
            if let Some(changed) = changed.as_mut().as_pin_mut() {
                changed.enable();
            }
            let task = self.get(caller, id)?;
            match changed.as_pin_mut() {
                Some(changed) if matches!(task.state, TaskState::Working) => changed.await,
                _ => return Some(task),
            }
        }
    }

    /// A task has ended by itself. What is kept is written before anybody can see it.
    pub(crate) async fn end(&self, id: &str, state: TaskState) {
        let at = self.clock.now();
        if self.settings.store.is_some() {
            let kept = self.lock().table.record(id).cloned();
            let kept = kept.filter(|record| !record.task.state.is_final());
            if let Some(mut record) = kept {
                record.task.state = state.clone();
                record.task.updated_ms = at;
                self.save_or_log(record).await;
            }
        }
        let ended = self.lock().table.end(at, id, state.clone());
        // A task that was cancelled meanwhile stays so, and a result may be too long to be kept.
        let now = match ended {
            Some(record) => Some(record),
            None => self.lock().table.record(id).cloned(),
        };
        if let Some(record) = now.filter(|record| record.task.state != state) {
            self.save_or_log(record).await;
        }
        self.changed(id);
        self.lock().live.remove(id);
    }

    /// Cancels a task of the caller. Gives the task, and whether it was this that ended it.
    pub(crate) async fn cancel(&self, caller: &Caller, id: &str) -> Option<(Task, bool)> {
        let task = self.get(caller, id)?;
        let ended = self.lock().table.end(self.clock.now(), id, TaskState::Cancelled);
        let Some(record) = ended else { return Some((task, false)) };
        if let Some(live) = self.lock().live.get(id) {
            live.call.cancel();
        }
        self.save_or_log(record.clone()).await;
        self.changed(id);
        Some((record.task, true))
    }

    /// Ends all tasks: the server stops.
    pub(crate) async fn stop(&self) {
        let live: Vec<_> = self.lock().live.drain().collect();
        for (id, live) in live {
            let reason = "the task was interrupted: the server stopped while it ran";
            let state = TaskState::Failed(ErrorObject::new(Code::INTERNAL, reason));
            let ended = self.lock().table.end(self.clock.now(), &id, state);
            live.call.cancel();
            live.changed.notify_waiters();
            if let Some(record) = ended {
                self.save_or_log(record).await;
            }
        }
    }

    /// Begins to forget tasks that have expired, unless that is being done.
    pub(crate) fn sweep(self: &Arc<Self>) {
        let is_needed = {
            let mut state = self.lock();
            !state.table.is_empty() && !std::mem::replace(&mut state.is_sweeping, true)
        };
        if !is_needed {
            return;
        }
        let tasks = Arc::downgrade(self);
        tokio::spawn(async move {
            while let Some(next) = tasks.upgrade().and_then(|tasks| tasks.expire()) {
                tokio::time::sleep(next.min(SWEEP)).await;
            }
        });
    }

    /// Forgets what has expired. Gives the time until there is more; `None` if nothing is left.
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
            tokio::task::spawn_blocking(move || {
                if let Err(error) = store.remove(&expired) {
                    tracing::error!("cannot remove tasks that have expired: {error}");
                }
            });
        }
        next
    }

    fn changed(&self, id: &str) {
        if let Some(live) = self.lock().live.get(id) {
            live.changed.notify_waiters();
        }
        self.announce(id);
    }

    async fn save(&self, record: TaskRecord) -> Result<(), StoreError> {
        let Some(store) = self.settings.store.clone() else { return Ok(()) };
        let saving = tokio::task::spawn_blocking(move || store.save(&record));
        saving.await.map_err(StoreError::new)?
    }

    async fn save_or_log(&self, record: TaskRecord) {
        if let Err(error) = self.save(record).await {
            tracing::error!("cannot keep the state of a task: {error}");
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A task that nobody has been told of. Dropped, it is removed.
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
