//! A function that fills in a prompt.

use std::collections::BTreeMap;
use std::sync::Arc;

use sabir_registry::{CompleteCall, Offer, Outcome, Pending, PromptCall, Source};
use sabir_wire::types::{Completion, Prompt, PromptArgument, PromptReply};

use crate::function::error::FunctionOptions;
use crate::function::handler::{Handler, Run, run};
use crate::function::reply::IntoReply;
use crate::function::schema::StringArguments;
use crate::function::source::{Bound, IntoSource};

/// A prompt that is filled in by a Rust function.
///
/// Its arguments are the fields of the parameter that takes them: a field's comment is the
/// description, and an `Option` may be left out. Clients send all arguments as strings; fields that
/// are numbers or booleans are parsed.
///
/// ```
/// use sabir_sources::function::PromptFunction;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Review {
///     /// What to review
///     code: String,
///     /// The number of remarks that are wanted
///     remarks: Option<u32>,
/// }
///
/// async fn review(Review { code, remarks }: Review) -> String {
///     format!("Review this, with {} remarks:\n{code}", remarks.unwrap_or(3))
/// }
///
/// let prompt: PromptFunction = PromptFunction::new("review", "Reviews code", review)
///     .completed_by("remarks", |_, _| ["1", "3", "5"].into_iter().collect());
/// ```
#[must_use]
pub struct PromptFunction<S = ()> {
    prompt: Prompt,
    arguments: StringArguments,
    completers: Completers,
    run: Run<S, PromptReply>,
}

impl<S> PromptFunction<S> {
    /// A prompt whose arguments are listed from the handler's type.
    pub fn new<H, Form>(name: impl Into<String>, description: impl Into<String>, handler: H) -> Self
    where
        H: Handler<S, Form, Output: IntoReply<PromptReply>>,
    {
        let arguments = StringArguments::of(H::schema());
        let prompt = Prompt {
            name: name.into(),
            description: Some(description.into()),
            arguments: arguments.listed.clone(),
            ..Prompt::default()
        };
        Self { prompt, arguments, completers: Completers::default(), run: run(handler) }
    }

    /// Sets a name for people.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.prompt.title = Some(title.into());
        self
    }

    /// Lists an argument that the handler's type does not name: the handler takes all of them as a
    /// `BTreeMap<String, String>`.
    pub fn argument(mut self, argument: PromptArgument) -> Self {
        self.prompt.arguments.push(argument);
        self
    }

    /// Completes an argument from its typed prefix and the other arguments.
    pub fn completed_by(
        mut self,
        argument: impl Into<String>,
        complete: impl Fn(&str, &BTreeMap<String, String>) -> Completion + Send + Sync + 'static,
    ) -> Self {
        self.completers.add(argument.into(), complete);
        self
    }
}

impl<S: Send + Sync + 'static> IntoSource<S> for PromptFunction<S> {
    fn into_source(self, state: S, options: FunctionOptions) -> Arc<dyn Source> {
        let name = self.prompt.name.clone();
        Arc::new(Bound::new(self, "prompt", &name, state, options))
    }
}

impl<S: Send + Sync> Source for Bound<PromptFunction<S>, S> {
    fn offer(&self) -> Offer {
        let PromptFunction { prompt, completers, .. } = &self.described;
        let (prompts, completes) = (vec![prompt.clone()], !completers.0.is_empty());
        Offer { prompts, completes, ..Offer::default() }
    }

    fn get_prompt(&self, call: PromptCall) -> Pending<PromptReply> {
        let arguments = self.described.arguments.read(call.arguments);
        self.call(&self.described.run, arguments, None, call.context)
    }

    fn complete(&self, call: CompleteCall) -> Pending<Completion> {
        self.described.completers.complete(&call)
    }
}

type Complete = Box<dyn Fn(&str, &BTreeMap<String, String>) -> Completion + Send + Sync>;

/// Functions that complete arguments, by name.
#[derive(Default)]
pub(crate) struct Completers(pub(crate) Vec<(String, Complete)>);

impl Completers {
    pub(crate) fn add(
        &mut self,
        argument: String,
        complete: impl Fn(&str, &BTreeMap<String, String>) -> Completion + Send + Sync + 'static,
    ) {
        self.0.push((argument, Box::new(complete)));
    }

    pub(crate) fn complete(&self, call: &CompleteCall) -> Pending<Completion> {
        let known = self.0.iter().find(|(argument, _)| **argument == *call.argument.name);
        let given = call.given.arguments.iter().cloned().collect();
        let completion = known.map(|(_, complete)| complete(&call.argument.value, &given));
        Box::pin(async { Ok(Outcome::Done(completion.unwrap_or_default())) })
    }
}
