//! A configuration that changes while it is served. Sources that are new in the file are opened,
//! those that were removed from it are closed, and the others keep running. Clients stay connected.

use std::collections::BTreeSet;
use std::io::IsTerminal as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use sabir_engine::Engine;
use sabir_registry::{Source, SourceState};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinSet;

use super::{Opened, Serve, received};
use crate::commands::check::count;
use crate::commands::secrets;
use crate::config::{self, OpenContext, ServedSources, Settings, SourceDescription, Tables};
use crate::escape::escaped;
use crate::report::{Failure, say, show};

/// How often the file is looked at. It is read when it was the same twice: an editor may be writing.
const INTERVAL: Duration = Duration::from_millis(500);

/// Applies changes of a configuration.
pub(super) struct Reloader {
    paths: Vec<PathBuf>,
    no_config: bool,
    file: Option<WatchedFiles>,
    /// The tables that are applied: those that were read at the start.
    tables: Tables,
    engine: Arc<Engine>,
    context: Arc<OpenContext>,
    sources: ServedSources,
    hangups: Option<Signal>,
}

impl Reloader {
    /// A reloader for what was opened. Clients are told to expect changes if there is a file.
    pub(super) fn new(
        args: &Serve,
        tables: Tables,
        file: Option<WatchedFiles>,
        opened: &Opened,
    ) -> Self {
        if file.is_some() {
            opened.engine.registry().allow_changes();
        }
        Self {
            paths: args.paths.clone(),
            no_config: args.no_config,
            file,
            tables,
            engine: opened.engine.clone(),
            context: opened.context.clone(),
            sources: opened.sources.clone(),
            hangups: hangups(),
        }
    }

    /// Reloads whenever the file has changed, and at SIGHUP.
    pub(super) async fn run(mut self) {
        loop {
            tokio::select! {
                () = changed(self.file.as_mut()) => {}
                () = received(&mut self.hangups) => {}
            }
            if let Err(failure) = self.reload().await {
                show(&failure);
                say("the configuration was not reloaded: the old one is still served");
            }
        }
    }

    async fn reload(&mut self) -> Result<(), Failure> {
        let settings = config::read_all(&self.paths, self.no_config)?;
        secrets::protect(&settings, None)?;
        for warning in &settings.warnings {
            say(&warning.labelled("warning"));
        }
        let Settings { mut sources, tables, .. } = settings;
        let (kept, gone) = SourceDescription::take_served(&mut sources, self.sources.clone());
        let ids: Vec<_> = gone.iter().map(|(_, id)| *id).collect();
        let registry = self.engine.registry();
        let opening = SourceDescription::open_all(sources, &self.context, registry, &ids);
        let opened = opening.await?;
        let added = count(opened.added.len(), "source");
        let removed = opened.removed.len();
        say(&format!("reloaded the configuration: {added} opened, {removed} closed"));
        let names: BTreeSet<_> = self.tables.keys().chain(tables.keys()).collect();
        for name in names.into_iter().filter(|name| self.tables.get(*name) != tables.get(*name)) {
            say(&format!("  restart to apply what has changed in [{}]", escaped(name)));
        }
        tokio::spawn(start(self.engine.clone(), opened.added.clone()));
        tokio::spawn(close(opened.removed, self.engine.settings().limits.grace));
        self.sources = kept.into_iter().chain(opened.added).collect();
        Ok(())
    }
}

/// Starts new sources. What fails is reported.
async fn start(engine: Arc<Engine>, added: ServedSources) {
    let starting: JoinSet<_> = engine.registry().start().into_iter().collect();
    starting.join_all().await;
    for source in engine.registry().status() {
        if !added.iter().any(|(_, id)| *id == source.id) {
            continue;
        }
        if let SourceState::Failed(reason) = &source.state {
            say(&escaped(&format!("error: {}: {reason}", source.name)));
        } else if let Some(summary) = &source.summary {
            say(&escaped(&format!("{}: {summary}", source.name)));
        }
    }
}

/// Closes sources that are not served any more. Their running calls have the time that they have
/// when the server stops.
async fn close(removed: Vec<Arc<dyn Source>>, grace: Duration) {
    tokio::time::sleep(grace).await;
    for source in removed {
        source.close(grace).await;
    }
}

/// SIGHUP. At a terminal it means that the terminal was closed, which ends the process as usual.
fn hangups() -> Option<Signal> {
    let is_interactive = std::io::stdin().is_terminal() || std::io::stderr().is_terminal();
    (!is_interactive).then(|| signal(SignalKind::hangup()).ok()).flatten()
}

/// Files, and what they were when they were last read.
pub(super) struct WatchedFiles {
    paths: Vec<PathBuf>,
    read: Option<Vec<Stamp>>,
}

/// Differs if the file was written or replaced.
type Stamp = (SystemTime, u64, u64, u64);

impl WatchedFiles {
    /// Files that are being read now.
    pub(super) fn new<'p>(paths: impl IntoIterator<Item = &'p Path>) -> Self {
        let paths: Vec<_> = paths.into_iter().map(Path::to_owned).collect();
        Self { read: stamps(&paths), paths }
    }
}

/// Waits until one of the files has changed, for ever if there is none. While one is missing, none
/// has.
pub(super) async fn changed(files: Option<&mut WatchedFiles>) {
    let Some(files) = files else { return std::future::pending().await };
    let mut before = None;
    loop {
        tokio::time::sleep(INTERVAL).await;
        let paths = files.paths.clone();
        // The files may be on a network.
        let now = tokio::task::spawn_blocking(move || stamps(&paths)).await.ok().flatten();
        if now.is_some() && now != files.read && now == before {
            files.read = now;
            return;
        }
        before = now;
    }
}

fn stamps(paths: &[PathBuf]) -> Option<Vec<Stamp>> {
    let stamp = |path: &PathBuf| {
        let found = path.metadata().ok()?;
        Some((found.modified().ok()?, found.len(), found.dev(), found.ino()))
    };
    paths.iter().map(stamp).collect()
}
