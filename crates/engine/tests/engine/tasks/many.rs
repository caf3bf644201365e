//! Ten thousand tasks: their expiry, and the cost of polling.

use std::sync::Arc;
use std::time::Instant;

use sabir_engine::Engine;
use sabir_registry::{Outcome, Pending, Source, ToolCall};
use sabir_wire::types::{Tool, ToolReply};

use super::*;

const COUNT: u64 = 10_000;
const TTL: u64 = 60_000;

/// A tool of that name that answers with fifty bytes, and whose calls become tasks or not.
struct Say(&'static str, TaskMode);

impl Source for Say {
    fn offer(&self) -> Offer {
        let tool = Tool::new(self.0, "Says it", Raw::of(&json!({ "type": "object" })).unwrap());
        Offer { tools: vec![tool], task: self.1.into(), ..Offer::default() }
    }

    fn call_tool(&self, _call: ToolCall) -> Pending<ToolReply> {
        Box::pin(async { Ok(Outcome::Done(ToolReply::text("x".repeat(50)))) })
    }
}

fn full_house() -> Arc<Engine> {
    let mut settings = settings();
    let limits = &mut settings.tasks.limits;
    (limits.total, limits.per_caller, limits.ttl_ms) = (COUNT as usize, COUNT as usize, TTL);
    let engine = Engine::new(settings);
    for source in [Say("call", TaskMode::Never), Say("task", TaskMode::Always)] {
        engine.registry().add(Arc::new(source)).unwrap();
    }
    engine
}

/// The answer to a client that makes one request over HTTP.
fn hears(engine: &Arc<Engine>, frame: &Bytes) -> Bytes {
    let caller = Caller::new("token", "ann");
    let mut connection = Connection::new(engine, SessionKind::ModernHttp, caller.clone());
    connection.receive(StreamId(1), caller, frame);
    connection.next_frame().expect("an answer").text
}

fn calls(tool: &str) -> Bytes {
    modern(1, "tools/call", json!({ "name": tool }), true).into()
}

fn polls(id: &str) -> Bytes {
    modern(1, "tasks/get", json!({ "taskId": id }), true).into()
}

/// Creates all tasks, one each millisecond, and lets them end.
async fn fill(engine: &Arc<Engine>) -> Vec<String> {
    let mut ids = Vec::new();
    for _ in 0..COUNT {
        let created: Value = serde_json::from_slice(&hears(engine, &calls("task"))).unwrap();
        ids.push(created["result"]["taskId"].as_str().expect("a task").to_owned());
        tokio::time::advance(Duration::from_millis(1)).await;
    }
    ids
}

/// `cargo test --release -p sabir-engine --test engine ten_thousand -- --nocapture` prints the cost
/// of polling.
#[tokio::test(start_paused = true)]
async fn ten_thousand_tasks_expire_at_their_millisecond_and_polling_costs_no_more_than_a_call() {
    let engine = full_house();
    let ids = fill(&engine).await;
    let [poll, call] = cost(&engine, &ids);
    println!("a poll takes {poll} ns, a call {call} ns");
    // On a busy machine anything can take longer for a while.
    assert!(poll < 10 * call, "a poll takes {poll} ns, a call {call} ns");
    let text = |frame: &Bytes| -> Value { serde_json::from_slice(&hears(&engine, frame)).unwrap() };
    let status = |nth: u64| text(&polls(&ids[nth as usize]))["result"]["status"].clone();
    let is_gone = |nth: u64| text(&polls(&ids[nth as usize]))["error"]["code"] == -32602;
    for nth in (0..COUNT).step_by(100) {
        assert_eq!(status(nth), "completed");
    }
    assert!(text(&calls("task"))["result"]["content"].is_array(), "without room it is a call");
    // All of them are `COUNT` milliseconds old or younger.
    tokio::time::advance(Duration::from_millis(TTL - COUNT)).await;
    for nth in (0..COUNT - 1).step_by(1000) {
        assert!(is_gone(nth), "{nth}");
        assert_eq!(status(nth + 1), "completed", "{nth}");
        tokio::time::advance(Duration::from_secs(1)).await;
    }
    assert!(is_gone(COUNT - 1));
    // They are swept as soon as they have expired.
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(text(&calls("task"))["result"]["resultType"], "task");
}

/// The nanoseconds of a poll and of a call, which take turns.
fn cost(engine: &Arc<Engine>, ids: &[String]) -> [u128; 2] {
    let frames: Vec<_> = ids.iter().step_by(100).map(|id| polls(id)).collect();
    let call = calls("call");
    let mut least = [u128::MAX; 2];
    for _ in 0..20 {
        for (nth, least) in least.iter_mut().enumerate() {
            let begun = Instant::now();
            for frame in &frames {
                let heard = hears(engine, if nth == 0 { frame } else { &call });
                assert!(heard.len() > 50);
            }
            *least = begun.elapsed().as_nanos().min(*least);
        }
    }
    least.map(|time| time / frames.len() as u128)
}
