//! The files of a description, and references between them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::uri::join;
use crate::yaml;

/// How many references may follow one another. A longer chain leads nowhere.
const MAX_CHAIN: usize = 32;

/// The version of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// Swagger 2.0.
    V2,
    /// OpenAPI 3.0.
    V3,
    /// OpenAPI 3.1 and later: schemas are JSON Schema 2020-12.
    V31,
}

/// A description of an API: the file that was asked for, and those that it refers to.
#[derive(Debug)]
pub struct Description {
    /// The first is the description itself.
    files: Vec<File>,
    by_uri: BTreeMap<String, usize>,
    unavailable: BTreeMap<String, String>,
    version: Version,
}

#[derive(Debug)]
struct File {
    uri: String,
    root: Value,
}

/// Why a file is not a description.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// Neither JSON nor YAML.
    #[error("neither JSON nor YAML: {0}")]
    Syntax(String),
    /// Neither OpenAPI nor Swagger.
    #[error(
        "not an OpenAPI description (expected an object with `openapi` or `swagger`, and `paths`)"
    )]
    Kind,
}

/// A value of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node<'d> {
    pub(crate) file: usize,
    pub(crate) value: &'d Value,
}

impl<'d> Node<'d> {
    pub(crate) fn get(self, key: &str) -> Option<Self> {
        Some(Self { value: self.value.get(key)?, ..self })
    }

    pub(crate) fn text(self, key: &str) -> Option<&'d str> {
        self.value.get(key)?.as_str()
    }

    /// A truth value; some descriptions write it as text.
    pub(crate) fn flag(self, key: &str) -> Option<bool> {
        match self.value.get(key)? {
            Value::Bool(flag) => Some(*flag),
            Value::String(text) => text.parse().ok(),
            _ => None,
        }
    }

    pub(crate) fn members(self) -> impl Iterator<Item = (&'d String, Self)> {
        let members = self.value.as_object().map(Map::iter).into_iter().flatten();
        members.map(move |(key, value)| (key, Self { value, ..self }))
    }

    pub(crate) fn items(self) -> impl Iterator<Item = Self> {
        let items = self.value.as_array().map_or(&[][..], Vec::as_slice);
        items.iter().map(move |value| Self { value, ..self })
    }

    /// Its place in memory, which is the same for every reference to it.
    pub(crate) fn id(self) -> *const Value {
        self.value
    }
}

impl Description {
    /// Parses the description at `uri`, which references in it are relative to.
    pub fn parse(uri: &str, bytes: &[u8]) -> Result<Self, ParseError> {
        let root = parse(bytes)?;
        let text = |key: &str| match root.get(key) {
            Some(Value::String(version)) => Some(version.clone()),
            Some(version @ Value::Number(_)) => Some(version.to_string()),
            _ => None,
        };
        let version = match (text("swagger"), text("openapi")) {
            (Some(_), None) => Version::V2,
            (_, Some(new)) if new.starts_with("3.0") || new == "3" => Version::V3,
            (_, Some(_)) => Version::V31,
            (None, None) => return Err(ParseError::Kind),
        };
        if !["paths", "webhooks", "components"].iter().any(|key| root.get(*key).is_some()) {
            return Err(ParseError::Kind);
        }
        let mut description = Self {
            files: Vec::new(),
            by_uri: BTreeMap::new(),
            unavailable: BTreeMap::new(),
            version,
        };
        description.insert(uri, root);
        Ok(description)
    }

    /// The files that it refers to and that are neither added nor given up.
    pub fn missing(&self) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for file in &self.files {
            collect_references(&file.root, &mut |reference| {
                let document = reference.split('#').next().unwrap_or_default();
                if let Some(uri) = join(&file.uri, document).filter(|_| !document.is_empty())
                    && !self.by_uri.contains_key(&uri)
                    && !self.unavailable.contains_key(&uri)
                {
                    found.insert(uri);
                }
            });
        }
        found
    }

    /// Adds a file that it refers to.
    pub fn add(&mut self, uri: &str, bytes: &[u8]) -> Result<(), ParseError> {
        self.insert(uri, parse(bytes)?);
        Ok(())
    }

    /// Gives up a file that it refers to. The operations that need the file report the reason.
    pub fn give_up(&mut self, uri: &str, reason: impl Into<String>) {
        self.unavailable.insert(uri.to_owned(), reason.into());
    }

    /// The version of its format.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The name of the API.
    pub fn title(&self) -> Option<&str> {
        self.root().get("info")?.text("title")
    }

    /// The purpose of the API.
    pub fn summary(&self) -> Option<&str> {
        let info = self.root().get("info")?;
        info.text("summary").or_else(|| info.text("description"))
    }

    /// The number of files.
    pub fn file_count(&self) -> usize {
        self.files.len()
    }

    pub(crate) fn root(&self) -> Node<'_> {
        Node { file: 0, value: &self.files[0].root }
    }

    /// The URI of the file that holds this value.
    pub(crate) fn uri(&self, node: Node<'_>) -> &str {
        &self.files[node.file].uri
    }

    fn insert(&mut self, uri: &str, root: Value) {
        self.by_uri.insert(uri.to_owned(), self.files.len());
        self.files.push(File { uri: uri.to_owned(), root });
    }

    /// Follows references until there is none. The error names the reference that leads nowhere.
    pub(crate) fn resolve<'d>(&'d self, node: Node<'d>) -> Result<Node<'d>, String> {
        let mut node = node;
        for _ in 0..MAX_CHAIN {
            let Some(reference) = node.text("$ref") else { return Ok(node) };
            node = self.target(node.file, reference)?;
        }
        Err("a reference refers to itself".to_owned())
    }

    fn target(&self, from: usize, reference: &str) -> Result<Node<'_>, String> {
        let nowhere = || format!("the reference `{reference}` leads nowhere");
        let (document, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let file = if document.is_empty() {
            from
        } else {
            let uri = join(&self.files[from].uri, document).ok_or_else(nowhere)?;
            match (self.by_uri.get(&uri), self.unavailable.get(&uri)) {
                (Some(file), _) => *file,
                (None, Some(reason)) => return Err(format!("cannot read `{uri}`: {reason}")),
                (None, None) => return Err(nowhere()),
            }
        };
        let root = &self.files[file].root;
        let found = root.pointer(fragment).or_else(|| {
            let decoded = percent_encoding::percent_decode_str(fragment).decode_utf8().ok()?;
            root.pointer(&decoded)
        });
        found.map(|value| Node { file, value }).ok_or_else(nowhere)
    }
}

fn parse(bytes: &[u8]) -> Result<Value, ParseError> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let json = match serde_json::from_slice(bytes) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    // A text that begins like JSON gets the error of the JSON parser.
    if matches!(bytes.trim_ascii_start().first(), Some(b'{' | b'[')) {
        let flow = std::str::from_utf8(bytes).ok().and_then(|text| yaml::parse(text).ok());
        return flow.ok_or_else(|| ParseError::Syntax(json.to_string()));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| ParseError::Syntax(error.to_string()))?;
    yaml::parse(text).map_err(ParseError::Syntax)
}

/// Every text under a key `$ref`.
fn collect_references(value: &Value, found: &mut dyn FnMut(&str)) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect_references(item, found)),
        Value::Object(members) => {
            for (key, value) in members {
                match value {
                    Value::String(reference) if key == "$ref" => found(reference),
                    value => collect_references(value, found),
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_referred_to_are_asked_for_until_all_are_there() {
        let root = "openapi: 3.0.0\npaths:\n  /a: {$ref: 'paths/a.yaml#/item'}\n  /b: {$ref: 'https://x.test/b.json'}\n";
        let mut description = Description::parse("file:///d/api.yaml", root.as_bytes()).unwrap();
        let missing: Vec<_> = description.missing().into_iter().collect();
        assert_eq!(missing, ["file:///d/paths/a.yaml", "https://x.test/b.json"]);
        description.add(&missing[0], b"item: {get: {parameters: [{$ref: ../p.json}]}}").unwrap();
        description.give_up(&missing[1], "the host is not allowed");
        assert_eq!(description.missing().into_iter().collect::<Vec<_>>(), ["file:///d/p.json"]);
        description.add("file:///d/p.json", br#"{"name":"q"}"#).unwrap();
        assert_eq!((description.missing().len(), description.file_count()), (0, 3));
        let paths = description.root().get("paths").unwrap();
        let item = description.resolve(paths.get("/a").unwrap()).unwrap();
        let parameter = item.get("get").unwrap().get("parameters").unwrap().items().next().unwrap();
        assert_eq!(description.resolve(parameter).unwrap().text("name"), Some("q"));
        assert_eq!(
            description.resolve(paths.get("/b").unwrap()).unwrap_err(),
            "cannot read `https://x.test/b.json`: the host is not allowed"
        );
    }

    #[test]
    fn references_to_nowhere_and_to_themselves_are_reported() {
        let text =
            br##"{"openapi":"3.1.0","paths":{"a":{"$ref":"#/paths/b"},"b":{"$ref":"#/paths/a"},
            "c":{"$ref":"#/x"},"d~e f":1,"f":{"$ref":"#/paths/d~0e%20f"}}}"##;
        let description = Description::parse("x", text).unwrap();
        let paths = description.root().get("paths").unwrap();
        let resolve = |key: &str| description.resolve(paths.get(key).unwrap());
        assert_eq!(resolve("a").unwrap_err(), "a reference refers to itself");
        assert_eq!(resolve("c").unwrap_err(), "the reference `#/x` leads nowhere");
        assert_eq!(resolve("f").unwrap().value, 1);
    }

    #[test]
    fn other_files_are_refused() {
        for text in ["", "hello", "[1]", "{\"openapi\":\"3.0.0\"}", "a: b"] {
            assert_eq!(Description::parse("x", text.as_bytes()).unwrap_err(), ParseError::Kind);
        }
        let broken = Description::parse("x", b"{\"openapi\":").unwrap_err();
        assert!(matches!(broken, ParseError::Syntax(_)), "{broken}");
        let version = |text: &str| Description::parse("x", text.as_bytes()).unwrap().version();
        assert_eq!(version("swagger: 2.0\npaths: {}"), Version::V2);
        assert_eq!(version("openapi: 3.0.3\npaths: {}"), Version::V3);
        assert_eq!(version("openapi: 3.2.0\ncomponents: {}"), Version::V31);
    }
}
