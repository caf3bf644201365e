//! The sources of a configuration: described while the file is read, opened afterwards.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sabir_cluster::Cluster;
use sabir_registry::{Access, AddedSource, BadOffer, Registry, Source, SourceId};
use sabir_sources::command::{FindError, Finder};
use sabir_sources::login::Connect;
use sabir_sources::text::File as TextFile;
use sabir_supervisor::{Supervisor, SupervisorSettings};
use sabir_wire::Taps;
use toml::Spanned;

use super::mistake::{Mistake, Mistakes, Place, RELATIVE, Text};
use super::plain;
use super::upstream_auth::Login;

/// A source that is described in the file and not opened yet.
pub(crate) struct SourceDescription {
    place: Place,
    /// What operators call it, if a mistake should name it.
    owner: Option<String>,
    /// The program that it runs, as written.
    program: Option<String>,
    /// How it is written. Two that are written alike are the same source.
    written: String,
    /// The scopes that its callers need.
    access: Access,
    /// The credentials that it needs.
    login: Option<Login>,
    /// What is known of it before it is started, if it is an upstream.
    upstream: Option<Unstarted>,
    /// Finds the mistakes that opening it would find, without opening it.
    look: Option<Look>,
    open: Box<dyn FnOnce(Arc<OpenContext>) -> Opening + Send>,
}

type Look = Box<dyn Fn() -> Result<(), Mistake> + Send>;

/// An upstream before it is started.
#[derive(Clone, Debug)]
pub(crate) struct Unstarted {
    /// The program that it runs, if that file does not exist.
    pub(crate) missing_program: Option<PathBuf>,
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
        let (program, written, access) = (None, String::new(), Access::default());
        Self {
            place,
            owner: None,
            program,
            written,
            access,
            login: None,
            upstream: None,
            look: None,
            open: Box::new(open),
        }
    }

    /// Lets mistakes name the source.
    pub(super) fn owned_by(mut self, owner: &str) -> Self {
        self.owner = Some(owner.to_owned());
        self
    }

    /// Names the program that the source runs.
    pub(super) fn runs(mut self, program: &str) -> Self {
        self.program = Some(program.to_owned());
        self
    }

    /// Names the credentials that the source needs.
    pub(super) fn logs_in(mut self, login: Option<Login>) -> Self {
        self.login = login;
        self
    }

    /// Sets the function that finds the mistakes which opening the source would find.
    pub(super) fn looks(mut self, look: impl Fn() -> Result<(), Mistake> + Send + 'static) -> Self {
        self.look = Some(Box::new(look));
        self
    }

    /// Finds the mistakes that opening the source would find, without opening it.
    pub(super) fn look(&self) -> Result<(), Mistake> {
        self.look.as_ref().map_or(Ok(()), |look| look())
    }

    /// Says that the source is another server.
    pub(super) fn relays(mut self, upstream: Unstarted) -> Self {
        self.upstream = Some(upstream);
        self
    }

    /// What is known of the source before it is started, if it is an upstream.
    pub(crate) fn upstream(&self) -> Option<&Unstarted> {
        self.upstream.as_ref()
    }

    /// The credentials that the source needs.
    pub(crate) fn login(&self) -> Option<&Login> {
        self.login.as_ref()
    }

    /// Demands scopes of its callers.
    pub(super) fn needs(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    /// Whether its callers need any scopes.
    pub(crate) fn is_restricted(&self) -> bool {
        self.access != Access::default()
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
        for Self { place, owner, open, written, access, .. } in descriptions {
            let source = open(context.clone()).await;
            opened.push(source.map(|source| AddedSource { source, access }));
            places.push((place, owner.map(|owner| format!("{owner}: ")).unwrap_or_default()));
            all_written.push(written);
        }
        let exchanged = registry.exchange(removed, Mistakes::all(opened)?);
        let (ids, removed) = exchanged.map_err(|(nth, bad)| {
            let (place, owner) = places.swap_remove(nth);
            let mistake = place.mistake(format!("{owner}{bad}"));
            match bad {
                BadOffer::Name { tool, .. } => mistake.or_hint(|| {
                    format!("write e.g. `name = \"{}\"`", plain(&tool).replace('-', "_"))
                }),
                BadOffer::Taken { .. } => mistake.or_hint(|| "rename one of them".to_owned()),
                _ => mistake,
            }
        })?;
        Ok(OpenedSources { added: all_written.into_iter().zip(ids).collect(), removed })
    }

    /// Takes out the sources that are served already, as `served` says. Returns the served sources
    /// that are still described, and those that are not.
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
        let files = Arc::new(self);
        let looked_at = files.clone();
        let described = SourceDescription::new(place, move |_| async move {
            files.check()?;
            Ok(source)
        });
        described.looks(move || looked_at.check())
    }

    fn check(&self) -> Result<(), Mistake> {
        self.files.iter().try_for_each(|(place, file)| {
            let wrong = |bad| place.clone().mistake(format!("{}: {bad}", self.owner));
            file.check().map_err(wrong)
        })
    }
}

/// What the sources of one server share.
#[derive(Debug)]
pub(crate) struct OpenContext {
    supervisor: Supervisor,
    finder: Mutex<Finder>,
    /// Sees the messages between us and upstreams.
    pub(super) tap: Option<Arc<Taps>>,
    /// The longest time that a program has to exit after SIGTERM.
    longest_exit: Mutex<Duration>,
    /// The page on which callers log in at upstreams.
    connect: Option<Arc<dyn Connect>>,
    /// The nodes that share the credentials at upstreams.
    cluster: Option<Cluster>,
    /// Whether upstreams are asked what they offer although it is remembered.
    pub(super) asks_anew: bool,
}

impl OpenContext {
    /// How long programs may take to be gone after SIGKILL. A process that hangs in the kernel is
    /// left to its monitor process.
    const KILL_TIMEOUT: Duration = Duration::from_secs(5);

    /// A context in which paths of programs are relative to `folder`.
    pub(crate) fn new(
        folder: PathBuf,
        tap: Option<Arc<Taps>>,
        connect: Option<Arc<dyn Connect>>,
        cluster: Option<Cluster>,
        asks_anew: bool,
    ) -> Arc<Self> {
        Arc::new(Self {
            supervisor: Supervisor::new(SupervisorSettings::default()),
            finder: Mutex::new(Finder::new(folder)),
            tap,
            longest_exit: Mutex::default(),
            connect,
            cluster,
            asks_anew,
        })
    }

    /// The nodes that share the credentials at upstreams, if there are several.
    pub(super) fn cluster(&self) -> Option<&Cluster> {
        self.cluster.as_ref()
    }

    /// The page on which callers log in at upstreams, if there is one.
    pub(super) fn connect(&self) -> Option<Arc<dyn Connect>> {
        self.connect.clone()
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

    /// How many programs run.
    pub(crate) fn running_programs(&self) -> usize {
        self.supervisor.running()
    }

    /// Stops all programs, and waits until none of their processes is left.
    pub(crate) async fn close(&self) {
        let exit = *self.longest_exit.lock().unwrap_or_else(PoisonError::into_inner);
        self.supervisor.close(exit + Self::KILL_TIMEOUT).await;
    }
}
