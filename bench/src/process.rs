//! A server as a process: started on its own core, asked what it takes, ended whatever happens.
//!
//! It is told to end when its [`Process`] is dropped, and killed if it does not. Where `setpriv`
//! exists the kernel does the same if we are killed ourselves.

use std::io::Read;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use rustix::process::{Pid, Resource, Signal, getrlimit, kill_process, setrlimit};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// How long a server may take to listen, and to end before it is killed.
const START: Duration = Duration::from_secs(30);
const END: Duration = Duration::from_secs(5);

/// Who runs where. With one core everybody shares it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cores {
    split: Option<(usize, usize)>,
}

impl Cores {
    /// Gives the first core that we may use to servers and moves us to the second.
    pub fn split() -> Self {
        let ours = sched_getaffinity(None).unwrap_or_default();
        let mut usable = (0..CpuSet::MAX_CPU).filter(|core| ours.is_set(*core));
        let split = usable.next().zip(usable.next());
        if let Some((_, generator)) = split {
            move_to(generator);
        }
        Self { split }
    }

    /// Servers and generator share what there is.
    pub const fn shared() -> Self {
        Self { split: None }
    }

    /// Whether servers have a core to themselves.
    pub const fn are_split(self) -> bool {
        self.split.is_some()
    }

    /// Does something on the core of servers: what is started meanwhile stays there.
    pub fn on_server_core<T>(self, work: impl FnOnce() -> T) -> T {
        if let Some((server, _)) = self.split {
            move_to(server);
        }
        let done = work();
        if let Some((_, generator)) = self.split {
            move_to(generator);
        }
        done
    }
}

/// Only this thread, and what it starts from now on.
fn move_to(core: usize) {
    let mut only = CpuSet::new();
    only.set(core);
    // Where a container forbids it, the figures are less steady and still true.
    let _ = sched_setaffinity(None, &only);
}

/// Thousands of connections need as many files.
pub fn raise_file_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, limit);
}

/// A program and its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandLine(Vec<String>);

impl CommandLine {
    /// The program, then its arguments.
    pub fn new(program: &Path, arguments: &[&str]) -> Self {
        let program = program.to_string_lossy().into_owned();
        let arguments = arguments.iter().map(|argument| (*argument).to_owned());
        Self(std::iter::once(program).chain(arguments).collect())
    }

    /// With more arguments at the end.
    pub fn and(&self, arguments: &[&str]) -> Self {
        let more = arguments.iter().map(|argument| (*argument).to_owned());
        Self(self.0.iter().cloned().chain(more).collect())
    }

    /// With another program that starts it: before it stand that one's name and arguments.
    pub fn under(&self, words: &[&str]) -> Self {
        let words = words.iter().map(|word| (*word).to_owned());
        Self(words.chain(self.0.iter().cloned()).collect())
    }

    fn command(&self) -> Command {
        let mut command = Command::new(self.0.first().map_or("", String::as_str));
        command.args(self.0.iter().skip(1));
        command
    }
}

/// What is done with the streams of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Streams {
    /// It has none.
    Closed,
    /// Standard input and output are ours.
    Piped,
    /// Standard error is ours.
    Stderr,
    /// All three are ours.
    All,
}

/// A process that ends when this is dropped.
pub struct Process {
    child: Child,
}

impl Process {
    /// Starts it on the core of servers.
    pub fn start(cores: Cores, line: &CommandLine, streams: Streams) -> Result<Self, String> {
        if is_installed("setpriv") {
            let line = line.under(&["setpriv", "--pdeathsig", "KILL"]);
            return Self::start_bare(cores, &line, streams);
        }
        Self::start_bare(cores, line, streams)
    }

    /// The same with nothing between us and the program, where its start is measured.
    pub fn start_bare(cores: Cores, line: &CommandLine, streams: Streams) -> Result<Self, String> {
        let (pipe, errors) = match streams {
            Streams::Closed => (false, false),
            Streams::Piped => (true, false),
            Streams::Stderr => (false, true),
            Streams::All => (true, true),
        };
        let stream = |ours| if ours { Stdio::piped() } else { Stdio::null() };
        let mut command = line.command();
        command.stdin(stream(pipe)).stdout(stream(pipe)).stderr(stream(errors));
        let child = cores.on_server_core(|| command.spawn());
        let child = child.map_err(|error| format!("{}: {error}", line.0.join(" ")))?;
        Ok(Self { child })
    }

    /// Starts a server of HTTP, whose address is added, and waits until it listens.
    pub fn listen(cores: Cores, line: &CommandLine) -> Result<(Self, SocketAddr), String> {
        let address = unused_address().map_err(|error| error.to_string())?;
        let line = line.and(&[&address.to_string()]);
        let mut process = Self::start(cores, &line, Streams::Closed)?;
        process.wait_for(address)?;
        Ok((process, address))
    }

    /// Waits until it listens there.
    pub fn wait_for(&mut self, address: SocketAddr) -> Result<(), String> {
        let start = Instant::now();
        while TcpStream::connect(address).is_err() {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(format!("it ended before it listened: {status}"));
            }
            if start.elapsed() > START {
                return Err(format!("it does not listen after {} seconds", START.as_secs()));
            }
            thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }

    /// The process itself.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// The time that it has spent on a core, all threads together.
    pub fn cpu_time(&self) -> Duration {
        let threads = fs::read_dir(self.file("task")).into_iter().flatten().flatten();
        let spent = threads.filter_map(|thread| {
            let stat = fs::read_to_string(thread.path().join("schedstat")).ok()?;
            nanos_run(&stat)
        });
        Duration::from_nanos(spent.sum())
    }

    /// Its memory that is in the machine, in bytes.
    pub fn resident(&self) -> u64 {
        let status = fs::read_to_string(self.file("status")).unwrap_or_default();
        resident_bytes(&status).unwrap_or_default()
    }

    /// Kills it unless the guard is dropped before the time is up, so that no read waits for ever.
    pub fn guard(&self, limit: Duration) -> Guard {
        let (alive, dropped) = mpsc::channel::<()>();
        let pid = self.pid();
        thread::spawn(move || {
            if dropped.recv_timeout(limit) == Err(RecvTimeoutError::Timeout)
                && let Some(pid) = pid
            {
                let _ = kill_process(pid, Signal::KILL);
            }
        });
        Guard { _alive: alive }
    }

    /// Tells it to end, waits until it has, and says what it had to say on standard error.
    pub fn end(mut self) -> Result<String, String> {
        let _guard = self.guard(START);
        let mut heard = String::new();
        drop(self.child.stdin.take());
        if let Some(pid) = self.pid() {
            let _ = kill_process(pid, Signal::TERM);
        }
        if let Some(mut errors) = self.child.stderr.take() {
            errors.read_to_string(&mut heard).map_err(|error| error.to_string())?;
        }
        self.child.wait().map_err(|error| error.to_string())?;
        Ok(heard)
    }

    fn pid(&self) -> Option<Pid> {
        i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
    }

    fn file(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{name}", self.child.id()))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        if let (Ok(None), Some(pid)) = (self.child.try_wait(), self.pid()) {
            let _ = kill_process(pid, Signal::TERM);
        }
        let start = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) {
            if start.elapsed() > END {
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// While it lives, a process has time. See [`Process::guard`].
pub struct Guard {
    _alive: Sender<()>,
}

/// Whether a program of that name can be started.
pub fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// An address of this machine where nobody listens.
pub fn unused_address() -> io::Result<SocketAddr> {
    TcpListener::bind("127.0.0.1:0")?.local_addr()
}

/// How long a thread ran, from its `schedstat`.
fn nanos_run(stat: &str) -> Option<u64> {
    stat.split_ascii_whitespace().next()?.parse().ok()
}

fn resident_bytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_thread_comes_first() {
        assert_eq!(nanos_run("1234567 89 10\n"), Some(1_234_567));
        assert_eq!(nanos_run(""), None);
    }

    #[test]
    fn memory_is_told_in_bytes() {
        assert_eq!(resident_bytes("VmSize:\t  9 kB\nVmRSS:\t    1224 kB\n"), Some(1224 * 1024));
        assert_eq!(resident_bytes("VmSize:\t  9 kB\n"), None);
    }

    #[test]
    fn a_guard_ends_what_takes_too_long() {
        let line = CommandLine::new(Path::new("sleep"), &["60"]);
        let mut sleeper = Process::start(Cores::shared(), &line, Streams::Closed).unwrap();
        let start = Instant::now();
        let _guard = sleeper.guard(Duration::from_millis(10));
        assert!(!sleeper.child().wait().unwrap().success());
        assert!(start.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn a_dropped_process_is_gone() {
        let line = CommandLine::new(Path::new("sleep"), &["60"]);
        let sleeper = Process::start(Cores::shared(), &line, Streams::Closed).unwrap();
        let pid = sleeper.pid().unwrap();
        drop(sleeper);
        assert!(rustix::process::test_kill_process(pid).is_err());
    }
}
