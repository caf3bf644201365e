//! The fields of form and multipart bodies.

use serde_json::Value;

use crate::description::{Description, Node};
use crate::media::BodyKind;
use crate::parameter::{Format, Style, query_style};

/// A field of a body.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) name: String,
    /// How lists and objects are written in a form; `None`: lists are repeated, objects have
    /// brackets.
    pub(crate) format: Option<Format>,
    /// The media type of a part.
    pub(crate) media: Option<String>,
    /// The value is a file, or a list of files.
    pub(crate) file: bool,
}

impl Description {
    pub(crate) fn field(
        &self,
        name: &str,
        schema: Node<'_>,
        kind: BodyKind,
        encoding: Option<Node<'_>>,
    ) -> Field {
        let written = |key: &str| encoding.and_then(|encoding| encoding.text(key));
        // Several media types are a choice of the sender.
        let media = written("contentType").and_then(|media| media.split(',').next());
        let media = media.map(|media| media.trim().to_owned()).filter(|media| !media.contains('*'));
        let style = written("style").and_then(query_style);
        let explode = encoding.and_then(|encoding| encoding.flag("explode"));
        let format = (style.is_some() || explode.is_some()).then(|| {
            let style = style.unwrap_or(Style::Form);
            let explode = explode.unwrap_or(style == Style::Form);
            Format { style, explode, reserved: false, json: false }
        });
        let file = kind == BodyKind::Multipart && self.is_file(schema, media.as_deref());
        Field { name: name.to_owned(), format, media, file }
    }

    /// Whether the values of a schema are files, or lists of files.
    fn is_file(&self, schema: Node<'_>, media: Option<&str>) -> bool {
        let Ok(schema) = self.resolve(schema) else { return false };
        let is_binary = |schema: Node<'_>| {
            let has_type = |kind: &str| schema.text("type") == Some(kind);
            let format = schema.text("format");
            has_type("file")
                || (format == Some("binary") && !has_type("object"))
                || schema.text("contentMediaType") == Some("application/octet-stream")
        };
        let items = schema.get("items").and_then(|items| self.resolve(items).ok());
        let is_bytes =
            |media: &str| media == "application/octet-stream" || media.starts_with("image/");
        is_binary(schema)
            || items.is_some_and(is_binary)
            || (media.is_some_and(is_bytes)
                && schema.value.get("type") != Some(&Value::from("object")))
    }
}
