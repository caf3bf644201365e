//! Very many tasks of the real binary: their memory, and the moment at which they expire.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::killed::{COMMANDS, number};
use super::*;

/// How much one finished task with a short result may take, with all that the process keeps for other
/// reasons.
const BYTES_OF_A_TASK: usize = 16 << 10;

/// The same of a process that has served a few calls.
const BYTES_OF_A_PROCESS: usize = 64 << 20;

/// How long the tasks live that are watched.
const TTL: Duration = Duration::from_secs(2);

/// Clients that create tasks at the same time.
const CLIENTS: usize = 4;

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap()
}

/// A task of the older form, whose client says how long it is kept.
async fn brief(client: &Client) -> Box<str> {
    let ttl = raw(json!({ "ttl": TTL.as_millis() as u64 }));
    let created = ask(client, call("say", json!({ "text": "brief" }), Some(ttl))).await.unwrap();
    assert_eq!(created["task"]["ttl"], TTL.as_millis() as u64, "{created}");
    created["task"]["taskId"].as_str().unwrap().into()
}

/// Watches a task that was created between two moments until it is gone. It must not expire early,
/// nor be there a second after its time.
async fn watch(client: &Client, id: &str, created: (Duration, Duration)) {
    loop {
        let asked = now();
        let answer = ask(client, Request::GetTask(id.into())).await;
        match answer {
            Ok(_) => {
                let late = asked.saturating_sub(created.1 + TTL);
                assert!(late < Duration::from_secs(1), "it is still there {late:?} after its time");
            }
            Err(error) => {
                assert_eq!(error.rpc().map(|error| error.code), Some(-32602), "{error}");
                let early = (created.0 + TTL).saturating_sub(now());
                return assert!(early < Duration::from_millis(100), "gone {early:?} too early");
            }
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// `cargo xtask tasks` runs this with ten thousand.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_tasks_take_little_memory_and_expire_in_their_second() {
    let count = number("SABIR_TASKS", 100);
    let folder = tempfile::TempDir::new().unwrap();
    let relay = Relay::start_in(folder, &COMMANDS.replace("store = \"tasks.redb\"\n", ""));
    let before = relay.memory();
    let creating = (0..CLIENTS).map(|_| async {
        let (client, _) = relay.client(Revision::NEWEST).await;
        let mut ids = Vec::new();
        for _ in 0..count.div_ceil(CLIENTS) {
            let id = begin_with(&client, "say", json!({ "text": "a short result" })).await;
            wait_for(&client, &id, "completed").await;
            ids.push(id);
        }
        (client, ids)
    });
    let created = futures_util::future::join_all(creating).await;
    let after = relay.memory();
    let (legacy, _) = relay.client(Revision::NEWEST_LEGACY).await;
    let watching = (0..10_u64).map(|nth| {
        let client = &legacy;
        async move {
            // They expire one after the other.
            tokio::time::sleep(Duration::from_millis(70 * nth)).await;
            let from = now();
            let id = brief(client).await;
            watch(client, &id, (from, now())).await;
        }
    });
    futures_util::future::join_all(watching).await;
    for (client, ids) in &created {
        for id in ids {
            assert_eq!(get(client, id).await["result"]["content"][0]["text"], "a short result");
        }
    }
    println!("{count} tasks: {before} MB before, {after} MB after");
    let most = BYTES_OF_A_PROCESS + count * BYTES_OF_A_TASK;
    assert!((after - before) << 20 < most, "{before} MB before, {after} MB after");
}
