//! Every method that a schema knows has a row in the table, or stands in a list of those that we do
//! not serve, with the reason.

use std::collections::BTreeSet;

use sabir_wire::{Method, Revision};
use serde_json::Value;

use super::definitions::Definitions;
use super::folder;

/// What we say ourselves: nobody asks us for it.
const OURS: &[&str] = &[
    "elicitation/create",
    "notifications/message",
    "notifications/prompts/list_changed",
    "notifications/resources/list_changed",
    "notifications/resources/updated",
    "notifications/subscriptions/acknowledged",
    "notifications/tools/list_changed",
    "roots/list",
    "sampling/createMessage",
];

/// What we do not serve, and why.
const REFUSED: &[(&str, &str)] = &[
    ("tasks/get", TASKS),
    ("tasks/result", TASKS),
    ("tasks/cancel", TASKS),
    ("tasks/list", TASKS),
    ("notifications/tasks/status", TASKS),
    (
        "notifications/elicitation/complete",
        "optional in its one revision; a source cannot know that a page was visited before its \
         call begins again",
    ),
];

const TASKS: &str = "the experimental tasks of one revision, which left the core with the next; no \
                     capability for them is declared";

#[test]
fn every_method_of_every_schema_is_known_or_refused_for_a_reason() {
    let Some(folder) = folder() else { return };
    let mut all = BTreeSet::new();
    for revision in Revision::ALL {
        let definitions = Definitions::read(&folder, revision);
        let methods = definitions.all().filter_map(|(_, definition)| method(definition));
        let methods: BTreeSet<String> = methods.collect();
        assert!(methods.contains("tools/call"), "{revision}: {methods:?}");
        all.extend(methods);
    }
    let is_row = |name: &str| !matches!(Method::named(name), Method::Other(_));
    let is_ours = |name: &str| OURS.contains(&name);
    let is_refused = |name: &str| REFUSED.iter().any(|(refused, _)| *refused == name);
    for name in &all {
        let places = [is_row(name), is_ours(name), is_refused(name)];
        let count = places.iter().filter(|is| **is).count();
        // These two are said by either side.
        let is_of_both =
            matches!(name.as_str(), "notifications/cancelled" | "notifications/progress");
        assert!(count == 1 || is_of_both, "{name} stands in {count} lists");
    }
    let listed = OURS.iter().copied().chain(REFUSED.iter().map(|(name, _)| *name));
    for name in listed {
        assert!(all.contains(name), "no schema knows {name} any more");
    }
}

/// The method that a definition is for.
fn method(definition: &Value) -> Option<String> {
    definition["properties"]["method"]["const"].as_str().map(str::to_owned)
}
