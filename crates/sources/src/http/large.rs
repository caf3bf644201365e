//! Three tools for many operations: search them, describe one, call one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use sabir_articles::TextIndex;
use sabir_openapi::{Budget, Description, Operation, ReadOptions};
use sabir_registry::Checker;
use sabir_wire::Raw;
use sabir_wire::types::{Tool, ToolAnnotations};
use serde_json::{Value, json};

use super::catalog::{Listed, checked};

/// How many operations are kept that were read in full. When full, all are forgotten.
const MAX_READ: usize = 256;

/// The most results of one search.
const MAX_RESULTS: usize = 50;

/// The operations of a large API.
#[derive(Debug)]
pub(super) struct Large {
    description: Arc<Description>,
    listed: Vec<Listed>,
    by_key: HashMap<String, usize>,
    /// Made by the first search.
    index: OnceLock<Result<TextIndex, String>>,
    read: Mutex<HashMap<usize, Arc<Checked>>>,
    options: ReadOptions,
}

/// An operation, and the checker of its arguments.
#[derive(Debug)]
pub(super) struct Checked {
    pub(super) operation: Arc<Operation>,
    checker: Checker,
}

impl Checked {
    /// Checks the arguments of a call.
    pub(super) fn check(&self, arguments: &Raw) -> Result<(), String> {
        self.checker.check(arguments)
    }
}

/// The three tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LargeTool {
    Search,
    Describe,
    Call,
}

impl LargeTool {
    const ALL: [(&'static str, Self); 3] = [
        ("search_operations", Self::Search),
        ("describe_operation", Self::Describe),
        ("call_operation", Self::Call),
    ];

    /// The tool of this name.
    pub(super) fn named(name: &str, prefix: &str) -> Option<Self> {
        let name = name.strip_prefix(prefix)?;
        Self::ALL.into_iter().find(|(known, _)| *known == name).map(|(_, tool)| tool)
    }
}

impl Large {
    /// How many operations it has.
    pub(super) fn count(&self) -> usize {
        self.listed.len()
    }

    pub(super) fn new(
        description: Arc<Description>,
        listed: Vec<Listed>,
        options: ReadOptions,
    ) -> Self {
        let mut by_key = HashMap::new();
        for (at, Listed { name, entry }) in listed.iter().enumerate() {
            by_key.insert(entry.key(), at);
            by_key.extend(entry.id.clone().map(|id| (id, at)));
            by_key.insert(name.clone(), at);
        }
        let (index, read) = (OnceLock::new(), Mutex::default());
        Self { description, listed, by_key, index, read, options }
    }

    /// The best results of a search, one per line. The first search makes the index.
    pub(super) fn search(&self, query: &str, limit: usize) -> Result<String, String> {
        let index = self.index.get_or_init(|| self.index());
        let index = index.as_ref().map_err(Clone::clone)?;
        let found =
            index.search(query, limit.min(MAX_RESULTS)).map_err(|error| error.to_string())?;
        if found.is_empty() {
            return Ok("No operation matches. Try other words.".to_owned());
        }
        let lines = found.into_iter().filter_map(|at| self.listed.get(at)).map(|listed| {
            let Listed { name, entry } = listed;
            let summary = entry.summary.as_deref().unwrap_or_default();
            format!("{name}: {} {summary}", entry.key()).trim_end().to_owned()
        });
        Ok(lines.collect::<Vec<_>>().join("\n"))
    }

    fn index(&self) -> Result<TextIndex, String> {
        let texts: Vec<[String; 2]> = self
            .listed
            .iter()
            .map(|Listed { name, entry }| {
                let summary = entry.summary.as_deref().unwrap_or_default();
                let title = format!("{} {summary}", entry.id.as_deref().unwrap_or(name));
                [title, format!("{} {}", entry.key(), entry.tags.join(" "))]
            })
            .collect();
        let texts = texts.iter().map(|[title, body]| [title.as_str(), body.as_str()]);
        TextIndex::new(texts).map_err(|error| format!("cannot index the operations: {error}"))
    }

    /// An operation by its name, its operationId or its key, read in full.
    pub(super) fn find(&self, wanted: &str) -> Result<Arc<Checked>, String> {
        let unknown = || format!("unknown operation `{wanted}` (search for it first)");
        let at = *self.by_key.get(wanted).ok_or_else(unknown)?;
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = read.get(&at) {
            return Ok(known.clone());
        }
        let entry = &self.listed[at].entry;
        let found = checked(&self.description, entry, Budget::ALONE, &self.options);
        let (operation, checker) = found.map_err(|problem| problem.to_string())?;
        let checked = Arc::new(Checked { operation: Arc::new(operation), checker });
        if read.len() >= MAX_READ {
            read.clear();
        }
        read.insert(at, checked.clone());
        Ok(checked)
    }

    /// The description of an operation for the model.
    pub(super) fn describe(&self, wanted: &str) -> Result<String, String> {
        let found = self.find(wanted)?;
        let Operation { entry, description, schema, .. } = &*found.operation;
        Ok(format!("{}\n\n{description}\n\nArguments, as a JSON Schema:\n{schema}", entry.key()))
    }
}

/// The three tools, whose names begin with `prefix`.
pub(super) fn tools(description: &Description, listed: &[Listed], prefix: &str) -> Vec<Tool> {
    let title = description.title().unwrap_or("the API");
    let title = sabir_openapi::shortened(title, 100);
    let count = listed.len();
    let operation = json!({ "type": "string", "description": "The name of an operation, as the search gives it" });
    let object = |properties: Value, required: Value| json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false });
    let is_safe = listed.iter().all(|listed| listed.entry.method.is_safe());
    let reading = ToolAnnotations { read_only_hint: Some(true), ..ToolAnnotations::default() };
    let calling = ToolAnnotations {
        read_only_hint: Some(is_safe),
        open_world_hint: Some(true),
        ..ToolAnnotations::default()
    };
    let tool = |which: usize, about: String, schema: Value, annotations: &ToolAnnotations| Tool {
        annotations: Some(annotations.clone()),
        // A `Value` can always be written as JSON.
        ..Tool::new(
            format!("{prefix}{}", LargeTool::ALL[which].0),
            about,
            Raw::of(&schema).unwrap_or_else(|_| Raw::empty_object()),
        )
    };
    let query = json!({
        "query": { "type": "string", "description": "Words for what you want to do" },
        "limit": { "type": "integer", "minimum": 1, "maximum": MAX_RESULTS, "default": 10 },
    });
    let search =
        format!("Search the {count} operations of {title}. Then describe one and call it.");
    let describe = format!("The arguments of an operation of {title}, as a JSON Schema.");
    let call = format!("Call an operation of {title} with arguments that fit its description.");
    let arguments = json!({ "operation": operation, "arguments": { "type": "object" } });
    vec![
        tool(0, search, object(query, json!(["query"])), &reading),
        tool(
            1,
            describe,
            object(json!({ "operation": operation }), json!(["operation"])),
            &reading,
        ),
        tool(2, call, object(arguments, json!(["operation"])), &calling),
    ]
}
