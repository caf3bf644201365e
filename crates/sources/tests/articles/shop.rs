//! A registry that serves a store, and calls as the engine makes them.

use std::sync::Arc;

use sabir_articles::Store;
use sabir_registry::{Catalog, CompleteCall, Outcome, Registry, ResourceCall, ToolCall};
use sabir_sources::articles::{Appearance, ArticleSource, Services};
use sabir_testkit::local_context;
use sabir_wire::types::{CompletionArgument, CompletionContext, ContentKind};
use sabir_wire::types::{Reference, ResourceReply, ToolReply};
use sabir_wire::{Problem, Raw};
use serde_json::{Value, json};

use crate::support::Home;

pub(crate) const ERAS: &str = "---\ntitle: Two eras\ndescription: Sessions, and none\ntags: [protocol]\nstatus: \
                    Live\nlastUpdated: 2025-05-01\n---\n# Two eras\n\nOld clients shake \
                    hands.\n\n## Bridges\n\nA server may speak both.\n";
pub(crate) const DRAFT: &str = "---\ntitle: Secret bridges\nstatus: Draft\n---\n# Secret\n";

pub(crate) fn home() -> Home {
    Home::new(&[
        ("concepts/eras.md", ERAS),
        ("concepts/pages.md", "---\nlastUpdated: 2025-04-01\n---\n# Cursors\n\nOne page.\n"),
        ("patterns/pages.md", "---\nlastUpdated: 2025-03-01\n---\n# Paging\n\nAnother page.\n"),
        ("patterns/secret.md", DRAFT),
    ])
}

/// A registry that serves a store.
pub(crate) struct Shop {
    pub(crate) registry: Arc<Registry>,
}

impl Shop {
    pub(crate) fn of(home: &Home) -> Self {
        Self::with(home.store(), Appearance { structured: true, ..Appearance::default() })
    }

    pub(crate) fn with(store: Store, appearance: Appearance) -> Self {
        Self::with_services(store, appearance, Services::default())
    }

    pub(crate) fn with_services(store: Store, appearance: Appearance, services: Services) -> Self {
        let server = Raw::of(&json!({"name": "t", "version": "1"})).unwrap();
        let registry = Registry::new(server, 100);
        let source = ArticleSource::with_services(Arc::new(store), appearance, services);
        registry.add(Arc::new(source)).unwrap();
        // Changes are announced from now on. Does not wait until the folder is read.
        drop(registry.start());
        Self { registry }
    }

    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        self.registry.snapshot()
    }

    pub(crate) fn tool_names(&self) -> Vec<String> {
        self.catalog().tools().iter().map(|tool| tool.name.clone()).collect()
    }

    pub(crate) fn uris(&self) -> Vec<String> {
        self.catalog().resources().iter().map(|resource| resource.uri.clone()).collect()
    }

    pub(crate) fn templates(&self) -> Vec<String> {
        self.catalog().templates().iter().map(|template| template.uri_template.clone()).collect()
    }

    /// Calls a tool as the engine does, and checks the schemas.
    pub(crate) async fn call(&self, name: &str, arguments: Value) -> Result<ToolReply, Problem> {
        let entry = self.catalog().tool(name).unwrap().clone();
        let arguments = Raw::of(&arguments).unwrap();
        entry.input.check(&arguments).map_err(|reason| Problem::Arguments(reason.into()))?;
        let call = ToolCall { name: name.into(), arguments, context: local_context() };
        let Outcome::Done(reply) = entry.source().call_tool(call).await? else {
            panic!("articles ask nothing");
        };
        entry.output.as_ref().unwrap().check(reply.structured.as_ref().unwrap()).unwrap();
        Ok(reply)
    }

    pub(crate) async fn failure(&self, name: &str, arguments: Value) -> String {
        match self.call(name, arguments).await {
            Err(Problem::ToolFailed(reason)) => reason.into(),
            other => panic!("not a failed tool: {other:?}"),
        }
    }

    pub(crate) async fn read(&self, uri: &str) -> Result<ResourceReply, Problem> {
        let found =
            self.catalog().resource(uri).unwrap_or_else(|| panic!("no resource matches {uri}"));
        let variables = found.variables.iter().cloned().collect();
        let template = found.template.clone();
        let call = ResourceCall { uri: uri.into(), template, variables, context: local_context() };
        match found.source().read_resource(call).await? {
            Outcome::Done(reply) => Ok(reply),
            other => panic!("articles ask nothing: {other:?}"),
        }
    }

    pub(crate) async fn complete(
        &self,
        template: &str,
        argument: &str,
        value: &str,
        given: &[(&str, &str)],
    ) -> Vec<String> {
        let reference = Reference::resource(template);
        let catalog = self.catalog();
        let (source, known) = catalog.completer(&reference, argument).unwrap();
        assert!(known, "{template} has no {argument}");
        let given = given.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let given = CompletionContext { arguments: given, ..CompletionContext::default() };
        let (name, value) = (argument.into(), value.into());
        let argument = CompletionArgument { name, value, ..CompletionArgument::default() };
        let call = CompleteCall { reference, argument, given, context: local_context() };
        match source.complete(call).await.unwrap() {
            Outcome::Done(completion) => completion.values,
            other => panic!("articles ask nothing: {other:?}"),
        }
    }
}

pub(crate) fn text(reply: &ToolReply) -> &str {
    match &reply.content[0].kind {
        ContentKind::Text(text) => text,
        other => panic!("not text: {other:?}"),
    }
}

pub(crate) fn links(reply: &ToolReply) -> Vec<&str> {
    let links = reply.content[1..].iter().map(|content| match &content.kind {
        ContentKind::Link(resource) => resource.uri.as_str(),
        other => panic!("not a link: {other:?}"),
    });
    links.collect()
}

pub(crate) fn structured(reply: &ToolReply) -> Value {
    reply.structured.as_ref().unwrap().read().unwrap()
}

/// A shop as it is by default: text only.
pub(crate) fn plain(home: &Home) -> Shop {
    Shop::with(home.store(), Appearance::default())
}

pub(crate) async fn said(shop: &Shop, name: &str, arguments: Value) -> String {
    let entry = shop.catalog().tool(name).unwrap().clone();
    let arguments = Raw::of(&arguments).unwrap();
    entry.input.check(&arguments).unwrap();
    let call = ToolCall { name: name.into(), arguments, context: local_context() };
    match entry.source().call_tool(call).await {
        Ok(Outcome::Done(reply)) => {
            assert!(reply.structured.is_none() && reply.content.len() == 1, "{reply:?}");
            text(&reply).to_owned()
        }
        Err(Problem::ToolFailed(reason)) => format!("failed: {reason}"),
        other => panic!("{other:?}"),
    }
}
