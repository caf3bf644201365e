//! A registry that serves an API.

use std::sync::Arc;

use sabir_openapi::Method;
use sabir_outbound::{Addresses, HttpClient, PlainHttp, Policy, Redirects};
use sabir_registry::{Outcome, Registry, ResourceCall, SourceState, ToolCall};
use sabir_sources::http::{
    Api, ApiSource, Choice, Folder, Loader, Location, ReplyLimits, SenderSettings,
};
use sabir_testkit::local_context;
use sabir_wire::types::{ContentKind, ToolReply};
use sabir_wire::{Problem, Raw};
use serde_json::{Value, json};
use tempfile::TempDir;

/// This machine may be reached.
pub(crate) fn local() -> Policy {
    Policy {
        addresses: Addresses::PublicAndLoopback,
        plain_http: PlainHttp::Loopback,
        redirects: Redirects::Follow,
        ..Policy::default()
    }
}

/// A registry that serves an API.
pub(crate) struct Shop {
    registry: Arc<Registry>,
    _folder: Option<TempDir>,
}

/// An API whose description is at `location`, with all methods.
pub(crate) fn api(location: Location) -> Api {
    Api {
        name: "t".into(),
        loader: Loader { location, client: HttpClient::new(local()).ok(), cache: None },
        choice: Choice { methods: Method::ALL.to_vec(), ..Choice::default() },
        sender: SenderSettings { policy: local(), ..SenderSettings::default() },
        trusts_servers: true,
        base_url: None,
        limits: ReplyLimits::default(),
        folder: Folder::default(),
    }
}

impl Shop {
    /// Serves an API with these paths at `url`. `change` changes its settings.
    pub(crate) async fn of(url: &str, paths: Value, change: impl FnOnce(&mut Api)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("api.json");
        let text = json!({ "openapi": "3.0.0", "servers": [{ "url": url }], "paths": paths });
        std::fs::write(&path, text.to_string()).unwrap();
        let mut api = api(Location::File(path));
        change(&mut api);
        Self { _folder: Some(folder), ..Self::new(api).await }
    }

    pub(crate) async fn new(api: Api) -> Self {
        let server = Raw::of(&json!({ "name": "t", "version": "1" })).unwrap();
        let registry = Registry::new(server, 100);
        registry.add(Arc::new(ApiSource::new(api))).unwrap();
        for starting in registry.start() {
            let _ = starting.await;
        }
        Self { registry, _folder: None }
    }

    pub(crate) fn tools(&self) -> Vec<String> {
        self.registry.snapshot().tools().iter().map(|tool| tool.name.clone()).collect()
    }

    pub(crate) fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for source in self.registry.status() {
            if let SourceState::Failed(reason) = source.state {
                problems.push(reason.to_string());
            }
            problems.extend(source.problems);
        }
        problems
    }

    /// Calls a tool as the engine does, and checks the arguments.
    pub(crate) async fn call(&self, name: &str, arguments: Value) -> Result<ToolReply, Problem> {
        let entry = self.registry.snapshot().tool(name).unwrap().clone();
        let arguments = Raw::of(&arguments).unwrap();
        entry.input.check(&arguments).map_err(|reason| Problem::Arguments(reason.into()))?;
        let call = ToolCall { name: name.into(), arguments, context: local_context() };
        match entry.source().call_tool(call).await? {
            Outcome::Done(reply) => Ok(reply),
            Outcome::NeedInput(_) | Outcome::Relayed(_) => panic!("not an answer of an API"),
        }
    }

    /// The first text of a result, or the reason of a failure.
    pub(crate) async fn text(&self, name: &str, arguments: Value) -> String {
        match self.call(name, arguments).await {
            Ok(reply) => text(&reply).to_owned(),
            Err(problem) => problem.to_error().message.to_string(),
        }
    }

    pub(crate) async fn read(&self, uri: &str) -> String {
        let found = self.registry.snapshot();
        let found = found.resource(uri).unwrap();
        let (template, variables) =
            (found.template.clone(), found.variables.iter().cloned().collect());
        let call = ResourceCall { uri: uri.into(), template, variables, context: local_context() };
        match found.source().read_resource(call).await.unwrap() {
            Outcome::Done(reply) => reply.contents[0].body.as_text().unwrap().to_owned(),
            Outcome::NeedInput(_) | Outcome::Relayed(_) => panic!("not an answer of an API"),
        }
    }
}

pub(crate) fn text(reply: &ToolReply) -> &str {
    match &reply.content[0].kind {
        ContentKind::Text(text) => text,
        other => panic!("not text: {other:?}"),
    }
}
