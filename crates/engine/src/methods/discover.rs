//! Who we are and what we offer. Spec: server/discover; basic/lifecycle of the older revisions.

use sabir_wire::Revision;
use sabir_wire::types::{Discovery, ServerResult, Welcome};

use super::Reply;
use crate::desk::Desk;

pub(crate) fn initialize(desk: &Desk) -> Reply {
    let settings = &desk.engine.settings;
    Ok(ServerResult::Welcome(Box::new(Welcome {
        // The session has agreed on it.
        revision: desk.asker.revision,
        capabilities: desk.catalog.capabilities(),
        server: settings.server.clone(),
        instructions: settings.instructions.clone(),
        flat: settings.dialect.flat_server_info,
    })))
}

pub(crate) fn discover(desk: &Desk) -> Reply {
    let settings = &desk.engine.settings;
    let revisions = match settings.dialect.revision {
        Some(pinned) => vec![pinned],
        None => Revision::ALL.into_iter().rev().collect(),
    };
    Ok(ServerResult::Discovery(Box::new(Discovery {
        revisions,
        capabilities: desk.catalog.capabilities(),
        instructions: settings.instructions.clone(),
        cache: desk.engine.discovery_cache(),
    })))
}

pub(crate) fn ping() -> Reply {
    Ok(ServerResult::Empty)
}
