//! The audit log: one line of JSON per call, with the caller, the method and the outcome.
//!
//! A thread writes the lines, so that a slow disk delays no call. They contain callers, never
//! tokens.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use sabir_engine::{CallEnd, Decision, OverseenCall};
use sabir_wire::Method;
use serde_json::{Value, json};

/// Lines that wait for the disk. When full, further ones are lost, and their number is logged.
const MAX_WAITING: usize = 10_000;

/// The longest name or outcome in a line, in bytes. A longer one is cut.
const MAX_TEXT: usize = 1000;

/// The longest arguments in a line, in bytes. Longer ones are left out.
const MAX_ARGUMENTS: usize = 64 << 10;

/// How calls are logged.
#[derive(Clone, Debug)]
pub struct AuditSettings {
    /// The file; standard error without one.
    pub file: Option<PathBuf>,
    /// The size at which a file is renamed to `FILE.1` and a new one is started.
    pub rotate: u64,
    /// How many renamed files are kept.
    pub keep: u32,
    /// Whether the arguments of tools are logged.
    pub arguments: bool,
}

impl Default for AuditSettings {
    fn default() -> Self {
        Self { file: None, rotate: 64 << 20, keep: 5, arguments: false }
    }
}

/// Writes the audit log. Its destructor writes the remaining lines.
#[derive(Debug)]
pub(crate) struct Audit {
    lines: Option<SyncSender<String>>,
    writer: Option<JoinHandle<()>>,
    arguments: bool,
    lost: AtomicU64,
}

impl Audit {
    pub(crate) fn open(settings: &AuditSettings) -> io::Result<Self> {
        let log = match &settings.file {
            None => Log::StandardError,
            Some(path) => Log::open(path, settings)?,
        };
        let (lines, received) = sync_channel(MAX_WAITING);
        let writer = std::thread::Builder::new().name("audit".into());
        let writer = writer.spawn(move || write_all(log, &received))?;
        let (lines, writer) = (Some(lines), Some(writer));
        Ok(Self { lines, writer, arguments: settings.arguments, lost: AtomicU64::new(0) })
    }

    pub(crate) fn record(&self, call: &OverseenCall, end: &CallEnd) {
        let is_call =
            matches!(call.method, Method::CallTool | Method::GetPrompt | Method::ReadResource);
        if !is_call && end.decision == Decision::Allowed {
            return;
        }
        let line = format!("{}\n", self.line(call, end));
        let Some(lines) = &self.lines else { return };
        match lines.try_send(line) {
            Ok(()) => {
                let lost = self.lost.swap(0, Ordering::Relaxed);
                if lost > 0 {
                    tracing::error!("{lost} lines of the audit log were lost (the disk is slow)");
                }
            }
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                self.lost.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    fn line(&self, call: &OverseenCall, end: &CallEnd) -> Value {
        let (decision, rule) = match &end.decision {
            Decision::Allowed => ("allowed", None),
            Decision::Denied(needed) => ("denied", Some(format!("scopes {}", needed.join(" ")))),
            Decision::Limited(rule) => ("limited", Some(format!("limit {rule}"))),
        };
        let mut line = json!({
            "time": format!("{:.3}", jiff::Timestamp::now()),
            "issuer": call.caller.issuer(),
            "subject": call.caller.subject(),
            "method": call.method.name(),
            "name": call.name.as_deref().map(cut),
            "source": call.source.as_deref(),
            "decision": decision,
            "outcome": cut(&end.outcome),
            "ms": (end.duration.as_secs_f64() * 1e6).round() / 1e3,
            "bytes": end.bytes,
        });
        if let Some(rule) = rule {
            line["rule"] = rule.into();
        }
        if let Some(address) = call.caller.address() {
            line["address"] = address.to_string().into();
        }
        let arguments = call.arguments.as_ref().filter(|_| self.arguments);
        let arguments = arguments.filter(|arguments| arguments.text().len() <= MAX_ARGUMENTS);
        if let Some(arguments) = arguments.and_then(|arguments| arguments.read::<Value>().ok()) {
            line["arguments"] = arguments;
        }
        line
    }
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_TEXT)]
}

impl Drop for Audit {
    fn drop(&mut self) {
        drop(self.lines.take());
        if let Some(writer) = self.writer.take() {
            // The thread ends when it has written everything.
            let _ = writer.join();
        }
    }
}

fn write_all(mut log: Log, lines: &Receiver<String>) {
    let mut lost = 0_u64;
    for line in lines {
        match log.write(&line) {
            Ok(()) => tell_lost(&mut lost),
            Err(error) => {
                if lost == 0 {
                    tracing::error!("cannot write the audit log: {error}");
                }
                lost += 1;
            }
        }
    }
    tell_lost(&mut lost);
}

fn tell_lost(lost: &mut u64) {
    if *lost > 0 {
        tracing::error!("{lost} lines of the audit log were lost (they could not be written)");
        *lost = 0;
    }
}

enum Log {
    StandardError,
    File(LogFile),
}

struct LogFile {
    path: PathBuf,
    /// `None` after the file was renamed, until the next one is opened.
    file: Option<File>,
    size: u64,
    rotate: u64,
    keep: u32,
    /// The file cannot be renamed. It grows until it can.
    is_stuck: bool,
}

impl Log {
    fn open(path: &Path, settings: &AuditSettings) -> io::Result<Self> {
        let (file, size) = append(path)?;
        let (rotate, keep) = (settings.rotate, settings.keep);
        let (path, file) = (path.to_owned(), Some(file));
        Ok(Self::File(LogFile { path, file, size, rotate, keep, is_stuck: false }))
    }

    fn write(&mut self, line: &str) -> io::Result<()> {
        match self {
            Self::StandardError => io::stderr().write_all(line.as_bytes()),
            Self::File(file) => file.write(line),
        }
    }
}

impl LogFile {
    fn write(&mut self, line: &str) -> io::Result<()> {
        let length = line.len() as u64;
        if self.file.is_some() && self.size > 0 && self.size + length > self.rotate {
            self.rename();
        }
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                let (file, size) = append(&self.path)?;
                self.size = size;
                self.file.insert(file)
            }
        };
        file.write_all(line.as_bytes())?;
        self.size += length;
        Ok(())
    }

    fn rename(&mut self) {
        let renamed = rename(&self.path, self.keep);
        match &renamed {
            Ok(()) => self.file = None,
            Err(error) if !self.is_stuck => {
                tracing::error!("cannot rotate the audit log: {error}");
            }
            Err(_) => {}
        }
        self.is_stuck = renamed.is_err();
    }
}

/// Opens a file for appending, readable by its owner only.
fn append(path: &Path) -> io::Result<(File, u64)> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    let size = file.metadata()?.len();
    Ok((file, size))
}

/// Renames `FILE` to `FILE.1`, `FILE.1` to `FILE.2` and so on; the last one is replaced. Can be
/// repeated after a failure: files after a missing number stay.
fn rename(path: &Path, keep: u32) -> io::Result<()> {
    let numbered = |number: u32| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{number}"));
        PathBuf::from(name)
    };
    let last = (1..keep).find(|number| !numbered(*number).exists()).unwrap_or(keep);
    for number in (1..last).rev() {
        std::fs::rename(numbered(number), numbered(number + 1))?;
    }
    let renamed = match keep {
        0 => std::fs::remove_file(path),
        _ => std::fs::rename(path, numbered(1)),
    };
    match renamed {
        // Somebody else has moved or removed it.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        renamed => renamed,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sabir_wire::{Caller, Raw, Remote};

    use super::*;

    fn call() -> OverseenCall {
        OverseenCall {
            caller: Caller::new("https://i", "ann"),
            method: Method::CallTool,
            name: Some("deploy".into()),
            source: Some("command deploy".into()),
            arguments: Raw::parse(r#"{"to":"prod"}"#).ok(),
        }
    }

    fn end(decision: Decision) -> CallEnd {
        let duration = Duration::from_micros(1500);
        CallEnd { decision, outcome: "ok".into(), duration, bytes: 7 }
    }

    fn written(settings: AuditSettings, record: impl FnOnce(&Audit)) -> Vec<Value> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let settings = AuditSettings { file: Some(path.clone()), ..settings };
        let audit = Audit::open(&settings).unwrap();
        record(&audit);
        drop(audit);
        let text = std::fs::read_to_string(path).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn a_line_has_the_caller_the_call_and_the_outcome() {
        let lines = written(AuditSettings::default(), |audit| {
            audit.record(&call(), &end(Decision::Allowed));
            audit.record(&call(), &end(Decision::Denied(vec!["a".into(), "b".into()])));
            let remote = Remote { connection: 1, address: Some([192, 0, 2, 1].into()) };
            let caller = call().caller.at(remote.into());
            let limited = OverseenCall { caller, ..call() };
            audit.record(&limited, &end(Decision::Limited("2 in 1s".into())));
            let list = OverseenCall { method: Method::ListTools, ..call() };
            audit.record(&list, &end(Decision::Allowed));
        });
        assert_eq!(lines.len(), 3, "lists are not logged");
        let mut first = lines[0].clone();
        let time = first.as_object_mut().unwrap().remove("time").unwrap();
        let time = time.as_str().unwrap();
        assert!(time.len() == "2026-11-17T06:00:00.123Z".len() && time.ends_with('Z'), "{time}");
        let expected = json!({
            "issuer": "https://i", "subject": "ann", "method": "tools/call", "name": "deploy",
            "source": "command deploy", "decision": "allowed", "outcome": "ok", "ms": 1.5,
            "bytes": 7,
        });
        assert_eq!(first, expected);
        assert_eq!(
            (&lines[1]["decision"], &lines[1]["rule"]),
            (&json!("denied"), &json!("scopes a b"))
        );
        assert_eq!(lines[2]["rule"], "limit 2 in 1s");
        assert_eq!(lines[2]["address"], "192.0.2.1");
    }

    #[test]
    fn arguments_are_logged_where_they_are_asked_for() {
        let settings = AuditSettings { arguments: true, ..AuditSettings::default() };
        let lines = written(settings, |audit| {
            audit.record(&call(), &end(Decision::Allowed));
            let long = format!("{{\"x\":\"{}\"}}", "y".repeat(MAX_ARGUMENTS));
            let long = OverseenCall { arguments: Raw::parse(long).ok(), ..call() };
            audit.record(&long, &end(Decision::Allowed));
        });
        assert_eq!(lines[0]["arguments"], json!({ "to": "prod" }));
        assert_eq!(lines[1].get("arguments"), None);
    }

    #[test]
    fn files_are_rotated_and_the_oldest_goes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit");
        let settings =
            AuditSettings { file: Some(path), rotate: 300, keep: 2, ..AuditSettings::default() };
        let audit = Audit::open(&settings).unwrap();
        for _ in 0..10 {
            audit.record(&call(), &end(Decision::Allowed));
        }
        drop(audit);
        let mut names: Vec<_> = std::fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, ["audit", "audit.1", "audit.2"]);
    }

    /// A log whose files hold two of these lines, and keep two older files.
    fn small(folder: &Path) -> Log {
        std::fs::create_dir_all(folder).unwrap();
        let settings = AuditSettings { rotate: 10, keep: 2, ..AuditSettings::default() };
        Log::open(&folder.join("audit"), &settings).unwrap()
    }

    const LINE: &str = "line\n";

    #[test]
    fn a_rotation_without_a_next_file_leaves_the_old_ones_and_goes_on_later() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("logs");
        let mut log = small(&folder);
        let text = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
        for _ in 0..2 {
            log.write(LINE).unwrap();
        }
        std::fs::remove_dir_all(&folder).unwrap();
        for _ in 0..3 {
            assert!(log.write(LINE).is_err());
        }
        std::fs::create_dir(&folder).unwrap();
        for name in ["audit.1", "audit.2"] {
            std::fs::write(folder.join(name), name).unwrap();
        }
        log.write(LINE).unwrap();
        assert_eq!([text("audit"), text("audit.1"), text("audit.2")], [LINE, "audit.1", "audit.2"]);
    }

    #[test]
    fn a_file_that_cannot_be_renamed_grows_and_older_files_stay() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = small(folder.path());
        let place = |name: &str| folder.path().join(name);
        // A file cannot replace a folder.
        std::fs::create_dir(place("audit.2")).unwrap();
        std::fs::write(place("audit.1"), "old").unwrap();
        for _ in 0..4 {
            log.write(LINE).unwrap();
        }
        assert_eq!(std::fs::read_to_string(place("audit")).unwrap(), LINE.repeat(4));
        assert_eq!(std::fs::read_to_string(place("audit.1")).unwrap(), "old");
        std::fs::remove_dir(place("audit.2")).unwrap();
        log.write(LINE).unwrap();
        assert_eq!(std::fs::read_to_string(place("audit")).unwrap(), LINE);
        assert_eq!(std::fs::read_to_string(place("audit.2")).unwrap(), "old");
    }
}
