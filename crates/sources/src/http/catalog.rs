//! Which operations of an API are offered, and how.
//!
//! Names are given to all operations, then some are chosen; so the names do not depend on the
//! choice. Few operations are tools of their own, within a budget for all of them together; many are
//! offered by three tools.

use std::collections::BTreeMap;
use std::sync::Arc;

use sabir_openapi::{Budget, Description, Entry, Method, Operation, Problem, ReadOptions, names};
use sabir_registry::Checker;
use sabir_wire::Raw;
use serde_json::Value;

use super::pattern::matches;

/// The bytes of all definitions together. With more, each loses detail.
const MAX_LIST: usize = 180_000;

/// The bytes of a definition besides its description and its schema.
const OVERHEAD: usize = 300;

/// The smallest budget of one definition. If all together do not fit then, three tools offer them.
const MIN_BUDGET: usize = 600;

/// Operations, by patterns. A pattern has `*` for any characters; an empty list matches none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Their tags.
    pub tags: Vec<String>,
    /// Their paths.
    pub paths: Vec<String>,
    /// Their operationIds.
    pub operations: Vec<String>,
    /// Their methods.
    pub methods: Vec<Method>,
}

impl Filter {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The reason why an operation matches.
    fn reason(&self, entry: &Entry) -> Option<String> {
        let any = |patterns: &[String], text: &str| patterns.iter().any(|p| matches(p, text));
        let tag =
            entry.tags.iter().find(|tag| any(&self.tags, tag)).map(|tag| format!("tag {tag}"));
        let path = || any(&self.paths, &entry.path).then(|| format!("path {}", entry.path));
        let id = || {
            let id = entry.id.as_deref().filter(|id| any(&self.operations, id));
            id.map(|id| format!("operation {id}"))
        };
        let method =
            || self.methods.contains(&entry.method).then(|| format!("method {}", entry.method));
        tag.or_else(path).or_else(id).or_else(method)
    }
}

/// Which operations are offered, and under which names.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The prefix of each tool's name.
    pub prefix: String,
    /// The methods that are offered.
    pub methods: Vec<Method>,
    /// The operations that are offered. Empty: all.
    pub include: Filter,
    /// The operations that are not offered.
    pub exclude: Filter,
    /// Names by operationId or `GET /path`.
    pub rename: BTreeMap<String, String>,
    /// With more operations than this, three tools offer them.
    pub max_tools: usize,
    /// How operations are read.
    pub read: ReadOptions,
}

impl Default for Choice {
    fn default() -> Self {
        Self {
            prefix: String::new(),
            methods: vec![Method::Get, Method::Head],
            include: Filter::default(),
            exclude: Filter::default(),
            rename: BTreeMap::new(),
            max_tools: 40,
            read: ReadOptions::default(),
        }
    }
}

impl Choice {
    /// Why an operation is not offered.
    fn refuses(&self, entry: &Entry) -> Option<String> {
        if !self.methods.contains(&entry.method) {
            return Some(format!("method {} is not in `methods`", entry.method));
        }
        if !self.include.is_empty() && self.include.reason(entry).is_none() {
            return Some("it is not in `include`".to_owned());
        }
        self.exclude.reason(entry).map(|reason| format!("excluded by {reason}"))
    }
}

/// An operation that is offered.
#[derive(Clone, Debug)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// The operation.
    pub entry: Entry,
}

/// An operation that is not offered.
#[derive(Clone, Debug)]
pub struct LeftOut {
    /// The operation.
    pub key: String,
    /// Why.
    pub reason: String,
}

/// How the operations are offered.
#[derive(Debug)]
pub enum Offered {
    /// Each is a tool of its own.
    Tools(Vec<(String, Arc<Operation>)>),
    /// Three tools offer all.
    Search,
}

/// The operations of an API.
#[derive(Debug)]
pub struct Catalog {
    /// Those that are offered, in the order of the description.
    pub listed: Vec<Listed>,
    /// Those that are not.
    pub left_out: Vec<LeftOut>,
    /// How they are offered.
    pub offered: Offered,
    /// The mistakes in the description.
    pub problems: Vec<Problem>,
}

impl Catalog {
    /// Chooses from the operations of a description.
    pub fn new(description: &Description, choice: &Choice) -> Self {
        let (entries, mut problems) = description.entries();
        let names = names(&entries, &choice.prefix, &choice.rename);
        let (mut listed, mut left_out) = (Vec::new(), Vec::new());
        for (entry, name) in entries.into_iter().zip(names) {
            match choice.refuses(&entry) {
                Some(reason) => left_out.push(LeftOut { key: entry.key(), reason }),
                None => listed.push(Listed { name, entry }),
            }
        }
        let mut offered = Offered::Search;
        if listed.len() <= choice.max_tools {
            let tools = tools(description, choice, &mut listed, &mut left_out, &mut problems);
            offered = tools.map_or(Offered::Search, Offered::Tools);
        }
        Self { listed, left_out, offered, problems }
    }
}

/// Every operation as a tool. `None` if they do not fit into the budget.
fn tools(
    description: &Description,
    choice: &Choice,
    listed: &mut Vec<Listed>,
    left_out: &mut Vec<LeftOut>,
    problems: &mut Vec<Problem>,
) -> Option<Vec<(String, Arc<Operation>)>> {
    let mut tools = Vec::new();
    listed.retain(|Listed { name, entry }| {
        match checked(description, entry, Budget(MAX_LIST), &choice.read) {
            Ok((operation, _)) => {
                problems.extend(operation.problems.iter().cloned());
                tools.push((name.clone(), operation));
                true
            }
            Err(problem) => {
                left_out.push(LeftOut { key: entry.key(), reason: problem.what });
                false
            }
        }
    });
    let room = MAX_LIST.saturating_sub(tools.len() * OVERHEAD);
    let mut sizes: Vec<usize> = tools.iter().map(|(_, operation)| size(operation)).collect();
    let mut budget = fair_share(&sizes, room);
    while sizes.iter().sum::<usize>() > room {
        if budget < MIN_BUDGET {
            return None;
        }
        for ((_, operation), size_of_it) in tools.iter_mut().zip(&mut sizes) {
            if *size_of_it > budget
                && let Ok(smaller) =
                    description.read(&operation.entry, Budget(budget), &choice.read)
            {
                *size_of_it = size(&smaller);
                *operation = smaller;
            }
        }
        budget = budget * 7 / 10;
    }
    Some(tools.into_iter().map(|(name, operation)| (name, Arc::new(operation))).collect())
}

/// Reads an operation with as much detail as the checker of its arguments can take.
pub(super) fn checked(
    description: &Description,
    entry: &Entry,
    budget: Budget,
    options: &ReadOptions,
) -> Result<(Operation, Checker), Problem> {
    let mut budget = budget;
    loop {
        let operation = description.read(entry, budget, options)?;
        let schema = Raw::of(&operation.schema).map_err(|error| error.to_string());
        let checker = schema.and_then(|schema| {
            Checker::for_arguments(&schema).map_err(|reason| reason.to_string())
        });
        match checker {
            Ok(checker) => return Ok((operation, checker)),
            Err(what) if budget.0 == 0 => return Err(Problem { place: entry.key(), what }),
            // A schema that refers to itself in many ways is cut at a depth.
            Err(_) => budget = Budget(budget.0.min(operation.size()) / 4),
        }
    }
}

fn size(operation: &Operation) -> usize {
    operation.size()
        + operation.output.as_ref().map_or(0, |schema: &Value| schema.to_string().len())
}

/// The budget of each, if those that need less leave the rest to the others.
fn fair_share(sizes: &[usize], room: usize) -> usize {
    let mut sorted = sizes.to_vec();
    sorted.sort_unstable();
    let mut room = room;
    for (at, size) in sorted.iter().enumerate() {
        let share = room / (sorted.len() - at);
        if *size > share {
            return share;
        }
        room -= size;
    }
    usize::MAX
}

#[cfg(test)]
mod tests;
