//! Clients, and servers that answer as a test wants.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sabir_client::{
    Answerer, Answering, Client, ClientConfig, HttpTarget, Link, LinkKind, Opening, PipeTransport,
    Transport, carry_lines,
};
use sabir_testkit::StandInServer;
use sabir_wire::types::{ClientCapabilities, LogMessage, Progress, Question};
use sabir_wire::{Era, Raw, Revision};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

/// Answers every question at once, and counts questions, progress and log messages.
#[derive(Debug, Default)]
pub(crate) struct Robot {
    pub(crate) asked: AtomicUsize,
    pub(crate) progress: AtomicUsize,
    pub(crate) logged: AtomicUsize,
}

impl Answerer for Robot {
    fn answer(&self, question: Question) -> Answering<'_> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let answer = match question {
            Question::Elicit(_) => json!({ "action": "accept", "content": { "name": "Ada" } }),
            Question::Sample(_) => json!({
                "role": "assistant", "model": "m", "content": { "type": "text", "text": "Paris" },
            }),
            Question::Roots { .. } => {
                json!({ "roots": [{ "uri": "file:///a" }, { "uri": "file:///b" }] })
            }
            Question::Other { .. } => json!({}),
        };
        Box::pin(async { Ok(Raw::from(answer)) })
    }

    fn progress(&self, _: &Progress) {
        self.progress.fetch_add(1, Ordering::SeqCst);
    }

    fn log(&self, _: &LogMessage) {
        self.logged.fetch_add(1, Ordering::SeqCst);
    }
}

/// A client of this revision that declares every capability.
pub(crate) fn config(revision: Revision) -> ClientConfig {
    let capabilities = ClientCapabilities::everything();
    let mut config = ClientConfig { capabilities, ..ClientConfig::new("test", "1") };
    if revision.era() == Era::Legacy {
        config.era = Some(Era::Legacy);
        config.legacy_revision = revision;
    }
    config
}

/// A way to the stand-in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Way {
    Pipe,
    Http,
    OldSse,
    WebSocket,
}

pub(crate) async fn transport(server: &mut StandInServer, way: Way) -> Arc<dyn Transport> {
    let (scheme, path) = match way {
        Way::Pipe => {
            let (reader, writer) = server.pipe();
            return Arc::new(PipeTransport::new(reader, writer));
        }
        Way::Http => ("http", "/mcp"),
        Way::OldSse => ("http", "/sse"),
        Way::WebSocket => ("ws", "/mcp"),
    };
    let address = server.http(|_| {}).await;
    HttpTarget::new(format!("{scheme}://{address}{path}")).unwrap().transport()
}

/// A server in memory that answers each line with a function; `None` ends the link. It can be
/// opened again.
pub(crate) struct Scripted<F>(pub(crate) F, pub(crate) Arc<AtomicUsize>);

impl<F> Scripted<F>
where
    F: Fn(usize, serde_json::Value) -> Option<Vec<String>> + Clone + Send + Sync + 'static,
{
    /// The function gets the number of the link, from 1, and the message.
    pub(crate) fn new(answer: F) -> Self {
        Self(answer, Arc::default())
    }
}

impl<F> std::fmt::Debug for Scripted<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Scripted")
    }
}

impl<F> Transport for Scripted<F>
where
    F: Fn(usize, serde_json::Value) -> Option<Vec<String>> + Clone + Send + Sync + 'static,
{
    fn kind(&self) -> LinkKind {
        LinkKind::Pipe
    }

    fn open(&self, link: Link) -> Opening<'_> {
        let nth = self.1.fetch_add(1, Ordering::SeqCst) + 1;
        let answer = self.0.clone();
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        tokio::spawn(async move {
            let (reader, mut writer) = tokio::io::split(theirs);
            let mut lines = BufReader::new(reader).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let Some(said) = answer(nth, serde_json::from_str(&line).unwrap()) else { return };
                for line in said {
                    if writer.write_all(format!("{line}\n").as_bytes()).await.is_err() {
                        return;
                    }
                }
            }
        });
        tokio::spawn(async move {
            let (reader, writer) = tokio::io::split(ours);
            let inbox = link.inbox.clone();
            let (reason, unsent) = carry_lines(reader, writer, link).await;
            inbox.end(sabir_client::OpenError::Ended(reason), &unsent);
        });
        Box::pin(async { Ok(()) })
    }
}

/// A client with short times.
pub(crate) fn hasty(transport: impl Transport) -> Client {
    let mut config = config(Revision::NEWEST);
    config.limits.probe_time = Duration::from_millis(100);
    config.limits.open_time = Duration::from_secs(5);
    config.limits.call_time = Some(Duration::from_secs(5));
    config.reconnect.first_wait = Duration::from_millis(5);
    Client::new(Arc::new(transport), config, Arc::new(Robot::default()))
}
