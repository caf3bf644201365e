//! Completion of arguments. Spec: server/utilities/completion.

use sabir_registry::{CompleteCall, Outcome as SourceOutcome};
use sabir_session::Outcome;
use sabir_wire::types::Reference;
use sabir_wire::{Complete, Problem};

use super::declared;
use crate::context::{MethodContext, Work};

pub(crate) fn complete(context: &MethodContext, complete: Complete) -> Work {
    begin(context, complete).unwrap_or_else(|problem| Outcome::Failed(problem).into())
}

fn begin(context: &MethodContext, complete: Complete) -> Result<Work, Problem> {
    declared(context.catalog.capabilities().completions, "completion/complete")?;
    let Complete { reference, argument, value, given } = complete;
    let Some((source, known)) = context.catalog.completer(&reference, &argument) else {
        let (Reference::Prompt { name } | Reference::Resource { uri: name }) = reference;
        return Err(Problem::Params(format!("nothing to complete: {name} is unknown").into()));
    };
    if !known {
        return Err(Problem::Params(format!("there is no argument `{argument}`").into()));
    }
    let answer = source.complete(CompleteCall { reference, argument, value, given });
    Ok(Work::Running(Box::pin(async move {
        match answer.await {
            Ok(SourceOutcome::Done(completion)) => Outcome::Done(completion.into()),
            // The specification lets only three methods ask, and this is none of them.
            Ok(SourceOutcome::NeedInput(_)) => {
                Outcome::Failed(Problem::Internal("a completion cannot ask its client".into()))
            }
            Err(problem) => Outcome::Failed(problem),
        }
    })))
}
