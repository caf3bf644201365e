//! The media types of a request body, and the fields of an object.

use std::collections::HashSet;

use serde_json::Value;

use crate::description::{Description, Node, Version};
use crate::entry::Method;
use crate::field::Field;
use crate::media::{BodyKind, essence, is_json};
use crate::parameter::{Parameters, Style, collection};

/// How many levels of `allOf` and references are looked into for the fields of a body.
const MAX_LEVELS: usize = 12;

/// The body of a request.
#[derive(Clone, Debug)]
pub(crate) struct Body {
    pub(crate) kind: BodyKind,
    pub(crate) media: String,
    pub(crate) required: bool,
    /// Whether arguments that are not described are fields too.
    pub(crate) open: bool,
}

/// A body, and what the description says of its value.
#[derive(Debug)]
pub(crate) struct DescribedBody<'d> {
    pub(crate) body: Body,
    pub(crate) about: Option<&'d str>,
    pub(crate) shape: Shape<'d>,
}

#[derive(Debug)]
pub(crate) enum Shape<'d> {
    /// One value.
    Whole(Option<Node<'d>>),
    /// An object with these fields.
    Fields(Vec<DescribedField<'d>>),
}

#[derive(Debug)]
pub(crate) struct DescribedField<'d> {
    pub(crate) field: Field,
    pub(crate) schema: Node<'d>,
    pub(crate) required: bool,
}

impl Description {
    /// The body of an operation. `parameters` are those of Swagger 2 that belong to it.
    pub(crate) fn body<'d>(
        &'d self,
        method: Method,
        operation: Node<'d>,
        parameters: &Parameters<'d>,
    ) -> Result<Option<DescribedBody<'d>>, String> {
        if self.version() == Version::V2 {
            return self.swagger_body(operation, &parameters.body);
        }
        let Some(body) = operation.get("requestBody") else { return Ok(None) };
        let body = self.resolve(body)?;
        let content = body.get("content").into_iter().flat_map(Node::members);
        let offered = content.map(|(media, node)| (media.as_str(), node));
        let Some((media, node)) = offered.min_by_key(|(media, node)| preference(media, *node))
        else {
            return Ok(None);
        };
        let schema = node.get("schema");
        let kind = self.kind(media, schema);
        // Without `required`, most descriptions mean a required body, except for methods that
        // seldom have one.
        let is_usual = matches!(method, Method::Post | Method::Put | Method::Patch);
        let required = body.flag("required").unwrap_or(is_usual);
        let encoding = node.get("encoding");
        let described = self.describe(kind, media, required, schema, encoding)?;
        Ok(Some(DescribedBody { about: body.text("description"), ..described }))
    }

    fn describe<'d>(
        &'d self,
        kind: BodyKind,
        media: &str,
        required: bool,
        schema: Option<Node<'d>>,
        encoding: Option<Node<'d>>,
    ) -> Result<DescribedBody<'d>, String> {
        let media = match essence(media).as_str() {
            "*/*" | "" if kind == BodyKind::Json => "application/json".to_owned(),
            "*/*" | "" => "application/octet-stream".to_owned(),
            _ => media.to_owned(),
        };
        let has_fields = matches!(kind, BodyKind::Json | BodyKind::Form | BodyKind::Multipart);
        let fields = schema.filter(|_| has_fields).and_then(|schema| self.fields(schema));
        let (open, shape) = match fields {
            Some(fields) => {
                let described = fields.list.into_iter().map(|(name, node, required)| {
                    let encoding = encoding.and_then(|encoding| encoding.get(name));
                    let field = self.field(name, node, kind, encoding);
                    DescribedField { field, schema: node, required }
                });
                (fields.open, Shape::Fields(described.collect()))
            }
            None => (false, Shape::Whole(schema)),
        };
        let body = Body { kind, media, required, open };
        Ok(DescribedBody { body, about: None, shape })
    }

    fn swagger_body<'d>(
        &'d self,
        operation: Node<'d>,
        parameters: &[Node<'d>],
    ) -> Result<Option<DescribedBody<'d>>, String> {
        let consumes = operation.get("consumes").or_else(|| self.root().get("consumes"));
        let consumes = consumes.into_iter().flat_map(Node::items);
        let media: Vec<&str> = consumes.filter_map(|media| media.value.as_str()).collect();
        if let Some(body) = parameters.iter().find(|body| body.text("in") == Some("body")) {
            let schema = body.get("schema");
            let json = "application/json";
            let offered = media.iter().copied().map(|media| (media, *body));
            let best = offered.min_by_key(|(media, node)| preference(media, *node));
            let media = best.map_or(json, |(media, _)| media);
            let required = body.flag("required").unwrap_or(false);
            let kind = self.kind(media, schema);
            let described = self.describe(kind, media, required, schema, None)?;
            return Ok(Some(DescribedBody { about: body.text("description"), ..described }));
        }
        if parameters.is_empty() {
            return Ok(None);
        }
        let has_file = parameters.iter().any(|field| field.text("type") == Some("file"));
        let only_multipart =
            !media.is_empty() && media.iter().all(|media| essence(media) == "multipart/form-data");
        let (kind, media) = if has_file || only_multipart {
            (BodyKind::Multipart, "multipart/form-data")
        } else {
            (BodyKind::Form, "application/x-www-form-urlencoded")
        };
        let fields = parameters.iter().filter_map(|node| {
            let name = node.text("name")?;
            let format = collection(*node, Style::Form);
            let field = Field { format: Some(format), ..self.field(name, *node, kind, None) };
            let required = node.flag("required").unwrap_or(false);
            Some(DescribedField { field, schema: *node, required })
        });
        let shape = Shape::Fields(fields.collect());
        let body = Body { kind, media: media.to_owned(), required: true, open: false };
        Ok(Some(DescribedBody { body, about: None, shape }))
    }

    /// How a body of this media type is written.
    fn kind(&self, media: &str, schema: Option<Node<'_>>) -> BodyKind {
        let essence = essence(media);
        let is_binary = || {
            let schema = schema.and_then(|schema| self.resolve(schema).ok());
            schema.is_some_and(|schema| {
                schema.text("format").is_some_and(|format| ["binary", "byte"].contains(&format))
                    || schema.get("contentMediaType").is_some()
            })
        };
        let is_texty = essence.starts_with("text/") || essence.ends_with("xml");
        match essence.as_str() {
            media if is_json(media) => BodyKind::Json,
            "application/x-www-form-urlencoded" => BodyKind::Form,
            media if media.starts_with("multipart/") => BodyKind::Multipart,
            "*/*" | "" if !is_binary() => BodyKind::Json,
            _ if is_texty => BodyKind::Text,
            // Media types such as `application/jose` or `application/x-yaml`, whose value is text.
            media if media.starts_with("application/") && crate::media::is_text(media) => {
                BodyKind::Text
            }
            _ => BodyKind::Bytes,
        }
    }

    /// The fields of a schema, if it is an object with known fields.
    fn fields<'d>(&'d self, schema: Node<'d>) -> Option<Fields<'d>> {
        let mut fields = Fields { list: Vec::new(), required: Vec::new(), open: false };
        let mut seen = HashSet::new();
        let is_object = self.collect_fields(schema, MAX_LEVELS, &mut seen, &mut fields);
        if !is_object || fields.list.is_empty() {
            return None;
        }
        // A field that is required without being described.
        let mut known: HashSet<&str> = fields.list.iter().map(|(name, ..)| *name).collect();
        let any = Node { value: &Value::Null, ..schema };
        fields.required.sort_unstable();
        for name in fields.required.drain(..).filter(|name| known.insert(name)) {
            fields.list.push((name, any, true));
        }
        Some(fields)
    }

    /// Whether the schema is an object whose fields are all known.
    fn collect_fields<'d>(
        &'d self,
        schema: Node<'d>,
        levels: usize,
        seen: &mut HashSet<*const Value>,
        fields: &mut Fields<'d>,
    ) -> bool {
        let Ok(schema) = self.resolve(schema) else { return false };
        if levels == 0 {
            return false;
        }
        // A part that contains itself adds nothing.
        if !seen.insert(schema.id()) {
            return true;
        }
        let is_object = match schema.get("type").map(|kind| kind.value) {
            None => true,
            Some(Value::String(kind)) => kind == "object",
            Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
            Some(_) => false,
        };
        if !is_object {
            return false;
        }
        for keyword in ["oneOf", "anyOf"] {
            let mut parts = schema.get(keyword).into_iter().flat_map(Node::items);
            // `anyOf: [{required: [a]}, {required: [b]}]` adds no fields.
            if parts.any(|part| part.members().any(|(key, _)| key != "required")) {
                return false;
            }
        }
        let required = schema.get("required").into_iter().flat_map(Node::items);
        let required: HashSet<&str> = required.filter_map(|name| name.value.as_str()).collect();
        for (name, property) in schema.get("properties").into_iter().flat_map(Node::members) {
            let is_required = required.contains(name.as_str());
            match fields.list.iter_mut().find(|(known, ..)| known == name) {
                Some(known) => *known = (name, property, known.2 || is_required),
                None => fields.list.push((name, property, is_required)),
            }
        }
        let mut parts = schema.get("allOf").into_iter().flat_map(Node::items);
        let all = parts.all(|part| self.collect_fields(part, levels - 1, seen, fields));
        fields.required.extend(&required);
        // Required by this schema, described by a part of it.
        for (name, _, is_required) in &mut fields.list {
            *is_required |= required.contains(*name);
        }
        let more = schema.get("additionalProperties").map(|more| more.value);
        fields.open |= more.is_some_and(|more| !matches!(more, Value::Bool(false)));
        all
    }
}

struct Fields<'d> {
    list: Vec<(&'d str, Node<'d>, bool)>,
    /// All that are required, described or not.
    required: Vec<&'d str>,
    open: bool,
}

/// The best media type has the lowest number.
fn preference(media: &str, node: Node<'_>) -> (u8, bool) {
    let essence = essence(media);
    let rank = match essence.as_str() {
        "application/json" => 0,
        "application/merge-patch+json" => 1,
        "application/json-patch+json" => 3,
        media if is_json(media) => 2,
        "application/x-www-form-urlencoded" => 4,
        "multipart/form-data" => 5,
        "*/*" => 6,
        media if media.starts_with("multipart/") => 8,
        media if media.starts_with("text/") => 9,
        media if media.ends_with("xml") => 10,
        _ => 7,
    };
    (rank, node.get("schema").is_none())
}
