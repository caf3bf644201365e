//! The engine with a source whose calls are ended by the test.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod lists;
mod memory;
mod meta;
mod observing;
mod resources;
mod questions;
mod running;
mod seeds;
mod tasks;
mod tools;

use sabir_engine::Settings;
use sabir_session::SessionKind;
use sabir_testkit::{ConnectionPlayer, House, Player, play};
use serde_json::Value;

fn settings() -> Settings {
    House::settings()
}

/// A client on a pipe of a house that offers [`House::offer`].
fn player() -> ConnectionPlayer {
    ConnectionPlayer::new(settings())
}

fn playing(house: House) -> ConnectionPlayer {
    ConnectionPlayer::with(house, SessionKind::Stream, sabir_wire::Caller::local())
}

#[track_caller]
fn transcript(script: &str) {
    play(&mut player(), script);
}

/// The handshake of a client that can do everything, then the script.
fn after_hello(script: &str) -> String {
    after_greeting("2025-11-25", script)
}

fn after_greeting(revision: &str, script: &str) -> String {
    format!(
        r#"
        > {{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{{"protocolVersion":"{revision}","capabilities":{{"elicitation":{{"form":{{}},"url":{{}}}},"sampling":{{"tools":{{}}}},"roots":{{}}}},"clientInfo":{{"name":"c","version":"1"}}}}}}
        < {{"jsonrpc":"2.0","id":"hello","result":"…"}}
        > {{"jsonrpc":"2.0","method":"notifications/initialized"}}
        ! ready
        {script}"#
    )
}

/// Sends a request of a modern client that can do everything, and returns the answer.
#[track_caller]
fn ask(player: &mut dyn Player, method: &str, params: &str) -> Value {
    player.say(request(1, method, params).as_bytes());
    answer(player)
}

fn request(id: u64, method: &str, params: &str) -> String {
    let comma = if params.is_empty() { "" } else { "," };
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{params}{comma}"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{"elicitation":{{"form":{{}},"url":{{}}}},"sampling":{{"tools":{{}}}},"roots":{{}}}}}}}}}}"#
    )
}

#[track_caller]
fn answer(player: &mut dyn Player) -> Value {
    let frame = player.hear().expect("an answer");
    serde_json::from_slice(&frame).expect("JSON")
}
