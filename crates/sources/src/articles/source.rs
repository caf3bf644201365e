//! A store as a source: three tools, each article as a resource, templates with completion.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sabir_articles::{ArticleUris, Figures, Problem as FileProblem, Store};
use sabir_budget::{ComputeError, compute};
use sabir_registry::{
    CompleteCall, Figure, Offer, Outcome, Pending, ResourceCall, Source, SourceHandle, StartError,
    Starting, ToolCall,
};
use sabir_wire::Problem;
use sabir_wire::types::{Completion, Reference, ResourceContents, ResourceReply, ToolReply};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::appearance::Appearance;
use super::embeddings::Embeddings;
use super::follow::{Follower, Subscription};
use super::git::Git;
use super::resources::{self, ResourceList};
use super::tools::{self, Answering, ToolKind};
use super::writing::{self, WriteKind, Writer};

/// Optional services for a folder of articles.
#[derive(Debug, Default)]
pub struct Services {
    /// Commits changes; or why changes are not committed, although they should be.
    pub git: Option<Result<Git, String>>,
    /// Makes the vectors of a search by meaning, with the model of the store's settings.
    pub embeddings: Option<Arc<Embeddings>>,
}

/// Serves a folder of articles. Cheap to clone.
#[derive(Clone)]
pub struct ArticleSource(Arc<Inner>);

struct Inner {
    store: Arc<Store>,
    appearance: Appearance,
    uris: ArticleUris,
    listed: Arc<ResourceList>,
    /// Changes articles, if that is allowed.
    writer: Arc<Writer>,
    /// Why changes are not committed, although they should be.
    git_problem: Option<String>,
    /// Finds articles by meaning.
    embeddings: Option<Arc<Embeddings>>,
    /// Taken by the follower when the source is attached.
    subscription: Mutex<Option<Subscription>>,
}

impl ArticleSource {
    /// Serves a store.
    pub fn new(store: Arc<Store>, appearance: Appearance) -> Self {
        Self::with_services(store, appearance, Services::default())
    }

    /// Serves a store with optional services.
    pub fn with_services(store: Arc<Store>, appearance: Appearance, services: Services) -> Self {
        let Services { git, embeddings } = services;
        let (git, git_problem) = match git {
            Some(Ok(git)) => (Some(git), None),
            Some(Err(reason)) => (None, Some(reason)),
            None => (None, None),
        };
        let subscription = Mutex::new(Some(Subscription::now(&store)));
        let uris = ArticleUris::new(appearance.name.as_deref());
        let listed = Arc::new(ResourceList::new(uris.clone()));
        let writer = Arc::new(Writer {
            store: Arc::clone(&store),
            appearance: appearance.clone(),
            uris: uris.clone(),
            git,
            turn: Default::default(),
        });
        Self(Arc::new(Inner {
            store,
            appearance,
            uris,
            listed,
            writer,
            git_problem,
            embeddings,
            subscription,
        }))
    }
}

impl Source for ArticleSource {
    fn offer(&self) -> Offer {
        let Inner { store, appearance, listed, subscription, .. } = &*self.0;
        // Until the source is attached, every offer is the first.
        if let Some(subscription) = lock(subscription).as_mut() {
            *subscription = Subscription::now(store);
            listed.clear();
        }
        let offered = listed.offer(store);
        let mut tools = tools::offer(store, appearance);
        tools.extend(writing::offer(appearance));
        Offer {
            tools,
            instructions: Some(tools::instructions(store, appearance)),
            resources: offered.resources,
            templates: offered.templates,
            completes: true,
            updates: true,
            changes: true,
            cache: offered.cache,
            ..Offer::default()
        }
    }

    fn call_tool(&self, call: ToolCall) -> Pending<ToolReply> {
        let inner = self.0.clone();
        if let Some(kind) = WriteKind::named(&call.name, &inner.appearance) {
            let reply = Arc::clone(&inner.writer).call(kind, call.arguments);
            return Box::pin(async move { reply.await.map(Outcome::Done) });
        }
        Box::pin(async move {
            let vector = inner.vector(&call).await;
            // A search computes for a millisecond or more, which must not stop other calls.
            let share = call.context.caller.share();
            let reply = compute(share, move |_| Ok(inner.call(&call, vector)));
            let busy = |error: ComputeError| Err(Problem::ToolFailed(error.to_string().into()));
            reply.await.unwrap_or_else(busy).map(Outcome::Done)
        })
    }

    fn read_resource(&self, call: ResourceCall) -> Pending<ResourceReply> {
        let inner = self.0.clone();
        let reply = compute(call.context.caller.share(), move |_| Ok(inner.read(&call.uri)));
        Box::pin(async move {
            let busy = |error: ComputeError| Err(Problem::Internal(error.to_string().into()));
            reply.await.unwrap_or_else(busy).map(Outcome::Done)
        })
    }

    fn complete(&self, call: CompleteCall) -> Pending<Completion> {
        let inner = self.0.clone();
        Box::pin(async move { Ok(Outcome::Done(inner.complete(&call))) })
    }

    /// Ready when the folder was read once and all of it is offered.
    fn start(&self, handle: SourceHandle) -> Starting {
        let Inner { store, listed, subscription, .. } = &*self.0;
        let subscription = lock(subscription).take();
        let (ready, is_ready) = oneshot::channel();
        let follower = Follower {
            store: Arc::downgrade(store),
            listed: listed.clone(),
            // If it is started a second time, the subscription starts now.
            subscription: subscription.unwrap_or_else(|| Subscription::now(store)),
            handle,
        };
        let started = follower.start(ready);
        if let (Some(embeddings), Ok(runtime)) = (&self.0.embeddings, Handle::try_current()) {
            runtime.spawn(Arc::clone(embeddings).fill(Arc::downgrade(store)));
        }
        Box::pin(async {
            started.map_err(|error| StartError::new(format!("cannot start a thread: {error}")))?;
            is_ready.await.map_err(|_| StartError::new("closed before the folder was read"))
        })
    }

    fn name(&self) -> String {
        format!("articles {}", self.0.appearance.folder.display())
    }

    /// How many articles are served, and how many files are not, by which rules.
    fn summary(&self) -> Option<String> {
        let Figures { articles, hidden, ignored, .. } = self.0.store.figures();
        let noun = if articles == 1 { "article" } else { "articles" };
        let count: usize = hidden.values().sum();
        let mut text = format!("{articles} {noun}, {count} hidden");
        if count > 0 {
            let reasons = hidden.iter().map(|(reason, count)| format!("{count} by {reason}"));
            text.push_str(&format!(" ({})", reasons.collect::<Vec<_>>().join(", ")));
        }
        if ignored > 0 {
            text.push_str(&format!(", {ignored} ignored"));
        }
        Some(text)
    }

    /// How far it is indexed.
    fn condition(&self) -> Option<String> {
        Some(match self.0.store.indexing() {
            Some(state) => format!("indexing: {} of {} files", state.done, state.total),
            None => "indexed".to_owned(),
        })
    }

    fn figures(&self) -> Vec<Figure> {
        let store = &self.0.store;
        let figures = store.figures();
        let indexing = store.indexing();
        let left = indexing.as_ref().map_or(0, |state| state.total.saturating_sub(state.done));
        vec![
            Figure::gauge("sabir.index.articles", "Articles that are served.", figures.articles),
            Figure::gauge("sabir.index.files", "Files of a folder of articles.", figures.files),
            Figure::gauge("sabir.index.left", "Files that are still to be indexed.", left),
            Figure::gauge(
                "sabir.index.ready",
                "Whether the folder was indexed once.",
                indexing.is_none().into(),
            ),
            Figure::gauge("sabir.index.segments", "Segments of an index.", figures.segments),
        ]
    }

    fn problems(&self) -> Vec<String> {
        let folder = &self.0.appearance.folder;
        let shown = |problem: &FileProblem| match problem.file.as_str() {
            "" => format!("{}: {problem}", folder.display()),
            _ => folder.join(problem.to_string()).display().to_string(),
        };
        let git = self.0.git_problem.iter();
        let git = git.map(|reason| format!("{}: {reason}", folder.display()));
        git.chain(self.0.store.problems().iter().map(shown)).collect()
    }
}

impl Inner {
    /// The vector of a query, if there is a search by meaning.
    async fn vector(&self, call: &ToolCall) -> Option<Vec<f32>> {
        let embeddings = self.embeddings.as_ref()?;
        let kind = ToolKind::named(&call.name, &self.appearance)?;
        embeddings.of_query(&kind.query(&call.arguments)?).await
    }

    fn call(&self, call: &ToolCall, vector: Option<Vec<f32>>) -> Result<ToolReply, Problem> {
        let Self { store, appearance, uris, .. } = self;
        let kind = ToolKind::named(&call.name, appearance)
            .ok_or_else(|| Problem::UnknownTool((&*call.name).into()))?;
        Answering { store, appearance, uris, vector }.call(kind, &call.arguments)
    }

    fn read(&self, uri: &str) -> Result<ResourceReply, Problem> {
        let unknown = || Problem::UnknownResource(uri.into());
        let id = self.uris.id_in(uri).ok_or_else(unknown)?;
        // A URI is exact; a slug may be the end of an id, in any case.
        let found = self.store.summary(&id).map_err(tools::internal)?;
        let Some(summary) = found else {
            let file = self.store.file(&id).ok_or_else(unknown)?;
            return Ok(match file.text() {
                Some(text) => ResourceContents::text(uri, file.media_type, text),
                None => ResourceContents::blob(uri, file.media_type, &file.bytes),
            }
            .into());
        };
        let article = self.store.article(&id, None).map_err(|error| match error {
            error if error.is_internal() => tools::internal(error),
            _ => unknown(),
        })?;
        let contents = ResourceContents::text(uri, resources::MARKDOWN, article.content);
        Ok(ResourceReply { cache: resources::fresh_for([&summary]), ..contents.into() })
    }

    fn complete(&self, call: &CompleteCall) -> Completion {
        let Reference::Resource { uri, .. } = &call.reference else { return Completion::default() };
        let mut given = call.given.arguments.iter();
        let category = given.find(|(name, _)| name == "category").map(|(_, value)| value.as_str());
        let typed = &*call.argument.value;
        let in_category = uri.contains("{category}");
        match (&*call.argument.name, in_category, category) {
            ("category", true, _) => completion(self.store.complete_category(typed)),
            ("slug", true, Some(category)) => completion(self.store.complete_slug(category, typed)),
            ("slug", ..) => resources::complete_slug(&self.store.ids(), in_category, typed),
            _ => Completion::default(),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn completion(found: sabir_articles::Completion) -> Completion {
    let total = found.has_more.then_some(found.total);
    Completion { values: found.values, total, ..Completion::default() }
}

impl std::fmt::Debug for ArticleSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ArticleSource").field(&self.0.appearance).finish()
    }
}
