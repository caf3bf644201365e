//! Plays the part of Sabir for tests that need a process of their own, and of programs that misbehave.
//!
//! The first argument selects the part. It reports on standard output, one line per event.

#[cfg(target_os = "linux")]
mod attempt; // what a sandbox stops

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use sabir_sources::command::{Files, Program, Sandbox, run};
use sabir_supervisor::{Supervisor, SupervisorSettings};

/// Enough time for every process to exit.
const SOON: Duration = Duration::from_secs(10);

fn main() -> ExitCode {
    if let Some(code) = sabir_sources::hidden_mode() {
        return code;
    }
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(|arg| &**arg).collect();
    match args[..] {
        ["flood", max_output] => flood(max_output.parse().expect("bytes")),
        ["attempt", kind, ref values @ ..] => {
            return match attempt::make(kind, values) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => {
                    say(&format!("{error:?}"));
                    ExitCode::FAILURE
                }
            };
        }
        ["without-landlock"] => without_landlock(),
        _ => return ExitCode::from(2),
    }
    ExitCode::SUCCESS
}

fn say(line: &str) {
    let mut out = io::stdout().lock();
    out.write_all(format!("{line}\n").as_bytes()).and_then(|()| out.flush()).expect("a listener");
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
        .block_on(work)
}

/// Runs a program that never stops writing, and reports the peak memory.
fn flood(max_output: usize) {
    let mut program = Program::new("/bin/cat".into(), "/".into());
    program.max_output = max_output;
    let finish = block_on(async {
        let supervisor = Supervisor::new(SupervisorSettings::default());
        let finish = run(&supervisor, &program, vec!["/dev/zero".into()], None, None).await;
        supervisor.close(SOON).await;
        finish.expect("a run")
    });
    say(&format!("{:?} {}", finish.limit, finish.stdout.len()));
    let status = std::fs::read_to_string("/proc/self/status").expect("a status");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    say(peak.trim().trim_end_matches(" kB"));
}

/// Runs a command in a sandbox, as on a kernel without Landlock.
#[cfg(target_os = "linux")]
fn without_landlock() {
    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
    const LANDLOCK_CREATE_RULESET: i64 = 444;
    let filter: BpfProgram = SeccompFilter::new(
        [(LANDLOCK_CREATE_RULESET, vec![])].into_iter().collect(),
        SeccompAction::Allow,
        SeccompAction::Errno(libc::ENOSYS as u32),
        std::env::consts::ARCH.try_into().expect("a known processor"),
    )
    .and_then(TryInto::try_into)
    .expect("a filter");
    seccompiler::apply_filter(&filter).expect("a kernel with filters");
    let mut program = Program::new("/bin/echo".into(), "/".into());
    program.sandbox = Some(Sandbox { files: Some(Files::default()), ..Sandbox::default() });
    block_on(async {
        let supervisor = Supervisor::new(SupervisorSettings::default());
        let finish = run(&supervisor, &program, vec!["it ran".into()], None, None).await;
        say(&format!("{finish:?}"));
        supervisor.close(SOON).await;
    });
}

#[cfg(not(target_os = "linux"))]
fn without_landlock() {}
