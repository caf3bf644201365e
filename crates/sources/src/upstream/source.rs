//! An upstream as a source.

use std::sync::{Arc, Weak};
use std::time::Duration;

use sabir_registry::{
    Closing, CompleteCall, Offer, Pending, PromptCall, ResourceCall, Source, SourceHandle,
    Starting, ToolCall,
};
use sabir_supervisor::Supervisor;
use sabir_wire::types::{Completion, PromptReply, Reference, ResourceReply, ToolReply};
use sabir_wire::{CallTool, Complete, GetPrompt, Problem, Raw, ReadResource, Request, Resume};

use super::parked::State;
use super::reach::Reach;
use super::server::{Upstream, lock};
use super::settings::Settings;

/// Serves another MCP server.
#[derive(Debug)]
pub struct UpstreamSource(Arc<Upstream>);

impl UpstreamSource {
    /// A source for an upstream, which is not started yet. What it offered the last time is offered
    /// from the beginning.
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
                drop(upstream.instance_of(None, None));
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
            resume: Resume::default(),
            task: None,
        });
        self.0.relay(request, call.context)
    }

    fn get_prompt(&self, call: PromptCall) -> Pending<PromptReply> {
        let mapped = self.0.mapped.load();
        let name = mapped.prompt(&call.name).unwrap_or(&call.name).into();
        let (arguments, resume) = (call.arguments, Resume::default());
        self.0.relay(Request::GetPrompt(GetPrompt { name, arguments, resume }), call.context)
    }

    fn read_resource(&self, call: ResourceCall) -> Pending<ResourceReply> {
        let uri = self.0.mapping.uris.inward(&call.uri);
        if !self.0.mapping.passes_resource(&uri) {
            return Box::pin(async { Err(Problem::UnknownResource(call.uri)) });
        }
        let (uri, resume) = ((&*uri).into(), Resume::default());
        self.0.relay(Request::ReadResource(ReadResource { uri, resume }), call.context)
    }

    fn complete(&self, call: CompleteCall) -> Pending<Completion> {
        let mapped = self.0.mapped.load();
        let reference = match call.reference {
            Reference::Prompt { name } => {
                Reference::Prompt { name: mapped.prompt(&name).unwrap_or(&name).into() }
            }
            Reference::Resource { uri } => {
                Reference::Resource { uri: (&*self.0.mapping.uris.inward(&uri)).into() }
            }
        };
        let CompleteCall { argument, value, given, context, .. } = call;
        self.0.relay(Request::Complete(Complete { reference, argument, value, given }), context)
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
}

/// Tries to start an upstream of which nothing is known, again and again.
async fn keep_trying(upstream: Weak<Upstream>) {
    const LONGEST: Duration = Duration::from_secs(300);
    let mut wait = Duration::from_secs(5);
    loop {
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(LONGEST);
        let Some(upstream) = upstream.upgrade() else { return };
        if lock(&upstream.known).catalog.is_some() || upstream.learn_first().await.is_ok() {
            return;
        }
    }
}
