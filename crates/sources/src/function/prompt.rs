//! A function that fills in a prompt.

use std::collections::BTreeMap;
use std::sync::Arc;

use sabir_registry::{CompleteCall, Offer, Outcome, Pending, PromptCall, Source};
use sabir_wire::types::{Completion, Prompt, PromptArgument, PromptReply};

use crate::function::context::Context;
use crate::function::error::Error;
use crate::function::handler::Handler;

type Run = Arc<dyn Fn(PromptCall) -> Pending<PromptReply> + Send + Sync>;
pub(crate) type Completer = Arc<dyn Fn(CompleteCall) -> Completion + Send + Sync>;

/// A prompt that is a Rust function of its arguments, by name.
#[derive(Clone)]
pub struct PromptFunction {
    prompt: Prompt,
    completers: Vec<(String, Completer)>,
    run: Run,
}

impl PromptFunction {
    /// Begins to describe a prompt.
    pub fn named(name: impl Into<String>, description: impl Into<String>) -> PromptBuilder {
        let description = Some(description.into());
        let prompt = Prompt { name: name.into(), description, ..Prompt::default() };
        PromptBuilder { prompt, completers: Vec::new() }
    }
}

/// Describes a prompt further.
#[derive(Clone)]
pub struct PromptBuilder {
    prompt: Prompt,
    completers: Vec<(String, Completer)>,
}

impl PromptBuilder {
    /// A name for people.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.prompt.title = Some(title.into());
        self
    }

    /// An argument that it cannot do without.
    pub fn argument(self, name: impl Into<String>, description: impl Into<String>) -> Self {
        self.takes(name, description, true)
    }

    /// An argument that may be left out.
    pub fn optional(self, name: impl Into<String>, description: impl Into<String>) -> Self {
        self.takes(name, description, false)
    }

    fn takes(
        mut self,
        name: impl Into<String>,
        description: impl Into<String>,
        required: bool,
    ) -> Self {
        self.prompt.arguments.push(PromptArgument {
            name: name.into(),
            description: Some(description.into()),
            required,
            ..PromptArgument::default()
        });
        self
    }

    /// Completes an argument: given what was typed and what is known, what could it be?
    pub fn completed_by(
        mut self,
        argument: impl Into<String>,
        complete: impl Fn(&str, &BTreeMap<String, String>) -> Completion + Send + Sync + 'static,
    ) -> Self {
        self.completers.push((argument.into(), completer(complete)));
        self
    }

    /// The prompt, filled in by `handler`.
    pub fn filled_in_by<H, Form>(self, handler: H) -> PromptFunction
    where
        H: Handler<BTreeMap<String, String>, Form, Output = Result<PromptReply, Error>>,
    {
        let run: Run = Arc::new(move |call| {
            let work = handler.call(call.arguments, Context::new(call.context));
            Box::pin(async move {
                match work.await {
                    Ok(reply) => Ok(Outcome::Done(reply)),
                    Err(error) => error.into_answer(),
                }
            })
        });
        PromptFunction { prompt: self.prompt, completers: self.completers, run }
    }
}

impl Source for PromptFunction {
    fn offer(&self) -> Offer {
        let completes = !self.completers.is_empty();
        Offer { prompts: vec![self.prompt.clone()], completes, ..Offer::default() }
    }

    fn get_prompt(&self, call: PromptCall) -> Pending<PromptReply> {
        (self.run)(call)
    }

    fn complete(&self, call: CompleteCall) -> Pending<Completion> {
        complete(&self.completers, call)
    }
}

pub(crate) fn completer(
    complete: impl Fn(&str, &BTreeMap<String, String>) -> Completion + Send + Sync + 'static,
) -> Completer {
    Arc::new(move |call| complete(&call.value, &call.given))
}

pub(crate) fn complete(
    completers: &[(String, Completer)],
    call: CompleteCall,
) -> Pending<Completion> {
    let known = completers.iter().find(|(argument, _)| **argument == *call.argument);
    let completion = known.map(|(_, complete)| complete(call)).unwrap_or_default();
    Box::pin(async { Ok(Outcome::Done(completion)) })
}
