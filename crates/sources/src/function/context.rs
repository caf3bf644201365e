//! The context of a running handler: its reports and questions.

use std::sync::{Mutex, PoisonError};

use sabir_registry::{Ask, Context as CallContext};
use sabir_wire::types::{
    Action, ClientCapabilities, Elicit, Elicited as RawElicited, Level, Question, Root, Roots,
    Sample, Sampled,
};
use sabir_wire::{Caller, Problem, Raw, TraceContext};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::function::error::Error;
use crate::function::schema;

/// A running call: reports to its client, learns that it was cancelled, and asks.
///
/// # Questions
///
/// A question is asked with `?`. The first time there is no answer yet: the handler ends there,
/// the client is asked, and the handler is **called again from the start** with the answer. So the
/// code before a question runs again for each question; it should read, not change anything.
#[derive(Debug)]
pub struct Context {
    call: CallContext,
    keep: Mutex<Option<Raw>>,
}

/// The user's reaction to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Elicited<T> {
    /// The user answered.
    Accepted(T),
    /// The user refused.
    Declined,
    /// The user closed the question without an answer.
    Cancelled,
}

impl Context {
    pub(crate) fn new(call: CallContext) -> Self {
        Self { call, keep: Mutex::new(None) }
    }

    /// Reports progress. Sent only if the client asked for it and the number has grown.
    pub fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        self.call.call.progress(progress, total, message.map(str::to_owned));
    }

    /// Writes to the client's log, if the client asked for this level. The function must have declared
    /// that it [logs](crate::function::ToolFunction::logs).
    pub fn log(&self, level: Level, data: &(impl Serialize + ?Sized)) {
        if let Ok(data) = Raw::of(data) {
            self.call.call.log(level, None, data);
        }
    }

    /// Whether the call was cancelled: its result will not be sent.
    pub fn is_cancelled(&self) -> bool {
        self.call.call.is_cancelled()
    }

    /// Completes when the call is cancelled. The handler has a short time to clean up, then it is
    /// dropped.
    pub async fn cancelled(&self) {
        self.call.call.cancelled().await;
    }

    /// The caller, as authenticated by the transport.
    pub fn caller(&self) -> &Caller {
        &self.call.caller
    }

    /// The capabilities that the client has declared.
    pub fn capabilities(&self) -> &ClientCapabilities {
        &self.call.capabilities
    }

    /// The client's description of itself, as JSON. For display only: it is not verified.
    pub fn client(&self) -> Option<&Raw> {
        self.call.client.as_ref()
    }

    /// The `_meta` of the request.
    pub fn meta(&self) -> Option<&Raw> {
        self.call.meta.as_ref()
    }

    /// The position of the request in a distributed trace.
    pub fn trace(&self) -> TraceContext {
        self.call.trace()
    }

    /// Asks the user to fill in a form, whose fields are those of `T`.
    pub fn elicit<T: JsonSchema + DeserializeOwned>(
        &self,
        key: &str,
        message: &str,
    ) -> Result<Elicited<T>, Error> {
        self.elicit_with(key, message, schema::of::<T>())
    }

    /// Asks the user to fill in a form that is described by a JSON Schema.
    pub fn elicit_with<T: DeserializeOwned>(
        &self,
        key: &str,
        message: &str,
        schema: impl Into<Raw>,
    ) -> Result<Elicited<T>, Error> {
        let form = Elicit::form(message, schema);
        let elicited: RawElicited = self.ask(key, Question::Elicit(form))?;
        Ok(match elicited.action {
            Action::Accept => {
                let content = elicited.content.unwrap_or_else(Raw::empty_object);
                Elicited::Accepted(content.read::<T>().map_err(|error| misfit(key, &error))?)
            }
            Action::Decline => Elicited::Declined,
            Action::Cancel => Elicited::Cancelled,
        })
    }

    /// Asks the user to visit a web page. Nothing that is entered there passes through the client.
    pub fn visit(&self, key: &str, message: &str, url: &str) -> Result<Elicited<()>, Error> {
        let visit = Elicit::url(message, url);
        let elicited: RawElicited = self.ask(key, Question::Elicit(visit))?;
        Ok(match elicited.action {
            Action::Accept => Elicited::Accepted(()),
            Action::Decline => Elicited::Declined,
            Action::Cancel => Elicited::Cancelled,
        })
    }

    /// Asks the client's model.
    pub fn sample(&self, key: &str, sample: Sample) -> Result<Sampled, Error> {
        self.ask(key, Question::Sample(Box::new(sample)))
    }

    /// Asks which folders may be used.
    pub fn roots(&self, key: &str) -> Result<Vec<Root>, Error> {
        self.ask::<Roots>(key, Question::roots()).map(|roots| roots.roots)
    }

    /// Asks several questions at once. Ask each again by its key to get its answer.
    pub fn ask_all(
        &self,
        questions: impl IntoIterator<Item = (String, Question)>,
    ) -> Result<(), Error> {
        let is_open = |(key, _): &(String, Question)| self.call.answer(key).is_none();
        let open: Vec<_> = questions.into_iter().filter(is_open).collect();
        if open.is_empty() { Ok(()) } else { Err(self.question(open)) }
    }

    /// Asks any question and reads its answer as a `T`.
    pub fn ask<T: DeserializeOwned>(&self, key: &str, question: Question) -> Result<T, Error> {
        match self.call.answer(key) {
            Some(answer) => answer.read().map_err(|error| misfit(key, &error)),
            None => Err(self.question(vec![(key.to_owned(), question)])),
        }
    }

    /// Keeps a value until the handler is called again with the answers. The client carries it, but
    /// can neither read nor change it.
    pub fn keep(&self, state: &(impl Serialize + ?Sized)) -> Result<(), Error> {
        *self.keep.lock().unwrap_or_else(PoisonError::into_inner) = Some(Raw::of(state)?);
        Ok(())
    }

    /// The value that was kept when the handler last asked.
    pub fn kept<T: DeserializeOwned>(&self) -> Option<T> {
        self.call.state.as_ref().and_then(|state| state.read().ok())
    }

    /// Ends this call without a question: the client calls again by itself, with the value that
    /// [`Context::keep`] has kept.
    pub fn come_back(&self) -> Error {
        self.question(Vec::new())
    }

    fn question(&self, questions: Vec<(String, Question)>) -> Error {
        let kept = self.keep.lock().unwrap_or_else(PoisonError::into_inner).take();
        // A value that was kept before and not replaced is kept on.
        let state = kept.or_else(|| self.call.state.clone());
        Error::ask(Ask { questions, state, ..Ask::default() })
    }
}

fn misfit(key: &str, error: &serde_json::Error) -> Error {
    Error::problem(Problem::Params(format!("the answer to `{key}` does not fit: {error}").into()))
}
