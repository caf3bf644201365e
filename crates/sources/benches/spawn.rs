//! Compares a call of `/bin/true` with a bare `posix_spawn` and wait.
//!
//! They alternate, so that load on the machine affects all alike; the medians are compared.
//! `cargo bench -p sabir-sources --bench spawn`, with the number of calls as an optional argument.
//! Fails if a call takes more than 1.5 times as long as the bare spawn.

#![allow(clippy::print_stdout, reason = "a bench reports to people")]

use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use sabir_sources::command::{Program, run};
use sabir_supervisor::{Supervisor, SupervisorSettings};

const PROMISED: f64 = 1.5;

fn main() -> ExitCode {
    if let Some(code) = sabir_sources::hidden_mode() {
        return code;
    }
    let calls = std::env::args().find_map(|arg| arg.parse().ok()).unwrap_or(2000);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    // In a task, like calls in Sabir: `block_on` itself would add a switch between threads.
    let measured = runtime.block_on(runtime.spawn(measure(calls)));
    let times = measured.expect("no panic");

    let medians = times.map(median);
    let ratio = |of: Duration| of.as_secs_f64() / medians[0].as_secs_f64();
    let names = ["bare posix_spawn and wait", "a call", "tokio, with pipes", "a call with a limit"];
    println!("/bin/true, {calls} times each, medians:");
    for (name, median) in names.iter().zip(medians) {
        println!("{name:>26}  {:>5} µs  {:.2}", median.as_micros(), ratio(median));
    }
    ExitCode::from(u8::from(ratio(medians[1]) > PROMISED))
}

async fn measure(calls: usize) -> [Vec<Duration>; 4] {
    let supervisor = Supervisor::new(SupervisorSettings::default());
    let plain = Program::new("/bin/true".into(), "/".into());
    let mut limited = plain.clone();
    limited.limits.cpu_seconds = Some(10);
    let mut times = [const { Vec::new() }; 4];
    for _ in 0..calls {
        times[0].push(time(async { bare() }).await);
        times[1].push(time(call(&supervisor, &plain)).await);
        times[2].push(time(by_tokio()).await);
        times[3].push(time(call(&supervisor, &limited)).await);
    }
    supervisor.close(Duration::from_secs(10)).await;
    times
}

async fn time(work: impl Future<Output = ()>) -> Duration {
    let start = Instant::now();
    work.await;
    start.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn bare() {
    let mut command = Command::new("/bin/true");
    command.env_clear().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    assert!(command.status().expect("a child").success());
}

async fn call(supervisor: &Supervisor, program: &Program) {
    let finish = run(supervisor, program, vec![], None, None).await.expect("a call");
    assert!(finish.success);
}

/// The same without a supervisor: both outputs are read, but descendants are not stopped.
async fn by_tokio() {
    let mut command = tokio::process::Command::new("/bin/true");
    command.env_clear().stdin(Stdio::null());
    assert!(command.output().await.expect("a child").status.success());
}
