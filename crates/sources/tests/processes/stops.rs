//! The table of docs/commands.md: which attempts of a program each setting of the sandbox stops.
//!
//! Every cell is an attempt of a real program in a real sandbox. `SABIR_WRITE_DOCS=1` writes the
//! table; otherwise the one in the docs must be the same.

use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use sabir_sources::command::{Files, Program, RunError, Sandbox, Sockets, run};
use sabir_supervisor::{Exit, Supervisor};
use sabir_testkit::leftovers::stat;

use super::{PLAY, script, shell, supervisor, token};

/// Whether this kernel can enforce a sandbox. Otherwise says so, and checks that nothing runs.
pub(super) async fn enforced() -> bool {
    let Err(reason) = Sandbox::default().check() else { return true };
    loudly(&format!("!!! THE SANDBOX WAS NOT TESTED, only that it fails closed: {reason}"));
    let mut program = shell("/");
    program.sandbox = Some(Sandbox::default());
    let refused = run(&supervisor(), &program, script("echo it ran"), None, None).await;
    assert!(matches!(refused, Err(RunError::Sandbox(_))), "{refused:?}");
    false
}

/// Writes a line that the test runner does not capture.
fn loudly(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// The targets of the attempts.
struct Targets {
    folder: tempfile::TempDir,
    supervisor: Supervisor,
    /// A process that Sabir did not start.
    other: Child,
    /// The supervisor process.
    root: i32,
    abstract_name: String,
    tcp: TcpListener,
    _unix: (UnixListener, UnixDatagram, UnixListener),
}

impl Targets {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["read", "write", "outside"] {
            fs::create_dir(folder.path().join(name)).unwrap();
            fs::write(folder.path().join(name).join("file"), "content").unwrap();
        }
        let path = |name: &str| folder.path().join("outside").join(name);
        let abstract_name = format!("sabir-{}", token());
        let address = SocketAddr::from_abstract_name(&abstract_name).unwrap();
        let unix = (
            UnixListener::bind(path("socket")).unwrap(),
            UnixDatagram::bind(path("datagrams")).unwrap(),
            UnixListener::bind_addr(&address).unwrap(),
        );
        let other = Command::new("/bin/cat").stdin(Stdio::piped()).spawn().unwrap();
        let supervisor = supervisor();
        let finish = run(&supervisor, &shell("/"), script("echo $PPID"), None, None).await.unwrap();
        let monitor = String::from_utf8(finish.stdout).unwrap().trim().parse().unwrap();
        let (root, _) = stat(monitor).unwrap();
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        Self { folder, supervisor, other, root, abstract_name, tcp, _unix: unix }
    }

    /// Whether a program in this sandbox succeeds with an attempt.
    async fn succeeds(&self, sandbox: Option<&Sandbox>, attempt: &str) -> bool {
        let (kind, target) = attempt.split_once(' ').unwrap_or((attempt, ""));
        let target = match target {
            "the listener" => self.tcp.local_addr().unwrap().to_string(),
            "the name" => self.abstract_name.clone(),
            "Sabir" => std::process::id().to_string(),
            "the supervisor" => self.root.to_string(),
            "another" => self.other.id().to_string(),
            path => self.folder.path().join(path).to_str().unwrap().to_owned(),
        };
        let mut program = Program::new(PLAY.into(), "/".into());
        program.sandbox = sandbox.cloned();
        let args = ["attempt", kind, &target].map(Into::into).to_vec();
        let finish = run(&self.supervisor, &program, args, None, None).await.unwrap();
        let printed = String::from_utf8_lossy(&finish.stdout);
        assert!(!printed.contains("unknown attempt"), "{printed}");
        match finish.exit {
            Some(Exit::Code(0)) => true,
            Some(Exit::Code(1)) => false,
            other => panic!("{attempt}: {other:?} {printed}"),
        }
    }
}

impl Drop for Targets {
    fn drop(&mut self) {
        let _ = self.other.kill();
        let _ = self.other.wait();
    }
}

/// The columns of the table.
fn settings(folder: &Path) -> [(&'static str, Option<Sandbox>); 6] {
    let files = Files { read: vec![folder.join("read")], write: vec![folder.join("write")] };
    let files = Sandbox { files: Some(files), ..Sandbox::default() };
    [
        ("no `sandbox`", None),
        ("`{}`", Some(Sandbox::default())),
        ("`network = false`", Some(Sandbox { network: false, ..Sandbox::default() })),
        ("`sockets = true`", Some(Sandbox { sockets: Sockets::All, ..Sandbox::default() })),
        ("`read` or `write`", Some(files.clone())),
        ("the same, `metadata = true`", Some(Sandbox { metadata: true, ..files })),
    ]
}

/// The rows: what a program tries, and the ways to try it. A setting stops all of them or none.
const ATTEMPTS: [(&str, &[&str]); 11] = [
    ("read or write a file that is not named", &["read outside/file", "write outside/file"]),
    ("write a file that is named in `read`", &["write read/file"]),
    (
        "change mode, owner, times or extended attributes of such files",
        &[
            "chmod outside/file",
            "chown outside/file",
            "utimes outside/file",
            "xattr outside/file",
            "fchmod read/file",
        ],
    ),
    ("the same in a folder that is named in `write`", &["chmod write/file", "utimes write/file"]),
    ("use TCP, UDP and other networks", &["tcp the listener", "udp"]),
    (
        "connect to a Unix socket that has a path",
        &["unix outside/socket", "unix-datagram outside/datagrams", "unix-pair outside/datagrams"],
    ),
    ("connect to an abstract Unix socket", &["abstract the name"]),
    (
        "signal Sabir, its helper processes or others",
        &["signal Sabir", "signal-parent", "signal the supervisor", "signal another"],
    ),
    ("limit or reprioritize other processes", &["limit another", "priority another"]),
    (
        "read the memory or the environment of other processes",
        &["memory another", "environment another", "environment Sabir"],
    ),
    ("gain privileges (`sudo`)", &["privileges"]),
];

#[tokio::test]
async fn the_table_in_the_docs_is_what_the_sandbox_does() {
    if !enforced().await {
        return;
    }
    let targets = Targets::new().await;
    let settings = settings(targets.folder.path());
    let mut table = format!(
        "| the program tries to | {} |\n|---{}|\n",
        settings.each_ref().map(|(name, _)| *name).join(" | "),
        "|---".repeat(settings.len()),
    );
    for (row, attempts) in ATTEMPTS {
        let mut shown = Vec::new();
        for attempt in attempts {
            // Some file systems have no extended attributes, for example.
            if targets.succeeds(None, attempt).await {
                shown.push(*attempt);
            } else {
                loudly(&format!(
                    "!!! NOT TESTED: this system refuses `{attempt}` even without a sandbox"
                ));
            }
        }
        let mut cells = Vec::new();
        for (name, sandbox) in &settings {
            let mut possible = Vec::new();
            for attempt in &shown {
                possible.push(targets.succeeds(sandbox.as_ref(), attempt).await);
            }
            let all = possible.iter().all(|possible| *possible);
            assert!(all || !possible.contains(&true), "{name}: {shown:?}: {possible:?}");
            cells.push(if all { "possible" } else { "**stopped**" });
        }
        table += &format!("| {row} | {} |\n", cells.join(" | "));
    }
    compare(&table);
}

/// Compares the table with the one in the docs, or writes it there.
fn compare(table: &str) {
    const BEGIN: &str = "<!-- made by crates/sources/tests/processes/stops.rs -->\n\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/commands.md");
    let text = fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("a mark in docs/commands.md");
    let (written, after) = rest.split_once("\n\n").expect("a text after the table");
    if std::env::var_os("SABIR_WRITE_DOCS").is_some() {
        fs::write(&path, format!("{before}{BEGIN}{}\n\n{after}", table.trim_end())).unwrap();
    } else {
        let hint = "SABIR_WRITE_DOCS=1 writes this table to docs/commands.md";
        assert_eq!(written, table.trim_end(), "{hint}");
    }
}

#[tokio::test]
async fn the_strictest_sandbox_leaves_a_program_its_own_affairs() {
    if !enforced().await {
        return;
    }
    let targets = Targets::new().await;
    let files = Files { read: vec![targets.folder.path().join("read")], write: vec![] };
    let strict = Sandbox { files: Some(files), network: false, ..Sandbox::default() };
    for own in ["pair", "own-limit", "own-priority", "read read/file"] {
        assert!(targets.succeeds(Some(&strict), own).await, "{own}");
    }
}

#[tokio::test]
async fn named_sockets_are_the_only_ones_or_the_program_is_not_started() {
    if !enforced().await {
        return;
    }
    let targets = Targets::new().await;
    let named = targets.folder.path().join("outside/socket");
    let sandbox = Sandbox { sockets: Sockets::Named(vec![named]), ..Sandbox::default() };
    if let Err(reason) = sandbox.check() {
        loudly(&format!("!!! NAMED SOCKETS WERE NOT TESTED, only that they fail closed: {reason}"));
        let mut program = shell("/");
        program.sandbox = Some(sandbox);
        let refused = run(&targets.supervisor, &program, script("echo it ran"), None, None).await;
        match refused {
            Err(RunError::Sandbox(why)) => assert!(why.contains("Landlock 9"), "{why}"),
            other => panic!("{other:?}"),
        }
        return;
    }
    assert!(targets.succeeds(Some(&sandbox), "unix outside/socket").await);
    assert!(!targets.succeeds(Some(&sandbox), "unix-datagram outside/datagrams").await);
    assert!(!targets.succeeds(Some(&sandbox), "abstract the name").await);
}

/// System calls that only perl can make without unsafe code; `./test` installs it.
#[tokio::test]
async fn keys_shared_memory_and_io_uring_are_refused_in_every_sandbox() {
    if !enforced().await {
        return;
    }
    let Some(perl) = ["/usr/bin/perl", "/bin/perl"].into_iter().find(|p| Path::new(p).exists())
    else {
        loudly("!!! NOT TESTED: keys, shared memory and io_uring (install perl)");
        return;
    };
    let mut program = Program::new(perl.into(), "/".into());
    let keys = if cfg!(target_arch = "x86_64") { 250 } else { 219 };
    // The code makes a call, removes what it made, and exits with 1 if the call was not permitted.
    for (what, call, remove) in [
        ("shared memory", "shmget(0, 4096, 0600 | 01000)", "shmctl($made, 0, 0)"),
        ("message queues", "msgget(0, 0600 | 01000)", "msgctl($made, 0, 0)"),
        ("io_uring", "syscall(425, 1, 0)", "0"),
        ("keys", &format!("syscall({keys}, 0, -3, 0)"), "0"),
    ] {
        let code = format!("my $made = {call}; my $error = $! + 0; {remove}; exit($error == 1)");
        let args = || vec!["-e".into(), code.clone().into()];
        for (sandbox, exit) in [(None, 0), (Some(Sandbox::default()), 1)] {
            program.sandbox = sandbox;
            let finish = run(&supervisor(), &program, args(), None, None).await.unwrap();
            assert_eq!(finish.exit, Some(Exit::Code(exit)), "{what} {:?}", program.sandbox);
        }
    }
}
