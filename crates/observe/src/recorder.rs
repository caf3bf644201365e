//! Writes every message of every client and of every upstream to a file, as it passes.
//!
//! A line is written at once and by the thread that moves the message, so that the order of the
//! lines is the order of the events, and a process that is killed leaves all of them behind.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Instant;

use bytes::Bytes;
use rustc_hash::FxHashMap;
use sabir_engine::{Ending, Engine, ObservedCall, Observer};
use sabir_wire::{Caller, Era, HttpExchange, Peer, Raw, Tap};
use serde_json::{Map, Value, json};

use crate::mask::Masker;
use crate::recording::FORMAT;

/// Records the messages of clients and upstreams while it is switched on.
#[derive(Debug)]
pub struct Recorder {
    server: String,
    /// Whether clients are told to expect changes.
    reloads: bool,
    /// The bytes of one recording.
    limit: u64,
    /// Changed only while `output` is locked.
    is_on: AtomicBool,
    output: Mutex<Option<Output>>,
    masker: Masker,
    /// The open links, which are the first events of a new recording.
    links: Mutex<BTreeMap<u64, OpenLink>>,
    /// The schemas of the arguments of running calls, by their numbers.
    schemas: Mutex<FxHashMap<u64, Raw>>,
    engine: OnceLock<Weak<Engine>>,
}

#[derive(Debug)]
struct Output {
    path: PathBuf,
    /// `None` once the recording has ended.
    file: Option<File>,
    started: Instant,
    written: u64,
    /// Bytes that may still be written. When a line does not fit, the recording ends.
    left: u64,
    is_over: bool,
}

/// A recording that is being made, or the last one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecordingState {
    pub(crate) is_on: bool,
    pub(crate) path: PathBuf,
    pub(crate) written: u64,
    /// The recording has reached its limit, or cannot be written.
    pub(crate) is_over: bool,
}

impl Recorder {
    /// A recorder that records nothing yet, and at most `limit` bytes at a time. `reloads` if clients
    /// are told to expect changes.
    pub fn new(server: &str, reloads: bool, limit: u64) -> Arc<Self> {
        Arc::new(Self {
            server: server.to_owned(),
            reloads,
            limit,
            is_on: AtomicBool::new(false),
            output: Mutex::default(),
            masker: Masker::default(),
            links: Mutex::default(),
            schemas: Mutex::default(),
            engine: OnceLock::new(),
        })
    }

    /// Begins a recording in a file that only its owner can read, in place of one that is being made.
    /// A file that is there is replaced.
    pub fn begin(&self, path: &Path) -> io::Result<()> {
        self.begin_with(path, OpenOptions::new().create(true).truncate(true))
    }

    /// Begins a recording like [`begin`](Self::begin), but fails if the path exists, even as a
    /// symbolic link.
    pub(crate) fn begin_new(&self, path: &Path) -> io::Result<()> {
        self.begin_with(path, OpenOptions::new().create_new(true))
    }

    fn begin_with(&self, path: &Path, options: &mut OpenOptions) -> io::Result<()> {
        options.write(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
        let mut file = options.open(path)?;
        // The mode above is for a new file only.
        #[cfg(unix)]
        file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
        let head = json!({
            "recording": FORMAT,
            "sabir": env!("CARGO_PKG_VERSION"),
            "server": self.server,
            "reloads": self.reloads,
            "started": jiff::Timestamp::now().to_string(),
        });
        let head = format!("{head}\n");
        file.write_all(head.as_bytes())?;
        let written = head.len() as u64;
        let (path, left) = (path.to_owned(), self.limit.saturating_sub(written));
        let (file, started) = (Some(file), Instant::now());
        // Links that are opened meanwhile are written once.
        let links = lock(&self.links);
        let mut output = lock(&self.output);
        *output = Some(Output { path, file, started, written, left, is_over: false });
        self.is_on.store(true, Ordering::Release);
        drop(output);
        links.iter().for_each(|(link, open)| self.write("open", &open.members(*link), None));
        Ok(())
    }

    /// Ends the recording. All its lines are already in the file.
    pub fn end(&self) {
        let mut output = lock(&self.output);
        self.is_on.store(false, Ordering::Release);
        if let Some(output) = output.as_mut() {
            output.file = None;
        }
    }

    /// The recording that is being made, or the last one.
    pub(crate) fn state(&self) -> Option<RecordingState> {
        let output = lock(&self.output);
        output.as_ref().map(|output| RecordingState {
            is_on: self.is_on(),
            path: output.path.clone(),
            written: output.written,
            is_over: output.is_over,
        })
    }

    /// Names the engine, whose tools say which of their arguments are secret.
    pub fn watch(&self, engine: &Arc<Engine>) {
        // Only the first call counts.
        let _ = self.engine.set(Arc::downgrade(engine));
    }

    /// Writes a line: an object with these members, and the message as it was.
    fn write(&self, event: &str, members: &Value, message: Option<&str>) {
        if !self.is_on() {
            return;
        }
        let mut line = String::with_capacity(128 + message.map_or(0, str::len));
        for (name, value) in members.as_object().into_iter().flatten() {
            if !value.is_null() {
                line.push_str(&format!(",\"{name}\":{value}"));
            }
        }
        if let Some(message) = message {
            line.push_str(",\"message\":");
            line.push_str(message);
        }
        if let Some(output) = lock(&self.output).as_mut() {
            let at = output.started.elapsed().as_micros();
            output.write(&format!("{{\"at\":{at},\"event\":\"{event}\"{line}}}\n"), at);
            if output.is_over {
                // Later messages are not even looked at.
                self.is_on.store(false, Ordering::Release);
            }
        }
    }

    /// Writes a message without its secrets. `schema` is that of the call that it belongs to, whose
    /// tool may have another name in the message.
    fn message(
        &self,
        event: &str,
        message: &Bytes,
        mut members: Value,
        headers: &[(String, String)],
        schema: Option<&Raw>,
    ) {
        let schema = |name: &str| {
            if let Some(schema) = schema {
                return schema.read::<Value>().ok();
            }
            let engine = self.engine.get().and_then(Weak::upgrade)?;
            let catalog = engine.registry().snapshot();
            catalog.tool(name)?.tool.input_schema.read::<Value>().ok()
        };
        let masked =
            self.masker.apply(members["link"].as_u64().unwrap_or_default(), message, schema);
        if masked.count > 0 {
            members["masked"] = masked.count.into();
        }
        if !headers.is_empty() {
            members["headers"] = self.headers(headers, masked.count > 0);
        }
        match masked.json {
            Some(text) => self.write(event, &members, Some(&text)),
            None => {
                let text = String::from_utf8_lossy(message);
                members["text"] = self.masker.apply_to_text(&text).into();
                self.write(event, &members, None);
            }
        }
    }

    fn headers(&self, headers: &[(String, String)], has_secrets: bool) -> Value {
        let texts = headers.iter().map(|(name, value)| (name.clone(), value.as_str().into()));
        let mut headers: Map<_, _> = texts.collect();
        self.masker.apply_to_headers(&mut headers, has_secrets);
        Value::Object(headers)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The other end of an open link. Most are never recorded, so it is cheap to keep.
#[derive(Debug)]
enum OpenLink {
    /// The way in, and who opened it.
    Client(&'static str, Caller),
    /// The way out, and its name.
    Upstream(&'static str, Box<str>),
}

impl OpenLink {
    fn members(&self, link: u64) -> Value {
        match self {
            Self::Client(transport, caller) => json!({
                "link": link,
                "peer": "client",
                "transport": transport,
                "caller": caller.to_string(),
            }),
            Self::Upstream(transport, name) => json!({
                "link": link,
                "peer": "upstream",
                "transport": transport,
                "name": name,
            }),
        }
    }
}

/// The members of an event that belongs to a link, and to a call if that is known.
fn members(link: u64, call: u64) -> Value {
    match call {
        0 => json!({ "link": link }),
        call => json!({ "link": link, "call": call }),
    }
}

impl Output {
    /// Writes a line. The file is closed when the recording is over.
    fn write(&mut self, line: &str, at: u128) {
        let Some(file) = &mut self.file else { return };
        // Room for the last line is kept.
        const LAST: u64 = 64;
        let length = line.len() as u64;
        let written = if length + LAST > self.left {
            self.is_over = true;
            tracing::warn!("the recording has reached its limit, and ends");
            file.write_all(format!("{{\"at\":{at},\"event\":\"full\"}}\n").as_bytes())
        } else {
            self.left -= length;
            self.written += length;
            file.write_all(line.as_bytes())
        };
        if let Err(error) = written {
            self.is_over = true;
            tracing::error!("cannot write the recording: {error}");
        }
        if self.is_over {
            self.file = None;
        }
    }
}

impl Tap for Recorder {
    fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Acquire)
    }

    fn opened(&self, link: u64, peer: &Peer<'_>) {
        let open = match *peer {
            Peer::Client { transport, caller } => OpenLink::Client(transport, caller.clone()),
            Peer::Upstream { name, transport } => OpenLink::Upstream(transport, name.into()),
            _ => return,
        };
        let mut links = lock(&self.links);
        if self.is_on() {
            self.write("open", &open.members(link), None);
        }
        links.insert(link, open);
    }

    fn received(&self, link: u64, call: u64, message: &Bytes, headers: &[(String, String)]) {
        if self.is_on() {
            self.message("received", message, members(link, call), headers, None);
        }
    }

    fn sent(&self, link: u64, call: u64, message: &Bytes) {
        if self.is_on() {
            let schema = lock(&self.schemas).get(&call).cloned();
            self.message("sent", message, members(link, call), &[], schema.as_ref());
        }
    }

    fn exchanged(&self, link: u64, call: u64, exchange: &HttpExchange) {
        if !self.is_on() {
            return;
        }
        let mut members = members(link, call);
        // Whether an argument is secret is not known here.
        members["headers"] = self.headers(&exchange.request, true);
        members["status"] = exchange.status.into();
        members["response"] = self.headers(&exchange.response, true);
        self.write("http", &members, None);
    }

    fn wrote(&self, link: u64, line: &str) {
        if self.is_on() {
            let text = self.masker.apply_to_text(line);
            self.write("stderr", &json!({ "link": link, "text": text }), None);
        }
    }

    fn closed(&self, link: u64) {
        let mut links = lock(&self.links);
        links.remove(&link);
        if self.is_on() {
            self.write("close", &json!({ "link": link }), None);
        }
    }
}

impl Observer for Recorder {
    fn began(&self, call: &ObservedCall) {
        if let Some(schema) = &call.schema {
            lock(&self.schemas).insert(call.number, schema.clone());
        }
        if !self.is_on() {
            return;
        }
        let client = call.client.as_ref().and_then(|client| client.read::<Value>().ok());
        let members = json!({
            "call": call.number,
            "link": call.link,
            "key": call.key,
            "method": call.method.name(),
            "name": call.name.as_deref(),
            "caller": call.caller.to_string(),
            "client": client,
            "revision": call.revision.date(),
            "era": if call.revision.era() == Era::Modern { "modern" } else { "legacy" },
        });
        self.write("call", &members, None);
    }

    fn ended(&self, call: &ObservedCall, ending: &Ending<'_>) {
        lock(&self.schemas).remove(&call.number);
        if !self.is_on() {
            return;
        }
        let outcome = self.masker.apply_to_text(&ending.outcome.text());
        self.write("end", &json!({ "call": call.number, "outcome": outcome }), None);
    }

    fn answered(&self, number: u64, response: &Bytes) {
        if !self.is_on() {
            return;
        }
        let id = Raw::parse(response.clone()).ok().and_then(|response| response.member("id"));
        let id = id.and_then(|id| id.read::<Value>().ok());
        self.write("answer", &json!({ "call": number, "id": id }), None);
    }
}

#[cfg(test)]
mod tests;
