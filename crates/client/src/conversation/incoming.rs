//! Messages of the server.

use std::collections::HashSet;
use std::time::Instant;

use sabir_wire::mirror::mirrored_arguments;
use sabir_wire::raise::{self, ServerRequest};
use sabir_wire::types::{Question, ServerNotification};
use sabir_wire::{Code, Era, ErrorObject, Id, Incoming, Malformed, MalformedKind, Message};
use sabir_wire::{Method, Page, Problem, Raw, Request};

use super::opening::Phase;
use super::{Conversation, Ghost, Listing, Running};
use crate::error::CallError;
use crate::io::{CallKey, LinkKind, Output, only};
use crate::request::RequestBody;

impl Conversation {
    pub(super) fn receive(
        &mut self,
        now: Instant,
        exchange: Option<CallKey>,
        frame: Result<Incoming, Malformed>,
        out: &mut Vec<Output>,
    ) {
        match frame {
            Ok(Incoming::One(message)) => self.on_message(now, exchange, message, out),
            Ok(Incoming::Batch(messages)) => {
                for message in messages.into_iter().flatten() {
                    self.on_message(now, exchange, message, out);
                }
            }
            Err(malformed) => self.on_malformed(now, exchange, malformed, out),
        }
    }

    fn on_message(
        &mut self,
        now: Instant,
        exchange: Option<CallKey>,
        message: Message,
        out: &mut Vec<Output>,
    ) {
        match message {
            Message::Response { id, result } => {
                // An answer to a request that could not be read carries no id.
                let id = id.filter(|id| !id.is_null()).or(exchange.map(CallKey::id));
                if let Some(id) = id {
                    self.on_response(now, &id, result, out);
                }
            }
            Message::Request { id, method, params } => {
                self.on_request(now, exchange, id, &method, params.as_ref(), out);
            }
            Message::Notification { method, params } => {
                self.on_notification(now, exchange, method, params, out);
            }
        }
    }

    /// Handles noise on standard output, or an answer that cannot be parsed.
    fn on_malformed(
        &mut self,
        now: Instant,
        exchange: Option<CallKey>,
        malformed: Malformed,
        out: &mut Vec<Output>,
    ) {
        tracing::debug!(mistake = ?malformed.kind, "dropped a message of the server");
        let call = malformed.id.or(exchange.map(CallKey::id)).or_else(|| {
            // A message this long is not noise: it must be the answer to the only call.
            let is_answer = malformed.kind == MalformedKind::TooLong;
            (is_answer && self.calls.len() == 1).then(|| self.calls.keys().next().cloned())?
        });
        let Some(id) = call else { return };
        let error = match malformed.kind {
            MalformedKind::TooLong => CallError::TooLong(self.config.limits.message_size),
            MalformedKind::TooDeep => CallError::Invalid("it is nested too deeply".to_owned()),
            other => CallError::Invalid(format!("{other:?}")),
        };
        if let Some(running) = self.finish(&id, out) {
            out.push(Output::Finished { call: running.key, result: Err(error) });
        } else {
            let refused = Err(ErrorObject::new(Code::INVALID_REQUEST, error.to_string()));
            self.answers_opening(now, &id, &refused, out);
        }
    }

    fn on_response(
        &mut self,
        now: Instant,
        id: &Id,
        result: Result<Raw, ErrorObject>,
        out: &mut Vec<Output>,
    ) {
        if self.answers_opening(now, id, &result, out) {
            return;
        }
        // An answer without a call belongs to a cancelled call, or is a mistake of the server.
        let Some(running) = self.finish(id, out) else {
            return self.ghosts.retain(|ghost| ghost.call.id() != *id);
        };
        let call = running.key;
        let result = match result {
            Err(error) => Err(CallError::Rpc(error)),
            Ok(result) if !result.is_object() => {
                Err(CallError::Invalid("`result` must be an object".to_owned()))
            }
            Ok(result) => Ok(self.learn(&running, result)),
        };
        out.push(Output::Finished { call, result });
    }

    /// Remembers which arguments are repeated in headers, and leaves out tools with invalid
    /// annotations. Spec: basic/transports/streamable-http, "Custom Headers from Tool Parameters".
    fn learn(&mut self, running: &Running, result: Raw) -> Raw {
        let RequestBody::Known(Request::ListTools(page)) = &running.request.body else {
            return result;
        };
        let is_modern =
            matches!(self.phase, Phase::Open(revision) if revision.era() == Era::Modern);
        if !is_modern || self.link != LinkKind::Http {
            return result;
        }
        let Some(Ok(tools)) = result.member("tools").map(|tools| tools.read::<Vec<Raw>>()) else {
            return result;
        };
        let mut kept = Vec::with_capacity(tools.len());
        let mut mirrored = HashSet::new();
        for tool in &tools {
            let name = tool.member("name").and_then(|name| name.read::<String>().ok());
            let schema = tool.member("inputSchema").and_then(|schema| schema.read().ok());
            let (Some(name), Some(schema)) = (name, schema) else {
                kept.push(tool);
                continue;
            };
            match mirrored_arguments(&schema) {
                Ok(mirrors) => {
                    kept.push(tool);
                    if mirrors.is_empty() {
                        self.mirrors.remove(&name);
                    } else {
                        mirrored.insert(name.clone());
                        self.mirrors.insert(name, mirrors);
                    }
                }
                Err(error) => tracing::warn!(tool = name, %error, "left out a tool of the server"),
            }
        }
        let next = result.member("nextCursor").and_then(|next| next.read().ok());
        self.forget_tools(page, next, mirrored);
        if kept.len() == tools.len() {
            return result;
        }
        let kept = Raw::of(&kept).unwrap_or_default();
        result.with_members(&[("tools", Some(kept.text()))])
    }

    /// Forgets the tools that a complete list no longer has. `mirrored` are those of one page, and
    /// `next` is the cursor of the page after it.
    fn forget_tools(&mut self, page: &Page, next: Option<Box<str>>, mirrored: HashSet<String>) {
        if page.cursor.is_none() {
            self.listing = Listing::default();
        }
        if page.cursor != self.listing.next {
            return;
        }
        self.listing.mirrored.extend(mirrored);
        self.listing.next = next;
        if self.listing.next.is_none() {
            let listed = std::mem::take(&mut self.listing).mirrored;
            self.mirrors.retain(|name, _| listed.contains(name));
        }
    }

    fn on_request(
        &mut self,
        now: Instant,
        exchange: Option<CallKey>,
        id: Id,
        method: &Method,
        params: Option<&Raw>,
        out: &mut Vec<Output>,
    ) {
        // The modern era has no requests of servers, and no answers to them.
        if matches!(self.phase, Phase::Open(revision) if revision.era() == Era::Modern) {
            return;
        }
        let asked = match raise::request(method, params) {
            Ok(ServerRequest::Ping) => return self.respond(&id, Ok(Raw::empty_object()), out),
            Ok(ServerRequest::Question(asked)) => asked,
            Err(problem) => return self.respond(&id, Err(problem.to_error()), out),
        };
        if let Some(problem) = self.refusal(&id, &asked) {
            return self.respond(&id, Err(problem.to_error()), out);
        }
        let calls = self.candidates(now, exchange);
        let is_running = |call: &CallKey| self.calls.contains_key(&call.id());
        if !calls.is_empty() && !calls.iter().any(is_running) {
            let problem = Problem::Internal("the call that asks has ended".into());
            return self.respond(&id, Err(problem.to_error()), out);
        }
        let certain = only(&calls);
        if let Some(running) = certain.and_then(|call| self.calls.get_mut(&call.id())) {
            // A person may take until the maximum time of the call.
            running.deadline = None;
        }
        self.questions.insert(id.clone(), certain);
        out.push(Output::Ask { question: id, asked: Box::new(asked), calls });
    }

    /// The reason to refuse a question, if there is one.
    fn refusal(&self, id: &Id, asked: &Question) -> Option<Problem> {
        let limit = self.config.limits.questions;
        if self.config.capabilities.lacks(&asked.needs()).is_some() {
            return Some(Problem::Method(asked.method().into()));
        }
        if self.questions.contains_key(id) {
            return Some(Problem::Request("this id is in use".into()));
        }
        (self.questions.len() >= limit)
            .then(|| Problem::Internal(format!("too many open questions (limit {limit})").into()))
    }

    fn on_notification(
        &mut self,
        now: Instant,
        exchange: Option<CallKey>,
        method: Method,
        params: Option<Raw>,
        out: &mut Vec<Output>,
    ) {
        let is_gone = exchange.is_some_and(|call| !self.calls.contains_key(&call.id()));
        let read = match ServerNotification::read(&method, params.as_ref()) {
            Ok(read) => read,
            Err(error) => {
                tracing::debug!(method = method.name(), %error, "dropped a notification");
                return;
            }
        };
        match read {
            Some(ServerNotification::Progress(progress)) => {
                let Some(running) = self.calls.get_mut(&progress.token) else { return };
                if running.deadline.is_some() {
                    running.restart(now);
                }
                out.push(Output::Progress { call: running.key, progress });
            }
            // The call has ended, and the message belongs to no other.
            Some(ServerNotification::Log(_) | ServerNotification::ElicitationComplete(_))
            | None
                if is_gone => {}
            Some(ServerNotification::Log(message)) => {
                let calls = self.candidates(now, exchange);
                out.push(Output::Log { calls, message });
            }
            Some(ServerNotification::Changed(changed)) => out.push(Output::Changed(changed.topic)),
            Some(ServerNotification::Acknowledged(ref acknowledged)) => {
                let id = read.as_ref().and_then(ServerNotification::subscription);
                let id = id.or(exchange.map(CallKey::id));
                if let Some(running) = id.and_then(|id| self.calls.get(&id)) {
                    let filter = acknowledged.filter.clone();
                    out.push(Output::Listening { call: running.key, filter });
                }
            }
            Some(ServerNotification::Cancelled(cancelled)) => {
                if self.questions.remove(&cancelled.request).is_some() {
                    out.push(Output::Withdraw(cancelled.request));
                } else if let Some(running) = self.finish(&cancelled.request, out) {
                    // Servers end only subscriptions in this way.
                    let result = Err(CallError::Lost("the server ended it".to_owned()));
                    out.push(Output::Finished { call: running.key, result });
                }
            }
            Some(ServerNotification::ElicitationComplete(_)) | None => {
                let calls = self.candidates(now, exchange);
                out.push(Output::Notification { calls, method, params });
            }
        }
    }

    /// The calls that a message can belong to: that of its exchange, or all that may ask.
    fn candidates(&self, now: Instant, exchange: Option<CallKey>) -> Vec<CallKey> {
        if let Some(call) = exchange {
            return vec![call];
        }
        let may_ask = self.calls.values().filter(|running| running.request.may_ask());
        // If only calls of its client run, one of them may get its message.
        let mut clients = may_ask.clone().map(|running| running.request.options.client_number);
        let first = clients.next();
        let only_client = first.filter(|first| clients.all(|client| client == *first));
        let is_foreign = |ghost: &&Ghost| ghost.until > now && Some(ghost.client) != only_client;
        let ghosts = self.ghosts.iter().filter(is_foreign).map(|ghost| ghost.call);
        let mut calls: Vec<_> = may_ask.map(|running| running.key).chain(ghosts).collect();
        calls.sort_unstable();
        calls
    }

    pub(super) fn on_failure(
        &mut self,
        now: Instant,
        exchange: CallKey,
        failure: CallError,
        challenge: Option<String>,
        out: &mut Vec<Output>,
    ) {
        if self.fails_opening(now, exchange, &failure, &challenge, out) {
            return;
        }
        if let Some(running) = self.finish(&exchange.id(), out) {
            out.push(Output::Finished { call: running.key, result: Err(failure) });
        }
    }
}
