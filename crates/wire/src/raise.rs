//! Messages of another server in the shape of the newest revision: the inverse of
//! [`crate::render`].
//!
//! Most members have the same name and type in every revision, and [`crate::ReadJson`] reads them
//! from any. This module handles the differences at the top of a message. Notifications do not
//! differ: [`crate::types::ServerNotification::read`] reads them.

use crate::error::{Code, ErrorObject, Problem};
use crate::json::{Invalid, ReadJson, SERVER, changed, text_of};
use crate::method::Method;
use crate::raw::Raw;
use crate::revision::Revision;
use crate::task::RELATED;
use crate::types::{ClientCapabilities, Elicit, Question, Questions};

/// A request of a server of the legacy era.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerRequest {
    /// `ping`, answered with an empty result.
    Ping,
    /// A question, which the newest revision asks in an `input_required` result.
    Question(Question),
}

/// The result of `method`, as a server of revision `from` sent it. Only members at the top are
/// added or removed; all others keep their bytes.
///
/// The result of `initialize` becomes that of `server/discover`. A result without `resultType` is
/// complete, and one without cache hints must not be cached.
pub fn result(method: &Method, from: Revision, json: &Raw) -> Result<Raw, Invalid> {
    let members = json.named_members().ok_or_else(|| Invalid::new("an object"))?;
    let member = |name| members.iter().find(|(found, _)| &**found == name).map(|(_, value)| value);
    let mut changes = Vec::new();
    let mut add = |name, value| {
        if member(name).is_none() {
            changes.push((name, Some(value)));
        }
    };
    add("resultType", r#""complete""#);
    if is_cacheable(method) && member("inputRequests").is_none() {
        add("ttlMs", "0");
        add("cacheScope", r#""private""#);
    }
    let is_misplaced = |value: &Raw| !from.features().stateless && !value.is_object();
    let is_of_tool = matches!(method, Method::CallTool | Method::TaskResult);
    if is_of_tool && member("structuredContent").is_some_and(is_misplaced) {
        changes.push(("structuredContent", None));
    }
    // The newest revision has the result in the task itself.
    let own = member("_meta").filter(|_| *method == Method::TaskResult);
    let own = own.map(|meta| meta.with_members(&[(RELATED, None)]));
    if let Some(own) = &own {
        changes.push(("_meta", Some(own.text()).filter(|meta| *meta != "{}")));
    }
    if *method != Method::Initialize {
        return Ok(if changes.is_empty() { json.clone() } else { changed(&members, &changes) });
    }
    let needed = |name| member(name).ok_or_else(|| Invalid::missing(name));
    let revisions = format!("[{}]", needed("protocolVersion")?.text());
    let own = member("_meta").cloned().unwrap_or_else(Raw::empty_object);
    let meta = own.with_members(&[(SERVER, Some(needed("serverInfo")?.text()))]);
    changes.extend([("protocolVersion", None), ("serverInfo", None)]);
    changes.extend([("supportedVersions", Some(&*revisions)), ("_meta", Some(meta.text()))]);
    Ok(json.with_members(&changes))
}

fn is_cacheable(method: &Method) -> bool {
    matches!(
        method,
        Method::Initialize
            | Method::Discover
            | Method::ListTools
            | Method::ListPrompts
            | Method::ListResources
            | Method::ListTemplates
            | Method::ReadResource
    )
}

/// The error that a server of revision `from` answered `method` with.
///
/// A missing resource becomes [`Problem::UnknownResource`], a missing capability
/// [`Problem::MissingCapability`]: [`crate::render::error`] has their codes in the client's
/// revision. The error of 2025-11-25 that demands visits to web pages becomes questions; the call
/// is repeated after them.
pub fn error(method: &Method, from: Revision, error: ErrorObject) -> Result<Questions, Problem> {
    let missing =
        if from.features().stateless { Code::INVALID_PARAMS } else { Code::RESOURCE_NOT_FOUND };
    let data = |name| error.data.as_ref().and_then(|data| data.member(name));
    let uri = data("uri").and_then(|uri| text_of(&uri).ok());
    if let (Method::ReadResource, true, Some(uri)) = (method, error.code == missing, uri) {
        return Err(Problem::UnknownResource(uri.into()));
    }
    if error.code == Code::MISSING_CAPABILITY && from.features().stateless {
        let needed = data("requiredCapabilities");
        let needed = needed.and_then(|needed| ClientCapabilities::read_json(&needed).ok());
        // An extension has no place in older revisions: the error stays as it is.
        let known = needed.filter(|needed| ClientCapabilities::default().lacks(needed).is_some());
        if let Some(needed) = known {
            return Err(Problem::MissingCapability(needed));
        }
    }
    if error.code == Code::URL_ELICITATION_REQUIRED {
        let visits = data("elicitations").and_then(|all| Vec::<Elicit>::read_json(&all).ok());
        let questions = visits.into_iter().flatten().enumerate().map(|(nth, visit)| {
            let key = match &visit {
                Elicit::Url { id: Some(id), .. } => id.clone(),
                _ => format!("visit-{nth}"),
            };
            (key, Question::Elicit(visit))
        });
        let questions: Vec<_> = questions.collect();
        if !questions.is_empty() {
            return Ok(Questions { questions, ..Questions::default() });
        }
    }
    Err(Problem::Chosen(error))
}

/// A request of a server. Metadata of the request itself (`_meta`, `task`) is left out of the
/// question.
pub fn request(method: &Method, params: Option<&Raw>) -> Result<ServerRequest, Problem> {
    if *method == Method::Ping {
        return Ok(ServerRequest::Ping);
    }
    let params = params.map(|params| match params.is_object() {
        true => params.with_members(&[("_meta", None), ("task", None)]),
        false => params.clone(),
    });
    match Question::read_params(method.name(), params.as_ref()) {
        Some(Ok(question)) => Ok(ServerRequest::Question(question)),
        Some(Err(error)) => Err(Problem::Params(error.to_string().into())),
        None => Err(Problem::Method(method.name().into())),
    }
}
