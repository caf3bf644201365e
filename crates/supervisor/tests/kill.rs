//! Ends a process that plays the part of Sabir in every possible way, with families of programs
//! running. No process may be left.
//!
//! The test is a subreaper, so that every process that escapes is reparented to it: the kernel
//! reports whether any is left, including zombies. `/proc` is searched as well.
//!
//! `SABIR_SUPERVISOR_KILL_ROUNDS` is the number of rounds (default 40). The test is alone in its process,
//! because it waits for children that it has not started.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::print_stdout, reason = "the test reports its measurement")]

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use sabir_testkit::leftovers::{self, alive, kill};

/// How long all processes may take to exit: the grace period, and a reserve for a busy machine.
const GONE_WITHIN: Duration = Duration::from_secs(15);

/// The number of processes of one program of `play hold`.
const FAMILY: usize = 7;

/// How one round ends.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// SIGKILL while all programs run.
    Kill,
    /// SIGKILL to its whole process group.
    KillGroup,
    /// SIGKILL while it starts programs.
    KillEarly,
    Terminate,
    Interrupt,
    /// Its standard input ends, and it shuts down.
    EndOfInput,
    Abort,
    Panic,
    /// It exits without closing anything.
    Leave,
    /// It drops the programs and is killed while they are being stopped.
    DropAndKill,
    /// A monitor is killed first; its program must be gone before the others.
    KillMonitor,
    /// The supervisor process is killed first.
    KillSupervisor,
    /// Sabir and the supervisor process are killed together.
    KillBoth,
}

const WAYS: [Way; 13] = [
    Way::Kill,
    Way::KillGroup,
    Way::KillEarly,
    Way::Terminate,
    Way::Interrupt,
    Way::EndOfInput,
    Way::Abort,
    Way::Panic,
    Way::Leave,
    Way::DropAndKill,
    Way::KillMonitor,
    Way::KillSupervisor,
    Way::KillBoth,
];

#[test]
fn however_sabir_exits_no_process_is_left() {
    leftovers::adopt_orphans();
    let rounds =
        std::env::var("SABIR_SUPERVISOR_KILL_ROUNDS").map_or(40, |rounds| rounds.parse().unwrap());
    let mut slowest = Duration::ZERO;
    for round in 0..rounds {
        let way = WAYS[round % WAYS.len()];
        let took = play_round(round, way);
        slowest = slowest.max(took);
    }
    println!("{rounds} rounds, no process left; slowest round {slowest:?}");
}

/// Runs one round. Returns the time from the exit of Sabir to the exit of the last process.
fn play_round(round: usize, way: Way) -> Duration {
    let token = format!("8{:07}{round:05}", std::process::id());
    let mut sabir = Command::new(env!("CARGO_BIN_EXE_sabir-supervisor-play"))
        .args(["hold", &token, "100"])
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    if let Way::KillEarly = way {
        // Over the rounds: from before the supervisor process runs to after the last program.
        std::thread::sleep(Duration::from_millis(round as u64 * 7 % 60));
    } else {
        let programs = wait_until_ready(&mut sabir);
        wait_until("the families are complete", || alive(&token).len() == 1 + 3 * FAMILY);
        prepare(way, &mut sabir, &programs);
    }
    let start = Instant::now();
    end(way, &mut sabir);
    drop(sabir.stdin.take());
    expect_end_of_output(&mut sabir);
    let when = format!("round {round}, {way:?}");
    leftovers::wait_until_childless(&when, GONE_WITHIN);
    assert_eq!(alive(&token), [""; 0], "{when}");
    start.elapsed()
}

/// The process ids of the programs.
fn wait_until_ready(sabir: &mut Child) -> Vec<i32> {
    let mut programs = Vec::new();
    for line in BufReader::new(sabir.stdout.as_mut().unwrap()).lines() {
        match line.unwrap().strip_prefix("child ") {
            Some(pid) => programs.push(pid.parse().unwrap()),
            None => return programs,
        }
    }
    panic!("it did not become ready");
}

/// The steps before Sabir itself exits.
fn prepare(way: Way, sabir: &mut Child, programs: &[i32]) {
    let monitor = parent(programs[0]).unwrap();
    let root = parent(monitor).unwrap();
    assert_eq!(parent(root), Some(sabir.id() as i32));
    match way {
        Way::KillMonitor => {
            kill(monitor, Signal::KILL);
            wait_until("the program of the monitor is gone", || parent(programs[0]).is_none());
        }
        Way::KillSupervisor | Way::KillBoth => kill(root, Signal::KILL),
        Way::DropAndKill => tell(sabir, "drop\n"),
        _ => {}
    }
}

fn end(way: Way, sabir: &mut Child) {
    let pid = sabir.id() as i32;
    match way {
        Way::KillGroup => {
            kill_process_group(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
        }
        Way::Terminate => kill(pid, Signal::TERM),
        Way::Interrupt => kill(pid, Signal::INT),
        Way::EndOfInput => {}
        Way::Abort => tell(sabir, "abort\n"),
        Way::Panic => tell(sabir, "panic\n"),
        Way::Leave => tell(sabir, "leave\n"),
        Way::Kill
        | Way::KillEarly
        | Way::DropAndKill
        | Way::KillMonitor
        | Way::KillSupervisor
        | Way::KillBoth => kill(pid, Signal::KILL),
    }
}

fn tell(sabir: &mut Child, what: &str) {
    std::io::Write::write_all(sabir.stdin.as_mut().unwrap(), what.as_bytes()).unwrap();
}

/// A reader of Sabir's output must see its end when Sabir exits, not when the last monitor does.
fn expect_end_of_output(sabir: &mut Child) {
    let mut rest = Vec::new();
    sabir.stdout.take().unwrap().read_to_end(&mut rest).unwrap();
}

fn wait_until(what: &str, is_so: impl FnMut() -> bool) {
    leftovers::wait_until(what, GONE_WITHIN, is_so);
}

fn parent(pid: i32) -> Option<i32> {
    leftovers::stat(pid).map(|(parent, _)| parent)
}
