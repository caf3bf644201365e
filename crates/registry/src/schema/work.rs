//! The work that a schema can cause for one value.
//!
//! References let a short schema cause much work: twenty definitions, each of which refers twice to
//! the next, check a value a million times. Only repeated checks of the same value count; checks of
//! nested values are bounded by the value.

use std::collections::HashMap;

use serde_json::Value;

/// The limit of checks of one value.
pub(super) const MAX_WORK: u64 = 10_000;

/// The longest chain of references.
const MAX_CHAIN: usize = 200;

/// Schemas with an `$id` in one schema: each reference is compared with all of them. More count as
/// too much work.
const MAX_IDS: usize = 500;

/// Whether any part of the schema checks a value too often.
pub(super) fn is_too_much(schema: &Value) -> bool {
    let (ids, anchors, known) = (vec![(None, schema)], Vec::new(), HashMap::new());
    let mut measure = Measure { ids, anchors, known };
    measure.find_names(schema);
    measure.ids.len() > MAX_IDS || measure.any_too_much(schema)
}

struct Measure<'a> {
    /// The root and all schemas with an `$id`, each with the comparable part of the id.
    ids: Vec<(Option<&'a str>, &'a Value)>,
    anchors: Vec<(&'a str, &'a Value)>,
    /// By address; `None` while it is being measured.
    known: HashMap<*const Value, Option<u64>>,
}

impl<'a> Measure<'a> {
    fn find_names(&mut self, schema: &'a Value) {
        let text = |key: &str| schema.get(key).and_then(Value::as_str);
        self.anchors.extend(
            ["$anchor", "$dynamicAnchor"].iter().filter_map(|key| Some((text(key)?, schema))),
        );
        for id in ["$id", "id"].iter().filter_map(|key| text(key)) {
            match id.strip_prefix('#') {
                // An anchor of draft-07.
                Some(name) => self.anchors.push((name, schema)),
                None => self.ids.push((last_segment(id), schema)),
            }
        }
        inner(schema).for_each(|part| self.find_names(part));
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
        let mut work: u64 = 1;
        for part in tried_in_place(schema) {
            work = work.saturating_add(self.work(part, chain));
        }
        for reference in REFERENCES.iter().filter_map(|key| schema.get(key)?.as_str()) {
            let targets = self.targets(reference).into_iter();
            let most = targets.map(|target| self.work(target, chain)).max();
            work = work.saturating_add(most.unwrap_or_default());
        }
        self.known.insert(place, Some(work));
        work
    }

    /// The schemas that a reference may name. An unknown one is left to the validator, which
    /// refuses it.
    fn targets(&self, reference: &str) -> Vec<&'a Value> {
        let (base, fragment) = match reference.strip_prefix('#') {
            Some(fragment) => ("", fragment),
            None => reference.rsplit_once('#').unwrap_or((reference, "")),
        };
        if !fragment.is_empty() && !fragment.starts_with('/') {
            let named = self.anchors.iter().filter(|(name, _)| *name == fragment);
            return named.map(|(_, schema)| *schema).collect();
        }
        let wanted = last_segment(base);
        let may_be = |id: &Option<&str>| match (id, wanted) {
            (Some(id), Some(wanted)) => id.eq_ignore_ascii_case(wanted),
            _ => true,
        };
        let bases = self.ids.iter().filter(|(id, _)| may_be(id));
        bases.filter_map(|(_, schema)| pointed(schema, fragment)).collect()
    }
}

const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// The schemas beside references that check the same value.
fn tried_in_place(schema: &Value) -> impl Iterator<Item = &Value> {
    let lists = ["allOf", "anyOf", "oneOf"].iter().filter_map(|key| schema.get(key)?.as_array());
    let maps =
        ["dependentSchemas", "dependencies"].iter().filter_map(|key| schema.get(key)?.as_object());
    let single = ["not", "if", "then", "else"].iter().filter_map(|key| schema.get(key));
    lists.flatten().chain(maps.flat_map(|map| map.values())).chain(single)
}

/// The last segment of a URI, which resolving it against a base does not change; `None` if that is
/// not certain. Such a URI may be equal to any other.
fn last_segment(uri: &str) -> Option<&str> {
    let uri = uri.trim_end_matches(['#', '/']);
    let last = uri.rsplit_once('/').map_or(uri, |(_, last)| last);
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~:".contains(&byte);
    (last.bytes().all(is_plain) && !["", ".", ".."].contains(&last)).then_some(last)
}

/// Follows a JSON pointer in a fragment, as the validator does.
fn pointed<'a>(schema: &'a Value, pointer: &str) -> Option<&'a Value> {
    let pointer = percent_decoded(pointer)?;
    pointer.split('/').skip(1).try_fold(schema, |at, segment| match at {
        Value::Array(items) => items.get(segment.parse::<usize>().ok()?),
        _ => at.get(segment.replace("~1", "/").replace("~0", "~")),
    })
}

fn percent_decoded(text: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let Some((byte, after)) = rest.split_first() {
        let digit = |at: usize| char::from(*after.get(at)?).to_digit(16);
        match (byte, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => {
                bytes.push((high * 16 + low) as u8);
                rest = &after[2..];
            }
            _ => {
                bytes.push(*byte);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).ok()
}

fn inner(value: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    match value {
        Value::Array(items) => Box::new(items.iter()),
        Value::Object(members) => Box::new(members.values()),
        _ => Box::new(std::iter::empty()),
    }
}
