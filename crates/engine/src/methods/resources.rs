//! Resources. Spec: server/resources.

use sabir_registry::ResourceCall;
use sabir_session::Outcome;
use sabir_wire::types::ServerResult;
use sabir_wire::{Page, Problem, ReadResource};

use super::rounds::{self, Round};
use super::{Reply, declared};
use crate::desk::{Desk, Work};

pub(crate) fn list(desk: &Desk, page: &Page) -> Reply {
    declared(desk.catalog.capabilities().resources, "resources/list")?;
    let page = desk.catalog.resources_page(page.cursor.as_deref(), desk.asker.revision)?;
    Ok(ServerResult::Ready(page))
}

pub(crate) fn templates(desk: &Desk, page: &Page) -> Reply {
    declared(desk.catalog.capabilities().resources, "resources/templates/list")?;
    let page = desk.catalog.templates_page(page.cursor.as_deref(), desk.asker.revision)?;
    Ok(ServerResult::Ready(page))
}

pub(crate) fn read(desk: Desk, read: ReadResource) -> Work {
    begin(desk, read).unwrap_or_else(|problem| Outcome::Failed(problem).into())
}

fn begin(desk: Desk, read: ReadResource) -> Result<Work, Problem> {
    declared(desk.catalog.capabilities().resources, "resources/read")?;
    let Some(found) = desk.catalog.resource(&read.uri) else {
        return Err(Problem::UnknownResource(read.uri));
    };
    let round = Round::open(&desk, "resources/read", (&*read.uri).into(), None, read.resume)?;
    let context = rounds::context(desk, &round);
    let source = found.source().clone();
    let variables = found.variables.into_iter().collect();
    let answer = source.read_resource(ResourceCall {
        uri: read.uri,
        template: found.template,
        variables,
        context,
    });
    Ok(Work::Running(Box::pin(async move { round.close(answer.await) })))
}

/// The session takes the subscription over once this has succeeded.
pub(crate) fn subscribe(desk: &Desk, uri: &str) -> Reply {
    declared(desk.catalog.capabilities().subscribe, "resources/subscribe")?;
    match desk.catalog.resource(uri) {
        Some(_) => Ok(ServerResult::Empty),
        None => Err(Problem::UnknownResource(uri.into())),
    }
}

pub(crate) fn unsubscribe(desk: &Desk) -> Reply {
    declared(desk.catalog.capabilities().subscribe, "resources/unsubscribe")?;
    Ok(ServerResult::Empty)
}
