//! The work that a schema can cause for one value.
//!
//! A reference makes a tree of a short text: twenty definitions, each of which refers twice to the
//! next, try a value a million times. What counts is how often the same value is tried; what is
//! inside a value is bounded by the value.

use std::collections::HashMap;

use serde_json::Value;

/// The limit of checks of one value.
pub(super) const MAX_WORK: u64 = 10_000;

/// The longest chain of references.
const MAX_CHAIN: usize = 200;

/// Whether any part of the schema checks a value too often.
pub(super) fn is_too_much(schema: &Value) -> bool {
    let mut measure = Measure { root: schema, anchors: HashMap::new(), known: HashMap::new() };
    measure.find_anchors(schema);
    measure.any_too_much(schema)
}

struct Measure<'a> {
    root: &'a Value,
    anchors: HashMap<&'a str, &'a Value>,
    /// By place; `None` while it is being measured.
    known: HashMap<*const Value, Option<u64>>,
}

impl<'a> Measure<'a> {
    fn find_anchors(&mut self, schema: &'a Value) {
        for key in ["$anchor", "$dynamicAnchor"] {
            if let Some(name) = schema.get(key).and_then(Value::as_str) {
                self.anchors.insert(name, schema);
            }
        }
        inner(schema).for_each(|part| self.find_anchors(part));
    }

    fn any_too_much(&mut self, schema: &'a Value) -> bool {
        self.work(schema, MAX_CHAIN) > MAX_WORK || inner(schema).any(|part| self.any_too_much(part))
    }

    /// The number of times that this schema checks its value.
    fn work(&mut self, schema: &'a Value, chain: usize) -> u64 {
        let place: *const Value = schema;
        match self.known.get(&place) {
            Some(Some(known)) => return *known,
            // It refers to itself: the validator detects that.
            Some(None) => return 0,
            None => {}
        }
        let Some(chain) = chain.checked_sub(1) else { return u64::MAX };
        self.known.insert(place, None);
        let parts = self.tried_in_place(schema);
        let work =
            parts.into_iter().fold(1, |all: u64, part| all.saturating_add(self.work(part, chain)));
        self.known.insert(place, Some(work));
        work
    }

    fn tried_in_place(&self, schema: &'a Value) -> Vec<&'a Value> {
        let mut parts = Vec::new();
        for key in ["allOf", "anyOf", "oneOf"] {
            parts.extend(schema.get(key).and_then(Value::as_array).into_iter().flatten());
        }
        parts.extend(["not", "if", "then", "else"].iter().filter_map(|key| schema.get(key)));
        let dependent = schema.get("dependentSchemas").and_then(Value::as_object);
        parts.extend(dependent.into_iter().flat_map(|schemas| schemas.values()));
        let references = ["$ref", "$dynamicRef"].iter().filter_map(|key| schema.get(key)?.as_str());
        parts.extend(references.filter_map(|reference| self.target(reference)));
        parts
    }

    fn target(&self, reference: &str) -> Option<&'a Value> {
        let (_, fragment) = reference.split_once('#')?;
        if fragment.is_empty() || fragment.starts_with('/') {
            self.root.pointer(fragment)
        } else {
            self.anchors.get(fragment).copied()
        }
    }
}

fn inner(value: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    match value {
        Value::Array(items) => Box::new(items.iter()),
        Value::Object(members) => Box::new(members.values()),
        _ => Box::new(std::iter::empty()),
    }
}
