//! The answers to requests of the console, as JSON.

use std::io;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::unfold;
use http::StatusCode;
use sabir_engine::Engine;
use sabir_registry::{Catalog, SourceState};
use sabir_transports::http::{EventStream, Page};
use sabir_wire::{Caller, Raw, Revision};
use serde_json::{Value, json};

use super::{Console, ConsoleSettings, json as page, problem};
use crate::recorder::Recorder;
use crate::timeline::Timeline;

/// How many items of one kind are shown. Further ones are counted.
const MAX_ITEMS: usize = 2_000;

/// How many calls are sent at once.
const BATCH: usize = 500;

/// The pause between two messages: a browser draws no faster.
const PAUSE: Duration = Duration::from_millis(50);

/// How often a stream checks whether the server stops.
const LOOK: Duration = Duration::from_millis(500);

impl Console {
    /// Answers `what` of the console.
    pub(super) fn answer(&self, what: &str, query: &str) -> Page {
        let ConsoleSettings { timeline, engine: weak, .. } = &self.settings;
        let Some(engine) = weak.upgrade() else {
            return problem(StatusCode::SERVICE_UNAVAILABLE, "the server is stopping");
        };
        match what.split_once('/') {
            None if what == "state" => page(StatusCode::OK, &self.state(&engine)),
            None if what == "catalog" => page(StatusCode::OK, &catalog(&engine)),
            None if what == "events" => {
                let after = query.strip_prefix("after=").and_then(|after| after.parse().ok());
                let after = after.unwrap_or(0);
                Page::events(events(timeline.clone(), weak.clone(), after))
            }
            None if what == "why" => page(StatusCode::OK, &self.why(&engine, query)),
            None if what == START => self.record(true),
            None if what == STOP => self.record(false),
            Some(("calls", number)) => {
                let number = number.parse().ok();
                let call = number.and_then(|number| timeline.call(number));
                match call {
                    Some(call) => page(StatusCode::OK, &call),
                    None => problem(StatusCode::NOT_FOUND, "that call was forgotten"),
                }
            }
            _ => problem(StatusCode::NOT_FOUND, "not found"),
        }
    }

    fn state(&self, engine: &Engine) -> Value {
        let sources = engine.registry().status().into_iter().map(|source| {
            let (state, reason) = match source.state {
                SourceState::Added | SourceState::Starting => ("starting", None),
                SourceState::Ready => ("ready", None),
                SourceState::Failed(reason) => ("failed", Some(reason.to_string())),
            };
            json!({
                "name": source.name,
                "state": state,
                "reason": reason,
                "summary": source.summary,
                "condition": source.condition,
                "problems": source.problems,
            })
        });
        let sources: Vec<_> = sources.collect();
        let server = &engine.settings().server;
        json!({
            "server": { "name": server.name, "version": server.version },
            "sabir": env!("CARGO_PKG_VERSION"),
            "endpoint": self.settings.endpoint,
            "url": self.settings.url,
            "newest": Revision::NEWEST.date(),
            "sources": sources,
            "http": self.metrics.http_counts().map(|stats| json!({
                "connections": stats.connections,
                "streams": stats.streams,
                "sessions": stats.sessions,
            })),
            "recording": self.recording(),
            "connect": self.settings.connect,
        })
    }
}

/// Begin and end a recording.
const START: &str = "record-start";
const STOP: &str = "record-stop";

/// Whether it is an action, which needs a POST.
pub(super) fn is_action(what: &str) -> bool {
    matches!(what, START | STOP)
}

impl Console {
    /// Whether a client sees a tool, and why: by the caller of one of its calls, and by the list of
    /// tools that it last got.
    fn why(&self, engine: &Engine, query: &str) -> Value {
        let tool = parameter(query, "tool").unwrap_or_default();
        let number = parameter(query, "call").and_then(|number| number.parse().ok());
        let timeline = &self.settings.timeline;
        let caller = number.and_then(|number| timeline.caller(number));
        let sight = engine.registry().explain_tool(&tool, &caller.unwrap_or_else(Caller::local));
        json!({
            "listed": sight.is_listed,
            "reasons": sight.reasons,
            "last": number.and_then(|number| timeline.last_list(number, &tool)),
        })
    }

    /// Begins or ends a recording, in a new file of the folder in which the server was started.
    fn record(&self, is_on: bool) -> Page {
        let Some(recorder) = &self.settings.recorder else {
            return problem(StatusCode::NOT_FOUND, "this server cannot record");
        };
        if !is_on {
            recorder.end();
            return page(StatusCode::OK, &self.recording());
        }
        let now = jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S");
        let stem = format!("recording-{now}");
        let folder = std::env::current_dir();
        match folder.and_then(|folder| begin_in(recorder, &folder, &stem)) {
            Ok(()) => page(StatusCode::OK, &self.recording()),
            Err(error) => {
                let what = format!("cannot write a recording: {error}");
                problem(StatusCode::INTERNAL_SERVER_ERROR, &what)
            }
        }
    }

    /// The recording that is being made, or the last one.
    fn recording(&self) -> Value {
        let state = self.settings.recorder.as_ref().and_then(|recorder| recorder.state());
        state.map_or(Value::Null, |state| {
            json!({
                "isOn": state.is_on,
                "path": state.path.display().to_string(),
                "written": state.written,
                "isOver": state.is_over,
            })
        })
    }
}

/// How many names are tried for the file of a recording.
const MAX_NAMES: usize = 10;

/// Begins a recording in a new file of a folder: `{stem}.jsonl`, or `{stem}-2.jsonl` and so on if
/// that exists.
fn begin_in(recorder: &Recorder, folder: &Path, stem: &str) -> io::Result<()> {
    let first = recorder.begin_new(&folder.join(format!("{stem}.jsonl")));
    (2..=MAX_NAMES).fold(first, |begun, nth| match begun {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            recorder.begin_new(&folder.join(format!("{stem}-{nth}.jsonl")))
        }
        begun => begun,
    })
}

/// A parameter of a query.
fn parameter(query: &str, name: &str) -> Option<String> {
    let find = |pair: &str| pair.strip_prefix(name)?.strip_prefix('=').map(str::to_owned);
    let found = query.split('&').find_map(find)?;
    Some(percent_encoding::percent_decode_str(&found).decode_utf8_lossy().into_owned())
}

/// All that is offered, and by which source.
fn catalog(engine: &Engine) -> Value {
    let catalog = engine.registry().snapshot();
    let tools = catalog.tools().iter().take(MAX_ITEMS).map(|tool| {
        json!({
            "name": tool.name,
            "title": tool.title,
            "description": tool.description,
            "inputSchema": value(&tool.input_schema),
            "source": catalog.tool(&tool.name).map(|entry| entry.source().name()),
        })
    });
    let prompts = catalog.prompts().iter().take(MAX_ITEMS).map(|prompt| {
        let source = catalog.prompt(&prompt.name).map(|(_, source)| source.name());
        json!({ "name": prompt.name, "description": prompt.description, "source": source })
    });
    let resources = catalog.resources().iter().take(MAX_ITEMS).map(|resource| {
        json!({
            "uri": resource.uri,
            "name": resource.name,
            "source": source_of(&catalog, &resource.uri),
        })
    });
    let templates = catalog.templates().iter().take(MAX_ITEMS);
    json!({
        "tools": tools.collect::<Vec<_>>(),
        "prompts": prompts.collect::<Vec<_>>(),
        "resources": resources.collect::<Vec<_>>(),
        "templates": templates.map(|template| &template.uri_template).collect::<Vec<_>>(),
        "counts": {
            "tools": catalog.tools().len(),
            "prompts": catalog.prompts().len(),
            "resources": catalog.resources().len(),
            "templates": catalog.templates().len(),
        },
    })
}

fn source_of(catalog: &Catalog, uri: &str) -> Option<String> {
    catalog.resource(uri).map(|found| found.source().name())
}

fn value(raw: &Raw) -> Value {
    raw.read().unwrap_or_default()
}

/// The calls that change after a version, until the server stops.
fn events(timeline: Arc<Timeline>, engine: Weak<Engine>, after: u64) -> EventStream {
    let first = Some(Bytes::from_static(b": begin\n\n"));
    Box::pin(unfold((first, after, timeline), move |(first, version, timeline)| {
        let engine = engine.clone();
        async move {
            if let Some(first) = first {
                return Some((first, (None, version, timeline)));
            }
            loop {
                if engine.upgrade().is_none_or(|engine| engine.is_stopping()) {
                    return None;
                }
                let (calls, next) = timeline.since(version, BATCH);
                if !calls.is_empty() {
                    let text = json!({ "version": next, "calls": calls });
                    tokio::time::sleep(PAUSE).await;
                    let event = format!("data: {text}\n\n").into();
                    return Some((event, (None, next, timeline)));
                }
                // A change in between is found at the next check.
                let _ = tokio::time::timeout(LOOK, timeline.changed()).await;
            }
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_of_the_console_replaces_no_file_and_follows_no_link() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        let recorder = Recorder::new("s", false, 1 << 20);
        let begin = || begin_in(&recorder, folder.path(), "r");
        begin().unwrap();
        let first = std::fs::read(file("r.jsonl")).unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(file("target"), file("r-2.jsonl")).unwrap();
        #[cfg(not(unix))]
        std::fs::write(file("r-2.jsonl"), "").unwrap();
        begin().unwrap();
        assert_eq!(recorder.state().unwrap().path, file("r-3.jsonl"));
        assert_eq!(std::fs::read(file("r.jsonl")).unwrap(), first);
        assert!(!file("target").exists());
        for _ in 4..=MAX_NAMES {
            begin().unwrap();
        }
        assert_eq!(begin().unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        // The recording that is being made goes on.
        let state = recorder.state().unwrap();
        assert!(state.is_on && state.path == file(&format!("r-{MAX_NAMES}.jsonl")));
    }
}
