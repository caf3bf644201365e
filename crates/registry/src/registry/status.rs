//! The status of each source, for operators.

use super::{Registry, SourceId, SourceState};
use crate::figures::Figure;
use crate::source::BadOffer;

/// The status of a source, for operators.
#[derive(Clone, Debug)]
pub struct SourceStatus {
    /// Which source.
    pub id: SourceId,
    /// Its name in logs and reports.
    pub name: String,
    /// The state of its life cycle.
    pub state: SourceState,
    /// One line about its contents.
    pub summary: Option<String>,
    /// One line about its current condition.
    pub condition: Option<String>,
    /// Its problems, and the invalid parts of its offer, one sentence each.
    pub problems: Vec<String>,
    /// The problems that are names of tools and prompts taken by another source.
    pub collisions: Vec<String>,
    /// Numbers about it.
    pub figures: Vec<Figure>,
}

impl Registry {
    /// The status of each source, in the order in which they were added.
    pub fn status(&self) -> Vec<SourceStatus> {
        let catalog = self.snapshot();
        let sources = self.lock();
        let entries: Vec<_> = sources
            .entries
            .iter()
            .map(|entry| {
                let left_out = |bad: &BadOffer| format!("left out: {bad}");
                let invalid = entry.checked.left_out.iter().chain(&entry.collisions);
                let mut problems: Vec<_> = invalid.map(left_out).collect();
                let collisions = entry.collisions.iter();
                let name = &entry.checked.provider.name;
                let collisions = collisions.filter(|bad| bad.is_collision(name));
                let collisions: Vec<_> = collisions.map(left_out).collect();
                let has =
                    |name: &String| entry.checked.offer.tools.iter().any(|tool| tool.name == *name);
                let unused = entry.access.tools.keys().filter(|name| !has(name));
                problems.extend(
                    unused
                        .map(|name| format!("scopes of the tool `{name}`: there is no such tool")),
                );
                let apps = entry.checked.offer.apps.iter();
                let lost = apps.filter(|(name, _)| catalog.tool(name).is_none());
                problems.extend(lost.map(|(name, _)| format!("app: unknown tool `{name}`")));
                (entry.id, entry.source.clone(), entry.state.clone(), problems, collisions)
            })
            .collect();
        drop(sources);
        let status = entries.into_iter().map(|(id, source, state, mut problems, collisions)| {
            problems.extend(source.problems());
            SourceStatus {
                id,
                name: source.name(),
                state,
                summary: source.summary(),
                condition: source.condition(),
                problems,
                collisions,
                figures: source.figures(),
            }
        });
        status.collect()
    }
}
