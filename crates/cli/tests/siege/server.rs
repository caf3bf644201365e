//! The binary under attack, and what it needs of the system.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

pub(crate) const MB: u64 = 1 << 20;

/// The memory that the servers under attack may use for requests and answers.
pub(crate) const BUDGET: u64 = 96 * MB;

/// The memory that a server may need beyond that, and keep a minute later.
pub(crate) const SLACK: u64 = 64 * MB;

/// The size of the resource `file:///big`.
pub(crate) const BIG: usize = 8_000_000;

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) pid: u32,
    pub(crate) folder: TempDir,
    child: Child,
    said: Arc<Mutex<String>>,
    /// Memory at the start.
    start: u64,
    _alone: MutexGuard<'static, ()>,
}

impl Server {
    /// Starts the binary; `limit` is the hard limit of its open files.
    pub(crate) fn start_with(configuration: &str, limit: Option<u32>) -> Self {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = TempDir::new().unwrap();
        fs::write(folder.path().join("big.txt"), vec![b'x'; BIG]).unwrap();
        let file = format!(
            "[server]\nname = \"siege\"\n{configuration}\n[[resource]]\nuri = \"file:///big\"\nfile \
             = \"big.txt\"\n[[resource]]\nuri = \"text://small\"\ntext = \"small\"\n"
        );
        fs::write(folder.path().join("sabir.toml"), file).unwrap();
        write_articles(&folder.path().join("content"));
        let ulimit = limit.map_or(String::new(), |limit| format!("ulimit -n {limit} && "));
        let mut child = Command::new("sh")
            .arg("-c")
            .arg(format!("{ulimit}exec \"$0\" serve --http 127.0.0.1:0"))
            .arg(env!("CARGO_BIN_EXE_sabir"))
            .current_dir(folder.path())
            .env_remove("SABIR_LOG")
            .env("XDG_CACHE_HOME", folder.path().join("cache"))
            .env("ANN", "ann-token")
            .env("BOB", "bob-token")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut begun = String::new();
        let address = loop {
            let line = lines.next().unwrap().unwrap();
            if let Some(rest) = line.strip_prefix("serving `siege` on http://") {
                break rest.strip_suffix("/mcp").unwrap().parse().unwrap();
            }
            begun += &(line + "\n");
        };
        let said = Arc::new(Mutex::new(begun));
        let log = said.clone();
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                *log.lock().unwrap() += &(line + "\n");
            }
        });
        let pid = child.id();
        let start = memory(pid, "VmRSS");
        Self { address, pid, folder, child, said, start, _alone: alone }
    }

    pub(crate) fn start(configuration: &str) -> Self {
        let limits = format!("[limits]\nmemory = \"{BUDGET}B\"\ngrace = \"1s\"\n");
        Self::start_with(&format!("{limits}{configuration}"), None)
    }

    /// The standard error of the server.
    pub(crate) fn said(&self) -> String {
        self.said.lock().unwrap().clone()
    }

    /// Begins the period that [`Server::check_peak`] checks.
    pub(crate) fn forget_peak(&self) {
        // Resets `VmHWM` (proc_pid_clear_refs(5)).
        fs::write(format!("/proc/{}/clear_refs", self.pid), "5").unwrap();
    }

    /// The most memory that it had stayed within the budget; how many MB it was.
    pub(crate) fn check_peak(&self, what: &str) -> u64 {
        let grown = memory(self.pid, "VmHWM").saturating_sub(self.start) / MB;
        eprintln!("{what}: {grown} MB at the most");
        assert!(grown <= (BUDGET + SLACK) / MB, "{what}: {grown} MB at the most");
        grown
    }

    /// Within a minute it has given the memory back; how many MB it keeps.
    pub(crate) fn check_rest(&self, what: &str) -> u64 {
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            let kept = memory(self.pid, "VmRSS").saturating_sub(self.start) / MB;
            if kept <= SLACK / MB {
                eprintln!("{what}: {kept} MB kept");
                return kept;
            }
            assert!(Instant::now() < end, "{what}: {kept} MB kept after a minute");
            thread::sleep(Duration::from_millis(250));
        }
    }

    /// Alive, without a panic, and it answers.
    pub(crate) fn check_alive(&mut self) {
        assert_eq!(self.child.try_wait().unwrap(), None, "it has ended: {}", self.said());
        assert!(!self.said().contains("panicked"), "{}", self.said());
        assert_eq!(crate::client::health(self.address), 200);
        assert_eq!(crate::client::Client::connect(self.address).read("text://small"), "small");
    }

    pub(crate) fn files(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.pid)).unwrap().count()
    }

    pub(crate) fn threads(&self) -> u64 {
        status(self.pid, "Threads")
    }

    /// The number of processes below it: the supervisor, and what commands run.
    pub(crate) fn children(&self) -> usize {
        let processes = fs::read_dir("/proc").unwrap().filter_map(|entry| {
            let pid = entry.ok()?.file_name().to_str()?.parse().ok()?;
            Some((pid, status(pid, "PPid")))
        });
        let parents: HashMap<u32, u64> = processes.collect();
        let is_below = |mut pid: u32| {
            while let Some(parent) = parents.get(&pid).and_then(|pid| u32::try_from(*pid).ok()) {
                if parent == self.pid {
                    return true;
                }
                pid = parent;
            }
            false
        };
        // Monitors of programs are kept for the next ones.
        let is_ours = |pid: u32| {
            let title = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            title.starts_with(b"supervisor of")
        };
        parents.keys().filter(|pid| is_below(**pid) && !is_ours(**pid)).count()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have exited.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Articles of made-up words, and one with many equal headings, for servers that are told of them.
fn write_articles(folder: &Path) {
    fs::create_dir(folder).unwrap();
    fs::write(folder.join("headings.md"), "# a\n".repeat(20_000)).unwrap();
    for article in 0..200 {
        let words: Vec<_> = (0..200).map(|n| word(article * 31 + n * 7)).collect();
        fs::write(folder.join(format!("{article}.md")), words.join(" ")).unwrap();
    }
}

/// One of ten thousand words.
pub(crate) fn word(number: usize) -> String {
    const PARTS: [&str; 10] = ["ba", "den", "ko", "lur", "mi", "nos", "pe", "rat", "su", "vin"];
    let digits = [number / 1000, number / 100, number / 10, number];
    digits.map(|digit| PARTS[digit % 10]).concat()
}

/// A field of `/proc/PID/status`.
fn status(pid: u32, field: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}

/// Memory in bytes: `VmRSS` now, `VmHWM` at the most.
pub(crate) fn memory(pid: u32, field: &str) -> u64 {
    status(pid, field) << 10
}
