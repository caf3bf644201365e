//! Listing what an upstream offers.

use std::time::Duration;

use sabir_client::{CallError, CallOptions, CallRequest, Client, ServerInfo};
use sabir_wire::types::{ListPage, Listed, SKILLS, ServerCapabilities, TASKS};
use sabir_wire::{Code, Page, Request};

use super::memory::UpstreamCatalog;

/// Items of one list. Further ones are left out and reported.
const MAX_ITEMS: usize = 10_000;
/// Pages of one list. Further ones are not asked for, which is reported.
const MAX_PAGES: usize = 500;

/// The time limit of a page. A listing that never ends would block all later ones.
const LIST_TIME: Duration = Duration::from_secs(60);

/// Asks for all lists that the server says it has. The second value says what was left out. If the
/// server refuses one list, its `known` items are kept and the other lists are still read.
pub(super) async fn list(
    client: &Client,
    server: &ServerInfo,
    known: Option<UpstreamCatalog>,
) -> Result<(UpstreamCatalog, Vec<String>), CallError> {
    let is_new = known.is_none();
    let known = known.unwrap_or_default();
    let has = &server.discovered.capabilities;
    let mut left_out = Vec::new();
    let mut catalog = UpstreamCatalog {
        has_resources: has.resources,
        // The first revision had completion, but no capability that says so.
        completes: has.completions || !server.revision.features().audio,
        logs: has.logging,
        subscribes: has.subscribe,
        tasks: has_tasks(has),
        ..UpstreamCatalog::default()
    };
    if has.tools {
        let tools = all(client, Request::ListTools, &mut left_out).await;
        catalog.tools = match tools {
            // Nothing is known of this server yet, and a later attempt may succeed.
            Err(CallError::Rpc(error)) if is_new && error.code != Code::METHOD_NOT_FOUND => {
                return Err(CallError::Rpc(error));
            }
            other => or_known(other, known.tools, &mut left_out)?,
        };
    }
    if has.prompts {
        let prompts = all(client, Request::ListPrompts, &mut left_out).await;
        catalog.prompts = or_known(prompts, known.prompts, &mut left_out)?;
    }
    if has.resources {
        let resources = all(client, Request::ListResources, &mut left_out).await;
        catalog.resources = or_known(resources, known.resources, &mut left_out)?;
        // Many servers with resources do not know templates.
        let templates = all(client, Request::ListTemplates, &mut left_out).await;
        catalog.templates = match templates {
            Err(CallError::Rpc(_)) => Vec::new(),
            other => other?,
        };
    }
    if has.has_extension(SKILLS) {
        let skills = all(client, Request::ListSkills, &mut left_out).await;
        catalog.skills = or_known(skills, known.skills, &mut left_out)?;
        catalog.reads_folders = has.extension_setting(SKILLS, "directoryRead") == Some(true);
    }
    Ok((catalog, left_out))
}

/// A list, or its known items if the server refuses it.
fn or_known<T: Listed>(
    listed: Result<Vec<T>, CallError>,
    known: Vec<T>,
    left_out: &mut Vec<String>,
) -> Result<Vec<T>, CallError> {
    match listed {
        Err(CallError::Rpc(error)) => {
            left_out.push(format!("cannot list its {}: {}", T::LIST, error.message));
            Ok(known)
        }
        other => other,
    }
}

/// Whether calls of tools can be tasks, in the form of either era.
pub(super) fn has_tasks(has: &ServerCapabilities) -> bool {
    let requests = has.extra.get("tasks").and_then(|tasks| tasks.member("requests"));
    let tools = requests.and_then(|requests| requests.member("tools"));
    has.has_extension(TASKS) || tools.is_some_and(|tools| tools.member("call").is_some())
}

async fn all<T: Listed>(
    client: &Client,
    request: impl Fn(Page) -> Request,
    left_out: &mut Vec<String>,
) -> Result<Vec<T>, CallError> {
    let mut items: Vec<T> = Vec::new();
    let mut cursor: Option<Box<str>> = None;
    for _ in 0..MAX_PAGES {
        let page = CallRequest::new(request(Page { cursor: cursor.clone() }));
        let options = CallOptions { timeout: Some(LIST_TIME), ..CallOptions::default() };
        let reply = client.call(page.with(options)).await?;
        let (page, bad) = ListPage::<T>::read_tolerantly(&reply.raise()?)
            .map_err(|error| CallError::Invalid(error.to_string()))?;
        // At most 8 invalid items of a page are reported.
        left_out.extend(bad.iter().take(8).map(|bad| format!("left out: {bad}")));
        let room = MAX_ITEMS - items.len();
        let is_too_long = page.items.len() > room;
        items.extend(page.items.into_owned().into_iter().take(room));
        let next = page.next.map(Box::<str>::from);
        if is_too_long || (items.len() >= MAX_ITEMS && next.is_some()) {
            left_out.push(format!("left out: more than {MAX_ITEMS} {}", T::LIST));
            return Ok(items);
        }
        let Some(next) = next else { return Ok(items) };
        // A server that gives the same cursor again would give it for ever.
        if cursor.as_ref() == Some(&next) {
            left_out.push(format!("left out: {} after a page that names itself the next", T::LIST));
            return Ok(items);
        }
        cursor = Some(next);
    }
    left_out.push(format!("left out: {} after page {MAX_PAGES}", T::LIST));
    Ok(items)
}
