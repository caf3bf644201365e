//! Results and problems, put into the client's revision and the deployment's dialect.

use sabir_wire::types::{Content, ContentKind, ServerResult, ToolReply};
use sabir_wire::{Code, ErrorObject, Malformed, MalformedKind, Problem, Revision, render};

use crate::dialect::{Dialect, MissingMethod, ToolFailure, UnknownTool};

/// What a client of `revision` is told of `problem`, which ended the call of a tool.
pub(crate) fn settle_tool(
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

/// A finished call's result, where the dialect has its own idea of failed tools.
pub(crate) fn finish(result: ServerResult, dialect: &Dialect) -> Result<ServerResult, ErrorObject> {
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

/// What is wrong with a message that could not be read.
pub(crate) fn misread(malformed: &Malformed, dialect: &Dialect) -> Problem {
    let request = |reason: &'static str| Problem::Request(reason.into());
    match &malformed.kind {
        MalformedKind::Syntax(reason) => Problem::Syntax(reason.clone()),
        MalformedKind::TooLong => request("the message is longer than the limit"),
        MalformedKind::TooDeep => request("the message is nested deeper than the limit"),
        MalformedKind::TooMany => request("the batch has more messages than the limit"),
        MalformedKind::NotAnObject => request("a message is an object"),
        MalformedKind::Version => request("`jsonrpc` must be \"2.0\""),
        MalformedKind::Id => request("`id` must be a string or an integer"),
        MalformedKind::NoMethod => match dialect.missing_method {
            MissingMethod::InvalidRequest => request("`method` is missing"),
            MissingMethod::ParseError => Problem::Syntax("`method` is missing".into()),
        },
        MalformedKind::Shape(reason) => request(reason),
    }
}
