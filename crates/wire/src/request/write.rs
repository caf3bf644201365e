//! The requests of a client, written.

use super::{Complete, Initialize, Request, Resume};
use crate::json::WriteJson;
use crate::meta::Meta;
use crate::method::Method;
use crate::raw::Raw;
use crate::revision::{Features, Revision};

impl Request {
    /// The method that makes it.
    pub fn method(&self) -> Method {
        match self {
            Self::Initialize(_) => Method::Initialize,
            Self::Ping => Method::Ping,
            Self::Discover => Method::Discover,
            Self::ListTools(_) => Method::ListTools,
            Self::CallTool(_) => Method::CallTool,
            Self::ListPrompts(_) => Method::ListPrompts,
            Self::GetPrompt(_) => Method::GetPrompt,
            Self::ListResources(_) => Method::ListResources,
            Self::ListTemplates(_) => Method::ListTemplates,
            Self::ReadResource(_) => Method::ReadResource,
            Self::Subscribe(_) => Method::Subscribe,
            Self::Unsubscribe(_) => Method::Unsubscribe,
            Self::Complete(_) => Method::Complete,
            Self::SetLevel(_) => Method::SetLevel,
            Self::Listen(_) => Method::Listen,
        }
    }

    /// The params in `revision`, with `meta`; `None` if they would be empty. In the modern era the
    /// metadata names the revision.
    pub fn to_params(&self, meta: &Meta, revision: Revision) -> Option<Raw> {
        let to = revision.features();
        let mut params = Params { members: Vec::new(), to };
        match self {
            Self::Ping | Self::Discover => {}
            Self::Initialize(hello) => params.initialize(hello),
            Self::ListTools(page)
            | Self::ListPrompts(page)
            | Self::ListResources(page)
            | Self::ListTemplates(page) => params.set("cursor", &page.cursor),
            Self::CallTool(call) => {
                params.set("name", &*call.name);
                params.set("arguments", &call.arguments);
                params.resume(&call.resume);
            }
            Self::GetPrompt(get) => {
                params.set("name", &get.name);
                params.set("arguments", &Raw::of(&get.arguments).ok());
                params.resume(&get.resume);
            }
            Self::ReadResource(read) => {
                params.set("uri", &read.uri);
                params.resume(&read.resume);
            }
            Self::Subscribe(uri) | Self::Unsubscribe(uri) => params.set("uri", uri),
            Self::Complete(complete) => params.complete(complete),
            Self::SetLevel(level) => params.set("level", level),
            Self::Listen(listen) => params.set("notifications", &listen.filter),
        }
        params.set("_meta", &meta.to_raw(revision));
        let Params { members, .. } = params;
        let members: Vec<_> =
            members.iter().map(|(name, value)| (*name, Some(value.text()))).collect();
        (!members.is_empty()).then(|| Raw::empty_object().with_members(&members))
    }
}

struct Params {
    members: Vec<(&'static str, Raw)>,
    to: &'static Features,
}

impl Params {
    /// Sets a member, if it has a value.
    fn set(&mut self, name: &'static str, value: &(impl WriteJson + ?Sized)) {
        if !value.is_none() {
            let mut out = Vec::new();
            value.write_json(self.to, &mut out);
            self.members.push((name, Raw::written(out)));
        }
    }

    fn initialize(&mut self, hello: &Initialize) {
        self.set("protocolVersion", &hello.version);
        self.set("capabilities", &hello.capabilities);
        self.set("clientInfo", &hello.client);
    }

    fn resume(&mut self, resume: &Resume) {
        if !self.to.stateless {
            return;
        }
        if !resume.answers.is_empty() {
            let answers = resume.answers.iter();
            let answers: Vec<_> =
                answers.map(|(key, raw)| (key.as_str(), Some(raw.text()))).collect();
            self.set("inputResponses", &Raw::empty_object().with_members(&answers));
        }
        self.set("requestState", &resume.state);
    }

    fn complete(&mut self, complete: &Complete) {
        let Complete { reference, argument, value, given } = complete;
        self.set("ref", &Raw::of(reference).ok());
        let argument = serde_json::json!({ "name": argument, "value": value });
        self.set("argument", &Raw::of(&argument).ok());
        if self.to.structured && !given.is_empty() {
            let context = serde_json::json!({ "arguments": given });
            self.set("context", &Raw::of(&context).ok());
        }
    }
}
