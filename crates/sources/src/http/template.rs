//! The texts of a request with placeholders: its URL, its headers and its body.
//!
//! A value is encoded for its place and can never leave it: not a segment of the path, not a
//! parameter of the query, not a member of a JSON object.

use sabir_openapi::{encode_path, encode_query};
use serde_json::Value;

use crate::command::{
    DefinitionError, Location, Piece, Place, RenderError, TextTemplate, Values, items, text,
};

/// A mistake in a template.
pub type BadTemplate = DefinitionError;

/// A URL with placeholders in its path and its query.
#[derive(Clone, Debug)]
pub struct UrlTemplate {
    /// The scheme and the host.
    origin: String,
    segments: Vec<TextTemplate>,
    /// The parameters of the query, as encoded text before the value, and the value.
    query: Vec<(String, TextTemplate)>,
}

const URL: Place = Place::Key("url");

impl UrlTemplate {
    /// Parses a URL. Its host and the names of its parameters have no placeholders.
    pub fn parse(url: &str) -> Result<Self, BadTemplate> {
        let wrong = |what: &str| {
            let hint = "write e.g. `url = \"https://api.example.com/v1/{id}?q={query?}\"`";
            DefinitionError::new(Location::Text(URL, None), what).hint(hint)
        };
        let scheme = ["https://", "http://"].into_iter().find(|scheme| url.starts_with(scheme));
        let scheme = scheme.ok_or_else(|| wrong("expected a URL that starts with https://"))?;
        let rest = &url[scheme.len()..];
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (host, rest) = rest.split_at(end);
        if host.is_empty() || host.contains(['{', '}', '@', '#', ' ']) {
            return Err(wrong("the host must be a name without placeholders"));
        }
        let (path, query) = match split(rest, '?').as_slice() {
            [path] => (*path, ""),
            [path, ..] => (*path, &rest[path.len() + 1..]),
            [] => ("", ""),
        };
        let parse = |source: &str| TextTemplate::parse_at(URL, source);
        let segments = path.strip_prefix('/').unwrap_or(path);
        let segments = split(segments, '/').into_iter().map(parse).collect::<Result<_, _>>()?;
        let mut pairs = Vec::new();
        for pair in split(query, '&').into_iter().filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            if name.contains(['{', '}']) {
                return Err(wrong("the name of a parameter must have no placeholders"));
            }
            pairs.push((name.to_owned(), parse(value)?));
        }
        Ok(Self { origin: format!("{scheme}{host}"), segments, query: pairs })
    }

    /// The scheme and the host.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    pub(super) fn texts(&self) -> impl Iterator<Item = &TextTemplate> {
        self.segments.iter().chain(self.query.iter().map(|(_, value)| value))
    }

    /// The URL of a call.
    pub(super) fn render(&self, values: &Values<'_>) -> Result<String, String> {
        let mut url = self.origin.clone();
        for segment in &self.segments {
            url.push('/');
            url.push_str(&render_segment(segment, values)?);
        }
        let mut separator = '?';
        for (name, template) in &self.query {
            for value in render_values(template, values)?.into_iter().flatten() {
                url.push(separator);
                separator = '&';
                url.push_str(name);
                url.push('=');
                url.push_str(&value);
            }
        }
        Ok(url)
    }
}

/// Splits at a character outside of braces.
fn split(text: &str, at: char) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut depth) = (0, 0usize);
    for (index, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            c if c == at && depth == 0 => {
                parts.push(&text[start..index]);
                start = index + c.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn message(error: RenderError) -> String {
    error.to_string()
}

/// A segment of the path. A value must not make it empty or relative.
fn render_segment(segment: &TextTemplate, values: &Values<'_>) -> Result<String, String> {
    let (mut out, mut plain) = (String::new(), String::new());
    let mut last = None;
    for piece in &segment.text {
        match piece {
            Piece::Literal(literal) => {
                out.push_str(literal);
                plain.push_str(literal);
            }
            Piece::Switch { name, text } => {
                if values.value(name).is_some_and(|value| value.get() == "true") {
                    out.push_str(text);
                    plain.push_str(text);
                }
            }
            Piece::Value { name, .. } => {
                last = Some(name);
                let Some(value) = values.value(name) else { continue };
                let value = text(name, value).map_err(message)?;
                out.push_str(&encode_path(&value));
                plain.push_str(&value);
            }
        }
    }
    match last {
        Some(name) if ["", ".", ".."].contains(&plain.as_str()) => {
            Err(format!("`{name}` must not be empty, `.` or `..`: it is a part of the path"))
        }
        _ => Ok(out),
    }
}

/// The encoded values of a parameter: one for each item of a list. `None` if an optional value is
/// absent.
fn render_values(
    template: &TextTemplate,
    values: &Values<'_>,
) -> Result<Option<Vec<String>>, String> {
    if let [Piece::Value { name, .. }] = &template.text[..] {
        let Some(value) = values.value(name) else { return Ok(None) };
        let all = items(value).unwrap_or_else(|| vec![value]);
        let encoded = all.into_iter().map(|item| {
            text(name, item).map(|text| encode_query(&text).into_owned()).map_err(message)
        });
        return encoded.collect::<Result<_, _>>().map(Some);
    }
    let mut out = String::new();
    for piece in &template.text {
        match piece {
            Piece::Literal(literal) => out.push_str(literal),
            Piece::Switch { name, text } => {
                if values.value(name).is_none_or(|value| value.get() != "true") {
                    return Ok(None);
                }
                out.push_str(text);
            }
            Piece::Value { name, .. } => {
                let Some(value) = values.value(name) else { return Ok(None) };
                out.push_str(&encode_query(&text(name, value).map_err(message)?));
            }
        }
    }
    Ok(Some(vec![out]))
}

/// The encoded pairs of a form.
pub(super) fn render_form(
    fields: &[(String, TextTemplate)],
    values: &Values<'_>,
) -> Result<String, String> {
    let mut pairs = Vec::new();
    for (name, template) in fields {
        // The literal parts of a form are as the author wrote them: plain text.
        let encoded = match &template.text[..] {
            [Piece::Literal(literal)] => Some(vec![encode_query(literal).into_owned()]),
            _ => render_values(template, values)?,
        };
        for value in encoded.into_iter().flatten() {
            pairs.push(format!("{}={value}", encode_query(name)));
        }
    }
    Ok(pairs.join("&"))
}

/// The value of a header. `None` if an optional value is absent.
pub(super) fn render_header(
    name: &str,
    template: &TextTemplate,
    values: &Values<'_>,
) -> Result<Option<String>, String> {
    let is_absent = |piece: &Piece| match piece {
        Piece::Value { name, .. } => values.value(name).is_none(),
        _ => false,
    };
    if template.text.iter().any(is_absent) {
        return Ok(None);
    }
    let value = template.render(values).map_err(message)?;
    if value.chars().all(|c| matches!(c, ' '..='~' | '\t')) {
        Ok(Some(value))
    } else {
        Err(format!("the header `{name}` would contain a character that a header cannot have"))
    }
}

/// A JSON value with placeholders in its texts. A text that is one placeholder becomes the value of
/// the argument, with its type; a member or an item whose optional value is absent is left out.
#[derive(Clone, Debug)]
pub enum JsonTemplate {
    /// A value without placeholders.
    Literal(Value),
    /// A text with placeholders.
    Text(TextTemplate),
    /// A list.
    List(Vec<JsonTemplate>),
    /// An object.
    Object(Vec<(String, JsonTemplate)>),
}

impl JsonTemplate {
    /// Parses the texts of a value.
    pub fn parse(value: Value) -> Result<Self, BadTemplate> {
        Ok(match value {
            Value::String(text) => {
                let template = TextTemplate::parse_at(Place::Key("body"), &text)?;
                match &template.text[..] {
                    [] => Self::Literal(text.into()),
                    [Piece::Literal(literal)] => Self::Literal(literal.clone().into()),
                    _ => Self::Text(template),
                }
            }
            Value::Array(list) => {
                Self::List(list.into_iter().map(Self::parse).collect::<Result<_, _>>()?)
            }
            Value::Object(members) => {
                let members = members.into_iter();
                let members = members.map(|(name, value)| Ok((name, Self::parse(value)?)));
                Self::Object(members.collect::<Result<_, BadTemplate>>()?)
            }
            literal => Self::Literal(literal),
        })
    }

    pub(super) fn texts(&self) -> Vec<&TextTemplate> {
        match self {
            Self::Literal(_) => Vec::new(),
            Self::Text(text) => vec![text],
            Self::List(list) => list.iter().flat_map(Self::texts).collect(),
            Self::Object(members) => members.iter().flat_map(|(_, value)| value.texts()).collect(),
        }
    }

    /// The JSON text of a call. `None` if an optional value is absent.
    pub(super) fn render(&self, values: &Values<'_>) -> Result<Option<String>, String> {
        Ok(match self {
            Self::Literal(value) => Some(value.to_string()),
            Self::Text(template) => match &template.text[..] {
                [Piece::Value { name, .. }] => {
                    values.value(name).map(|value| value.get().to_owned())
                }
                _ => {
                    let text = template.render(values).map_err(message)?;
                    Some(Value::String(text).to_string())
                }
            },
            Self::List(list) => {
                let items = list.iter().map(|item| item.render(values));
                let items: Vec<_> = items.collect::<Result<_, _>>()?;
                Some(format!("[{}]", items.into_iter().flatten().collect::<Vec<_>>().join(",")))
            }
            Self::Object(members) => {
                let mut written = Vec::new();
                for (name, value) in members {
                    if let Some(value) = value.render(values)? {
                        written.push(format!("{}:{value}", Value::from(name.as_str())));
                    }
                }
                Some(format!("{{{}}}", written.join(",")))
            }
        })
    }
}

#[cfg(test)]
mod tests;
