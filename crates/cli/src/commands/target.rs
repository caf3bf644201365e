//! The server that `list` and `call` talk to: a URL, a program, or our own sources.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sabir_client::{
    Answerer, ChildTransport, Client, ClientConfig, HttpTarget, PipeTransport, Program, Transport,
};
use sabir_engine::Engine;
use sabir_registry::SourceState;
use sabir_sources::command::find_program;
use sabir_supervisor::{GracePeriod, Supervisor, SupervisorSettings};
use sabir_wire::Caller;
use sabir_wire::types::ClientCapabilities;

use super::Opened;
use crate::config;
use crate::report::{Failure, say};

/// How long our own sources may take to become ready. A program may have to be downloaded first.
const START_TIME: Duration = Duration::from_secs(20);
/// How often we check whether the tool is listed.
const START_CHECK: Duration = Duration::from_millis(20);

/// The server, as it was typed.
#[derive(Debug)]
pub(crate) enum Target<'a> {
    /// A URL, or the path of a configuration or a folder.
    Written(&'a str),
    /// A program and its arguments.
    Command(&'a [OsString]),
}

/// A server that links can be opened to.
pub(super) enum Reached {
    Remote(Arc<dyn Transport>),
    Own(Opened),
    Program(Supervisor, Program),
}

impl Reached {
    /// Finds the server. `headers` are for URLs only. Waits until our own sources are ready, or the
    /// tool to be called is listed.
    pub(crate) async fn new(
        target: &Target<'_>,
        headers: &[String],
        tool: Option<&str>,
    ) -> Result<Self, Failure> {
        Ok(match target {
            Target::Written(url) if url.contains("://") => Self::Remote(remote(url, headers)?),
            _ if !headers.is_empty() => {
                return Err(Failure::new("--header needs a target that is a URL"));
            }
            Target::Written(path) => {
                let opened = Opened::new(config::read(Some(Path::new(path)), false)?).await?;
                start(&opened.engine, tool).await;
                Self::Own(opened)
            }
            Target::Command(command) => {
                let supervisor = Supervisor::new(SupervisorSettings::default());
                Self::Program(supervisor, program(command)?)
            }
        })
    }

    /// Our own sources say that they may change, as a server does that follows its file.
    pub(super) fn allow_changes(&self) {
        if let Self::Own(opened) = self {
            opened.engine.registry().allow_changes();
        }
    }

    /// A way to it. Over a pipe, one link can be opened with it.
    pub(crate) fn transport(&self) -> Arc<dyn Transport> {
        match self {
            Self::Remote(transport) => transport.clone(),
            Self::Own(opened) => Arc::new(own(opened)),
            Self::Program(supervisor, program) => {
                Arc::new(ChildTransport::new(supervisor.clone(), program.clone()))
            }
        }
    }

    /// Stops what was started.
    pub(crate) async fn close(self) {
        match self {
            Self::Remote(_) => {}
            Self::Own(opened) => opened.close().await,
            Self::Program(supervisor, _) => {
                supervisor.close(GracePeriod::default().total()).await;
            }
        }
    }
}

/// A connected server.
pub(crate) struct Connected {
    pub(crate) client: Client,
    reached: Reached,
}

impl Connected {
    /// Connects to the server. `headers` are for URLs only, `tool` is the one to be called.
    pub(crate) async fn new(
        target: &Target<'_>,
        headers: &[String],
        tool: Option<&str>,
        answerer: Arc<dyn Answerer>,
    ) -> Result<Self, Failure> {
        let reached = Reached::new(target, headers, tool).await?;
        let capabilities = ClientCapabilities {
            elicitation_form: true,
            elicitation_url: true,
            ..ClientCapabilities::default()
        };
        let mut config = ClientConfig { capabilities, ..ClientConfig::default() };
        // The user sees the failure, and can try again.
        config.reconnect.attempts = 1;
        let client = Client::new(reached.transport(), config, answerer);
        let connected = Self { client, reached };
        match connected.client.open().await {
            Ok(_) => Ok(connected),
            Err(error) => {
                let stderr = connected.client.stderr();
                connected.close().await;
                // The error names the last line.
                let shown = if stderr.len() > 1 { 10 } else { 0 };
                let last = stderr.iter().rev().take(shown).rev();
                let last: String = last.map(|line| format!("\n  stderr: {line}")).collect();
                Err(Failure::new(format!("{error}{last}")))
            }
        }
    }

    /// Leaves the server, and stops what was started for it.
    pub(crate) async fn close(self) {
        self.client.close().await;
        self.reached.close().await;
    }
}

/// Starts our own sources. One that does not answer must not keep the user from the others.
async fn start(engine: &Arc<Engine>, tool: Option<&str>) {
    let starting = engine.clone();
    let mut starting = tokio::spawn(async move { starting.start().await });
    let end = Instant::now() + START_TIME;
    while Instant::now() < end {
        let is_over = tokio::time::timeout(START_CHECK, &mut starting).await.is_ok();
        if is_over || tool.is_some_and(|tool| is_ready(engine, tool)) {
            // The sources go on starting; failures of others do not concern the user.
            return starting.abort();
        }
    }
    starting.abort();
    let status = engine.registry().status();
    for source in status.iter().filter(|source| source.state == SourceState::Starting) {
        say(&format!("not ready after {} s: {}", START_TIME.as_secs(), source.name));
    }
}

/// Whether the source of a tool is ready, or has failed.
fn is_ready(engine: &Engine, tool: &str) -> bool {
    let registry = engine.registry();
    let name = registry.snapshot().tool(tool).map(|entry| entry.tool.name.clone());
    let Some(source) = name.and_then(|name| registry.provider_of_tool(&name)) else { return false };
    let is_over =
        |state: &SourceState| !matches!(state, SourceState::Added | SourceState::Starting);
    registry.status().iter().any(|status| status.id == source && is_over(&status.state))
}

fn remote(url: &str, headers: &[String]) -> Result<Arc<dyn Transport>, Failure> {
    let failed = |error: sabir_client::OpenError| Failure::new(error.to_string());
    let mut target = HttpTarget::new(url).map_err(failed)?;
    for header in headers {
        let invalid = || Failure::new(format!("invalid header `{header}` (expected NAME: VALUE)"));
        let (name, value) = header.split_once(':').ok_or_else(invalid)?;
        target = target.with_header(name.trim(), value.trim()).map_err(|_| invalid())?;
    }
    Ok(target.transport())
}

/// Our own sources, over a pipe in memory.
fn own(opened: &Opened) -> PipeTransport {
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    let engine = opened.engine.clone();
    tokio::spawn(async move {
        let (reader, writer) = tokio::io::split(theirs);
        sabir_transports::stream::serve(&engine, Caller::local(), reader, writer).await
    });
    let (reader, writer) = tokio::io::split(ours);
    PipeTransport::new(reader, writer)
}

fn program(command: &[OsString]) -> Result<Program, Failure> {
    let (name, args) = command.split_first().ok_or_else(|| Failure::new("no command after --"))?;
    let cwd = std::env::current_dir()?;
    let search = std::env::var_os("PATH");
    let path = find_program(&name.to_string_lossy(), &cwd, search.as_deref());
    Ok(Program {
        path: path.map_err(|error| Failure::new(error.to_string()))?,
        args: args.to_vec(),
        env: std::env::vars_os().collect(),
        cwd,
        grace: GracePeriod::default(),
    })
}
