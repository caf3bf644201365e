//! Every method that a schema knows has a row in the table, with who may send it, or is in a list of
//! those that we do not know, with the reason.

use std::collections::{BTreeMap, BTreeSet};

use sabir_wire::{Method, Revision, Sender};
use serde_json::Value;

use super::definitions::Definitions;
use super::folder;

/// Methods without a row, and why.
const REFUSED: &[(&str, &str)] = &[("notifications/tasks/status", STATUS)];

const STATUS: &str = "optional in the one revision that has it; its clients must ask for the state";

/// The unions of the schemas, and whether a server sends what is in them.
const UNIONS: &[(&str, bool)] = &[
    ("ClientRequest", false),
    ("ClientNotification", false),
    ("ServerRequest", true),
    ("ServerNotification", true),
    ("InputRequest", true),
];

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
    let is_refused = |name: &str| REFUSED.iter().any(|(refused, _)| *refused == name);
    for name in &all {
        assert!(is_row(name) != is_refused(name), "{name} is in no list, or in both");
    }
    for (name, _) in REFUSED {
        assert!(all.contains(*name), "no schema knows {name} any more");
    }
}

#[test]
fn who_may_send_a_method_is_what_the_schemas_say() {
    let Some(folder) = folder() else { return };
    let mut senders: BTreeMap<String, BTreeSet<bool>> = BTreeMap::new();
    for revision in Revision::ALL {
        let definitions = Definitions::read(&folder, revision);
        let all: BTreeMap<&str, &Value> =
            definitions.all().map(|(name, definition)| (name.as_str(), definition)).collect();
        for (union, is_server) in UNIONS {
            let Some(union) = all.get(*union) else { continue };
            let parts =
                union["anyOf"].as_array().cloned().unwrap_or_else(|| vec![(*union).clone()]);
            for part in parts {
                let named = part["$ref"].as_str().and_then(|path| path.rsplit('/').next());
                let definition = named.map_or(&part, |name| all[name]);
                let name = method(definition).unwrap();
                senders.entry(name).or_default().insert(*is_server);
            }
        }
    }
    senders.retain(|name, _| REFUSED.iter().all(|(refused, _)| refused != name));
    assert!(senders.len() > 25, "{senders:?}");
    for (name, senders) in senders {
        let expected = match (senders.contains(&false), senders.contains(&true)) {
            (true, true) => Sender::Either,
            (true, false) => Sender::Client,
            _ => Sender::Server,
        };
        assert_eq!(Method::named(&name).sender(), Some(expected), "{name}");
    }
}

/// The method that a definition is for.
fn method(definition: &Value) -> Option<String> {
    definition["properties"]["method"]["const"].as_str().map(str::to_owned)
}
