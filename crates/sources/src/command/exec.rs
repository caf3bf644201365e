//! Applies limits and a sandbox to a program.
//!
//! They must be applied between `fork` and the program's first instruction. Running our code there
//! would be unsafe; so the monitor starts this executable in a hidden mode, which applies them to
//! itself and then executes the program. This costs a few milliseconds, only for commands with limits
//! or a sandbox.
//!
//! If anything cannot be applied, the program is not started: the launcher writes the reason to
//! standard error after a token that only its caller knows, and exits with code 125. So a program
//! cannot pretend that it was not started.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use sabir_supervisor::{StartError, current_executable};

use super::program::{Files, Limits, Program, Sandbox, Sockets};
use super::sandbox;

/// The first argument that selects the hidden mode.
pub(crate) const EXEC: &str = "__exec";

/// The exit code of the launcher when it could not start the program.
const NOT_STARTED: u8 = 125;

/// The command line of the launcher for a program.
pub(super) struct Launcher {
    pub(super) path: PathBuf,
    pub(super) args: Vec<OsString>,
    token: String,
}

/// Why the launcher did not start the program.
#[derive(Debug)]
pub(super) enum Refused {
    /// A limit or the sandbox could not be applied.
    Sandbox(String),
    /// The program could not be started.
    Start(StartError),
}

impl Launcher {
    /// The launcher for a call, if its program has limits or a sandbox.
    pub(super) fn new(program: &Program, args: &[OsString]) -> Option<Self> {
        if program.limits == Limits::default() && program.sandbox.is_none() {
            return None;
        }
        let token = format!("{:016x}", random());
        let mut all: Vec<OsString> = vec![EXEC.into(), token.clone().into()];
        all.extend(encode(&program.limits, program.sandbox.as_ref()));
        all.push("--".into());
        all.push(program.path.clone().into());
        all.extend_from_slice(args);
        Some(Self { path: current_executable(), args: all, token })
    }

    /// Why the program was not started, from the exit code and output of the launcher.
    pub(super) fn refused(&self, code: i32, stderr: &[u8], program: &Program) -> Option<Refused> {
        if code != i32::from(NOT_STARTED) {
            return None;
        }
        let reason = stderr.strip_prefix(self.token.as_bytes())?;
        let reason = String::from_utf8_lossy(reason).trim().to_owned();
        Some(match reason.strip_prefix("exec ").and_then(|errno| errno.parse().ok()) {
            Some(errno) => {
                Refused::Start(StartError::from_errno(errno, &program.path, &program.cwd))
            }
            None => Refused::Sandbox(reason),
        })
    }
}

/// A number that the program cannot know.
fn random() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::time::Instant::now())
}

fn encode(limits: &Limits, sandbox: Option<&Sandbox>) -> Vec<OsString> {
    let number = |key: &str, n: Option<u64>| n.map(|n| OsString::from(format!("{key}={n}")));
    let path = |key: &str, path: &Path| {
        let mut word = OsString::from(format!("{key}="));
        word.push(path);
        word
    };
    let mut words = Vec::new();
    words.extend(number("memory", limits.memory));
    words.extend(number("cpu", limits.cpu_seconds));
    words.extend(number("file", limits.file_size));
    if let Some(sandbox) = sandbox {
        words.push("sandbox=".into());
        words.extend((!sandbox.network).then(|| "offline=".into()));
        words.extend(sandbox.metadata.then(|| "metadata=".into()));
        match &sandbox.sockets {
            Sockets::None => {}
            Sockets::All => words.push("all-sockets=".into()),
            Sockets::Named(sockets) => {
                words.push("named-sockets=".into());
                words.extend(sockets.iter().map(|socket| path("socket", socket)));
            }
        }
        if let Some(files) = &sandbox.files {
            words.push("files=".into());
            words.extend(files.read.iter().map(|read| path("read", read)));
            words.extend(files.write.iter().map(|write| path("write", write)));
        }
    }
    words
}

/// The launcher: applies the limits and the sandbox in its arguments, and executes the program.
/// Returns only if it cannot.
pub(crate) fn exec(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    let token = args.next().unwrap_or_default().into_vec();
    let reason = match (decode(&mut args), args.next()) {
        (Some((limits, sandbox)), Some(program)) => {
            // Allocated before the memory limit applies.
            let mut run = Command::new(&program);
            run.args(args);
            match apply(&limits, sandbox.as_ref(), Path::new(&program)) {
                Ok(()) => format!("exec {}", run.exec().raw_os_error().unwrap_or(0)),
                Err(reason) => reason,
            }
        }
        _ => "invalid arguments of the launcher".to_owned(),
    };
    let _ = io::stderr().write_all(&[&token[..], b" ", reason.as_bytes()].concat());
    ExitCode::from(NOT_STARTED)
}

fn apply(limits: &Limits, sandbox: Option<&Sandbox>, program: &Path) -> Result<(), String> {
    // An additional safeguard: the monitor stops this process, or else the supervisor process.
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
        .map_err(|error| format!("cannot set the parent-death signal: {error}"))?;
    if let Some(sandbox) = sandbox {
        sandbox::enter(sandbox, program)?;
    }
    limit("core dumps", Resource::Core, Some(0), 0)?;
    limit("file size", Resource::Fsize, limits.file_size, 0)?;
    limit("CPU time", Resource::Cpu, limits.cpu_seconds, 1)?;
    limit("memory", Resource::As, limits.memory, 0)
}

/// Sets a soft limit, and a hard limit `above` it. A lower limit of our own stays.
fn limit(name: &str, resource: Resource, value: Option<u64>, above: u64) -> Result<(), String> {
    let Some(value) = value else { return Ok(()) };
    let lower = |value: u64, ours: Option<u64>| Some(ours.map_or(value, |ours| value.min(ours)));
    let ours = getrlimit(resource).maximum;
    let maximum = lower(value.saturating_add(above), ours);
    let new = Rlimit { current: lower(value, ours), maximum };
    setrlimit(resource, new).map_err(|error| format!("cannot limit {name}: {error}"))
}

/// Decodes what [`encode`] wrote, up to the `--`.
fn decode(words: &mut impl Iterator<Item = OsString>) -> Option<(Limits, Option<Sandbox>)> {
    let mut limits = Limits::default();
    let mut sandbox = None;
    loop {
        let word = words.next()?;
        if word == OsStr::new("--") {
            return Some((limits, sandbox));
        }
        let bytes = word.as_bytes();
        let at = bytes.iter().position(|byte| *byte == b'=')?;
        let value = OsStr::from_bytes(&bytes[at + 1..]);
        let number = || value.to_str()?.parse().ok();
        match &bytes[..at] {
            b"memory" => limits.memory = Some(number()?),
            b"cpu" => limits.cpu_seconds = Some(number()?),
            b"file" => limits.file_size = Some(number()?),
            b"sandbox" => sandbox = Some(Sandbox::default()),
            key => decode_sandbox(key, value, sandbox.as_mut()?)?,
        }
    }
}

fn decode_sandbox(key: &[u8], value: &OsStr, sandbox: &mut Sandbox) -> Option<()> {
    match (key, &mut sandbox.files, &mut sandbox.sockets) {
        (b"offline", ..) => sandbox.network = false,
        (b"metadata", ..) => sandbox.metadata = true,
        (b"all-sockets", _, sockets) => *sockets = Sockets::All,
        (b"named-sockets", _, sockets) => *sockets = Sockets::Named(Vec::new()),
        (b"socket", _, Sockets::Named(sockets)) => sockets.push(value.into()),
        (b"files", files, _) => *files = Some(Files::default()),
        (b"read", Some(files), _) => files.read.push(value.into()),
        (b"write", Some(files), _) => files.write.push(value.into()),
        _ => return None,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_and_sandbox_are_decoded_as_they_were_encoded() {
        let limits = Limits { memory: Some(1 << 40), cpu_seconds: Some(0), file_size: None };
        let files = Files {
            read: vec!["/a=b".into(), "/--".into()],
            write: vec![OsString::from_vec(b"/\xff".to_vec()).into()],
        };
        let sockets = Sockets::Named(vec!["/s=1".into(), "/--".into()]);
        let whole = Sandbox {
            files: Some(files),
            metadata: true,
            network: false,
            sockets: sockets.clone(),
        };
        for (limits, sandbox) in [
            (limits.clone(), Some(whole)),
            (
                Limits::default(),
                Some(Sandbox { files: Some(Files::default()), ..Sandbox::default() }),
            ),
            (Limits::default(), Some(Sandbox { network: false, ..Sandbox::default() })),
            (limits.clone(), Some(Sandbox { sockets: Sockets::All, ..Sandbox::default() })),
            (limits.clone(), Some(Sandbox { sockets, ..Sandbox::default() })),
            (limits.clone(), Some(Sandbox::default())),
            (limits, None),
        ] {
            let mut words = encode(&limits, sandbox.as_ref());
            words.extend(["--".into(), "rest".into()]);
            let mut words = words.into_iter();
            assert_eq!(decode(&mut words), Some((limits, sandbox)));
            assert_eq!(words.next(), Some("rest".into()));
        }
    }

    #[test]
    fn unknown_arguments_of_the_launcher_are_refused() {
        for word in ["memory=lots", "nice=10", "offline=", "read=/x", "--x"] {
            let mut words = [word, "--"].into_iter().map(OsString::from);
            assert_eq!(decode(&mut words), None, "{word}");
        }
        assert_eq!(decode(&mut std::iter::empty()), None);
    }
}
