//! One operation, read in full.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::argument::Argument;
use crate::body::{Body, Shape};
use crate::definition::{Budget, define, output};
use crate::description::{Description, Node, Version};
use crate::entry::Entry;
use crate::field::Field;
use crate::media::is_json;
use crate::parameter::{Parameter, Place};
use crate::problem::Problem;

/// How an operation is read.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// Replaces the defaults of server variables.
    pub variables: BTreeMap<String, String>,
    /// The limit of the schema of its answers in bytes. `None`: it is not read.
    pub output: Option<usize>,
}

/// An operation: its definition for a model, and the plan of its requests.
#[derive(Debug)]
pub struct Operation {
    /// Its entry in the list.
    pub entry: Entry,
    /// The description for the model.
    pub description: String,
    /// The JSON Schema of its arguments, an object.
    pub schema: Value,
    /// The JSON Schema of its answers, if it was asked for and is an object.
    pub output: Option<Value>,
    /// Its own base URLs, if they are not those of the description.
    pub servers: Option<Vec<String>>,
    /// The schemes that it needs, as alternatives. Empty: none.
    pub security: Vec<Vec<String>>,
    /// The problems of its description.
    pub problems: Vec<Problem>,
    /// Whether detail was left out to fit into the budget.
    pub shortened: bool,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) fields: Vec<Field>,
    pub(crate) body: Option<Body>,
    pub(crate) arguments: Vec<Argument>,
    pub(crate) accept: String,
}

impl Operation {
    /// The names of its arguments.
    pub fn argument_names(&self) -> impl Iterator<Item = &str> {
        self.arguments.iter().map(|argument| argument.name.as_str())
    }

    /// Whether the API lets the caller mark repeated requests with a header `Idempotency-Key`.
    pub fn has_idempotency_key(&self) -> bool {
        self.idempotency_key().is_some()
    }

    pub(crate) fn idempotency_key(&self) -> Option<&Parameter> {
        let is_key = |one: &&Parameter| {
            one.place == Place::Header && one.name.eq_ignore_ascii_case("idempotency-key")
        };
        self.parameters.iter().find(is_key)
    }

    /// The bytes of its description and its schema.
    pub fn size(&self) -> usize {
        self.description.len() + self.schema.to_string().len()
    }
}

impl Description {
    /// Reads an operation of the list.
    pub fn read(
        &self,
        entry: &Entry,
        budget: Budget,
        options: &ReadOptions,
    ) -> Result<Operation, Problem> {
        let key = entry.key();
        let wrong = |what: String| Problem::new(&key, what);
        let (item, operation) = self.find(entry).map_err(wrong)?;
        let found = self.parameters(&key, item, operation, entry.sent_path());
        let body = self.body(entry.method, operation, &found).map_err(wrong)?;
        let about = about(entry, operation);
        let definition = define(self, &found.list, body.as_ref(), &about, budget);
        let mut problems = found.problems;
        problems.extend(definition.problems.into_iter().map(wrong));
        problems.dedup();
        let answer = self.answer(operation);
        let limit =
            options.output.and_then(|bytes| output(self, answer?.get("schema")?, Budget(bytes)));
        let own = |owner| self.read_servers(owner, &options.variables);
        let fields = match body.as_ref().map(|body| &body.shape) {
            Some(Shape::Fields(fields)) => fields.iter().map(|one| one.field.clone()).collect(),
            _ => Vec::new(),
        };
        Ok(Operation {
            entry: entry.clone(),
            description: definition.text,
            schema: definition.schema,
            output: limit,
            servers: own(operation).or_else(|| own(item)),
            security: self.security(operation),
            problems,
            shortened: definition.shortened,
            parameters: found.list.into_iter().map(|one| one.parameter).collect(),
            fields,
            body: body.map(|body| body.body),
            arguments: definition.arguments,
            accept: self.accept(operation),
        })
    }

    /// The successful response of an operation.
    fn success<'d>(&'d self, operation: Node<'d>) -> Option<Node<'d>> {
        let responses = operation.get("responses")?;
        let mut all = responses.members();
        let success = all.find(|(code, _)| code.starts_with('2')).map(|(_, response)| response);
        self.resolve(success.or_else(|| responses.get("default"))?).ok()
    }

    /// The JSON of a successful response: an object with a `schema`.
    fn answer<'d>(&'d self, operation: Node<'d>) -> Option<Node<'d>> {
        let response = self.success(operation)?;
        if self.version() == Version::V2 {
            return Some(response);
        }
        response.get("content")?.members().find(|(media, _)| is_json(media)).map(|(_, node)| node)
    }

    /// The `Accept` header: JSON if it is there, else the first media type of the response.
    fn accept(&self, operation: Node<'_>) -> String {
        let media: Vec<String> = if self.version() == Version::V2 {
            let produces = operation.get("produces").or_else(|| self.root().get("produces"));
            let listed = produces.into_iter().flat_map(Node::items);
            listed.filter_map(|media| media.value.as_str().map(str::to_owned)).collect()
        } else {
            let content = self.success(operation).and_then(|response| response.get("content"));
            content.into_iter().flat_map(Node::members).map(|(media, _)| media.clone()).collect()
        };
        let is_plain = |media: &&String| media.chars().all(|c| matches!(c, ' '..='~'));
        let best = media.iter().find(|media| is_json(media)).or_else(|| media.first());
        match best.filter(is_plain).map(String::as_str) {
            None | Some("*/*") => "application/json, */*;q=0.5".to_owned(),
            Some(best) => format!("{best}, */*;q=0.1"),
        }
    }
}

/// The summary, the description, and the request.
fn about(entry: &Entry, operation: Node<'_>) -> String {
    let text = |key: &str| operation.text(key).map(str::trim).filter(|text| !text.is_empty());
    let mut parts: Vec<String> = Vec::new();
    if entry.deprecated {
        parts.push("Deprecated.".into());
    }
    match (text("summary"), text("description")) {
        (Some(summary), Some(description))
            if description.starts_with(summary.trim_end_matches('.')) =>
        {
            parts.push(description.into());
        }
        (summary, description) => {
            parts.extend([summary, description].into_iter().flatten().map(Into::into));
        }
    }
    if parts.is_empty() {
        parts.push(entry.key());
    }
    parts.join("\n\n")
}

#[cfg(test)]
mod tests;
