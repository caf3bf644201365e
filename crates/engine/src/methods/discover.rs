//! The identity and the capabilities of the server. Spec: server/discover; basic/lifecycle of the
//! older revisions.

use sabir_wire::Revision;
use sabir_wire::types::{CacheScope, DiscoverResult, InitializeResult, ServerResult};

use super::Reply;
use crate::context::MethodContext;

pub(crate) fn initialize(context: &MethodContext) -> Reply {
    let settings = &context.engine.settings;
    let result = InitializeResult {
        // The session has agreed on it.
        revision: context.from.revision,
        capabilities: context.catalog.capabilities().clone(),
        server: settings.server.clone(),
        instructions: instructions(context),
        ..InitializeResult::default()
    };
    let result = if settings.dialect.flat_server_info { result.flat() } else { result };
    Ok(ServerResult::InitializeResult(Box::new(result)))
}

pub(crate) fn discover(context: &MethodContext) -> Reply {
    let settings = &context.engine.settings;
    let revisions = match settings.dialect.revision {
        Some(pinned) => vec![pinned],
        None => Revision::ALL.into_iter().rev().collect(),
    };
    let mut cache = context.engine.discovery_cache();
    if context.whole.is_restricted() {
        cache.scope = CacheScope::Private;
    }
    Ok(ServerResult::DiscoverResult(Box::new(DiscoverResult {
        revisions,
        capabilities: context.catalog.capabilities().clone(),
        instructions: instructions(context),
        cache,
        ..DiscoverResult::default()
    })))
}

/// The instructions of the operator, or else of the sources. An empty text of the operator means
/// none.
fn instructions(context: &MethodContext) -> Option<String> {
    let written = context.engine.settings.instructions.clone();
    let told = written.or_else(|| context.catalog.instructions().map(str::to_owned));
    told.filter(|text| !text.is_empty())
}

pub(crate) fn ping() -> Reply {
    Ok(ServerResult::Empty)
}
