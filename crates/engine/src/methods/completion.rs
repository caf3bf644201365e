//! Completion of arguments. Spec: server/utilities/completion.

use sabir_registry::{CompleteCall, Outcome as SourceOutcome};
use sabir_session::Outcome;
use sabir_wire::types::Reference;
use sabir_wire::{Complete, Problem};

use super::{attempt, declared};
use crate::context::{Answering, MethodContext};

pub(crate) fn complete(context: MethodContext, complete: Complete) -> Answering {
    begin(context, complete).unwrap_or_else(|problem| Outcome::Failed(problem).into())
}

fn begin(context: MethodContext, complete: Complete) -> Result<Answering, Problem> {
    declared(context.catalog.capabilities().completions, "completion/complete")?;
    let Complete { reference, argument, given, .. } = complete;
    let Some((source, known)) = context.catalog.completer(&reference, &argument.name) else {
        let (Reference::Prompt { name, .. } | Reference::Resource { uri: name, .. }) = reference;
        return Err(Problem::Params(format!("nothing to complete: {name} is unknown").into()));
    };
    if !known {
        return Err(Problem::Params(format!("unknown argument `{}`", argument.name).into()));
    }
    let source = source.clone();
    let context = attempt::plain_context(context);
    let answer = source.complete(CompleteCall { reference, argument, given, context });
    Ok(Answering::Running(Box::pin(async move {
        match answer.await {
            Ok(SourceOutcome::Done(completion)) => Outcome::Done(completion.into()),
            // The specification does not let this method ask.
            Ok(SourceOutcome::NeedInput(_)) => {
                Outcome::Failed(Problem::Internal("a completion cannot ask its client".into()))
            }
            Ok(SourceOutcome::Relayed(json)) => {
                Outcome::Done(attempt::relayed("completion/complete", json))
            }
            Err(problem) => Outcome::Failed(problem),
        }
    })))
}
