//! `[[resource]]`: a text or a file under a URI.

use sabir_sources::text::{Holding, TextResource};
use serde::Deserialize;
use toml::Spanned;

use super::mistake::{Mistake, Text};
use super::sources::{Files, SourceDescription};

/// A `[[resource]]`, as written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Resource {
    pub(crate) uri: Spanned<String>,
    name: Option<String>,
    title: Option<String>,
    description: Option<String>,
    mime_type: Option<String>,
    text: Option<String>,
    file: Option<Spanned<String>>,
    pub(super) scopes: Option<Vec<Spanned<String>>>,
}

/// Settles a resource.
pub(super) fn settle(file: &Resource, text: &Text<'_>) -> Result<SourceDescription, Mistake> {
    let uri = file.uri.get_ref();
    if !is_absolute(uri) {
        return Err(text.invalid(&file.uri, "URI", "e.g. \"text://motto\""));
    }
    if uri.contains(['{', '}']) {
        let what = format!("invalid URI `{uri}` (braces are for templates, which need a program)");
        let literal = uri.replace('{', "%7B").replace('}', "%7D");
        let hint =
            format!("write `uri = \"{literal}\"` for literal braces, or serve a [[command]]");
        return Err(text.mistake(file.uri.span(), what).hint(hint));
    }
    let mut files = Files::new(&format!("resource `{uri}`"));
    let holding = match (&file.text, &file.file) {
        (Some(inline), None) => Holding::Text(inline.clone()),
        (None, Some(path)) => Holding::File(files.add(path, file.mime_type.clone(), text)),
        _ => {
            let what = format!("resource `{uri}`: expected either `text` or `file`");
            return Err(text.lacking(file.uri.span(), what));
        }
    };
    // The default name is the last part of the URI.
    let last = || uri.rsplit(['/', ':']).find(|part| !part.is_empty()).unwrap_or(uri).to_owned();
    let listed = sabir::Resource {
        uri: uri.clone(),
        name: file.name.clone().unwrap_or_else(last),
        title: file.title.clone(),
        description: file.description.clone(),
        mime_type: file.mime_type.clone(),
        ..sabir::Resource::default()
    };
    Ok(files.describe(text.place(file.uri.span()), TextResource::new(listed, holding)))
}

/// Whether a URI has a scheme and something after it, without spaces and control characters.
fn is_absolute(uri: &str) -> bool {
    let Some((scheme, rest)) = uri.split_once(':') else { return false };
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
        && !rest.is_empty()
        && !uri.contains(|c: char| c.is_whitespace() || c.is_control())
}
