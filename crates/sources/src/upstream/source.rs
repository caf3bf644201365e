//! An upstream as a source.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use sabir_registry::{
    Closing, CompleteCall, Figure, FolderCall, Offer, Pending, PromptCall, ResourceCall, Source,
    SourceHandle, Starting, ToolCall,
};
use sabir_supervisor::Supervisor;
use sabir_wire::types::{Completion, PromptReply, Reference, Resource, ResourceReply, ToolReply};
use sabir_wire::{CallTool, Complete, GetPrompt, Problem, Raw, ReadFolder, ReadResource, Request};

use super::memory::UpstreamCatalog;
use super::parked::State;
use super::reach::Reach;
use super::server::{Upstream, lock};
use super::settings::Settings;
use crate::age::age;

/// Serves another MCP server.
#[derive(Debug)]
pub struct UpstreamSource(Arc<Upstream>);

impl UpstreamSource {
    /// A source for an upstream, which is not started yet. Its last known catalog is offered from
    /// the beginning.
    pub fn new(settings: Settings, reach: Reach, supervisor: &Supervisor) -> Self {
        Self(Upstream::new(settings, reach, supervisor))
    }
}

impl Source for UpstreamSource {
    fn offer(&self) -> Offer {
        self.0.mapped.load().offer.clone()
    }

    fn name(&self) -> String {
        format!("upstream `{}`", self.0.settings.name)
    }

    fn start(&self, handle: SourceHandle) -> Starting {
        // The source is started once.
        let _ = self.0.handle.set(handle);
        let upstream = self.0.clone();
        let is_known = lock(&upstream.known).catalog.is_some();
        if is_known {
            if upstream.settings.eager {
                drop(upstream.instance_of(None, None, None));
            }
            return Box::pin(async { Ok(()) });
        }
        Box::pin(async move {
            let started = upstream.clone().learn_first().await;
            if started.is_err() {
                // Without a catalog nothing is listed, so that no call would ever start it.
                tokio::spawn(keep_trying(Arc::downgrade(&upstream)));
            }
            started
        })
    }

    fn is_awaited(&self) -> bool {
        !self.0.was_in_vain
    }

    fn close(&self, _patience: Duration) -> Closing {
        let upstream = self.0.clone();
        Box::pin(async move {
            upstream.parked.end_all();
            let instances = std::mem::take(&mut *lock(&upstream.instances));
            drop(instances);
        })
    }

    fn call_tool(&self, call: ToolCall) -> Pending<ToolReply> {
        let mapped = self.0.mapped.load();
        let Some(name) = mapped.tool(&call.name) else {
            let problem = Problem::UnknownTool((&*call.name).into());
            return Box::pin(async { Err(problem) });
        };
        let request = Request::CallTool(CallTool {
            name: name.into(),
            arguments: Some(call.arguments),
            extra: call.context.extra.clone(),
            ..CallTool::default()
        });
        self.0.relay(request, call.context)
    }

    fn get_prompt(&self, call: PromptCall) -> Pending<PromptReply> {
        let mapped = self.0.mapped.load();
        let name = mapped.prompt(&call.name).unwrap_or(&call.name).into();
        let PromptCall { arguments, context, .. } = call;
        let extra = context.extra.clone();
        let get = GetPrompt { name, arguments, extra, ..GetPrompt::default() };
        self.0.relay(Request::GetPrompt(get), context)
    }

    fn read_resource(&self, call: ResourceCall) -> Pending<ResourceReply> {
        let uri = self.0.mapping.uris.inward(&call.uri);
        if !self.0.mapping.passes_resource(&uri) {
            return Box::pin(async { Err(Problem::UnknownResource(call.uri)) });
        }
        let (uri, extra) = ((&*uri).into(), call.context.extra.clone());
        let read = ReadResource { uri, extra, ..ReadResource::default() };
        self.0.relay(Request::ReadResource(read), call.context)
    }

    fn read_folder(&self, call: FolderCall) -> Pending<Vec<Resource>> {
        let uri = (&*self.0.mapping.uris.inward(&call.uri)).into();
        let FolderCall { cursor, context, .. } = call;
        let extra = context.extra.clone();
        self.0.relay(Request::ReadFolder(ReadFolder { uri, cursor, extra }), context)
    }

    fn complete(&self, call: CompleteCall) -> Pending<Completion> {
        let mapped = self.0.mapped.load();
        let reference = match call.reference {
            Reference::Prompt { name, extra } => {
                Reference::Prompt { name: mapped.prompt(&name).unwrap_or(&name).into(), extra }
            }
            Reference::Resource { uri, extra } => {
                Reference::Resource { uri: (&*self.0.mapping.uris.inward(&uri)).into(), extra }
            }
        };
        let CompleteCall { argument, given, context, .. } = call;
        let extra = context.extra.clone();
        self.0.relay(Request::Complete(Complete { reference, argument, given, extra }), context)
    }

    fn watch(&self, uri: &str) {
        lock(&self.0.watched).insert((&*self.0.mapping.uris.inward(uri)).into());
        self.0.rewatch();
    }

    fn unwatch(&self, uri: &str) {
        lock(&self.0.watched).remove(&*self.0.mapping.uris.inward(uri));
        self.0.rewatch();
    }

    fn abandon(&self, state: &Raw) {
        if let Some(State::Parked(name)) = State::read(state) {
            self.0.parked.end(&name);
        }
    }

    fn problems(&self) -> Vec<String> {
        let known = lock(&self.0.known);
        let name = &self.0.settings.name;
        let problems = known.failure.iter().chain(&known.left_out);
        problems.map(|problem| format!("upstream `{name}`: {problem}")).collect()
    }

    /// What it offers, when that was listed, and whether it is connected.
    fn condition(&self) -> Option<String> {
        let instances: Vec<_> = lock(&self.0.instances).values().cloned().collect();
        let open: Vec<_> = instances.iter().filter_map(|instance| instance.open_since()).collect();
        let known = lock(&self.0.known);
        let mut parts = Vec::new();
        if let Some(catalog) = &known.catalog {
            let UpstreamCatalog { tools, prompts, resources, .. } = catalog;
            let counts = [(tools.len(), "tool"), (prompts.len(), "prompt")];
            let counts = counts.into_iter().chain([(resources.len(), "resource")]);
            parts.extend(counts.filter(|(count, _)| *count > 0).map(|(count, noun)| {
                format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
            }));
        }
        let listed = known.listed.map(|at| at.elapsed());
        let remembered = known.remembered.and_then(|at| at.elapsed().ok());
        parts.extend(listed.or(remembered).map(|since| format!("listed {} ago", age(since))));
        drop(known);
        parts.push(match open[..] {
            [] => "not connected".to_owned(),
            [(revision, since)] => {
                format!("connected for {} ({})", age(since.elapsed()), revision.date())
            }
            _ => format!("{} connections", open.len()),
        });
        Some(parts.join(", "))
    }

    fn figures(&self) -> Vec<Figure> {
        let instances: Vec<_> = lock(&self.0.instances).values().cloned().collect();
        let open = instances.iter().filter(|instance| instance.open_since().is_some()).count();
        let is_up = lock(&self.0.known).failure.is_none();
        let restarts = self.0.restarts.load(Ordering::Relaxed);
        vec![
            Figure::gauge(
                "sabir.upstream.up",
                "Whether the last attempt to use an upstream has not failed.",
                is_up.into(),
            ),
            Figure::gauge("sabir.upstream.links", "Open connections to an upstream.", open),
            Figure::counter(
                "sabir.upstream.restarts",
                "Connections to an upstream that were opened again.",
                restarts,
            ),
        ]
    }

    fn withheld(&self, tool: &str) -> Option<String> {
        self.0.mapping.withheld(lock(&self.0.known).catalog.as_ref()?, tool)
    }
}

/// Tries to start an upstream without a known catalog until it succeeds.
async fn keep_trying(upstream: Weak<Upstream>) {
    const LONGEST: Duration = Duration::from_secs(300);
    let mut wait = Duration::from_secs(5);
    loop {
        tokio::time::sleep(wait).await;
        let Some(upstream) = upstream.upgrade() else { return };
        // Checking for a login is cheap: the wait need not grow.
        if !upstream.reach.needs_credentials() {
            wait = (wait * 2).min(LONGEST);
        }
        if lock(&upstream.known).catalog.is_some() || upstream.learn_first().await.is_ok() {
            return;
        }
    }
}
