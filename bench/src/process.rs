//! A server as a process: started on its own core, its CPU time and memory read, always ended.
//!
//! Dropping a [`Process`] sends SIGTERM, and SIGKILL if it does not end in time. Where `setpriv` is
//! installed, the kernel kills it when the benchmark itself is killed.

use std::io::Read;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use rustix::process::{Pid, Resource, Signal, getrlimit, kill_process, setrlimit};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

/// How long a server may take to listen, and to end after SIGTERM before it is killed.
const START: Duration = Duration::from_secs(30);
const END: Duration = Duration::from_secs(5);

/// Which cores servers and the load generator run on.
#[derive(Clone, Copy)]
pub struct Cores {
    /// `None`: there is one core, or nothing is pinned.
    pinned: Option<Pinned>,
}

#[derive(Clone, Copy)]
struct Pinned {
    server: CpuSet,
    generator: CpuSet,
    all: CpuSet,
}

impl Cores {
    /// Assigns the first usable core to servers and the second one to the load generator, which is
    /// this thread.
    pub fn split() -> Self {
        let all = sched_getaffinity(None).unwrap_or_default();
        let mut usable = (0..CpuSet::MAX_CPU).filter(|core| all.is_set(*core));
        let pinned = usable.next().zip(usable.next()).map(|(server, generator)| Pinned {
            server: only(server),
            generator: only(generator),
            all,
        });
        let cores = Self { pinned };
        cores.pin_generator();
        cores
    }

    /// Servers and the load generator share all cores, and nothing is pinned.
    pub const fn shared() -> Self {
        Self { pinned: None }
    }

    /// Servers may use all cores, and so may the load generator.
    pub fn undivided(self) -> Self {
        let all = |pinned: Pinned| Pinned { server: pinned.all, generator: pinned.all, ..pinned };
        Self { pinned: self.pinned.map(all) }
    }

    /// The number of cores, if servers have one of them to themselves.
    pub fn count_if_split(self) -> Option<usize> {
        self.pinned.map(|pinned| pinned.all.count() as usize)
    }

    /// Runs `work` on the cores of servers; processes that it starts stay there.
    pub fn on_server_core<T>(self, work: impl FnOnce() -> T) -> T {
        if let Some(pinned) = self.pinned {
            move_to(pinned.server);
        }
        let done = work();
        self.pin_generator();
        done
    }

    /// Moves this thread to the cores of the load generator.
    pub fn pin_generator(self) {
        if let Some(pinned) = self.pinned {
            move_to(pinned.generator);
        }
    }
}

fn only(core: usize) -> CpuSet {
    let mut set = CpuSet::new();
    set.set(core);
    set
}

/// Moves this thread, and with it the processes that it starts from now on.
fn move_to(cores: CpuSet) {
    // Where a container forbids it, the figures vary more but are still valid.
    let _ = sched_setaffinity(None, &cores);
}

/// The CPU time that this thread has used.
pub fn thread_cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// Raises the limit of open files, for thousands of connections.
pub fn raise_file_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, limit);
}

/// A program and its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandLine(Vec<String>);

impl CommandLine {
    /// Creates a command line.
    pub fn new(program: &Path, arguments: &[&str]) -> Self {
        let program = program.to_string_lossy().into_owned();
        let arguments = arguments.iter().map(|argument| (*argument).to_owned());
        Self(std::iter::once(program).chain(arguments).collect())
    }

    /// Returns it with further arguments at the end.
    pub fn and(&self, arguments: &[&str]) -> Self {
        let more = arguments.iter().map(|argument| (*argument).to_owned());
        Self(self.0.iter().cloned().chain(more).collect())
    }

    /// Returns it as the arguments of another program, such as `valgrind --quiet`.
    pub fn under(&self, words: &[&str]) -> Self {
        let words = words.iter().map(|word| (*word).to_owned());
        Self(words.chain(self.0.iter().cloned()).collect())
    }

    /// The program and its arguments.
    pub fn words(&self) -> &[String] {
        &self.0
    }

    fn command(&self) -> Command {
        let mut command = Command::new(self.0.first().map_or("", String::as_str));
        command.args(self.0.iter().skip(1));
        command
    }
}

/// Which standard streams of a process are pipes; the others are `/dev/null`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Streams {
    /// None.
    Closed,
    /// Standard input and output.
    Piped,
    /// Standard error.
    Stderr,
    /// All three.
    All,
}

/// A process that is ended when this is dropped.
pub struct Process {
    child: Child,
}

impl Process {
    /// Starts a process on the cores of servers.
    pub fn start(cores: Cores, line: &CommandLine, streams: Streams) -> Result<Self, String> {
        if is_installed("setpriv") {
            let line = line.under(&["setpriv", "--pdeathsig", "KILL"]);
            return Self::start_bare(cores, &line, streams);
        }
        Self::start_bare(cores, line, streams)
    }

    /// Starts a process without `setpriv`, for measurements of its start.
    pub fn start_bare(cores: Cores, line: &CommandLine, streams: Streams) -> Result<Self, String> {
        let (pipe, errors) = match streams {
            Streams::Closed => (false, false),
            Streams::Piped => (true, false),
            Streams::Stderr => (false, true),
            Streams::All => (true, true),
        };
        let stream = |piped| if piped { Stdio::piped() } else { Stdio::null() };
        let mut command = line.command();
        command.stdin(stream(pipe)).stdout(stream(pipe)).stderr(stream(errors));
        let child = cores.on_server_core(|| command.spawn());
        let child = child.map_err(|error| format!("{}: {error}", line.0.join(" ")))?;
        Ok(Self { child })
    }

    /// Starts an HTTP server and waits until it listens. Its arguments are those of `line`, then the
    /// address, then `further`.
    pub fn start_http(
        cores: Cores,
        line: &CommandLine,
        further: &[&str],
    ) -> Result<(Self, SocketAddr), String> {
        let address = unused_address().map_err(|error| error.to_string())?;
        let line = line.and(&[&address.to_string()]).and(further);
        let mut process = Self::start(cores, &line, Streams::Closed)?;
        process.wait_for(address)?;
        Ok((process, address))
    }

    /// Waits until the process listens on `address`.
    pub fn wait_for(&mut self, address: SocketAddr) -> Result<(), String> {
        let start = Instant::now();
        while TcpStream::connect(address).is_err() {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(format!("the server ended before it listened: {status}"));
            }
            if start.elapsed() > START {
                return Err(format!("the server does not listen (waited {} s)", START.as_secs()));
            }
            thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }

    /// The underlying child process.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// The CPU time of all its threads together.
    pub fn cpu_time(&self) -> Duration {
        let threads = fs::read_dir(self.file("task")).into_iter().flatten().flatten();
        let spent = threads.filter_map(|thread| {
            let stat = fs::read_to_string(thread.path().join("schedstat")).ok()?;
            nanos_run(&stat)
        });
        Duration::from_nanos(spent.sum())
    }

    /// Its resident memory in bytes.
    pub fn resident(&self) -> u64 {
        let status = fs::read_to_string(self.file("status")).unwrap_or_default();
        bytes_of(&status, "VmRSS:").unwrap_or_default()
    }

    /// The highest that its resident memory has been, in bytes.
    pub fn peak(&self) -> u64 {
        let status = fs::read_to_string(self.file("status")).unwrap_or_default();
        bytes_of(&status, "VmHWM:").unwrap_or_default()
    }

    /// Kills the process after `limit` unless the guard is dropped before, so that no read blocks for
    /// ever.
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

    /// Sends SIGTERM, waits until the process has ended, and returns its standard error.
    pub fn end(mut self) -> Result<String, String> {
        let _guard = self.guard(START);
        let mut stderr = String::new();
        drop(self.child.stdin.take());
        if let Some(pid) = self.pid() {
            let _ = kill_process(pid, Signal::TERM);
        }
        if let Some(mut errors) = self.child.stderr.take() {
            errors.read_to_string(&mut stderr).map_err(|error| error.to_string())?;
        }
        self.child.wait().map_err(|error| error.to_string())?;
        Ok(stderr)
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

/// Keeps a process alive. See [`Process::guard`].
pub struct Guard {
    _alive: Sender<()>,
}

/// Whether a program of that name is in `PATH`.
pub fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// A loopback address with an unused port, another one for every caller in this process.
///
/// A port that the system chooses may be chosen again, for another listener or for the end of a
/// connection, before our server has it. These are below the ports that it chooses from.
pub fn unused_address() -> io::Result<SocketAddr> {
    const FIRST: u32 = 10_000;
    const COUNT: u32 = 20_000;
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    for _ in 0..COUNT {
        // Processes that run at the same time begin far from each other.
        let begin = std::process::id().wrapping_mul(97);
        let nth = begin.wrapping_add(TAKEN.fetch_add(1, Ordering::Relaxed)) % COUNT;
        let port = u16::try_from(FIRST + nth).unwrap_or_default();
        if let Ok(listener) = TcpListener::bind(("127.0.0.1", port)) {
            return listener.local_addr();
        }
    }
    Err(io::ErrorKind::AddrInUse.into())
}

/// The CPU time of a thread in nanoseconds, from its `schedstat`.
fn nanos_run(stat: &str) -> Option<u64> {
    stat.split_ascii_whitespace().next()?.parse().ok()
}

/// A line of `/proc/PID/status`, in bytes.
fn bytes_of(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_time_is_the_first_number_of_schedstat() {
        assert_eq!(nanos_run("1234567 89 10\n"), Some(1_234_567));
        assert_eq!(nanos_run(""), None);
    }

    #[test]
    fn resident_memory_is_converted_to_bytes() {
        let status = "VmSize:\t  9 kB\nVmRSS:\t    1224 kB\n";
        assert_eq!(bytes_of(status, "VmRSS:"), Some(1224 * 1024));
        assert_eq!(bytes_of(status, "VmHWM:"), None);
    }

    #[test]
    fn a_guard_kills_a_process_that_takes_too_long() {
        let line = CommandLine::new(Path::new("sleep"), &["60"]);
        let mut sleeper = Process::start(Cores::shared(), &line, Streams::Closed).unwrap();
        let start = Instant::now();
        let _guard = sleeper.guard(Duration::from_millis(10));
        assert!(!sleeper.child().wait().unwrap().success());
        assert!(start.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn a_dropped_process_is_ended() {
        let line = CommandLine::new(Path::new("sleep"), &["60"]);
        let sleeper = Process::start(Cores::shared(), &line, Streams::Closed).unwrap();
        let pid = sleeper.pid().unwrap();
        drop(sleeper);
        assert!(rustix::process::test_kill_process(pid).is_err());
    }
}
