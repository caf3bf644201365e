//! `[[resource]]`: a text or a file under a URI.

use sabir_sources::text::{File, Holding, TextResource};
use serde::Deserialize;
use toml::Spanned;

use super::mistake::{Mistake, RELATIVE, Text};

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
}

/// Settles a resource.
pub(super) fn settle(file: &Resource, text: &Text<'_>) -> Result<TextResource, Mistake> {
    let uri = file.uri.get_ref();
    let wrong = |what: &str| text.mistake(file.uri.span(), format!("resource `{uri}`: {what}"));
    if !is_absolute(uri) {
        return Err(wrong("is no URI").hint("write it like \"text://motto\""));
    }
    let holding = match (&file.text, &file.file) {
        (Some(inline), None) => Holding::Text(inline.clone()),
        (None, Some(path)) => {
            let opened = File::open(text.resolve(path.get_ref()), file.mime_type.clone());
            Holding::File(opened.map_err(|bad| {
                text.mistake(path.span(), format!("resource `{uri}`: {bad}")).hint(RELATIVE)
            })?)
        }
        _ => return Err(wrong("needs either a `text` or a `file`")),
    };
    // The last part of the URI, as a file has its name.
    let last = || uri.rsplit(['/', ':']).find(|part| !part.is_empty()).unwrap_or(uri).to_owned();
    let listed = sabir::Resource {
        uri: uri.clone(),
        name: file.name.clone().unwrap_or_else(last),
        title: file.title.clone(),
        description: file.description.clone(),
        mime_type: file.mime_type.clone(),
        ..sabir::Resource::default()
    };
    Ok(TextResource::new(listed, holding))
}

/// Whether it has a scheme and something behind it, and nothing that a URI cannot have.
fn is_absolute(uri: &str) -> bool {
    let Some((scheme, rest)) = uri.split_once(':') else { return false };
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
        && !rest.is_empty()
        && !uri.contains(|c: char| c.is_whitespace() || c.is_control())
}
