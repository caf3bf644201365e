//! The sources of a configuration: described while the file is read, opened afterwards.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sabir_registry::{Registry, Source, SourceId};
use sabir_sources::command::{FindError, Finder};
use sabir_sources::text::File as TextFile;
use sabir_supervisor::{Supervisor, SupervisorSettings};
use toml::Spanned;

use super::mistake::{Mistake, Mistakes, Place, RELATIVE, Text};

/// A source that is described in the file and not opened yet.
pub(crate) struct SourceDescription {
    place: Place,
    /// The program that it runs, as written.
    program: Option<String>,
    /// How it is written. Two that are written alike are the same source.
    written: String,
    open: Box<dyn FnOnce(Arc<OpenContext>) -> Opening + Send>,
}

type Opening = Pin<Box<dyn Future<Output = Result<Arc<dyn Source>, Mistake>> + Send>>;

impl SourceDescription {
    /// A source that is described at `place`; `open` opens it.
    pub(super) fn new<S, F>(
        place: Place,
        open: impl FnOnce(Arc<OpenContext>) -> F + Send + 'static,
    ) -> Self
    where
        S: Source + 'static,
        F: Future<Output = Result<S, Mistake>> + Send + 'static,
    {
        let open = |context| -> Opening {
            let opening = open(context);
            Box::pin(async { opening.await.map(|source| Arc::new(source) as Arc<dyn Source>) })
        };
        Self { place, program: None, written: String::new(), open: Box::new(open) }
    }

    /// Names the program that the source runs.
    pub(super) fn runs(mut self, program: &str) -> Self {
        self.program = Some(program.to_owned());
        self
    }

    /// The program that the source runs, as written in the file.
    pub(crate) fn program(&self) -> Option<&str> {
        self.program.as_deref()
    }

    /// Says how the source is written.
    pub(super) fn written(mut self, written: String) -> Self {
        self.written = written;
        self
    }

    /// Opens all sources, in their order, and puts them into `registry` in the place of `removed`.
    pub(crate) async fn open_all(
        descriptions: Vec<Self>,
        context: &Arc<OpenContext>,
        registry: &Registry,
        removed: &[SourceId],
    ) -> Result<OpenedSources, Mistakes> {
        let (mut opened, mut places, mut all_written) = (Vec::new(), Vec::new(), Vec::new());
        for Self { place, open, written, .. } in descriptions {
            opened.push(open(context.clone()).await);
            places.push(place);
            all_written.push(written);
        }
        let exchanged = registry.exchange(removed, Mistakes::all(opened)?);
        let (ids, removed) =
            exchanged.map_err(|(nth, bad)| places.swap_remove(nth).mistake(bad.to_string()))?;
        Ok(OpenedSources { added: all_written.into_iter().zip(ids).collect(), removed })
    }

    /// Takes out the sources that are served already, as `served` says. Gives those that are served
    /// and still described, and those that are not any more.
    pub(crate) fn take_served(
        descriptions: &mut Vec<Self>,
        mut served: ServedSources,
    ) -> (ServedSources, ServedSources) {
        let mut kept = Vec::new();
        descriptions.retain(|one| {
            let known = served.iter().position(|(written, _)| *written == one.written);
            kept.extend(known.map(|at| served.remove(at)));
            known.is_none()
        });
        (kept, served)
    }
}

/// Sources, each with how it is written.
pub(crate) type ServedSources = Vec<(String, SourceId)>;

/// The sources that were opened, and those whose place they took.
pub(crate) struct OpenedSources {
    pub(crate) added: ServedSources,
    pub(crate) removed: Vec<Arc<dyn Source>>,
}

impl std::fmt::Debug for SourceDescription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("SourceDescription").field(&self.place).finish()
    }
}

/// The files of a prompt or a resource, which are checked when it is opened.
pub(super) struct Files {
    /// The prompt or the resource, for error messages.
    pub(super) owner: String,
    files: Vec<(Place, TextFile)>,
}

impl Files {
    pub(super) fn new(owner: &str) -> Self {
        Self { owner: owner.to_owned(), files: Vec::new() }
    }

    pub(super) fn add(
        &mut self,
        written: &Spanned<String>,
        mime_type: Option<String>,
        text: &Text<'_>,
    ) -> TextFile {
        let file = TextFile::new(text.resolve(written.get_ref()), mime_type);
        self.files.push((text.place(written.span()).hint(RELATIVE), file.clone()));
        file
    }

    /// Describes a source that is complete, except that its files have not been checked.
    pub(super) fn describe(self, place: Place, source: impl Source + 'static) -> SourceDescription {
        SourceDescription::new(place, move |_| async move {
            for (place, file) in self.files {
                file.check().map_err(|bad| place.mistake(format!("{}: {bad}", self.owner)))?;
            }
            Ok(source)
        })
    }
}

/// What the sources of one server share.
#[derive(Debug)]
pub(crate) struct OpenContext {
    supervisor: Supervisor,
    finder: Mutex<Finder>,
    /// The longest time that a program has to exit after SIGTERM.
    longest_exit: Mutex<Duration>,
}

impl OpenContext {
    /// How long programs may take to be gone after SIGKILL. A process that hangs in the kernel is
    /// left to its monitor process.
    const KILL_TIMEOUT: Duration = Duration::from_secs(5);

    /// A context in which paths of programs are relative to `folder`.
    pub(crate) fn new(folder: PathBuf) -> Arc<Self> {
        Arc::new(Self {
            supervisor: Supervisor::new(SupervisorSettings::default()),
            finder: Mutex::new(Finder::new(folder)),
            longest_exit: Mutex::default(),
        })
    }

    /// Finds a program by its path, or by its name in the search path `search`.
    pub(super) fn find_program(
        &self,
        name: &str,
        search: Option<&OsStr>,
    ) -> Result<PathBuf, FindError> {
        let mut finder = self.finder.lock().unwrap_or_else(PoisonError::into_inner);
        finder.find(name, search).map(ToOwned::to_owned)
    }

    /// The supervisor, for programs that have the time `exit` to exit after SIGTERM.
    pub(super) fn supervisor(&self, exit: Duration) -> Supervisor {
        let mut longest = self.longest_exit.lock().unwrap_or_else(PoisonError::into_inner);
        *longest = exit.max(*longest);
        self.supervisor.clone()
    }

    /// Stops all programs, and waits until none of their processes is left.
    pub(crate) async fn close(&self) {
        let exit = *self.longest_exit.lock().unwrap_or_else(PoisonError::into_inner);
        self.supervisor.close(exit + Self::KILL_TIMEOUT).await;
    }
}
