//! All tasks of a server.

#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap, HashSet};

use sabir_wire::types::Question;
use sabir_wire::{Caller, Code, ErrorObject, Raw, Task, TaskState};

use crate::record::{Continuation, TaskRecord};

/// The bounds of a table.
#[derive(Clone, Debug)]
pub struct TaskLimits {
    /// Tasks in total. One more is refused.
    pub total: usize,
    /// Tasks of one caller. One more is refused.
    pub per_caller: usize,
    /// Bytes of results in total. A task whose result does not fit fails.
    pub result_bytes: usize,
    /// How long a task is kept, counted from its creation, and the limit of the time that a client
    /// may ask for.
    pub ttl_ms: u64,
    /// How long a client should wait before it asks again.
    pub poll_ms: u64,
}

impl Default for TaskLimits {
    fn default() -> Self {
        Self {
            total: 10_000,
            per_caller: 1_000,
            result_bytes: 256 << 20,
            ttl_ms: 24 * 3_600_000,
            poll_ms: 1_000,
        }
    }
}

/// A bound of the table is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TooManyTasks {
    /// In total.
    #[error("the server keeps too many tasks (limit {0})")]
    Total(usize),
    /// Of this caller.
    #[error("you have too many tasks (limit {0})")]
    PerCaller(usize),
}

/// The effect of answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answered {
    /// There is no such task.
    Unknown,
    /// Questions are still open, or none of the answers was wanted.
    Nothing,
    /// All questions are answered: the task goes on.
    All,
}

/// All tasks of a server, with their owners and expiry times.
#[derive(Debug, Default)]
pub struct TaskTable {
    limits: TaskLimits,
    tasks: HashMap<Box<str>, Entry>,
    expiries: BTreeSet<(u64, Box<str>)>,
    owners: HashMap<(Box<str>, Box<str>), usize>,
    result_bytes: usize,
}

#[derive(Debug)]
struct Entry {
    record: TaskRecord,
    /// The keys of open questions on the wire, each with that of the source.
    open: Vec<(String, String)>,
    /// Answers, by the keys of the source.
    answers: Vec<(String, Raw)>,
    /// All keys that were ever used in this task.
    used: HashSet<String>,
    /// The room for its result, in bytes, while its end is being stored.
    reserved: usize,
}

impl TaskTable {
    /// An empty table.
    pub fn new(limits: TaskLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Adds a task that was kept in a store.
    pub fn restore(&mut self, record: TaskRecord) {
        let id = record.task.id.clone();
        self.result_bytes += size_of(&record.task.state);
        self.expiries.insert((record.expires_ms(), id.clone()));
        *self.owners.entry(owner_key(&record.owner)).or_default() += 1;
        let (open, answers, used, reserved) = (Vec::new(), Vec::new(), HashSet::new(), 0);
        self.tasks.insert(id, Entry { record, open, answers, used, reserved });
    }

    /// Creates a task that runs. A client may ask for a shorter life than the limit.
    pub fn create(
        &mut self,
        now: u64,
        id: Box<str>,
        owner: &Caller,
        conversation: Option<u64>,
        ttl_ms: Option<u64>,
    ) -> Result<TaskRecord, TooManyTasks> {
        let TaskLimits { total, per_caller, poll_ms, .. } = self.limits;
        if self.tasks.len() >= total {
            return Err(TooManyTasks::Total(total));
        }
        if self.owners.get(&owner_key(owner)).is_some_and(|count| *count >= per_caller) {
            return Err(TooManyTasks::PerCaller(per_caller));
        }
        let ttl_ms = ttl_ms.map_or(self.limits.ttl_ms, |wish| wish.min(self.limits.ttl_ms));
        let (created_ms, updated_ms, state) = (now, now, TaskState::Working);
        let task = Task { id, created_ms, updated_ms, ttl_ms, poll_ms, state };
        // Scopes and claims are those of one request.
        let owner = Caller::new(owner.issuer(), owner.subject());
        let record = TaskRecord { owner, conversation, task, continuation: None };
        self.restore(record.clone());
        Ok(record)
    }

    /// The task of that id, if it is the caller's and has not expired.
    pub fn get(&self, now: u64, caller: &Caller, id: &str) -> Option<&Task> {
        let record = &self.tasks.get(id)?.record;
        let is_theirs = record.owner.is_same_as(caller) && record.expires_ms() > now;
        is_theirs.then_some(&record.task)
    }

    /// The task of that id, of any owner.
    pub fn record(&self, id: &str) -> Option<&TaskRecord> {
        self.tasks.get(id).map(|entry| &entry.record)
    }

    /// The caller's tasks, oldest first, after the task that `cursor` names. A caller that no
    /// issuer vouches for sees those of the same conversation only, except for the local user.
    pub fn list(
        &self,
        now: u64,
        caller: &Caller,
        conversation: Option<u64>,
        cursor: Option<&str>,
        limit: usize,
    ) -> (Vec<Task>, Option<String>) {
        let is_listed = |record: &&TaskRecord| {
            let is_one = caller.is_vouched_for() || caller.is_local();
            let is_known = is_one || record.conversation == conversation;
            record.owner.is_same_as(caller) && is_known && record.expires_ms() > now
        };
        let records = self.tasks.values().map(|entry| &entry.record).filter(is_listed);
        page(records.map(|record| &record.task).collect(), cursor, limit)
    }

    /// Records the questions of a running task. Their keys on the wire are never used again in this
    /// task. `false` if the task has ended.
    pub fn ask(&mut self, now: u64, id: &str, questions: Vec<(String, Question)>) -> bool {
        let Some(entry) = self.running(id) else { return false };
        let mut asked = Vec::with_capacity(questions.len());
        for (own, question) in questions {
            let mut key = own.clone();
            let mut nth = 1;
            while !entry.used.insert(key.clone()) {
                nth += 1;
                key = format!("{own}-{nth}");
            }
            entry.open.push((key.clone(), own));
            asked.push((key, question));
        }
        entry.record.task.state = TaskState::InputRequired(asked);
        entry.record.task.updated_ms = now;
        true
    }

    /// Takes answers in. Answers to questions that are not open are ignored.
    pub fn answer(
        &mut self,
        now: u64,
        caller: &Caller,
        id: &str,
        answers: Vec<(String, Raw)>,
    ) -> Answered {
        if self.get(now, caller, id).is_none() {
            return Answered::Unknown;
        }
        let Some(entry) = self.running(id) else { return Answered::Nothing };
        let TaskState::InputRequired(questions) = &mut entry.record.task.state else {
            return Answered::Nothing;
        };
        for (key, answer) in answers {
            let Some(at) = entry.open.iter().position(|(open, _)| *open == key) else { continue };
            questions.retain(|(asked, _)| *asked != key);
            entry.answers.push((entry.open.swap_remove(at).1, answer));
        }
        if !entry.open.is_empty() {
            return Answered::Nothing;
        }
        entry.record.task.state = TaskState::Working;
        entry.record.task.updated_ms = now;
        Answered::All
    }

    /// Records how a running task goes on after a restart. Returns the changed record.
    pub fn keep(&mut self, id: &str, continuation: Continuation) -> Option<TaskRecord> {
        let entry = self.running(id)?;
        entry.record.continuation = Some(continuation);
        Some(entry.record.clone())
    }

    /// The tasks that run and can go on after a restart.
    pub fn continued(&self) -> Vec<TaskRecord> {
        let records = self.tasks.values().map(|entry| &entry.record);
        let goes_on =
            |record: &&TaskRecord| record.continuation.is_some() && !record.task.state.is_final();
        records.filter(goes_on).cloned().collect()
    }

    /// The answers of a task whose questions are all answered, by the keys of its source.
    pub fn take_answers(&mut self, id: &str) -> Option<Vec<(String, Raw)>> {
        let entry = self.running(id)?;
        let is_answered = matches!(entry.record.task.state, TaskState::Working);
        is_answered.then(|| std::mem::take(&mut entry.answers))
    }

    /// Ends a task as [`TaskTable::reserve`] or a store has decided. Returns the changed record;
    /// `None` if it has ended before, or does not exist.
    pub fn end(&mut self, now: u64, id: &str, state: TaskState) -> Option<TaskRecord> {
        let entry = self.running(id)?;
        let kept = size_of(&state);
        let reserved = std::mem::take(&mut entry.reserved);
        entry.record.task.state = state;
        entry.record.task.updated_ms = now;
        entry.record.continuation = None;
        entry.open = Vec::new();
        entry.answers = Vec::new();
        entry.used = HashSet::new();
        let record = entry.record.clone();
        self.result_bytes = self.result_bytes - reserved + kept;
        Some(record)
    }

    /// The same end, which is a failure if there is no room for the result. The room is kept until
    /// the task ends.
    pub fn reserve(&mut self, id: &str, state: TaskState) -> TaskState {
        let (size, limit, used) = (size_of(&state), self.limits.result_bytes, self.result_bytes);
        let Some(entry) = self.running(id) else { return state };
        // It may have room already: its end is stored again after a failure.
        let more = size.saturating_sub(entry.reserved);
        if more > limit.saturating_sub(used) {
            return TaskState::Failed(too_long(size));
        }
        entry.reserved += more;
        self.result_bytes += more;
        state
    }

    /// Removes all expired tasks, and returns their ids.
    pub fn expire(&mut self, now: u64) -> Vec<Box<str>> {
        let mut expired = Vec::new();
        while let Some((at, _)) = self.expiries.first()
            && *at <= now
            && let Some((_, id)) = self.expiries.pop_first()
        {
            self.forget(&id);
            expired.push(id);
        }
        expired
    }

    /// Removes a task that no client knows yet.
    pub fn remove(&mut self, id: &str) {
        if let Some(record) = self.forget(id) {
            self.expiries.remove(&(record.expires_ms(), id.into()));
        }
    }

    /// When the next task expires.
    pub fn next_expiry(&self) -> Option<u64> {
        self.expiries.first().map(|(at, _)| *at)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// A task that has not ended.
    fn running(&mut self, id: &str) -> Option<&mut Entry> {
        self.tasks.get_mut(id).filter(|entry| !entry.record.task.state.is_final())
    }

    fn forget(&mut self, id: &str) -> Option<TaskRecord> {
        let Entry { record, reserved, .. } = self.tasks.remove(id)?;
        self.result_bytes -= size_of(&record.task.state) + reserved;
        let key = owner_key(&record.owner);
        if let Some(count) = self.owners.get_mut(&key) {
            *count -= 1;
            if *count == 0 {
                self.owners.remove(&key);
            }
        }
        Some(record)
    }
}

/// A page of tasks, oldest first, after the task that `cursor` names, and the cursor of the next.
pub fn page(
    mut tasks: Vec<&Task>,
    cursor: Option<&str>,
    limit: usize,
) -> (Vec<Task>, Option<String>) {
    tasks.sort_by_key(|task| (task.created_ms, &task.id));
    let place = |task: &Task| format!("{:0TIME$x}{}", task.created_ms, task.id);
    let after = |task: &&&Task| cursor.is_none_or(|cursor| *place(task) > *cursor);
    let mut page: Vec<Task> =
        tasks.iter().filter(after).take(limit + 1).map(|task| (*task).clone()).collect();
    let has_more = page.len() > limit;
    page.truncate(limit);
    let next = page.last().filter(|_| has_more).map(place);
    (page, next)
}

/// Digits of the time in a cursor.
const TIME: usize = 16;

/// Whether a text has the form of a cursor. The task that it names may have expired.
pub fn is_cursor(text: &str) -> bool {
    let is_of_id = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let (time, id) = text.as_bytes().split_at_checked(TIME).unwrap_or_default();
    time.iter().all(u8::is_ascii_hexdigit) && !id.is_empty() && id.iter().copied().all(is_of_id)
}

fn owner_key(owner: &Caller) -> (Box<str>, Box<str>) {
    (owner.issuer().into(), owner.subject().into())
}

fn size_of(state: &TaskState) -> usize {
    match state {
        TaskState::Completed(result) => result.text().len(),
        _ => 0,
    }
}

fn too_long(size: usize) -> ErrorObject {
    let reason = format!("there is no room to keep the result of the task ({size} bytes)");
    ErrorObject::new(Code::INTERNAL, reason)
}
