//! Ends a process that plays Sabir in every way there is, with whole families of programs
//! running, and counts what is left. Nothing may be.
//!
//! The test makes itself a subreaper, so that whatever escapes comes to it: "nothing is left" is
//! then the kernel's word, zombies included. `/proc` is searched as well.
//!
//! `SABIR_KILL_ROUNDS` is how many rounds to go, 40 if it is not set. One test, alone in its
//! process: it waits for children it has not started.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]
#![allow(clippy::print_stdout, reason = "the count is what the test is for")]

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use sabir_testkit::leftovers::{self, alive, kill};

/// How long everything may take to be gone: the patience of the programs, and a good deal for a
/// machine that has other things to do.
const GONE_WITHIN: Duration = Duration::from_secs(15);

/// How many processes one program of `play hold` becomes.
const FAMILY: usize = 7;

/// How one round ends.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// SIGKILL, when all programs run.
    Kill,
    /// SIGKILL to its whole process group.
    KillGroup,
    /// SIGKILL at some moment while it starts programs.
    KillEarly,
    Terminate,
    Interrupt,
    /// Its input ends, and it closes in order.
    EndOfInput,
    Abort,
    Panic,
    /// It leaves without closing anything.
    Leave,
    /// It drops the programs and is killed while they are being ended.
    DropAndKill,
    /// A keeper is killed first; what it kept must be gone before the rest is.
    KillKeeper,
    /// The warden is killed first.
    KillWarden,
    /// Sabir and the warden are killed together.
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
    Way::KillKeeper,
    Way::KillWarden,
    Way::KillBoth,
];

#[test]
fn however_sabir_ends_nothing_is_left() {
    leftovers::adopt_orphans();
    let rounds = std::env::var("SABIR_KILL_ROUNDS").map_or(40, |rounds| rounds.parse().unwrap());
    let mut slowest = Duration::ZERO;
    for round in 0..rounds {
        let way = WAYS[round % WAYS.len()];
        let took = play_round(round, way);
        slowest = slowest.max(took);
    }
    println!("{rounds} rounds, nothing left; all was gone within {slowest:?}");
}

/// Plays one round, and returns how long it took from the end of Sabir to the end of all.
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
        // From before the warden runs to after the last program, over the rounds.
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
    panic!("it did not get ready");
}

/// What is done before Sabir itself ends.
fn prepare(way: Way, sabir: &mut Child, programs: &[i32]) {
    let keeper = parent(programs[0]).unwrap();
    let warden = parent(keeper).unwrap();
    assert_eq!(parent(warden), Some(sabir.id() as i32));
    match way {
        Way::KillKeeper => {
            kill(keeper, Signal::KILL);
            wait_until("the program of the keeper is gone", || parent(programs[0]).is_none());
        }
        Way::KillWarden | Way::KillBoth => kill(warden, Signal::KILL),
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
        | Way::KillKeeper
        | Way::KillWarden
        | Way::KillBoth => kill(pid, Signal::KILL),
    }
}

fn tell(sabir: &mut Child, what: &str) {
    std::io::Write::write_all(sabir.stdin.as_mut().unwrap(), what.as_bytes()).unwrap();
}

/// Whoever reads Sabir's output must see its end when Sabir ends, not when the last keeper does.
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
