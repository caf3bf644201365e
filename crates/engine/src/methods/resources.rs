//! Resources. Spec: server/resources.

use sabir_registry::ResourceCall;
use sabir_session::Outcome;
use sabir_wire::types::ServerResult;
use sabir_wire::{Problem, ReadResource};

use super::attempt::{self, Attempt};
use super::{Reply, declared};
use crate::context::{Answering, MethodContext};

pub(crate) fn read(context: MethodContext, read: ReadResource) -> Answering {
    begin(context, read).unwrap_or_else(|problem| Outcome::Failed(problem).into())
}

fn begin(context: MethodContext, read: ReadResource) -> Result<Answering, Problem> {
    declared(context.catalog.capabilities().resources, "resources/read")?;
    let Some(found) = context.catalog.resource(&read.uri) else {
        return Err(Problem::UnknownResource(read.uri));
    };
    let attempt = Attempt::open(
        &context,
        found.source(),
        "resources/read",
        (&*read.uri).into(),
        None,
        read.resume,
    )?;
    let context = attempt::context(context, &attempt);
    let source = found.source().clone();
    let variables = found.variables.into_iter().collect();
    let answer = source.read_resource(ResourceCall {
        uri: read.uri,
        template: found.template,
        variables,
        context,
    });
    Ok(Answering::Running(Box::pin(async move { attempt.close(answer.await).await })))
}

/// The session takes the subscription over once this has succeeded.
pub(crate) fn subscribe(context: &MethodContext, uri: &str) -> Reply {
    declared(context.catalog.capabilities().subscribe, "resources/subscribe")?;
    match context.catalog.resource(uri) {
        Some(_) => Ok(ServerResult::Empty),
        None => Err(Problem::UnknownResource(uri.into())),
    }
}

pub(crate) fn unsubscribe(context: &MethodContext) -> Reply {
    declared(context.catalog.capabilities().subscribe, "resources/unsubscribe")?;
    Ok(ServerResult::Empty)
}
