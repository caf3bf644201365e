//! Plays the part of Sabir for the tests that kill it, and of a program that misbehaves.
//!
//! The first argument selects the part. It reports on standard output, one line per event.

use std::io::{self, BufRead, Write};
use std::process::{Command, ExitCode};
use std::time::Duration;

use sabir_supervisor::{GracePeriod, StartRequest, Supervisor, SupervisorSettings};
use tokio::io::AsyncReadExt;

/// Enough time for every process to exit.
const SOON: Duration = Duration::from_secs(10);

fn main() -> ExitCode {
    if let Some(code) = sabir_supervisor::hidden_mode() {
        return code;
    }
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(|arg| &**arg).collect();
    match args[..] {
        ["hold", token, grace] => hold(token, grace.parse().expect("milliseconds")),
        ["runaway", token] => runaway(token),
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

/// A shell with descendants in its process group, outside of it, orphaned, ignoring SIGTERM and
/// without an environment. `$0` is in the command line of each.
const FAMILY: &str = r#"
    sleep 1000.$0 &
    setsid sh -c 'sleep 1000.$0 & wait' $0 &
    (setsid sh -c 'trap "" TERM HUP INT; while :; do sleep 1000.$0; done' $0 &)
    (env -i setsid /bin/sleep 1000.$0 &)
    trap "" HUP
    echo ready
    wait
"#;

/// Runs three families until a line of standard input says what to do.
fn hold(token: &str, grace: u64) {
    let grace = Duration::from_millis(grace);
    let request = StartRequest {
        program: "/bin/sh".into(),
        args: vec!["-c".into(), FAMILY.into(), token.into()],
        env: std::env::var_os("PATH").map(|path| ("PATH".into(), path)).into_iter().collect(),
        cwd: "/".into(),
        stdin: true,
        grace: GracePeriod { after_stdin: grace / 2, after_term: grace },
    };
    block_on(async {
        let supervisor = Supervisor::new(SupervisorSettings::default());
        let mut children = Vec::new();
        for _ in 0..3 {
            let mut child = supervisor.start(&request).await.expect("a child");
            let mut line = [0; 6];
            let stdout = child.stdout.as_mut().expect("its output");
            stdout.read_exact(&mut line).await.expect("its first line");
            say(&format!("child {}", child.pid().expect("its id")));
            children.push(child);
        }
        say("ready");
        loop {
            let line = tokio::task::spawn_blocking(|| io::stdin().lock().lines().next()).await;
            match line.expect("no panic").transpose().expect("a line").as_deref() {
                Some("abort") => std::process::abort(),
                Some("panic") => panic!("as requested"),
                Some("leave") => return,
                Some("drop") => children.clear(),
                Some(other) => panic!("unknown command {other}"),
                None => break,
            }
            say("done");
        }
        supervisor.close(SOON).await;
        say("closed");
    });
}

/// Every generation leaves the session, starts the next generation and exits.
fn runaway(token: &str) {
    let _ = rustix::process::setsid();
    let myself = std::env::current_exe().expect("a path");
    let _ = Command::new(myself).args(["runaway", token]).spawn();
}
