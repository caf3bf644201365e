//! Questions to the client, as each revision asks them.

use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::{Lowered, object};
use crate::raw::Raw;
use crate::revision::{Features, Revision};
use crate::types::{ContentKind, Elicit, Question, Role, Sample, SamplingContent, SamplingMessage};

/// Why a question cannot be asked in a revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this client's revision cannot be asked {0}")]
pub struct Unsayable(&'static str);

/// The params of `question` as a request of its own, for clients that are asked by requests.
///
/// `name` names a visit to a web page, where the revision wants it named.
pub fn question(
    question: &Question,
    revision: Revision,
    name: impl FnOnce() -> String,
) -> Result<Option<Raw>, Unsayable> {
    let features = revision.features();
    let params = match question {
        Question::Roots => return Ok(None),
        Question::Sample(sample) => {
            if sample.uses_tools() && !features.icons {
                return Err(Unsayable("to sample with tools"));
            }
            if sample.blocks().any(is_audio) && !features.audio {
                return Err(Unsayable("to sample with sounds"));
            }
            Raw::of(&Lowered { value: sample.as_ref(), features })
        }
        Question::Elicit(_) if !features.elicitation => {
            return Err(Unsayable("anything of its user"));
        }
        Question::Elicit(Elicit::Form { message, schema }) => {
            let schema = form(schema, features)?;
            let mode = features.icons.then_some("form");
            Raw::of(&Form { mode, message, requested_schema: &schema })
        }
        Question::Elicit(Elicit::Url { .. }) if !features.icons => {
            return Err(Unsayable("to open a web page"));
        }
        Question::Elicit(Elicit::Url { message, url }) => Raw::of(&json!({
            "mode": "url", "message": message, "url": url, "elicitationId": name(),
        })),
    };
    Ok(params.ok())
}

fn is_audio(block: &SamplingContent) -> bool {
    matches!(block, SamplingContent::Block(content) if matches!(content.kind, ContentKind::Audio { .. }))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Form<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<&'static str>,
    message: &'a str,
    requested_schema: &'a Raw,
}

/// The schema of a form. 2025-06-18 knows neither defaults (but for booleans), nor choices of
/// several, nor titled choices other than by `enumNames`.
fn form(schema: &Raw, features: &Features) -> Result<Raw, Unsayable> {
    if features.icons {
        return Ok(schema.clone());
    }
    let Ok(Value::Object(mut root)) = schema.read() else { return Ok(schema.clone()) };
    root.remove("$schema");
    if let Some(Value::Object(properties)) = root.get_mut("properties") {
        for property in properties.values_mut().filter_map(Value::as_object_mut) {
            lower_property(property)?;
        }
    }
    Raw::of(&root).map_err(|_| Unsayable("this form"))
}

fn lower_property(property: &mut Map<String, Value>) -> Result<(), Unsayable> {
    match property.get("type").and_then(Value::as_str) {
        Some("array") => return Err(Unsayable("to choose several things")),
        Some("boolean") => {}
        _ => drop(property.remove("default")),
    }
    if let Some(Value::Array(choices)) = property.remove("oneOf") {
        let column = |key: &str| -> Value {
            choices.iter().map(|choice| choice.get(key).cloned().unwrap_or_default()).collect()
        };
        let (values, names) = (column("const"), column("title"));
        property.insert("enum".into(), values);
        property.insert("enumNames".into(), names);
    }
    Ok(())
}

impl Serialize for Lowered<'_, Sample> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let sample = self.value;
        let mut map = object(serializer)?;
        if self.features.icons {
            map.set("messages", &self.parts(&sample.messages))?;
        } else {
            let said = sample.messages.iter().flat_map(|SamplingMessage { role, content }| {
                content.iter().map(|block| OneBlock { role: *role, content: self.part(block) })
            });
            map.set("messages", &said.collect::<Vec<_>>())?;
        }
        map.may("modelPreferences", sample.preferences.as_ref())?;
        map.may("systemPrompt", sample.system_prompt.as_ref())?;
        map.may("temperature", sample.temperature.as_ref())?;
        map.set("maxTokens", &sample.max_tokens)?;
        map.list("stopSequences", &sample.stop_sequences)?;
        map.may("metadata", sample.metadata.as_ref())?;
        map.list("tools", &self.parts(&sample.tools))?;
        map.may("toolChoice", sample.tool_choice.as_ref())?;
        map.end()
    }
}

/// A message, where each has one block only: one who says two things says them one by one.
#[derive(Serialize)]
struct OneBlock<'a> {
    role: Role,
    content: Lowered<'a, SamplingContent>,
}

impl Serialize for Lowered<'_, SamplingMessage> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = object(serializer)?;
        map.set("role", &self.value.role)?;
        match self.value.content.as_slice() {
            [one] => map.set("content", &self.part(one))?,
            several => map.set("content", &self.parts(several))?,
        }
        map.end()
    }
}

/// The questions of an `input_required` result.
impl Serialize for Lowered<'_, [(String, Question)]> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = object(serializer)?;
        for (key, question) in self.value {
            map.set(key, &self.part(question))?;
        }
        map.end()
    }
}

impl Serialize for Lowered<'_, Question> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = object(serializer)?;
        map.set("method", self.value.method())?;
        match self.value {
            Question::Roots => {}
            Question::Sample(sample) => map.set("params", &self.part(sample.as_ref()))?,
            Question::Elicit(Elicit::Form { message, schema }) => {
                let form = Form { mode: Some("form"), message, requested_schema: schema };
                map.set("params", &form)?;
            }
            Question::Elicit(Elicit::Url { message, url }) => {
                map.set("params", &json!({ "mode": "url", "message": message, "url": url }))?;
            }
        }
        map.end()
    }
}
