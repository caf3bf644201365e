//! A store, as a source: three tools, each article as a resource, templates with completion.
//!
//! What a client is told and what it is told by are apart: `tools` answers calls, `listed` keeps
//! the resources, `follow` announces what changes. This file decides which of them is asked.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sabir_registry::{
    CompleteCall, Handle, Offer, Outcome, Pending, ResourceCall, Source, ToolCall,
};
use sabir_wire::Problem;
use sabir_wire::types::{
    Completion, Reference, Resource, ResourceContents, ResourceReply, ToolReply,
};

use super::follow::{Follower, Since};
use super::listed::{self, Listed};
use super::results::Summary;
use super::settings::Appearance;
use super::store::Store;
use super::tools::{self, ToolKind};
use super::uri::Addresses;

/// A folder of articles that is served. Cheap to clone.
#[derive(Clone)]
pub struct ArticleSource(Arc<Inner>);

struct Inner {
    store: Arc<Store>,
    appearance: Appearance,
    addresses: Addresses,
    listed: Arc<Listed>,
    /// Taken by whoever follows the changes.
    since: Mutex<Option<Since>>,
}

impl ArticleSource {
    /// Serves a store.
    pub fn new(store: Arc<Store>, appearance: Appearance) -> Self {
        let since = Mutex::new(Some(Since::now(&store)));
        let addresses = Addresses::new(appearance.name.as_deref());
        let listed = Arc::new(Listed::new(addresses.clone()));
        Self(Arc::new(Inner { store, appearance, addresses, listed, since }))
    }
}

impl Source for ArticleSource {
    fn offer(&self) -> Offer {
        let Inner { store, appearance, listed, since, .. } = &*self.0;
        // Until somebody follows, every offer is the first.
        if let Some(since) = lock(since).as_mut() {
            *since = Since::now(store);
            listed.forget();
        }
        let offered = listed.offer(store);
        Offer {
            tools: tools::offer(store, appearance),
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
        // The store answers from memory; the work is done when it is asked for, and where.
        Box::pin(async move { inner.call(&call).map(Outcome::Done) })
    }

    fn read_resource(&self, call: ResourceCall) -> Pending<ResourceReply> {
        let inner = self.0.clone();
        Box::pin(async move { inner.read(&call.uri).map(Outcome::Done) })
    }

    fn complete(&self, call: CompleteCall) -> Pending<Completion> {
        let inner = self.0.clone();
        Box::pin(async move { Ok(Outcome::Done(inner.complete(&call))) })
    }

    fn attach(&self, handle: Handle) {
        let Inner { store, listed, since, .. } = &*self.0;
        let since = lock(since).take();
        let follower = Follower {
            store: Arc::downgrade(store),
            listed: listed.clone(),
            // Whoever is attached a second time begins to listen now.
            since: since.unwrap_or_else(|| Since::now(store)),
            handle,
        };
        if let Err(error) = follower.start() {
            tracing::error!(%error, "clients will not be told when articles change");
        }
    }
}

impl Inner {
    fn call(&self, call: &ToolCall) -> Result<ToolReply, Problem> {
        let Self { store, appearance, .. } = self;
        let link = |summary: &mut Summary| -> Resource {
            summary.uri = self.addresses.uri_of(&summary.id);
            listed::link(summary)
        };
        match ToolKind::named(&call.name, appearance) {
            Some(ToolKind::List) => tools::list(store, &call.arguments, link),
            Some(ToolKind::Get) => tools::get(store, &call.arguments, appearance.not_found, link),
            Some(ToolKind::Search) => tools::search(store, &call.arguments, link),
            None => Err(Problem::UnknownTool((&*call.name).into())),
        }
    }

    fn read(&self, uri: &str) -> Result<ResourceReply, Problem> {
        let unknown = || Problem::UnknownResource(uri.into());
        let id = self.addresses.id_in(uri).ok_or_else(unknown)?;
        // An address is exact, while a slug that is asked for may be an ending or in other letters.
        let there = self.store.summary(&id).map_err(tools::ours)?;
        let summary = there.ok_or_else(unknown)?;
        let article = self.store.article(&id, None).map_err(|error| match error {
            ours if ours.is_ours() => tools::ours(ours),
            _ => unknown(),
        })?;
        let contents = ResourceContents::text(uri, listed::MARKDOWN, article.content);
        Ok(ResourceReply { cache: listed::fresh_for([&summary]), ..contents.into() })
    }

    fn complete(&self, call: &CompleteCall) -> Completion {
        let Reference::Resource { uri } = &call.reference else { return Completion::default() };
        let category = call.given.get("category").map(String::as_str);
        let in_category = uri.contains("{category}");
        match (&*call.argument, in_category, category) {
            ("category", true, _) => completion(self.store.complete_category(&call.value)),
            ("slug", true, Some(category)) => {
                completion(self.store.complete_slug(Some(category), &call.value))
            }
            ("slug", ..) => listed::complete_slug(&self.store.ids(), in_category, &call.value),
            _ => Completion::default(),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn completion(found: super::results::Completion) -> Completion {
    let total = found.has_more.then_some(found.total);
    Completion { values: found.values, total, ..Completion::default() }
}

impl std::fmt::Debug for ArticleSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ArticleSource").field(&self.0.appearance).finish()
    }
}
