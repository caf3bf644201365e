//! Parameters and their styles.

use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::description::{Description, Node, Version};
use crate::problem::Problem;

/// How many parameters of one operation are read. Further ones are left out and reported.
const MAX_PARAMETERS: usize = 500;

/// Where a parameter is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    Path,
    Query,
    Header,
    Cookie,
}

impl Place {
    const ALL: [(&'static str, Self); 4] = [
        ("path", Self::Path),
        ("query", Self::Query),
        ("header", Self::Header),
        ("cookie", Self::Cookie),
    ];

    pub(crate) fn as_str(self) -> &'static str {
        Self::ALL[self as usize].0
    }
}

/// How a list or an object is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Simple,
    Label,
    Matrix,
    Form,
    Space,
    Pipe,
    Tab,
    DeepObject,
}

/// How the value of an argument is sent.
#[derive(Clone, Debug)]
pub(crate) struct Parameter {
    pub(crate) name: String,
    pub(crate) place: Place,
    pub(crate) format: Format,
    pub(crate) required: bool,
    /// Sent when a required argument is absent.
    pub(crate) default: Option<Box<RawValue>>,
}

/// The style of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Format {
    pub(crate) style: Style,
    pub(crate) explode: bool,
    /// Reserved characters are not encoded.
    pub(crate) reserved: bool,
    /// The value is sent as JSON.
    pub(crate) json: bool,
}

/// A parameter, and what the description says of its values.
#[derive(Debug)]
pub(crate) struct DescribedParameter<'d> {
    pub(crate) parameter: Parameter,
    pub(crate) schema: Option<Node<'d>>,
    pub(crate) about: Option<&'d str>,
}

/// The parameters of an operation.
#[derive(Debug, Default)]
pub(crate) struct Parameters<'d> {
    pub(crate) list: Vec<DescribedParameter<'d>>,
    /// Swagger 2: parameters that are the body, or fields of it.
    pub(crate) body: Vec<Node<'d>>,
    pub(crate) problems: Vec<Problem>,
}

/// Headers that are not arguments: they belong to the client or have a place of their own.
const IGNORED_HEADERS: [&str; 5] =
    ["accept", "content-type", "authorization", "host", "content-length"];

impl Description {
    /// The parameters of an operation: its own, and those of its path that it does not replace.
    /// Placeholders of the path without a parameter are texts.
    pub(crate) fn parameters<'d>(
        &'d self,
        key: &str,
        item: Node<'d>,
        operation: Node<'d>,
        path: &str,
    ) -> Parameters<'d> {
        let mut found = Parameters::default();
        let mut seen: Vec<(String, String)> = Vec::new();
        let lists = [operation, item].into_iter().filter_map(|owner| owner.get("parameters"));
        for (count, written) in lists.flat_map(Node::items).enumerate() {
            if count == MAX_PARAMETERS {
                let what =
                    format!("too many parameters (limit {MAX_PARAMETERS}); the rest is left out");
                found.problems.push(Problem::new(key, what));
                break;
            }
            let node = match self.resolve(written) {
                Ok(node) => node,
                Err(what) => {
                    found.problems.push(Problem::new(key, what));
                    continue;
                }
            };
            let (Some(name), Some(place)) = (node.text("name"), node.text("in")) else {
                let what = "a parameter has no `name` or no `in`; it is left out";
                found.problems.push(Problem::new(key, what));
                continue;
            };
            let identity = (name.to_owned(), place.to_owned());
            if seen.contains(&identity) {
                continue;
            }
            seen.push(identity);
            self.add_parameter(node, name, place, &mut found);
        }
        found.complete_path(path);
        found
    }

    fn add_parameter<'d>(
        &'d self,
        node: Node<'d>,
        name: &str,
        place: &str,
        found: &mut Parameters<'d>,
    ) {
        if ["body", "formData"].contains(&place) {
            found.body.push(node);
            return;
        }
        let known = Place::ALL.iter().find(|(known, _)| *known == place);
        let Some((_, place)) = known else { return };
        let is_ignored =
            *place == Place::Header && IGNORED_HEADERS.contains(&&*name.to_ascii_lowercase());
        if is_ignored {
            return;
        }
        let content = node.get("content").and_then(|content| content.members().next());
        let schema = match (self.version(), content) {
            (Version::V2, _) => Some(node),
            (_, Some((_, media))) => media.get("schema"),
            (_, None) => node.get("schema"),
        };
        let format = Format { json: content.is_some(), ..self.format(node, *place) };
        let required = *place == Place::Path || node.flag("required").unwrap_or(false);
        let default = schema.and_then(|schema| self.default(schema));
        let parameter =
            Parameter { name: name.to_owned(), place: *place, format, required, default };
        found.list.push(DescribedParameter { parameter, schema, about: node.text("description") });
    }

    fn format(&self, node: Node<'_>, place: Place) -> Format {
        let usual = match place {
            Place::Path | Place::Header => Style::Simple,
            Place::Query | Place::Cookie => Style::Form,
        };
        let reserved = node.flag("allowReserved").unwrap_or(false) && place == Place::Query;
        if self.version() == Version::V2 {
            return Format { reserved, ..collection(node, usual) };
        }
        let style = match (node.text("style"), place) {
            (Some("label"), Place::Path) => Style::Label,
            (Some("matrix"), Place::Path) => Style::Matrix,
            (Some(name), Place::Query) => query_style(name).unwrap_or(usual),
            _ => usual,
        };
        let explode = node.flag("explode").unwrap_or(style == Style::Form);
        Format { style, explode, reserved, json: false }
    }

    /// The default of a schema, or its only choice.
    fn default(&self, schema: Node<'_>) -> Option<Box<RawValue>> {
        let schema = self.resolve(schema).ok()?;
        let only = || match schema.value.get("enum")?.as_array()?.as_slice() {
            [only] => Some(only),
            _ => None,
        };
        let value = schema.value.get("default").or_else(|| schema.value.get("const")).or_else(only);
        to_raw_value(value.filter(|value| !matches!(value, Value::Null))?).ok()
    }
}

/// A style of the query, or of the fields of a form.
pub(crate) fn query_style(name: &str) -> Option<Style> {
    Some(match name {
        "form" => Style::Form,
        "spaceDelimited" => Style::Space,
        "pipeDelimited" => Style::Pipe,
        "deepObject" => Style::DeepObject,
        _ => return None,
    })
}

/// The `collectionFormat` of Swagger 2.
pub(crate) fn collection(node: Node<'_>, usual: Style) -> Format {
    let (style, explode) = match node.text("collectionFormat") {
        Some("multi") => (Style::Form, true),
        Some("ssv") => (Style::Space, false),
        Some("tsv") => (Style::Tab, false),
        Some("pipes") => (Style::Pipe, false),
        _ => (usual, false),
    };
    Format { style, explode, reserved: false, json: false }
}

impl Parameters<'_> {
    /// Adds parameters for placeholders without one, and removes those without a placeholder.
    fn complete_path(&mut self, path: &str) {
        let names = placeholders(path);
        self.list.retain(|known| {
            known.parameter.place != Place::Path || names.contains(&&*known.parameter.name)
        });
        for name in names {
            let is_it = |known: &DescribedParameter<'_>| {
                known.parameter.place == Place::Path && known.parameter.name == name
            };
            if self.list.iter().any(is_it) {
                continue;
            }
            let format =
                Format { style: Style::Simple, explode: false, reserved: false, json: false };
            let (name, place, default) = (name.to_owned(), Place::Path, None);
            let parameter = Parameter { name, place, format, required: true, default };
            self.list.push(DescribedParameter { parameter, schema: None, about: None });
        }
        self.list.sort_by_key(|known| known.parameter.place);
    }
}

/// The names between braces in a path. `{+name}` is the name `name`.
fn placeholders(path: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut rest = path;
    while let Some((_, after)) = rest.split_once('{') {
        let Some((name, after)) = after.split_once('}') else { break };
        let name = name.strip_prefix('+').unwrap_or(name);
        if !name.is_empty() && !names.contains(&name) {
            names.push(name);
        }
        rest = after;
    }
    names
}
