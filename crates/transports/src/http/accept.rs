//! The headers of a modern request, which repeat parts of its body so that proxies can see them.
//!
//! Spec: basic/transports/streamable-http, "Request Metadata". A proxy may have decided by the
//! headers, so a request whose headers differ from its body is refused. No I/O.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::HeaderMap;
use sabir_registry::Catalog;
use sabir_wire::mirror::{MirrorType, MirroredArgument, value_at};
use sabir_wire::{Era, Incoming, Message, Method, ParsedRequest, Problem, Raw, Request, Revision};

use super::headers::{self, Headers};

const VERSION: &str = "mcp-protocol-version";
const METHOD: &str = "mcp-method";
const NAME: &str = "mcp-name";

/// The value of `MCP-Protocol-Version`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VersionHeader {
    /// The header is missing.
    Nothing,
    /// A known revision.
    Known(Revision),
    /// Another value, or several values.
    Unknown,
}

impl VersionHeader {
    /// Whether the header names a modern revision.
    pub(crate) fn is_modern(self) -> bool {
        matches!(self, Self::Known(revision) if revision.era() == Era::Modern)
    }
}

/// Reads `MCP-Protocol-Version`.
pub(crate) fn named_revision(headers: &impl Headers) -> VersionHeader {
    let mut values = headers.all(VERSION);
    let Some(first) = values.next() else { return VersionHeader::Nothing };
    let known = headers::text(first).and_then(Revision::parse);
    match known {
        Some(revision) if values.all(|other| other == first) => VersionHeader::Known(revision),
        _ => VersionHeader::Unknown,
    }
}

/// Checks that the headers of a modern request repeat its body. `named` is the result of
/// [`named_revision`].
pub(crate) fn check(
    headers: &impl Headers,
    named: VersionHeader,
    asked: &ParsedRequest,
    catalog: &Catalog,
) -> Result<(), Problem> {
    // Without metadata in the body there is nothing to compare with; the session reports what is
    // missing.
    let version = asked.meta.as_ref().ok().and_then(|meta| meta.version.as_deref());
    if !matches!(named, VersionHeader::Known(revision) if version == Some(revision.date())) {
        plain(headers, VERSION, "MCP-Protocol-Version", version)?;
    }
    plain(headers, METHOD, "Mcp-Method", Some(asked.method.name()))?;
    match &asked.request {
        Ok(Request::CallTool(call)) => {
            encoded(headers, "Mcp-Name", &call.name)?;
            match catalog.tool(&call.name) {
                Some(tool) => mirrored(headers, &tool.mirrored, call.arguments.as_ref()),
                None => Ok(()),
            }
        }
        Ok(Request::GetPrompt(get)) => encoded(headers, "Mcp-Name", &get.name),
        Ok(Request::ReadResource(read)) => encoded(headers, "Mcp-Name", &read.uri),
        Ok(Request::GetTask(id) | Request::CancelTask(id)) => encoded(headers, "Mcp-Name", id),
        Ok(Request::UpdateTask(update)) => encoded(headers, "Mcp-Name", &update.id),
        Ok(_) => Ok(()),
        // The name must be repeated even where other params are invalid.
        Err(_) => match unread_name(asked) {
            Some(name) => encoded(headers, "Mcp-Name", &name),
            None => Ok(()),
        },
    }
}

/// The name in params that could not be parsed.
fn unread_name(asked: &ParsedRequest) -> Option<String> {
    let name = match asked.method {
        Method::CallTool | Method::GetPrompt => "name",
        Method::ReadResource => "uri",
        Method::GetTask | Method::UpdateTask | Method::CancelTask => "taskId",
        _ => return None,
    };
    value_at(asked.params.as_ref()?, &[name.to_owned()])?.read().ok()
}

/// Checks that the headers of a POST repeat its body; `None` if the body is not a request. This is
/// the check of [`Server`](super::Server) for modern requests, for tests.
pub fn headers_agree(
    headers: &HeaderMap,
    body: &Bytes,
    catalog: &Catalog,
) -> Option<Result<(), Problem>> {
    let Ok(Incoming::One(Message::Request { id, method, params })) =
        sabir_wire::decode(body, DEPTH)
    else {
        return None;
    };
    let asked = ParsedRequest::read(id, method, params);
    Some(check(headers, named_revision(headers), &asked, catalog))
}

/// The maximum nesting of the body in that check.
const DEPTH: usize = 128;

/// Checks a header that repeats `body` as it is.
fn plain(
    headers: &impl Headers,
    header: &str,
    name: &str,
    body: Option<&str>,
) -> Result<(), Problem> {
    let mut values = headers.all(header).peekable();
    if values.peek().is_none() {
        return Err(mismatch(format!("the header {name} is missing")));
    }
    let Some(body) = body else { return Ok(()) };
    // A duplicate header is ambiguous: two parsers could use different values.
    match values.find(|value| *value != body.as_bytes()) {
        None => Ok(()),
        Some(value) => Err(differs(name, value, body)),
    }
}

/// Checks `Mcp-Name`, which repeats `body` as it is or encoded.
fn encoded(headers: &impl Headers, name: &str, body: &str) -> Result<(), Problem> {
    let mut values = headers.all(NAME).peekable();
    if values.peek().is_none() {
        return Err(mismatch(format!("the header {name} is missing")));
    }
    for value in values {
        if decode(name, value)? != body {
            return Err(differs(name, value, body));
        }
    }
    Ok(())
}

/// Checks the headers of the arguments that a tool wants repeated.
fn mirrored(
    headers: &impl Headers,
    mirrored: &[MirroredArgument],
    arguments: Option<&Raw>,
) -> Result<(), Problem> {
    for argument in mirrored {
        let name = argument.header.as_str();
        let given = arguments.and_then(|arguments| argument.find(arguments));
        let mut values = headers.all(name).peekable();
        match (given, values.peek()) {
            (None, None) => {}
            (None, Some(_)) => {
                let reason = format!("unexpected header {name}: the body has no such argument");
                return Err(mismatch(reason));
            }
            (Some(_), None) => return Err(mismatch(format!("the header {name} is missing"))),
            (Some(given), Some(_)) => {
                for value in values {
                    if !repeats(&decode(name, value)?, &given, argument.r#type) {
                        return Err(differs(name, value, given.text()));
                    }
                }
            }
        }
    }
    Ok(())
}

/// Whether a header has the same value as the body.
fn repeats(header: &str, body: &Raw, r#type: MirrorType) -> bool {
    match r#type {
        // Arguments that violate the schema are refused for that, not for their headers.
        MirrorType::String => body.read::<String>().map_or(true, |text| text == header),
        MirrorType::Boolean => body.read::<bool>().map_or(true, |_| body.text() == header),
        MirrorType::Integer => match (integer(header), integer(body.text())) {
            (_, None) => true,
            (header, body) => header == body,
        },
    }
}

/// Reads an integer in any notation: `42`, `42.0`, `4.2e1`.
fn integer(text: &str) -> Option<i128> {
    /// Beyond this a floating point number is no longer exact.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    if !is_number || text.starts_with('+') {
        return None;
    }
    text.parse().ok().or_else(|| {
        let number: f64 = text.parse().ok()?;
        (number.fract() == 0.0 && number.abs() <= EXACT).then_some(number as i128)
    })
}

/// The decoded value of a header. Spec: "Value Encoding".
fn decode<'a>(name: &str, value: &'a [u8]) -> Result<Cow<'a, str>, Problem> {
    let text = headers::text(value).ok_or_else(|| {
        mismatch(format!("the header {name} has invalid characters (expected printable ASCII)"))
    })?;
    let encoded = text.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?="));
    let Some(encoded) = encoded else { return Ok(Cow::Borrowed(text)) };
    let decoded = STANDARD.decode(encoded).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    decoded
        .map(Cow::Owned)
        .ok_or_else(|| mismatch(format!("the header {name} is not valid Base64 of UTF-8")))
}

fn differs(name: &str, value: &[u8], body: &str) -> Problem {
    let value = String::from_utf8_lossy(value);
    mismatch(format!("{name} says '{}', the body says '{}'", short(&value), short(body)))
}

/// The first 80 characters of a text.
fn short(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(80) {
        None => Cow::Borrowed(text),
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
    }
}

fn mismatch(reason: String) -> Problem {
    Problem::Header(reason.into())
}

#[cfg(test)]
mod tests;
