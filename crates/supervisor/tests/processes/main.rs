//! The supervisor with real programs.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod stopping; // every way in which a program stops
mod supervising; // starting programs, and the supervisor and monitor processes themselves

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use sabir_supervisor::{Child, GracePeriod, StartRequest, Supervisor, SupervisorSettings};
use sabir_testkit::leftovers::{alive, stat};
use tokio::io::AsyncReadExt;

/// An executable that calls `hidden_mode`.
const PLAY: &str = env!("CARGO_BIN_EXE_sabir-supervisor-play");

/// Enough time for every process to exit.
const SOON: Duration = Duration::from_secs(10);

fn supervisor() -> Supervisor {
    Supervisor::new(SupervisorSettings { executable: PLAY.into(), ..SupervisorSettings::default() })
}

/// A shell script; `$0` is `token`, which its children should have in their command lines.
fn sh(script: &str, token: &str) -> StartRequest {
    StartRequest {
        program: "/bin/sh".into(),
        args: vec!["-c".into(), script.into(), token.into()],
        env: vec![("PATH".into(), std::env::var_os("PATH").unwrap())],
        cwd: "/".into(),
        stdin: true,
        grace: grace(0, 100),
    }
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

/// Waits for a line of the program's output.
async fn line(child: &mut Child) -> String {
    let stdout = child.stdout.as_mut().unwrap();
    let mut line = Vec::new();
    while line.last() != Some(&b'\n') {
        line.push(stdout.read_u8().await.unwrap());
    }
    String::from_utf8(line).unwrap().trim_end().to_owned()
}

async fn rest(child: &mut Child) -> String {
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).await.unwrap();
    text
}
