//! Tasks in a store that takes its time.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use sabir_tasks::{Pending, StoreError, TaskRecord, TaskStore};
use sabir_wire::{Task, TaskState};

use super::*;

/// Needs a second for everything, once it is slow.
#[derive(Debug, Default)]
struct SlowStore {
    node: Option<&'static str>,
    is_slow: AtomicBool,
    records: Mutex<HashMap<Box<str>, TaskRecord>>,
}

impl SlowStore {
    async fn wait(&self) {
        if self.is_slow.load(Ordering::Relaxed) {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    fn state(&self, id: &str) -> TaskState {
        self.records.lock().unwrap()[id].task.state.clone()
    }
}

impl TaskStore for SlowStore {
    fn load(&self) -> Result<Vec<TaskRecord>, StoreError> {
        Ok(Vec::new())
    }

    fn save<'a>(&'a self, record: &'a TaskRecord) -> Pending<'a, Option<TaskRecord>> {
        Box::pin(async {
            self.wait().await;
            self.records.lock().unwrap().insert(record.task.id.clone(), record.clone());
            Ok(None)
        })
    }

    fn remove<'a>(&'a self, _ids: &'a [Box<str>]) -> Pending<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    fn node(&self) -> Option<&str> {
        self.node
    }

    fn find<'a>(&'a self, _caller: &'a Caller, id: &'a str) -> Pending<'a, Option<TaskRecord>> {
        Box::pin(async {
            self.wait().await;
            Ok(self.records.lock().unwrap().get(id).cloned())
        })
    }
}

#[test]
fn a_listener_is_told_of_every_task_of_another_node() {
    let store = SlowStore { node: Some("here"), is_slow: true.into(), ..SlowStore::default() };
    let ids = ["there-1", "there-2"];
    for id in ids {
        let (created_ms, updated_ms, ttl_ms, poll_ms) = (0, 0, 60_000, 5);
        let state = TaskState::Cancelled;
        let task = Task { id: id.into(), created_ms, updated_ms, ttl_ms, poll_ms, state };
        let owner = Caller::new("token", "ann");
        let record = TaskRecord { owner, conversation: None, task, continuation: None };
        store.records.lock().unwrap().insert(id.into(), record);
    }
    let mut settings = settings();
    settings.tasks.store = Some(Arc::new(store));
    let mut player = with_settings(TaskMode::Always, settings);
    let filter = json!({ "notifications": { "taskIds": ids } });
    player.say(&modern(7, "subscriptions/listen", filter, true));
    for _ in ids {
        assert_eq!(player.hear(), None);
        player.pass(Duration::from_secs(1));
    }
    let acknowledged = answer(&mut player);
    assert_eq!(acknowledged["params"]["notifications"]["taskIds"], json!(ids));
    let told = ids.map(|_| answer(&mut player)["params"]["taskId"].clone());
    assert_eq!(told, ids.map(|id| json!(id)));
    assert_eq!(player.hear(), None, "each once");
}

#[test]
fn a_result_without_room_fails_its_task_in_the_store_and_in_the_table() {
    let store = Arc::new(SlowStore::default());
    let mut settings = settings();
    settings.tasks.store = Some(store.clone());
    settings.tasks.limits.result_bytes = 150;
    let mut player = with_settings(TaskMode::Always, settings);
    let tasks = [task(&mut player), task(&mut player)];
    store.is_slow.store(true, Ordering::Relaxed);
    for (_, call) in &tasks {
        player.finish(*call, text(&"x".repeat(40)));
    }
    assert_eq!(get(&mut player, &tasks[0].0)["status"], "working", "it is not stored yet");
    player.pass(Duration::from_secs(1));
    let ended = tasks.map(|(id, _)| {
        let is_stored = matches!(store.state(&id), TaskState::Completed(_));
        let status = get(&mut player, &id)["status"].clone();
        assert_eq!(status == "completed", is_stored, "{status}");
        is_stored
    });
    assert_ne!(ended[0], ended[1], "there is room for one");
}
