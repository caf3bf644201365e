//! The work that a schema can cause for one value.
//!
//! References let a short schema cause much work: twenty definitions, each of which refers twice to
//! the next, check a value a million times; so does a schema that refers twice to itself for a member,
//! with a value that is twenty deep. Repeated checks of the same part of a value are counted.

use std::collections::HashMap;

use serde_json::Value;

/// The limit of checks of one value.
pub(super) const MAX_WORK: u64 = 10_000;

/// The limit of checks of one part of a nested value: about a tenth of a second. It is an upper bound,
/// which counts alternatives for different members as if all were for the same one.
pub(super) const MAX_NESTED_WORK: u64 = 100_000;

/// The deepest value that is measured: no message is deeper.
const MAX_VALUE_DEPTH: usize = 128;

/// The longest chain of references.
const MAX_CHAIN: usize = 200;

/// Schemas with an `$id` in one schema: each reference is compared with all of them. More count as
/// too much work.
const MAX_IDS: usize = 500;

/// How often a schema checks one value.
#[derive(Debug)]
pub(super) struct Work {
    /// The limit for values of each depth, from 0 on; the last one is for all deeper values.
    by_depth: Vec<u64>,
}

impl Work {
    /// Measures a schema. `None` if some part of it checks a value too often.
    pub(super) fn of(schema: &Value) -> Option<Self> {
        let graph = Graph::of(schema)?;
        let in_place = graph.sums(|_| 1);
        if in_place.iter().any(|work| *work > MAX_WORK) {
            return None;
        }
        let mut work = in_place.clone();
        let mut by_depth = vec![work.first().copied().unwrap_or(1)];
        for _ in 0..MAX_VALUE_DEPTH {
            let below = graph.sums(|node| node.nested.most(&work));
            let next: Vec<u64> =
                below.iter().zip(&in_place).map(|(below, here)| *below.max(here)).collect();
            if next == work {
                break;
            }
            by_depth.push(next.first().copied().unwrap_or(1));
            work = next;
        }
        Some(Self { by_depth })
    }

    /// How often one part of a value with this depth can be checked.
    pub(super) fn at(&self, depth: usize) -> u64 {
        self.by_depth.get(depth).or(self.by_depth.last()).copied().unwrap_or(1)
    }
}

/// The depth of a value: 0 without members or items.
pub(super) fn depth(value: &Value) -> usize {
    inner(value).map(|part| 1 + depth(part)).max().unwrap_or(0)
}

/// The objects of a schema, by number; the first is the root.
struct Graph {
    nodes: Vec<Node>,
}

/// A part of a schema, and the parts that it uses.
#[derive(Default)]
struct Node {
    /// Those that check the same value.
    in_place: Vec<usize>,
    /// The schemas that each reference may name.
    references: Vec<Vec<usize>>,
    /// Those that check members and items of the value.
    nested: Nested,
}

/// The parts that check nested values: one of `one_of` checks a value, and all of `all_of` may.
#[derive(Default)]
struct Nested {
    one_of: Vec<usize>,
    all_of: Vec<usize>,
}

impl Nested {
    fn most(&self, work: &[u64]) -> u64 {
        let one = self.one_of.iter().map(|part| work[*part]).max().unwrap_or(0);
        self.all_of.iter().fold(one, |sum, part| sum.saturating_add(work[*part]))
    }
}

impl Graph {
    /// `None` if the schema has too many ids.
    fn of(schema: &Value) -> Option<Self> {
        let mut names =
            Names { ids: vec![(None, schema)], anchors: Vec::new(), numbers: HashMap::new() };
        let mut objects = Vec::new();
        names.find(schema, &mut objects);
        if names.ids.len() > MAX_IDS {
            return None;
        }
        let number = |part: &Value| names.numbers.get(&std::ptr::from_ref(part)).copied();
        let node = |object: &&Value| Node {
            in_place: tried_in_place(object).filter_map(number).collect(),
            references: REFERENCES
                .iter()
                .filter_map(|key| object.get(key)?.as_str())
                .map(|name| names.targets(name).into_iter().filter_map(number).collect())
                .collect(),
            nested: Nested {
                one_of: one_of_nested(object).filter_map(number).collect(),
                all_of: all_of_nested(object).filter_map(number).collect(),
            },
        };
        Some(Self { nodes: objects.iter().map(node).collect() })
    }

    /// For each node the sum of `own` over all nodes that check the same value.
    fn sums(&self, own: impl Fn(&Node) -> u64) -> Vec<u64> {
        let mut known = vec![State::Unknown; self.nodes.len()];
        (0..self.nodes.len()).map(|node| self.sum(node, &own, &mut known, MAX_CHAIN)).collect()
    }

    fn sum(
        &self,
        at: usize,
        own: &impl Fn(&Node) -> u64,
        known: &mut [State],
        chain: usize,
    ) -> u64 {
        match known[at] {
            State::Known(sum) => return sum,
            // It refers to itself without going deeper: the validator detects that.
            State::Running => return 0,
            State::Unknown => {}
        }
        let Some(chain) = chain.checked_sub(1) else { return u64::MAX };
        known[at] = State::Running;
        let node = &self.nodes[at];
        let mut sum = own(node);
        for part in &node.in_place {
            sum = sum.saturating_add(self.sum(*part, own, known, chain));
        }
        for targets in &node.references {
            let most = targets.iter().map(|target| self.sum(*target, own, known, chain)).max();
            sum = sum.saturating_add(most.unwrap_or_default());
        }
        known[at] = State::Known(sum);
        sum
    }
}

#[derive(Clone, Copy)]
enum State {
    Unknown,
    Running,
    Known(u64),
}

/// The parts of a schema that references can name.
struct Names<'a> {
    /// The root and all schemas with an `$id`, each with the comparable part of the id.
    ids: Vec<(Option<&'a str>, &'a Value)>,
    anchors: Vec<(&'a str, &'a Value)>,
    /// The numbers of objects, by address.
    numbers: HashMap<*const Value, usize>,
}

impl<'a> Names<'a> {
    fn find(&mut self, schema: &'a Value, objects: &mut Vec<&'a Value>) {
        if schema.is_object() {
            self.numbers.insert(schema, objects.len());
            objects.push(schema);
        }
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
        inner(schema).for_each(|part| self.find(part, objects));
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

/// The schemas of which one checks a member or an item.
fn one_of_nested(schema: &Value) -> impl Iterator<Item = &Value> {
    let members = schema.get("properties").and_then(Value::as_object);
    let lists = ["prefixItems", "items"].iter().filter_map(|key| schema.get(key)?.as_array());
    let single = ["additionalProperties", "items", "additionalItems"];
    let single = single.into_iter().filter_map(|key| schema.get(key));
    members.into_iter().flat_map(|map| map.values()).chain(lists.flatten()).chain(single)
}

/// The schemas that may check a member or an item beside others.
fn all_of_nested(schema: &Value) -> impl Iterator<Item = &Value> {
    let patterns = schema.get("patternProperties").and_then(Value::as_object);
    let single = ["contains", "unevaluatedProperties", "unevaluatedItems"];
    let single = single.into_iter().filter_map(|key| schema.get(key));
    patterns.into_iter().flat_map(|map| map.values()).chain(single)
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
