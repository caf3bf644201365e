//! A server for tests of the player over a pipe: `sabir-stand-in serve FILE --stdio [--empty]`.
//!
//! FILE has the settings of a script, one a line. It offers one of everything, or nothing.

use std::process::ExitCode;
use std::sync::Arc;

use sabir_engine::{Engine, Settings};
use sabir_testkit::{StandIn, apply_setting};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [serve, file, stdio, rest @ ..] = arguments.as_slice() else { return ExitCode::from(2) };
    if serve != "serve" || stdio != "--stdio" {
        return ExitCode::from(2);
    }
    let Ok(text) = std::fs::read_to_string(file) else { return ExitCode::from(3) };
    let mut settings = Settings::default();
    if text.lines().any(|line| apply_setting(&mut settings, line).is_err()) {
        return ExitCode::from(3);
    }
    let engine = Engine::new(settings);
    if rest.is_empty() && engine.registry().add(Arc::new(StandIn)).is_err() {
        return ExitCode::FAILURE;
    }
    match sabir_transports::stdio::serve(&engine).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
