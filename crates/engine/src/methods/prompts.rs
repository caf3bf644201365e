//! Prompts. Spec: server/prompts.

use std::collections::BTreeMap;

use sabir_registry::PromptCall;
use sabir_session::Outcome;
use sabir_wire::{GetPrompt, Problem, Raw};

use super::attempt::{self, Attempt};
use super::declared;
use crate::context::{Answering, MethodContext};

pub(crate) fn get(context: MethodContext, get: GetPrompt) -> Answering {
    begin(context, get).unwrap_or_else(|problem| Outcome::Failed(problem).into())
}

fn begin(context: MethodContext, get: GetPrompt) -> Result<Answering, Problem> {
    declared(context.catalog.capabilities().prompts, "prompts/get")?;
    let catalog = context.catalog.clone();
    let Some((prompt, source)) = catalog.prompt(&get.name) else {
        return Err(Problem::Params(format!("unknown prompt: {}", get.name).into()));
    };
    // Their order does not matter when the client repeats the request.
    let given: BTreeMap<_, _> = get.arguments.iter().map(|(name, value)| (name, value)).collect();
    let mut required = prompt.arguments.iter().filter(|argument| argument.required);
    if let Some(missing) = required.find(|argument| !given.contains_key(&argument.name)) {
        return Err(Problem::Params(format!("the argument `{}` is missing", missing.name).into()));
    }
    let arguments = Raw::of(&given).ok();
    let attempt = Attempt::open(
        &context,
        source,
        "prompts/get",
        (&*get.name).into(),
        arguments.as_ref(),
        get.resume,
    )?;
    let context = attempt::context(context, &attempt);
    let call = PromptCall { name: get.name, arguments: get.arguments, context };
    let answer = source.get_prompt(call);
    Ok(Answering::Running(Box::pin(async move { attempt.close(answer.await).await })))
}
