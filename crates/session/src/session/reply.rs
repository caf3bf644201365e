//! Responses: results and problems in the client's revision and the deployment's dialect, and
//! where they go.

use bytes::Bytes;
use sabir_wire::types::{Content, ContentKind, ServerResult, ToolReply};
use sabir_wire::{Code, ErrorObject, Id, Malformed, MalformedKind, Problem, Request, Revision};
use sabir_wire::{render, write_error};

use super::Session;
use crate::config::{Limits, SessionKind};
use crate::dialect::{Dialect, MissingMethod, ToolFailure, UnknownTool};
use crate::io::{MessageKind, Output, StreamId};
use crate::phase::Phase;
use crate::record::State;

/// The destination of a response.
#[derive(Clone, Copy)]
pub(super) struct ReplyTo {
    pub(super) stream: StreamId,
    pub(super) batch: Option<u64>,
}

impl Session {
    /// Answers a message that never became a call.
    pub(super) fn refuse(
        &mut self,
        reply_to: ReplyTo,
        id: Option<&Id>,
        problem: &Problem,
        out: &mut Vec<Output>,
    ) {
        let error = render::error(problem, self.state.client.revision);
        let frame = write_error(id.or_else(|| self.unattributed_error_id()), &error);
        self.send(reply_to, frame, MessageKind::Refusal(error.code), out);
    }

    /// Answers a request.
    pub(super) fn reply(
        &mut self,
        reply_to: ReplyTo,
        id: &Id,
        result: Result<ServerResult, ErrorObject>,
        revision: Revision,
        out: &mut Vec<Output>,
    ) {
        let frame = match &result {
            Ok(result) => render::response(id, result, revision, &self.config.server),
            Err(error) => write_error(Some(id), error),
        };
        let kind = MessageKind::Answer(result.err().map(|error| error.code));
        let limit = self.config.limits.batch_bytes;
        let batch = self.state.batches.find(reply_to.batch);
        let is_too_long = batch.is_some_and(|batch| batch.size() + frame.len() > limit);
        let frame = if is_too_long { write_error(Some(id), &too_long(limit)) } else { frame };
        self.send(reply_to, frame, kind, out);
    }

    fn send(&mut self, to: ReplyTo, frame: Bytes, kind: MessageKind, out: &mut Vec<Output>) {
        match self.state.batches.find(to.batch) {
            Some(batch) => batch.answer(frame),
            None => out.push(Output::Send { stream: Some(to.stream), frame, kind }),
        }
    }

    /// Sends the answers to a batch with the last of its parts.
    pub(super) fn end_part(&mut self, batch: Option<u64>, out: &mut Vec<Output>) {
        let Some((stream, frame)) = self.state.batches.end_part(batch) else { return };
        out.push(Output::Send { stream: Some(stream), frame, kind: MessageKind::Answer(None) });
    }

    /// The id of an error that belongs to no request: `null` in JSON-RPC, omitted in the revisions
    /// whose schema demands that. Before a handshake only earlier requests show the revision.
    fn unattributed_error_id(&self) -> Option<&'static Id> {
        const NULL: &Id = &Id::NULL;
        let is_omitted = match self.state.phase {
            Phase::Fresh => self.state.has_heard_modern,
            _ => self.state.client.revision.features().icons,
        };
        (!is_omitted && self.kind != SessionKind::ModernHttp).then_some(NULL)
    }
}

/// The response to a client of `revision` whose tool call ended with `problem`.
pub(super) fn tool_failure(
    problem: &Problem,
    revision: Revision,
    dialect: &Dialect,
) -> Result<ServerResult, ErrorObject> {
    match (problem, dialect.unknown_tool, dialect.tool_failure) {
        (Problem::UnknownTool(name), UnknownTool::MethodNotFound, _) => {
            Err(ErrorObject::new(Code::METHOD_NOT_FOUND, format!("Tool not found: {name}")))
        }
        (Problem::UnknownTool(name), UnknownTool::Result, _) => {
            Ok(ToolReply::failed(format!("Unknown tool: {name}")).into())
        }
        (Problem::ToolFailed(_), _, ToolFailure::InternalError) => Err(problem.to_error()),
        _ => render::settle(problem, revision),
    }
}

/// The result of a call that ended. A dialect may turn the result of a failed tool into an error.
pub(super) fn success(
    result: ServerResult,
    dialect: &Dialect,
) -> Result<ServerResult, ErrorObject> {
    match result {
        ServerResult::Tool(reply)
            if reply.is_error && dialect.tool_failure == ToolFailure::InternalError =>
        {
            Err(ErrorObject::new(Code::INTERNAL, all_text(&reply.content)))
        }
        result => Ok(result),
    }
}

fn all_text(content: &[Content]) -> String {
    let texts = content.iter().filter_map(|content| match &content.kind {
        ContentKind::Text(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// The mistake in a message that could not be parsed.
pub(super) fn malformed(malformed: &Malformed, dialect: &Dialect) -> Problem {
    let request = |reason: &'static str| Problem::Request(reason.into());
    match &malformed.kind {
        MalformedKind::Syntax(reason) => Problem::Syntax(reason.clone()),
        MalformedKind::TooLong => request("the message is longer than the limit"),
        MalformedKind::TooDeep => request("the message is nested deeper than the limit"),
        MalformedKind::TooMany => request("the batch has more messages than the limit"),
        MalformedKind::NotAnObject => request("a message must be a JSON object"),
        MalformedKind::Version => request("`jsonrpc` must be \"2.0\""),
        MalformedKind::Id => request("`id` must be a string or an integer"),
        MalformedKind::NoMethod => match dialect.missing_method {
            MissingMethod::InvalidRequest => request("`method` is missing"),
            MissingMethod::ParseError => Problem::Syntax("`method` is missing".into()),
        },
        MalformedKind::Shape(reason) => request(reason),
    }
}

/// A bound of the session is reached.
pub(super) fn too_many(what: &str, limit: usize) -> Problem {
    Problem::Internal(format!("too many {what} in this session (limit {limit})").into())
}

fn too_long(limit: usize) -> ErrorObject {
    let reason = format!("the answers to the batch are too long (limit {limit} bytes)");
    ErrorObject::new(Code::INTERNAL, reason)
}

/// Refuses more subscriptions than a session may have.
impl State {
    pub(super) fn check_subscriptions(
        &self,
        request: &Request,
        limits: &Limits,
    ) -> Result<(), Problem> {
        let (count, bytes) = match request {
            Request::Subscribe(uri) if self.subscriptions.is_subscribed(uri) => return Ok(()),
            Request::Subscribe(uri) => (1, uri.len()),
            Request::Listen(listen) => (listen.filter.weight(), listen.filter.size()),
            _ => return Ok(()),
        };
        let (coming, coming_bytes) = self.calls.subscribing();
        if self.subscriptions.len() + coming + count > limits.subscriptions {
            return Err(too_many("subscriptions", limits.subscriptions));
        }
        if self.subscriptions.size() + coming_bytes + bytes > limits.subscription_bytes {
            let limit = limits.subscription_bytes;
            return Err(too_many("bytes of subscribed URIs", limit));
        }
        Ok(())
    }
}

/// The session takes no new requests.
pub(super) fn stopping() -> Problem {
    Problem::Internal("the server is stopping".into())
}

/// The revision has no batches.
pub(super) fn no_batches(revision: Revision) -> Problem {
    let reason = format!("JSON-RPC batches are not supported in protocol revision {revision}");
    Problem::Request(reason.into())
}
