//! Answers that are long.

use std::fs;

use serde_json::json;

use crate::opening::{answer, legacy};
use crate::support::{Scripted, hasty};

/// Whether this process has threads of the computing pool.
fn has_computed() -> bool {
    let threads = fs::read_dir("/proc/self/task").unwrap();
    let names = threads.map(|thread| fs::read_to_string(thread.unwrap().path().join("comm")));
    names.filter_map(Result::ok).any(|name| name.trim_end() == "sabir-compute")
}

/// The threads that read serve others too. No other test of this program needs the pool.
#[tokio::test]
async fn a_long_answer_is_parsed_by_the_computing_pool() {
    let client = hasty(Scripted::new(|_, message| {
        let Some(length) = message["params"]["arguments"]["length"].as_u64() else {
            return Some(legacy(&message));
        };
        let content = json!([{ "type": "text", "text": "x".repeat(length as usize) }]);
        Some(vec![answer(&message["id"], &json!({ "content": content }))])
    }));
    let reply = client.call_tool("t", json!({ "length": 300 << 10 })).await.unwrap();
    assert!(format!("{:?}", reply.content).matches('x').count() >= 300 << 10);
    assert!(has_computed());
}
