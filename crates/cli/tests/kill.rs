//! Stops the real binary in many ways while trees of programs and an upstream run, and checks that no
//! process is left.
//!
//! The test is a subreaper, so that every escaped process is reparented to it, and the kernel
//! reports whether any is left, zombies included. `/proc` is searched as well.
//!
//! `SABIR_KILL_ROUNDS` is the number of rounds (default 40). It is the only test in its process,
//! because it waits for children that it has not started.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use sabir_testkit::leftovers::{self, alive, kill};

/// How long all processes may take to exit: the grace period of the programs, and a margin for a
/// busy machine.
const GONE_WITHIN: Duration = Duration::from_secs(30);

/// Every program is a family of processes: in its group, outside of it, orphaned, ignoring SIGTERM,
/// and without environment. `$0` is in the command line of each.
const CONFIGURATION: &str = r#"
[limits]
grace = "10ms"

[[command]]
name = "family"
run = ["sh", "-c", '''
    sleep 1000.$0 &
    setsid sh -c 'sleep 1000.$0 & wait' $0 &
    (setsid sh -c 'trap "" TERM HUP INT; while :; do sleep 1000.$0; done' $0 &)
    (env -i setsid /bin/sleep 1000.$0 &)
    trap "" HUP
    wait
''', "{token}"]
input = { token = "string" }
kill_after = "20ms"

[[command]]
name = "brief"
run = ["sh", "-c", '''
    sleep 1000.$0 &
    (setsid sh -c 'trap "" TERM HUP INT; while :; do sleep 1000.$0; done' $0 &)
    wait
''', "{token}"]
input = { token = "string" }
timeout = "150ms"
kill_after = "20ms"

[[command]]
name = "leaving"
run = ["sh", "-c", '''
    (setsid sh -c 'trap "" TERM HUP INT; while :; do sleep 1000.$0; done' $0 &)
    (setsid sleep 1000.$0 &)
    exit 3
''', "{token}"]
input = { token = "string" }
kill_after = "20ms"

[[upstream]]
name = "up"
run = ["./server"]
"#;

/// The number of processes of one call of `family`.
const FAMILY: usize = 7;

/// An MCP server with children of its own, whose tool never answers. It leaves at the end of its
/// input; its children do not. `TOKEN` is in the command line of each.
const SERVER: &str = r#"#!/bin/sh
exec sh -c '
    answer() { printf "{\"jsonrpc\":\"2.0\",\"id\":%s,%s}\n" "$1" "$2"; }
    sleep 1000.$0 &
    (env -i setsid /bin/sleep 1000.$0 &)
    while read -r line; do
        id=${line#*\"id\":}
        id=${id%%,*}
        case $line in
        *server/discover*) answer "$id" "\"error\":{\"code\":-32601,\"message\":\"unknown\"}" ;;
        *\"initialize\"*) answer "$id" "\"result\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"s\",\"version\":\"1\"}}" ;;
        *tools/list*) answer "$id" "\"result\":{\"tools\":[{\"name\":\"wait\",\"inputSchema\":{\"type\":\"object\"}}]}" ;;
        esac
    done
' TOKEN
"#;

/// The number of processes of the upstream.
const UPSTREAM: usize = 3;

/// The highest number of concurrent calls.
const CALLS: usize = 2;

/// How one round ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// SIGKILL, when all programs run.
    Kill,
    /// SIGKILL to its whole process group.
    KillGroup,
    /// SIGKILL at some moment while it starts programs.
    KillEarly,
    Terminate,
    Interrupt,
    /// SIGTERM, and then SIGKILL while it stops.
    TerminateAndKill,
    /// Two signals: the second exits at once.
    InterruptTwice,
    /// The client closes the input and keeps reading.
    EndOfInput,
    /// The client is gone.
    ClientVanishes,
    /// The programs time out. Sabir keeps running.
    TimeOut,
    /// The client cancels the calls. Sabir keeps running.
    Cancel,
    /// The client cancels the calls, and Sabir is killed while it stops them.
    CancelAndKill,
    /// The programs exit, but their children do not. Sabir keeps running.
    LeaveOthers,
    /// The client closes its connection. Sabir keeps running.
    HttpDisconnect,
}

const WAYS: [Way; 14] = [
    Way::Kill,
    Way::Terminate,
    Way::EndOfInput,
    Way::Cancel,
    Way::KillEarly,
    Way::ClientVanishes,
    Way::TimeOut,
    Way::Interrupt,
    Way::KillGroup,
    Way::TerminateAndKill,
    Way::InterruptTwice,
    Way::CancelAndKill,
    Way::LeaveOthers,
    Way::HttpDisconnect,
];

#[test]
fn no_process_is_left_however_sabir_exits() {
    leftovers::adopt_orphans();
    let rounds: usize =
        std::env::var("SABIR_KILL_ROUNDS").map_or(40, |rounds| rounds.parse().unwrap());
    let folder = tempfile::TempDir::new().unwrap();
    fs::write(folder.path().join("sabir.toml"), CONFIGURATION).unwrap();
    learn(folder.path());
    let (start, mut slowest) = (Instant::now(), Duration::ZERO);
    for round in 0..rounds {
        let way = WAYS[round % WAYS.len()];
        slowest = slowest.max(Round::new(round, way, folder.path()).play());
        if (round + 1) % 500 == 0 {
            println!("{} rounds, nothing left, {:?}", round + 1, start.elapsed());
        }
    }
    let took = start.elapsed();
    println!("{rounds} rounds in {took:?}, nothing left; all was gone within {slowest:?}");
}

/// Lets Sabir remember the tools of the upstream, so that every round can call one at once.
fn learn(folder: &Path) {
    write_server(folder, "0");
    let listed = Command::new(env!("CARGO_BIN_EXE_sabir"))
        .arg("list")
        .current_dir(folder)
        .env("XDG_CACHE_HOME", folder.join("cache"))
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&listed.stdout).contains("up_wait"), "{listed:?}");
}

fn write_server(folder: &Path, token: &str) {
    let path = folder.join("server");
    fs::write(&path, SERVER.replace("TOKEN", token)).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

struct Round {
    number: usize,
    way: Way,
    /// Digits that no other process has in its command line.
    token: String,
    /// The same for the upstream.
    upstream: String,
    /// How many programs it calls.
    calls: usize,
    sabir: Child,
    output: Option<BufReader<ChildStdout>>,
}

impl Round {
    fn new(number: usize, way: Way, folder: &Path) -> Self {
        let listens = match way {
            Way::HttpDisconnect => &["--http", "127.0.0.1:0"][..],
            _ => &["--stdio"],
        };
        let [token, upstream] =
            [9, 8].map(|digit| format!("{digit}{:07}{number:06}", std::process::id()));
        write_server(folder, &upstream);
        let mut sabir = Command::new(env!("CARGO_BIN_EXE_sabir"))
            .args(["serve", "--log", "off"])
            .args(listens)
            .current_dir(folder)
            .env("XDG_CACHE_HOME", folder.join("cache"))
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let output = sabir.stdout.take().map(BufReader::new);
        let calls = 1 + number / WAYS.len() % CALLS;
        Self { number, way, token, upstream, calls, sabir, output }
    }

    /// Plays the round, and returns the time from the stop until all processes are gone.
    fn play(mut self) -> Duration {
        // In every third round of each way.
        let has_upstream =
            self.way != Way::HttpDisconnect && (self.number / WAYS.len()).is_multiple_of(3);
        if has_upstream {
            self.say(
                r#"{"jsonrpc":"2.0","id":"up","method":"tools/call","params":{"name":"up_wait"}}"#,
            );
        }
        if has_upstream && self.way != Way::KillEarly {
            let what = format!("{:?}: the upstream runs", self.way);
            wait_until(&what, || alive(&self.upstream).len() == UPSTREAM);
        }
        let start = match self.way {
            Way::TimeOut | Way::LeaveOthers => self.wait_for_the_programs_to_end(),
            Way::HttpDisconnect => self.disconnect(),
            Way::KillEarly => {
                (0..self.calls).for_each(|id| self.call("family", id));
                // At another moment of the start in every round.
                std::thread::sleep(Duration::from_millis(self.number as u64 * 7 % 60));
                Instant::now()
            }
            _ => {
                (0..self.calls).for_each(|id| self.call("family", id));
                self.wait_for_families(self.calls);
                Instant::now()
            }
        };
        self.end();
        let when = format!("round {}, {:?}", self.number, self.way);
        // A reader of Sabir's output must see its end when Sabir exits, not when a monitor does.
        if let Some(mut output) = self.output.take() {
            output.read_to_end(&mut Vec::new()).unwrap();
        }
        drop(self.sabir.stdin.take());
        leftovers::wait_until_childless(&when, GONE_WITHIN);
        for token in [&self.token, &self.upstream] {
            assert_eq!(alive(token), [""; 0], "{when}");
        }
        start.elapsed()
    }

    fn say(&mut self, message: &str) {
        writeln!(self.sabir.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    /// The next line of Sabir's output.
    fn hear(&mut self) -> String {
        let mut line = String::new();
        self.output.as_mut().unwrap().read_line(&mut line).unwrap();
        assert!(!line.is_empty(), "{:?}: it has left", self.way);
        line
    }

    fn call(&mut self, tool: &str, id: usize) {
        let token = &self.token;
        self.say(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{{"token":"{token}"}}}}}}"#
        ));
    }

    fn cancel(&mut self) {
        for id in 0..self.calls {
            self.say(&format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
            ));
        }
    }

    fn ping(&mut self) {
        self.say(r#"{"jsonrpc":"2.0","id":"ping","method":"ping"}"#);
        assert_eq!(self.hear(), "{\"jsonrpc\":\"2.0\",\"id\":\"ping\",\"result\":{}}\n");
    }

    fn wait_for_families(&self, count: usize) {
        let what = format!("{:?}: the families are complete", self.way);
        wait_until(&what, || alive(&self.token).len() == count * FAMILY);
    }

    /// Calls programs that end by themselves. With the answer, their processes must be gone.
    fn wait_for_the_programs_to_end(&mut self) -> Instant {
        let (tool, told) = match self.way {
            // On a very busy machine it does not even start before its timeout.
            Way::TimeOut => ("brief", ["longer than 150ms", "did not start before its timeout"]),
            _ => ("leaving", ["exit code 3"; 2]),
        };
        (0..self.calls).for_each(|id| self.call(tool, id));
        for _ in 0..self.calls {
            let answer = self.hear();
            assert!(told.iter().any(|told| answer.contains(told)), "{answer}");
        }
        assert_eq!(alive(&self.token), [""; 0], "{:?}", self.way);
        self.ping();
        Instant::now()
    }

    /// Calls a program over a connection that is closed when the program runs.
    fn disconnect(&mut self) -> Instant {
        let mut said = BufReader::new(self.sabir.stderr.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("serving `sabir` on http://").unwrap();
        let address = address.strip_suffix("/mcp").unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        let token = &self.token;
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"family","arguments":{{"token":"{token}"}},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
        );
        write!(
            stream,
            "POST /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nAccept: \
             application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: \
             tools/call\r\nMcp-Name: family\r\nContent-Length: {}\r\n\r\n{body}",
            body.len(),
        )
        .unwrap();
        self.wait_for_families(1);
        drop(stream);
        let start = Instant::now();
        wait_until("the program is ended", || alive(token).is_empty());
        self.sabir.stderr = Some(said.into_inner());
        start
    }

    fn end(&mut self) {
        let pid = self.sabir.id() as i32;
        match self.way {
            Way::Kill | Way::KillEarly => kill(pid, Signal::KILL),
            Way::KillGroup => {
                kill_process_group(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
            }
            Way::Terminate | Way::HttpDisconnect => kill(pid, Signal::TERM),
            Way::Interrupt => kill(pid, Signal::INT),
            Way::TerminateAndKill => {
                kill(pid, Signal::TERM);
                // At another moment of the stop in every round.
                std::thread::sleep(Duration::from_millis(self.number as u64 % 30));
                // It may be a zombie: exited, and not waited for.
                kill(pid, Signal::KILL);
            }
            Way::InterruptTwice => {
                kill(pid, Signal::INT);
                let mut word = [0; 9];
                self.sabir.stderr.as_mut().unwrap().read_exact(&mut word).unwrap();
                assert_eq!(&word, b"stopping\n");
                kill(pid, Signal::INT);
            }
            Way::ClientVanishes => {
                drop(self.sabir.stdin.take());
                drop(self.output.take());
                drop(self.sabir.stderr.take());
            }
            Way::Cancel => {
                self.cancel();
                wait_until("the programs are ended", || alive(&self.token).is_empty());
                self.ping();
                drop(self.sabir.stdin.take());
            }
            Way::CancelAndKill => {
                self.cancel();
                self.ping();
                kill(pid, Signal::KILL);
            }
            Way::EndOfInput | Way::TimeOut | Way::LeaveOthers => drop(self.sabir.stdin.take()),
        }
    }
}

fn wait_until(what: &str, is_so: impl FnMut() -> bool) {
    leftovers::wait_until(what, GONE_WITHIN, is_so);
}
