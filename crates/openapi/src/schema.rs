//! JSON Schema 2020-12 from the schemas of a description.
//!
//! A schema that is referred to becomes one definition in `$defs`, however often it is used; so
//! cycles end, and the result is never larger than the description. Definitions that are used once
//! are put back in their place. Below a depth, a schema becomes its type only.
//!
//! Where a description is wrong or too detailed, the result allows more than the description does,
//! never less: keywords with invalid values are left out, `oneOf` becomes `anyOf`, `not` is dropped.

mod keywords; // one keyword at a time

use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::{Map, Value, json};

use crate::description::{Description, Node, Version};
use crate::words::shortened;

/// How much detail a schema has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Detail {
    /// Characters of an argument's description.
    pub(crate) top: usize,
    /// Characters of a description inside of an argument.
    pub(crate) nested: usize,
    /// Levels of schemas. Deeper ones become their type.
    pub(crate) depth: usize,
    /// Bytes of one `enum`. A longer one is left out.
    pub(crate) choices: usize,
}

/// The limit of values in one result. Further schemas become their type.
const MAX_VALUES: usize = 12_000;

/// The limit in bytes of a definition that is repeated instead of referred to.
const MAX_REPEATED: usize = 80;

/// The direction of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// Without read-only properties.
    Request,
    /// Without write-only properties.
    Response,
}

/// Converts the schemas of one operation.
pub(crate) struct Converter<'d> {
    description: &'d Description,
    detail: Detail,
    direction: Direction,
    definitions: Vec<Definition<'d>>,
    by_place: HashMap<*const Value, usize>,
    names: HashSet<String>,
    waiting: VecDeque<usize>,
    values: usize,
    /// References that lead nowhere.
    pub(crate) problems: Vec<String>,
}

struct Definition<'d> {
    name: String,
    node: Node<'d>,
    depth: usize,
    uses: usize,
    schema: Value,
}

const PREFIX: &str = "#/$defs/";

impl<'d> Converter<'d> {
    pub(crate) fn new(description: &'d Description, detail: Detail, direction: Direction) -> Self {
        Self {
            description,
            detail,
            direction,
            definitions: Vec::new(),
            by_place: HashMap::new(),
            names: HashSet::new(),
            waiting: VecDeque::new(),
            values: 0,
            problems: Vec::new(),
        }
    }

    /// The schema of an argument.
    pub(crate) fn argument(&mut self, node: Node<'d>, about: Option<&str>) -> Value {
        let mut schema = self.convert(node, 1);
        let Some(members) = schema.as_object_mut() else { return schema };
        let own = node.text("description");
        let target = || self.description.resolve(node).ok()?.text("description");
        let about = about.or(own).or_else(target).filter(|about| !about.trim().is_empty());
        members.remove("description");
        if let Some(about) = about.filter(|_| self.detail.top > 0) {
            members.insert("description".into(), shortened(about, self.detail.top).into());
        }
        schema
    }

    /// Completes a schema: adds its definitions.
    pub(crate) fn finish(&mut self, mut root: Map<String, Value>) -> Value {
        while let Some(next) = self.waiting.pop_front() {
            let Definition { node, depth, .. } = self.definitions[next];
            let schema = self.convert_here(node, depth);
            self.definitions[next].schema = schema;
        }
        for value in root.values_mut() {
            self.put_back(value);
        }
        let mut kept = Map::new();
        for at in 0..self.definitions.len() {
            if !self.is_put_back(at) {
                let mut schema = self.definitions[at].schema.take();
                self.put_back(&mut schema);
                kept.insert(self.definitions[at].name.clone(), schema);
            }
        }
        if !kept.is_empty() {
            root.insert("$defs".into(), kept.into());
        }
        Value::Object(root)
    }

    /// Whether a definition is written at the place of its use.
    fn is_put_back(&self, at: usize) -> bool {
        let Definition { uses, schema, .. } = &self.definitions[at];
        let text = |schema: &Value| schema.to_string();
        *uses == 1
            || (!schema.is_null() && {
                let text = text(schema);
                text.len() <= MAX_REPEATED && !text.contains(PREFIX)
            })
    }

    /// Replaces references to definitions that are not kept. A definition that is part of a cycle is
    /// used twice: in the cycle, and from outside of it.
    fn put_back(&self, schema: &mut Value) {
        match schema {
            Value::Array(items) => items.iter_mut().for_each(|item| self.put_back(item)),
            Value::Object(members) => {
                let reference = members.get("$ref").and_then(Value::as_str);
                let name = reference.and_then(|text| text.strip_prefix(PREFIX));
                let known = |name| self.definitions.iter().position(|known| known.name == name);
                if let Some(at) = name.and_then(known).filter(|at| self.is_put_back(*at)) {
                    let mut whole = self.definitions[at].schema.clone();
                    if let (Some(about), Some(whole)) =
                        (members.get("description"), whole.as_object_mut())
                    {
                        whole.insert("description".into(), about.clone());
                    }
                    self.put_back(&mut whole);
                    *schema = whole;
                } else {
                    members.values_mut().for_each(|value| self.put_back(value));
                }
            }
            _ => {}
        }
    }

    fn convert(&mut self, node: Node<'d>, depth: usize) -> Value {
        if node.text("$ref").is_none() {
            return self.convert_here(node, depth);
        }
        let target = match self.description.resolve(node) {
            Ok(target) => target,
            Err(what) => {
                self.problems.push(what);
                return json!({});
            }
        };
        if self.is_exhausted(depth) {
            return keywords::stub(target);
        }
        if keywords::is_leaf(target) {
            return self.convert_here(target, depth);
        }
        let at = *self.by_place.entry(target.id()).or_insert_with(|| {
            let at = self.definitions.len();
            let name = definition_name(node.text("$ref").unwrap_or_default(), &mut self.names);
            let (node, schema) = (target, Value::Null);
            self.definitions.push(Definition { name, node, depth, uses: 0, schema });
            self.waiting.push_back(at);
            at
        });
        self.definitions[at].uses += 1;
        let mut reference = json!({ "$ref": format!("{PREFIX}{}", self.definitions[at].name) });
        if let Some(about) = node.text("description").filter(|_| self.detail.nested > 0) {
            reference["description"] = shortened(about, self.detail.nested).into();
        }
        reference
    }

    fn is_exhausted(&self, depth: usize) -> bool {
        depth >= self.detail.depth || self.values > MAX_VALUES
    }

    /// Converts a schema that is not a reference.
    fn convert_here(&mut self, node: Node<'d>, depth: usize) -> Value {
        self.values += 1;
        if !node.value.is_object() {
            return json!({});
        }
        if self.is_exhausted(depth) && !keywords::is_leaf(node) {
            return keywords::stub(node);
        }
        let mut out = Map::new();
        keywords::types(node, &mut out);
        keywords::choices(node, self.detail.choices, &mut out);
        keywords::bounds(node, &mut out);
        self.values += out.len();
        if let Some(about) = node.text("description")
            && self.detail.nested > 0
            && !about.trim().is_empty()
        {
            out.insert("description".into(), shortened(about, self.detail.nested).into());
        }
        self.object(node, depth, &mut out);
        self.array(node, depth, &mut out);
        self.composition(node, depth, &mut out);
        Value::Object(out)
    }

    fn object(&mut self, node: Node<'d>, depth: usize, out: &mut Map<String, Value>) {
        let mut properties = Map::new();
        let mut hidden = HashSet::new();
        for (name, property) in node.get("properties").into_iter().flat_map(Node::members) {
            if self.is_hidden(property) {
                hidden.insert(name.as_str());
            } else {
                properties.insert(name.clone(), self.convert(property, depth + 1));
            }
        }
        let listed = node.get("required").into_iter().flat_map(Node::items);
        let mut required: Vec<Value> = Vec::new();
        for name in listed.filter_map(|name| name.value.as_str()) {
            let is_known = properties.is_empty() || properties.contains_key(name);
            if is_known && !hidden.contains(name) && !required.iter().any(|known| known == name) {
                required.push(name.into());
            }
        }
        if !properties.is_empty() {
            out.insert("properties".into(), properties.into());
        }
        if !required.is_empty() {
            out.insert("required".into(), required.into());
        }
        match node.get("additionalProperties") {
            // Another part of the schema may allow them.
            Some(no)
                if no.value == &Value::Bool(false)
                    && OPENING.iter().all(|keyword| node.get(keyword).is_none()) =>
            {
                out.insert("additionalProperties".into(), false.into());
            }
            Some(values) if values.value.is_object() => {
                let values = self.convert(values, depth + 1);
                out.insert("additionalProperties".into(), values);
            }
            _ => {}
        }
    }

    /// Whether a property does not belong into this direction.
    pub(crate) fn is_hidden(&self, property: Node<'d>) -> bool {
        let keyword = match self.direction {
            Direction::Request => "readOnly",
            Direction::Response => "writeOnly",
        };
        let target = || self.description.resolve(property).ok()?.flag(keyword);
        property.flag(keyword).or_else(target).unwrap_or(false)
    }

    fn array(&mut self, node: Node<'d>, depth: usize, out: &mut Map<String, Value>) {
        if self.description.version() == Version::V31
            && let Some(first) = node.get("prefixItems").filter(|items| items.value.is_array())
        {
            let first: Vec<_> = first.items().map(|item| self.convert(item, depth + 1)).collect();
            if !first.is_empty() {
                out.insert("prefixItems".into(), first.into());
            }
        }
        let is_array = out.get("type").is_some_and(|kind| {
            kind == "array" || kind.as_array().is_some_and(|kinds| kinds.contains(&json!("array")))
        });
        if is_array {
            // Some providers refuse an array without `items`.
            let items = node.get("items").filter(|items| items.value.is_object());
            let items = items.map_or_else(|| json!({}), |items| self.convert(items, depth + 1));
            out.insert("items".into(), items);
        }
    }

    fn composition(&mut self, node: Node<'d>, depth: usize, out: &mut Map<String, Value>) {
        let mut all: Vec<Value> = Vec::new();
        for part in node.get("allOf").into_iter().flat_map(Node::items) {
            let mut part = self.convert(part, depth + 1);
            // Properties that one part refuses may be allowed by another.
            if let Some(members) = part.as_object_mut()
                && members.get("additionalProperties") == Some(&Value::Bool(false))
            {
                members.remove("additionalProperties");
            }
            all.push(part);
        }
        let mut any: Vec<Vec<Value>> = Vec::new();
        for keyword in ["oneOf", "anyOf"] {
            let parts = node.get(keyword).into_iter().flat_map(Node::items);
            let parts: Vec<_> = parts.map(|part| self.convert(part, depth + 1)).collect();
            if !parts.is_empty() {
                any.push(parts);
            }
        }
        if any.len() == 2 {
            all.extend(any.pop().map(|parts| json!({ "anyOf": parts })));
        }
        if let Some(parts) = any.pop() {
            let nullable = keywords::is_nullable(node).then(|| json!({ "type": "null" }));
            let parts: Vec<_> = parts.into_iter().chain(nullable).collect();
            out.insert("anyOf".into(), parts.into());
        }
        if all.len() == 1 && (out.is_empty() || (out.len() == 1 && out.contains_key("description")))
        {
            let about = out.remove("description");
            if let Some(Value::Object(only)) = all.pop() {
                *out = only;
            }
            out.extend(about.map(|about| ("description".to_owned(), about)));
        } else if !all.is_empty() {
            out.insert("allOf".into(), all.into());
        }
    }
}

/// Keywords by which a schema can allow more properties than it lists.
const OPENING: [&str; 6] =
    ["allOf", "anyOf", "oneOf", "patternProperties", "unevaluatedProperties", "if"];

/// A name for the target of a reference: its last segment, and a number if it is taken.
fn definition_name(reference: &str, taken: &mut HashSet<String>) -> String {
    let last = reference.rsplit(['/', '#']).find(|part| !part.is_empty()).unwrap_or("schema");
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    let plain: String = last.chars().map(|c| if is_plain(c) { c } else { '_' }).take(60).collect();
    let mut name = plain.clone();
    let mut number = 1;
    while !taken.insert(name.clone()) {
        number += 1;
        name = format!("{plain}{number}");
    }
    name
}

#[cfg(test)]
mod tests;
