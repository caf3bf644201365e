//! The requests of a client, written.

use std::borrow::Cow;

use bytes::Bytes;

use super::{Complete, Initialize, Request, Resume};
use crate::id::Id;
use crate::json::{Extra, WriteJson};
use crate::message::begin_call;
use crate::meta::Meta;
use crate::method::Method;
use crate::raw::Raw;
use crate::revision::{Features, Revision};
use crate::types::Texts;

impl Request {
    /// The method of the request.
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
            Self::GetTask(_) => Method::GetTask,
            Self::UpdateTask(_) => Method::UpdateTask,
            Self::CancelTask(_) => Method::CancelTask,
            Self::TaskResult(_) => Method::TaskResult,
            Self::ListTasks(_) => Method::ListTasks,
            Self::ListSkills(_) => Method::ListSkills,
            Self::GetSkill(_) => Method::GetSkill,
            Self::ReadFolder(_) => Method::ReadFolder,
        }
    }

    /// The params in `revision`, with `meta`; `None` if they would be empty. In the modern era the
    /// metadata names the revision.
    pub fn to_params(&self, meta: &Meta, revision: Revision) -> Option<Raw> {
        let mut params = Params { out: Vec::new(), begin: 0, to: revision.features() };
        self.write_members(meta, revision, &mut params);
        params.finish().then(|| Raw::written(params.out))
    }

    /// The whole message in `revision`. The arguments are copied once.
    pub fn write(&self, id: &Id, meta: &Meta, revision: Revision) -> Bytes {
        let length = match self {
            Self::CallTool(call) => call.arguments.as_ref().map_or(0, |raw| raw.as_bytes().len()),
            _ => 0,
        };
        let mut out = Vec::with_capacity(length + 512);
        begin_call(Some(id), self.method().name(), &mut out);
        let envelope = out.len();
        out.extend_from_slice(br#","params":"#);
        let mut params = Params { begin: out.len(), out, to: revision.features() };
        self.write_members(meta, revision, &mut params);
        if !params.finish() {
            params.out.truncate(envelope);
        }
        params.out.push(b'}');
        params.out.into()
    }

    fn write_members(&self, meta: &Meta, revision: Revision, params: &mut Params) {
        match self {
            Self::Ping | Self::Discover => {}
            Self::Initialize(hello) => params.initialize(hello),
            Self::ListTools(page)
            | Self::ListPrompts(page)
            | Self::ListResources(page)
            | Self::ListTemplates(page)
            | Self::ListTasks(page)
            | Self::ListSkills(page) => params.set("cursor", &page.cursor),
            Self::CallTool(call) => {
                params.set("name", &*call.name);
                params.set("arguments", &call.arguments);
                params.resume(&call.resume);
                if params.to.core_tasks {
                    params.set("task", &call.task);
                }
                params.extra(&call.extra);
            }
            Self::GetTask(id) | Self::CancelTask(id) => params.set("taskId", id),
            Self::TaskResult(wanted) => params.set("taskId", &wanted.id),
            Self::UpdateTask(update) => {
                params.set("taskId", &update.id);
                params.answers(&update.answers);
            }
            Self::GetPrompt(get) => {
                params.set("name", &get.name);
                params.set("arguments", &Texts(Cow::Borrowed(&get.arguments)));
                params.resume(&get.resume);
                params.extra(&get.extra);
            }
            Self::ReadResource(read) => {
                params.set("uri", &read.uri);
                params.resume(&read.resume);
                params.extra(&read.extra);
            }
            Self::Subscribe(uri) | Self::Unsubscribe(uri) | Self::GetSkill(uri) => {
                params.set("uri", uri);
            }
            Self::ReadFolder(read) => {
                params.set("uri", &read.uri);
                params.set("cursor", &read.cursor);
                params.extra(&read.extra);
            }
            Self::Complete(complete) => params.complete(complete),
            Self::SetLevel(level) => params.set("level", level),
            Self::Listen(listen) => params.set("notifications", &listen.filter),
        }
        params.set("_meta", &meta.to_raw(revision));
    }
}

/// The members of the params, written one after the other.
struct Params {
    out: Vec<u8>,
    /// Where the params begin.
    begin: usize,
    to: &'static Features,
}

impl Params {
    /// Sets a member, if it has a value.
    fn set(&mut self, name: &str, value: &(impl WriteJson + ?Sized)) {
        if !value.is_none() {
            self.out.push(if self.out.len() == self.begin { b'{' } else { b',' });
            name.write_json(self.to, &mut self.out);
            self.out.push(b':');
            value.write_json(self.to, &mut self.out);
        }
    }

    /// Closes the object. `false` if it has no members.
    fn finish(&mut self) -> bool {
        let has_members = self.out.len() > self.begin;
        if has_members {
            self.out.push(b'}');
        }
        has_members
    }

    fn extra(&mut self, extra: &Extra) {
        extra.unknown().for_each(|(name, value)| self.set(name, value));
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
            self.answers(&resume.answers);
        }
        self.set("requestState", &resume.state);
    }

    fn answers(&mut self, answers: &[(String, Raw)]) {
        let answers: Vec<_> =
            answers.iter().map(|(key, raw)| (key.as_str(), Some(raw.text()))).collect();
        self.set("inputResponses", &Raw::empty_object().with_members(&answers));
    }

    fn complete(&mut self, complete: &Complete) {
        let Complete { reference, argument, given, extra } = complete;
        self.set("ref", reference);
        self.set("argument", argument);
        let is_empty = given.arguments.is_empty() && given.extra.is_empty();
        if self.to.structured && !is_empty {
            self.set("context", given);
        }
        self.extra(extra);
    }
}
