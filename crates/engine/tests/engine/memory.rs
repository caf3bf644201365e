//! Calls while no memory is left.

use std::sync::Mutex;
use std::time::Duration;

use sabir_budget::{Hold, memory};
use sabir_registry::{Offer, Outcome, Pending, Source, ToolCall};
use sabir_session::SessionKind;
use sabir_testkit::{ConnectionPlayer, House, Player as _};
use sabir_wire::types::{Tool, ToolReply};
use sabir_wire::{Caller, Raw};
use serde_json::json;

use crate::{answer, settings};

/// Takes all memory of its caller with the first call, which keeps the thread for a while.
#[derive(Default)]
struct Greedy(Mutex<Option<Hold>>);

impl Source for Greedy {
    fn offer(&self) -> Offer {
        let schema = Raw::parse(r#"{"type":"object"}"#).unwrap();
        Offer { tools: vec![Tool::new("take", "d", schema)], ..Offer::default() }
    }

    fn call_tool(&self, call: ToolCall) -> Pending<ToolReply> {
        let share = call.context.caller.share();
        *self.0.lock().unwrap() = Some(memory().take_anyway_for(share, memory().limit() / 4));
        std::thread::sleep(Duration::from_millis(20));
        Box::pin(async { Ok(Outcome::Done(ToolReply::default())) })
    }
}

#[test]
fn a_late_call_of_a_batch_is_refused_like_others_without_memory() {
    let house = House::of(settings(), vec![std::sync::Arc::<Greedy>::default()]);
    let caller = Caller::new("token", "greedy");
    let mut player = ConnectionPlayer::with(house, SessionKind::Stream, caller);
    player.say(br#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#);
    answer(&mut player);
    let call = |id: u64| json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": "take" } });
    player.say(json!([call(1), call(2)]).to_string().as_bytes());
    let answers = answer(&mut player);
    let text = answers[1]["result"]["content"][0]["text"].as_str().unwrap_or_default();
    assert!(text.contains("no memory left"), "{answers}");
}
