//! Prompts. Spec: server/prompts.

use sabir_registry::PromptCall;
use sabir_session::Outcome;
use sabir_wire::types::ServerResult;
use sabir_wire::{GetPrompt, Page, Problem, Raw};

use super::rounds::{self, Round};
use super::{Reply, declared};
use crate::desk::{Desk, Work};

pub(crate) fn list(desk: &Desk, page: &Page) -> Reply {
    declared(desk.catalog.capabilities().prompts, "prompts/list")?;
    let page = desk.catalog.prompts_page(page.cursor.as_deref(), desk.asker.revision)?;
    Ok(ServerResult::Ready(page))
}

pub(crate) fn get(desk: Desk, get: GetPrompt) -> Work {
    begin(desk, get).unwrap_or_else(|problem| Outcome::Failed(problem).into())
}

fn begin(desk: Desk, get: GetPrompt) -> Result<Work, Problem> {
    declared(desk.catalog.capabilities().prompts, "prompts/get")?;
    let catalog = desk.catalog.clone();
    let Some((prompt, source)) = catalog.prompt(&get.name) else {
        return Err(Problem::Params(format!("unknown prompt: {}", get.name).into()));
    };
    let mut required = prompt.arguments.iter().filter(|argument| argument.required);
    if let Some(missing) = required.find(|argument| !get.arguments.contains_key(&argument.name)) {
        return Err(Problem::Params(format!("the argument `{}` is missing", missing.name).into()));
    }
    let arguments = Raw::of(&get.arguments).ok();
    let round =
        Round::open(&desk, "prompts/get", (&*get.name).into(), arguments.as_ref(), get.resume)?;
    let context = rounds::context(desk, &round);
    let call = PromptCall { name: get.name, arguments: get.arguments, context };
    let answer = source.get_prompt(call);
    Ok(Work::Running(Box::pin(async move { round.close(answer.await) })))
}
