//! The list of operations.

use std::fmt;

use crate::description::{Description, Node};
use crate::problem::Problem;

/// How many operations of one description are read. Further ones are left out and reported.
pub const MAX_OPERATIONS: usize = 50_000;

/// A method of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Method {
    Get,
    Head,
    Options,
    Trace,
    Put,
    Delete,
    Post,
    Patch,
    Query,
}

impl Method {
    /// All methods that a description can have.
    pub const ALL: [Self; 9] = [
        Self::Get,
        Self::Head,
        Self::Options,
        Self::Trace,
        Self::Put,
        Self::Delete,
        Self::Post,
        Self::Patch,
        Self::Query,
    ];

    /// The name in upper case.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Options => "OPTIONS",
            Self::Trace => "TRACE",
            Self::Put => "PUT",
            Self::Delete => "DELETE",
            Self::Post => "POST",
            Self::Patch => "PATCH",
            Self::Query => "QUERY",
        }
    }

    /// The method of this name, in upper or lower case.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.as_str().eq_ignore_ascii_case(name))
    }

    /// Whether its requests change nothing.
    pub fn is_safe(self) -> bool {
        matches!(self, Self::Get | Self::Head | Self::Options | Self::Trace | Self::Query)
    }

    /// Whether two equal requests have the effect of one.
    pub fn is_idempotent(self) -> bool {
        !matches!(self, Self::Post | Self::Patch)
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An operation in the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its method.
    pub method: Method,
    /// Its path, as a template.
    pub path: String,
    /// Its `operationId`, if it has one.
    pub id: Option<String>,
    /// Its short description.
    pub summary: Option<String>,
    /// Its tags.
    pub tags: Vec<String>,
    /// Whether it is deprecated.
    pub deprecated: bool,
}

impl Entry {
    /// The method and the path, which identify it: `GET /pets`.
    pub fn key(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    /// The path that is sent. Some descriptions tell operations of one path apart by a fragment:
    /// `/#Action=List`.
    pub(crate) fn sent_path(&self) -> &str {
        self.path.split('#').next().unwrap_or_default()
    }
}

impl Description {
    /// All operations in the order of the description, and the problems of the invalid ones.
    pub fn entries(&self) -> (Vec<Entry>, Vec<Problem>) {
        let (mut entries, mut problems) = (Vec::new(), Vec::new());
        let Some(paths) = self.root().get("paths") else { return (entries, problems) };
        for (path, item) in paths.members().filter(|(path, _)| !path.starts_with("x-")) {
            let item = match self.resolve(item) {
                Ok(item) if item.value.is_object() => item,
                Ok(_) => continue,
                Err(what) => {
                    problems.push(Problem::new(path, what));
                    continue;
                }
            };
            for (key, operation) in item.members() {
                let Some(method) = Method::parse(key).filter(|_| operation.value.is_object())
                else {
                    continue;
                };
                if entries.len() == MAX_OPERATIONS {
                    let what = format!(
                        "too many operations (limit {MAX_OPERATIONS}); the rest is left out"
                    );
                    problems.push(Problem::new(path, what));
                    return (entries, problems);
                }
                entries.push(entry(method, path, operation));
            }
        }
        (entries, problems)
    }

    /// The path item and the operation of an entry.
    pub(crate) fn find(&self, entry: &Entry) -> Result<(Node<'_>, Node<'_>), String> {
        let item = self.root().get("paths").and_then(|paths| paths.get(&entry.path));
        let item = self.resolve(item.ok_or("the path is not there")?)?;
        let mut members = item.members();
        let found = members.find(|(key, _)| Method::parse(key) == Some(entry.method));
        let (_, operation) = found.ok_or("the operation is not there")?;
        Ok((item, operation))
    }
}

fn entry(method: Method, path: &str, operation: Node<'_>) -> Entry {
    let summary = operation.text("summary").filter(|text| !text.trim().is_empty());
    let tags = operation.get("tags").into_iter().flat_map(Node::items);
    Entry {
        method,
        path: path.to_owned(),
        id: operation.text("operationId").map(str::to_owned),
        summary: summary.or_else(|| operation.text("description")).map(|text| {
            crate::words::shortened(text.trim().lines().next().unwrap_or_default(), 200)
        }),
        tags: tags.filter_map(|tag| tag.value.as_str().map(str::to_owned)).collect(),
        deprecated: operation.flag("deprecated").unwrap_or(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_parts_of_the_list_cost_themselves_only() {
        let text = r##"{"openapi":"3.0.0","paths":{
            "/a":{"get":{"operationId":"a","tags":["t",1]},"parameters":[],"post":null,"x-get":{}},
            "/b":{"$ref":"#/nowhere"},"/c":7,"x-d":{"get":{}},
            "/e":{"PUT":{"description":" long\nmore","deprecated":"true"}}}}"##;
        let description = Description::parse("x", text.as_bytes()).unwrap();
        let (entries, problems) = description.entries();
        let keys: Vec<_> = entries.iter().map(Entry::key).collect();
        assert_eq!(keys, ["GET /a", "PUT /e"]);
        assert_eq!((entries[0].tags.len(), entries[1].deprecated), (1, true));
        assert_eq!(entries[1].summary.as_deref(), Some("long"));
        assert_eq!(problems[0].to_string(), "/b: the reference `#/nowhere` leads nowhere");
        assert!(description.find(&entries[1]).is_ok());
    }

    #[test]
    fn the_number_of_operations_is_bounded_at_its_edge() {
        let with = |count: usize| {
            let paths: Vec<_> = (0..count).map(|n| format!(r#""/{n}":{{"get":{{}}}}"#)).collect();
            let text = format!(r#"{{"openapi":"3.0.0","paths":{{{}}}}}"#, paths.join(","));
            let (entries, problems) = Description::parse("x", text.as_bytes()).unwrap().entries();
            (entries.len(), problems.len())
        };
        assert_eq!(with(MAX_OPERATIONS), (MAX_OPERATIONS, 0));
        assert_eq!(with(MAX_OPERATIONS + 1), (MAX_OPERATIONS, 1));
    }
}
