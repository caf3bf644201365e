//! Why a caller sees a tool, or does not.

use std::sync::Arc;

use sabir_wire::{CallTool, Caller, Request};

use super::{Registry, SourceState};
use crate::catalog::{Catalog, ToolEntry};
use crate::source::TaskMode;

/// Similar names in one explanation.
const MAX_SIMILAR: usize = 5;

/// The longest name that the providers of all models take.
const LONGEST_NAME: usize = 64;

/// Whether a caller sees a tool, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolSight {
    /// Whether it is in the list of tools that the caller gets.
    pub is_listed: bool,
    /// For operators, one sentence each.
    pub reasons: Vec<String>,
}

impl Registry {
    /// Says whether a caller sees the tool `name`, and why or why not.
    pub fn explain_tool(&self, name: &str, caller: &Caller) -> ToolSight {
        let catalog = self.snapshot();
        match catalog.tool(name) {
            Some(entry) => self.explain_offered(name, entry, &catalog, caller),
            None => ToolSight { is_listed: false, reasons: self.explain_missing(name, &catalog) },
        }
    }

    fn explain_offered(
        &self,
        name: &str,
        entry: &ToolEntry,
        catalog: &Arc<Catalog>,
        caller: &Caller,
    ) -> ToolSight {
        let listed = entry.tool.name.as_str();
        let mut reasons = vec![format!("{} offers it", entry.source_name())];
        if listed != name {
            reasons.push(format!("it is listed as `{listed}`, and can also be called `{name}`"));
        }
        let call = CallTool { name: listed.into(), ..CallTool::default() };
        let needed = catalog.missing_scopes(&Request::CallTool(call), caller);
        let place = catalog.seen_by(caller).tools().iter().position(|tool| tool.name == listed);
        if let Some(needed) = needed {
            let lacks = needed.iter().filter(|scope| !caller.has_scope(scope));
            let lacks: Vec<_> = lacks.map(|scope| format!("`{scope}`")).collect();
            reasons.push(format!("the caller {caller} lacks the scopes {}", lacks.join(", ")));
        }
        let page = place.map_or(0, |place| place / self.page_size.max(1));
        if page > 0 {
            let page = page + 1;
            reasons.push(format!(
                "it is on page {page} of the list: a client that does not ask for further pages \
                 does not see it"
            ));
        }
        if listed.len() > LONGEST_NAME || listed.contains('.') {
            reasons.push(format!(
                "some clients leave out names with `.` or more than {LONGEST_NAME} characters"
            ));
        }
        if entry.task.mode == TaskMode::Required {
            reasons.push("only clients that take tasks can call it".to_owned());
        }
        reasons.extend(self.troubles(|source| *source == **entry.source_name()));
        ToolSight { is_listed: place.is_some() && listed == name, reasons }
    }

    /// Why a tool is not in the catalog.
    fn explain_missing(&self, name: &str, catalog: &Catalog) -> Vec<String> {
        let sources = self.lock();
        let mut all = Vec::new();
        for entry in &sources.entries {
            let bad = entry.checked.left_out.iter().chain(&entry.collisions);
            let bad = bad.filter(|bad| bad.item() == name);
            all.push((entry.source.clone(), bad.map(ToString::to_string).collect::<Vec<_>>()));
        }
        drop(sources);
        let mut reasons = Vec::new();
        // Not under the lock: `withheld` is the source's own code.
        for (source, bad) in all {
            let of_source = bad.into_iter().chain(source.withheld(name));
            reasons.extend(of_source.map(|reason| format!("{}: {reason}", source.name())));
        }
        if reasons.is_empty() {
            reasons.push("no source offers a tool of that name".to_owned());
        }
        reasons.extend(self.troubles(|_| true));
        let is_similar = |other: &&str| other.contains(name) || name.contains(*other);
        let names = catalog.tools().iter().map(|tool| tool.name.as_str());
        let similar = names.filter(|_| !name.is_empty()).filter(is_similar).take(MAX_SIMILAR);
        let similar: Vec<_> = similar.map(|name| format!("`{name}`")).collect();
        if !similar.is_empty() {
            reasons.push(format!("tools with similar names: {}", similar.join(", ")));
        }
        reasons
    }

    /// The chosen sources that are not ready, each with the reason.
    fn troubles(&self, is_asked: impl Fn(&str) -> bool) -> Vec<String> {
        let status = self.status().into_iter().filter(|source| is_asked(&source.name));
        let trouble = status.filter_map(|source| match source.state {
            SourceState::Ready => None,
            SourceState::Added | SourceState::Starting => {
                Some(format!("{} is not ready yet", source.name))
            }
            SourceState::Failed(reason) => {
                Some(format!("{} could not be started: {reason}", source.name))
            }
        });
        trouble.collect()
    }
}
