//! Views of tools, which may come from another source than the tool.

use sabir_wire::types::{Tool, UiTool};

use super::CheckedOffer;

/// The tools, with the views that the offers have for them. The last one of a tool counts.
pub(super) fn attached(mut tools: Vec<Tool>, offers: &[&CheckedOffer]) -> Vec<Tool> {
    for (name, ui) in offers.iter().flat_map(|checked| &checked.offer.apps) {
        if let Some(tool) = tools.iter_mut().find(|tool| tool.name == *name) {
            tool.meta = Some(ui.added_to(tool.meta.as_ref()));
        }
    }
    tools
}

/// Whether any tool has a view.
pub(super) fn are_any(offers: &[&CheckedOffer]) -> bool {
    let has_view = |tool: &Tool| tool.meta.as_ref().is_some_and(UiTool::is_in);
    offers
        .iter()
        .any(|checked| !checked.offer.apps.is_empty() || checked.offer.tools.iter().any(has_view))
}
