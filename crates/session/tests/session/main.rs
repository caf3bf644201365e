//! The rules of one session, as transcripts against the state machine alone.
#![allow(clippy::unwrap_used, reason = "a test may fail")]
#![allow(clippy::disallowed_methods, reason = "tests may read the clock and the environment")]

mod batches;
mod cancellation;
mod dialects;
mod envelope;
mod eras;
mod streams;
mod lifecycle;
mod limits;
mod notes;
mod properties;
mod questions;
mod sharing;
mod subscriptions;

use std::time::Duration;

use sabir_session::{Dialect, ElicitationIds, Limits, SessionConfig};
use sabir_testkit::{SessionPlayer, play};
use sabir_wire::{Raw, Revision};

fn rules() -> SessionConfig {
    let mut limits = Limits::default();
    limits.call_time = Some(Duration::from_secs(30));
    limits.question_time = Some(Duration::from_secs(60));
    SessionConfig {
        dialect: Dialect::default(),
        limits,
        server: Raw::parse(r#"{"name":"s","version":"1"}"#).unwrap(),
        elicitation_ids: ElicitationIds::new("page"),
    }
}

fn speaking(dialect: Dialect) -> SessionConfig {
    SessionConfig { dialect, ..rules() }
}

fn limited(change: impl FnOnce(&mut Limits)) -> SessionConfig {
    let mut rules = rules();
    change(&mut rules.limits);
    rules
}

/// Plays a script under the default rules.
#[track_caller]
fn transcript(script: &str) {
    under(rules(), script);
}

/// Plays a script under other rules: with one session, and with one that is saved and resumed after
/// every input.
#[track_caller]
fn under(config: SessionConfig, script: &str) {
    let SessionConfig { dialect, limits, server, .. } = &config;
    let again = SessionConfig {
        dialect: dialect.clone(),
        limits: limits.clone(),
        server: server.clone(),
        elicitation_ids: ElicitationIds::new("page"),
    };
    play(&mut SessionPlayer::new(config), script);
    play(&mut SessionPlayer::new(again).resumed(), script);
}

/// The handshake of a client that can do everything, then the script.
fn after_hello(script: &str) -> String {
    after_greeting(Revision::NEWEST_LEGACY, ABLE, script)
}

const ABLE: &str = r#"{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}},"roots":{}}"#;

/// The handshake of a client of some revision and abilities, then the script.
fn after_greeting(revision: Revision, capabilities: &str, script: &str) -> String {
    format!(
        r#"
        > {{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{{"protocolVersion":"{revision}","capabilities":{capabilities},"clientInfo":{{"name":"c","version":"1"}}}}}}
        < {{"jsonrpc":"2.0","id":"hello","result":{{"protocolVersion":"{revision}","capabilities":"…","serverInfo":{{"name":"s","version":"1"}}}}}}
        > {{"jsonrpc":"2.0","method":"notifications/initialized"}}
        ! ready
        {script}"#
    )
}
