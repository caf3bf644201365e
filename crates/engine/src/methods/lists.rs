//! Lists. Spec: server/utilities/pagination.

use sabir_budget::compute;
use sabir_registry::List;
use sabir_session::Outcome;
use sabir_wire::types::ServerResult;
use sabir_wire::{Page, Problem};

use super::{busy, declared};
use crate::context::{Answering, MethodContext};

/// A page of a list. A long page that is not rendered yet is rendered by the pool.
pub(crate) fn list(context: MethodContext, list: List, page: Page) -> Answering {
    let has = context.catalog.capabilities();
    let (is_declared, method) = match list {
        List::Tools => (has.tools, "tools/list"),
        List::Prompts => (has.prompts, "prompts/list"),
        List::Resources => (has.resources, "resources/list"),
        List::Templates => (has.resources, "resources/templates/list"),
        List::Skills => (has.skills, "skills/list"),
    };
    if let Err(problem) = declared(is_declared, method) {
        return Outcome::Failed(problem).into();
    }
    let MethodContext { catalog, from, .. } = context;
    let is_ready = catalog.is_page_ready(list, page.cursor.as_deref(), from.revision);
    let render = move || -> Result<ServerResult, Problem> {
        catalog.page(list, page.cursor.as_deref(), from.revision).map(ServerResult::Ready)
    };
    if is_ready {
        return Outcome::from(render()).into();
    }
    let rendering = compute(from.caller.share(), move |_| Ok(render()));
    Answering::Running(Box::pin(async move {
        rendering.await.map_err(busy).and_then(|page| page).into()
    }))
}
