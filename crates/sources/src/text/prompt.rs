//! A prompt whose messages are texts with placeholders, and files.
//!
//! Its arguments are defined like those of a command. All of them are strings, as the protocol
//! requires; choices are offered as completions.

use std::collections::BTreeMap;

use sabir_registry::{CompleteCall, Offer, Outcome, Pending, PromptCall, Source};
use sabir_wire::Problem;
use sabir_wire::types::{Completion, Content, Prompt, PromptArgument, PromptReply, Role};
use serde_json::Value;
use serde_json::value::to_raw_value;

use super::file::File;
use crate::command::{Input, RenderError, TextTemplate, Values};

/// A prompt from the configuration.
#[derive(Clone, Debug)]
pub struct TextPrompt {
    prompt: Prompt,
    input: Input,
    choices: BTreeMap<String, Vec<String>>,
    messages: Vec<Message>,
}

/// One message of a prompt.
#[derive(Clone, Debug)]
pub struct Message {
    /// The role.
    pub role: Role,
    /// The content.
    pub body: Body,
}

/// The content of a message.
#[derive(Clone, Debug)]
pub enum Body {
    /// A text with placeholders.
    Text(TextTemplate),
    /// A file, and its URI for the client.
    File(File, String),
}

/// An argument of a prompt that is not of type string.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("input.{0}: must be of type string in a prompt")]
pub struct NotText(pub String);

impl TextPrompt {
    /// Creates a prompt. Its arguments are those of `input`.
    pub fn new(prompt: Prompt, input: Input, messages: Vec<Message>) -> Result<Self, NotText> {
        let mut arguments = Vec::new();
        let mut choices = BTreeMap::new();
        let properties = input.schema().get("properties").and_then(Value::as_object);
        for (name, property) in properties.into_iter().flatten() {
            if property.get("type").is_none_or(|kind| kind != "string") {
                return Err(NotText(name.clone()));
            }
            let text = |key: &str| property.get(key).and_then(Value::as_str).map(str::to_owned);
            arguments.push(PromptArgument {
                name: name.clone(),
                title: text("title"),
                description: text("description"),
                required: input.requires(name),
                ..PromptArgument::default()
            });
            if let Some(Value::Array(known)) = property.get("enum") {
                let known = known.iter().filter_map(Value::as_str).map(str::to_owned);
                choices.insert(name.clone(), known.collect());
            }
        }
        Ok(Self { prompt: Prompt { arguments, ..prompt }, input, choices, messages })
    }

    /// Checks the arguments. Clients send empty strings for empty form fields, which count as absent.
    fn accept(&self, given: Vec<(String, String)>) -> Result<BTreeMap<String, String>, Problem> {
        let mut given: BTreeMap<_, _> = given.into_iter().collect();
        given.retain(|name, value| !value.is_empty() || self.input.requires(name));
        for (name, value) in &given {
            if !self.prompt.arguments.iter().any(|argument| argument.name == *name) {
                return Err(Problem::Params(format!("unknown argument `{name}`").into()));
            }
            if let Some(known) = self.choices.get(name)
                && !known.contains(value)
            {
                let known = known.join(", ");
                let reason = format!("`{name}` must be one of: {known}");
                return Err(Problem::Params(reason.into()));
            }
        }
        Ok(given)
    }
}

impl Source for TextPrompt {
    fn offer(&self) -> Offer {
        let completes = !self.choices.is_empty();
        Offer { prompts: vec![self.prompt.clone()], completes, ..Offer::default() }
    }

    fn get_prompt(&self, call: PromptCall) -> Pending<PromptReply> {
        let this = self.clone();
        Box::pin(async move {
            let wrong = |error: RenderError| Problem::Params(error.to_string().into());
            let given = this.accept(call.arguments)?;
            let given = to_raw_value(&given).map_err(|_| wrong(RenderError::NotAnObject))?;
            let mut reply =
                PromptReply { description: this.prompt.description, ..PromptReply::default() };
            for Message { role, body } in this.messages {
                let content = match body {
                    Body::Text(template) => {
                        let values = Values::parse(&given, &this.input).map_err(wrong)?;
                        Content::text(template.render(&values).map_err(wrong)?)
                    }
                    Body::File(file, uri) => file.read().await?.into_content(&uri),
                };
                reply = reply.says(role, content);
            }
            Ok(Outcome::Done(reply))
        })
    }

    fn complete(&self, call: CompleteCall) -> Pending<Completion> {
        let typed = call.argument.value.to_lowercase();
        let known = self.choices.get(&*call.argument.name).into_iter().flatten();
        let fits = |choice: &&String| choice.to_lowercase().starts_with(&typed);
        let completion = known.filter(fits).cloned().collect();
        Box::pin(async { Ok(Outcome::Done(completion)) })
    }
}
