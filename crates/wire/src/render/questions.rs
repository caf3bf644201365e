//! Questions to the client, as requests of their own: the form of the legacy era.

use crate::json::WriteJson;
use crate::raw::Raw;
use crate::revision::{Features, Revision};
use crate::types::{ContentKind, Elicit, Question, SamplingContent};

/// A question that the client's revision does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the client's protocol revision does not support {0}")]
pub struct Unsupported(&'static str);

/// The params of the request that asks `question`.
///
/// `name` names a visit to a web page that has no name yet, where the revision needs one.
pub fn question(
    question: &Question,
    revision: Revision,
    name: impl FnOnce() -> String,
) -> Result<Option<Raw>, Unsupported> {
    let features = revision.features();
    match question {
        Question::Roots { params } | Question::Other { params, .. } => Ok(params.clone()),
        Question::Sample(sample) => {
            if sample.uses_tools() && !features.icons {
                return Err(Unsupported("sampling with tools"));
            }
            if sample.blocks().any(is_audio) && !features.audio {
                return Err(Unsupported("sampling with audio"));
            }
            Ok(Some(sample.to_raw(revision)))
        }
        Question::Elicit(_) if !features.elicitation => Err(Unsupported("elicitation")),
        Question::Elicit(elicit) => match elicit.clone() {
            Elicit::Form { message, schema, extra } => {
                let schema = form(&schema, features)?;
                Ok(Some(Elicit::Form { message, schema, extra }.to_raw(revision)))
            }
            Elicit::Url { .. } if !features.icons => Err(Unsupported("elicitation by URL")),
            Elicit::Url { message, url, id, extra } => {
                let id = id.or_else(|| Some(name()));
                Ok(Some(Elicit::Url { message, url, id, extra }.to_raw(revision)))
            }
        },
    }
}

fn is_audio(block: &SamplingContent) -> bool {
    matches!(block, SamplingContent::Block(content) if matches!(content.kind, ContentKind::Audio { .. }))
}

/// The schema of a form. 2025-06-18 knows neither defaults (but for booleans), nor choices of
/// several, nor titled choices other than by `enumNames`.
fn form(schema: &Raw, features: &Features) -> Result<Raw, Unsupported> {
    if features.icons {
        return Ok(schema.clone());
    }
    let mut properties = Vec::new();
    for (name, property) in schema.member("properties").iter().flat_map(Raw::members) {
        properties.push((name, lower_property(&property)?));
    }
    let changes: Vec<_> =
        properties.iter().map(|(name, property)| (name.as_str(), Some(property.text()))).collect();
    let properties = Raw::empty_object().with_members(&changes);
    let changes = [("$schema", None), ("properties", Some(properties.text()))];
    Ok(schema.with_members(&changes))
}

fn lower_property(property: &Raw) -> Result<Raw, Unsupported> {
    let mut changes = Vec::new();
    match property.member("type").as_ref().map(Raw::text) {
        Some(r#""array""#) => return Err(Unsupported("forms with multiple choice")),
        Some(r#""boolean""#) => {}
        _ => changes.push(("default", None)),
    }
    let choices = property.member("oneOf").and_then(|choices| choices.items());
    let column = |key: &str| {
        let value =
            |choice: &Raw| choice.member(key).map_or("null".into(), |raw| raw.text().to_owned());
        let values: Option<Vec<_>> = choices.as_ref().map(|all| all.iter().map(value).collect());
        values.map(|values| format!("[{}]", values.join(",")))
    };
    let (values, names) = (column("const"), column("title"));
    if values.is_some() {
        changes.push(("oneOf", None));
        changes.push(("enum", values.as_deref()));
        changes.push(("enumNames", names.as_deref()));
    }
    Ok(property.with_members(&changes))
}
