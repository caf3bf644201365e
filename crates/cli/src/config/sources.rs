//! All that is offered, kind by kind, and the programs behind it.

use std::sync::Arc;
use std::time::Duration;

use sabir_registry::{Registry, Source};
use sabir_sources::command::Finder;
use sabir_supervisor::{Supervisor, SupervisorSettings};

use super::file::File;
use super::mistake::{Mistake, Place, Text};
use super::{articles, command, prompt, resource};

/// A source, and where it is described.
pub(crate) struct Offered {
    source: Arc<dyn Source>,
    place: Place,
}

impl Offered {
    fn new(source: impl Source + 'static, place: Place) -> Self {
        Self { source: Arc::new(source), place }
    }

    /// Adds sources. What the registry finds wrong is told with its place.
    pub(crate) fn add_all(offered: Vec<Self>, registry: &Arc<Registry>) -> Result<(), Mistake> {
        let (sources, mut places): (_, Vec<_>) =
            offered.into_iter().map(|offered| (offered.source, offered.place)).unzip();
        let added = registry.add_all(sources);
        added.map(drop).map_err(|(nth, bad)| places.swap_remove(nth).mistake(bad.to_string()))
    }
}

impl std::fmt::Debug for Offered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Offered").field(&self.place).finish()
    }
}

/// The programs that sources run.
#[derive(Debug)]
pub(crate) struct Programs {
    supervisor: Supervisor,
    /// How long the most patiently ended of them may take.
    patience: Duration,
}

impl Programs {
    /// How long beyond that we wait for programs that are being killed. What hangs in the kernel
    /// is left to its monitor process.
    const STUCK: Duration = Duration::from_secs(5);

    /// Ends all programs, and waits until nothing of any of them is left.
    pub(crate) async fn close(self) {
        let Self { supervisor, patience } = self;
        supervisor.close(patience + Self::STUCK).await;
    }
}

/// All that is offered.
pub(super) struct Offers {
    pub(super) sources: Vec<Offered>,
    pub(super) folders: Vec<articles::Folder>,
    pub(super) programs: Programs,
}

/// Settles everything that the file offers, in its order.
pub(super) fn settle(
    file: &File,
    text: &Text<'_>,
    engine: &sabir_engine::Settings,
) -> Result<Offers, Mistake> {
    let (mut sources, mut folders) = (Vec::new(), Vec::new());
    for articles in &file.articles {
        let place = text.place(articles.path.span());
        let (source, folder) = articles::settle(articles, text)?;
        let place = match file.articles.len() {
            1 => place,
            _ => place.hint("give one of the folders a `name`"),
        };
        sources.push(Offered::new(source, place));
        folders.push(folder);
    }
    let supervisor = Supervisor::new(SupervisorSettings::default());
    let mut finder = Finder::new(text.folder());
    let mut programs = Programs { supervisor, patience: Duration::ZERO };
    for command in &file.command {
        let place = text.place(command.name.span());
        let call_time = engine.limits.call_time;
        let (source, patience) =
            command::settle(command, text, call_time, &programs.supervisor, &mut finder)?;
        programs.patience = programs.patience.max(patience);
        sources.push(Offered::new(source, place));
    }
    for prompt in &file.prompt {
        let place = text.place(prompt.name.span());
        sources.push(Offered::new(prompt::settle(prompt, text)?, place));
    }
    for resource in &file.resource {
        let place = text.place(resource.uri.span());
        sources.push(Offered::new(resource::settle(resource, text)?, place));
    }
    Ok(Offers { sources, folders, programs })
}
