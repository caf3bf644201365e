//! Commands with real programs.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod fuzz; // templates and values
#[cfg(feature = "articles")]
mod pdf; // PDF files
mod running; // one call
#[cfg(target_os = "linux")]
mod sandbox; // limits and sandbox
#[cfg(target_os = "linux")]
mod stops; // what each setting of the sandbox stops

use std::ffi::OsString;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use sabir_sources::command::Program;
use sabir_supervisor::{GracePeriod, Supervisor, SupervisorSettings};
use sabir_testkit::leftovers::{alive, stat};

/// An executable that calls `hidden_mode`.
const PLAY: &str = env!("CARGO_BIN_EXE_sabir-sources-play");

/// Enough time for every process to exit.
const SOON: Duration = Duration::from_secs(10);

fn supervisor() -> Supervisor {
    Supervisor::new(SupervisorSettings { executable: PLAY.into(), ..SupervisorSettings::default() })
}

fn shell(cwd: &str) -> Program {
    let mut program = Program::new("/bin/sh".into(), cwd.into());
    program.grace = grace(0, 100);
    program
}

fn script(script: &str) -> Vec<OsString> {
    vec!["-c".into(), script.into()]
}

fn grace(after_stdin: u64, after_term: u64) -> GracePeriod {
    let [after_stdin, after_term] = [after_stdin, after_term].map(Duration::from_millis);
    GracePeriod { after_stdin, after_term }
}

/// Digits that no other process has in its command line.
fn token() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("7{:07}{:04}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Waits until the condition holds. Panics with its name after [`SOON`].
async fn soon(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < SOON, "not within {SOON:?}: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
