//! The server that `list` and `call` talk to: a URL, a program, or our own sources.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use sabir_client::{
    Answerer, ChildTransport, Client, ClientConfig, HttpTarget, PipeTransport, Program, Transport,
};
use sabir_sources::command::find_program;
use sabir_supervisor::{GracePeriod, Supervisor, SupervisorSettings};
use sabir_wire::Caller;
use sabir_wire::types::ClientCapabilities;

use super::Opened;
use crate::config;
use crate::report::Failure;

/// The server, as it was typed.
#[derive(Debug)]
pub(crate) enum Target<'a> {
    /// A URL, or the path of a configuration or a folder.
    Written(&'a str),
    /// A program and its arguments.
    Command(&'a [OsString]),
}

/// A connected server.
pub(crate) struct Connected {
    pub(crate) client: Client,
    supervisor: Option<Supervisor>,
    opened: Option<Opened>,
}

impl Connected {
    /// Connects to the server. `headers` are for URLs only.
    pub(crate) async fn new(
        target: &Target<'_>,
        headers: &[String],
        answerer: Arc<dyn Answerer>,
    ) -> Result<Self, Failure> {
        let (mut supervisor, mut opened) = (None, None);
        let transport: Arc<dyn Transport> = match target {
            Target::Written(url) if url.contains("://") => remote(url, headers)?,
            _ if !headers.is_empty() => {
                return Err(Failure::new("--header needs a target that is a URL"));
            }
            Target::Written(path) => {
                let opened =
                    opened.insert(Opened::new(config::read(Some(Path::new(path)), false)?).await?);
                opened.engine.start().await;
                Arc::new(own(opened))
            }
            Target::Command(command) => {
                let supervisor = supervisor.insert(Supervisor::new(SupervisorSettings::default()));
                Arc::new(ChildTransport::new(supervisor.clone(), program(command)?))
            }
        };
        let capabilities = ClientCapabilities {
            elicitation_form: true,
            elicitation_url: true,
            ..ClientCapabilities::default()
        };
        let mut config = ClientConfig { capabilities, ..ClientConfig::default() };
        // A person sees the failure, and tries again.
        config.reconnect.attempts = 1;
        let client = Client::new(transport, config, answerer);
        let connected = Self { client, supervisor, opened };
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
        if let Some(supervisor) = self.supervisor {
            supervisor.close(GracePeriod::default().total()).await;
        }
        if let Some(opened) = self.opened {
            opened.close().await;
        }
    }
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
