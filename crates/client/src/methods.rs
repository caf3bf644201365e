//! One function per method.

use std::sync::Arc;

use sabir_wire::types::{
    Completion, Level, ListPage, Listed, Prompt, PromptReply, Question, Questions, Resource,
    ResourceReply, ResourceTemplate, Skill, Tool, ToolReply,
};
use sabir_wire::{CallTool, Complete, Era, GetPrompt, Page, Raw, ReadResource};
use sabir_wire::{Request, Resume, raise};

use crate::answerer::{Answerer, NoAnswers};
use crate::call::Reply;
use crate::client::Client;
use crate::config::ClientConfig;
use crate::error::{CallError, OpenError};
use crate::http::HttpTarget;
use crate::request::{CallOptions, CallRequest};

/// Pages of a list that are read. A list with more is an error: the server repeats pages.
const MAX_PAGES: usize = 1000;
/// Rounds of questions in one call. One more is an error.
const MAX_ROUNDS: usize = 16;

impl Client {
    /// Connects to the server at an `http://`, `https://`, `ws://` or `wss://` URL. Its questions
    /// are refused.
    pub async fn connect(url: &str) -> Result<Self, OpenError> {
        Self::connect_with(url, ClientConfig::default(), Arc::new(NoAnswers)).await
    }

    /// Connects to the server at an `http://`, `https://`, `ws://` or `wss://` URL.
    /// `config.capabilities` says which questions the answerer answers.
    pub async fn connect_with(
        url: &str,
        config: ClientConfig,
        answerer: Arc<dyn Answerer>,
    ) -> Result<Self, OpenError> {
        let client = Self::new(HttpTarget::new(url)?.transport(), config, answerer);
        client.open().await?;
        Ok(client)
    }

    /// All tools. Invalid ones are left out, with a warning in the log.
    pub async fn list_tools(&self) -> Result<Vec<Tool>, CallError> {
        self.list(Request::ListTools).await
    }

    /// All prompts.
    pub async fn list_prompts(&self) -> Result<Vec<Prompt>, CallError> {
        self.list(Request::ListPrompts).await
    }

    /// All resources.
    pub async fn list_resources(&self) -> Result<Vec<Resource>, CallError> {
        self.list(Request::ListResources).await
    }

    /// All resource templates.
    pub async fn list_templates(&self) -> Result<Vec<ResourceTemplate>, CallError> {
        self.list(Request::ListTemplates).await
    }

    /// All skills. Their files are resources; a host checks each against its entry before it is
    /// used.
    pub async fn list_skills(&self) -> Result<Vec<Skill>, CallError> {
        self.list(Request::ListSkills).await
    }

    /// Calls a tool with arguments, a JSON object. A result with `is_error` is a result, too.
    ///
    /// Questions of the server go to the answerer, and the call continues with its answers.
    pub async fn call_tool(
        &self,
        name: &str,
        arguments: impl Into<Raw>,
    ) -> Result<ToolReply, CallError> {
        self.call_tool_with(name, arguments, CallOptions::default()).await
    }

    /// Calls a tool with options, such as a time limit.
    pub async fn call_tool_with(
        &self,
        name: &str,
        arguments: impl Into<Raw>,
        options: CallOptions,
    ) -> Result<ToolReply, CallError> {
        let arguments = arguments.into();
        let request = |resume| {
            let (name, arguments) = (name.into(), Some(arguments.clone()));
            Request::CallTool(CallTool { name, arguments, resume, ..CallTool::default() })
        };
        let called = self.ask(request, &options).await;
        if !called.as_ref().is_err_and(CallError::is_header_mismatch) {
            return called?.read();
        }
        // The tool wants other arguments repeated in headers than the schema that we know. The
        // server has not run the call.
        self.list_tools().await?;
        self.ask(request, &options).await?.read()
    }

    /// A prompt with its arguments filled in.
    pub async fn get_prompt<'a>(
        &self,
        name: &str,
        arguments: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<PromptReply, CallError> {
        let arguments = arguments.into_iter().map(|(key, value)| (key.into(), value.into()));
        let arguments: Vec<_> = arguments.collect();
        let request = |resume| {
            let (name, arguments) = (name.into(), arguments.clone());
            Request::GetPrompt(GetPrompt { name, arguments, resume, ..GetPrompt::default() })
        };
        self.ask(request, &CallOptions::default()).await?.read()
    }

    /// The contents of a resource.
    pub async fn read_resource(&self, uri: &str) -> Result<ResourceReply, CallError> {
        let request = |resume| {
            let uri = uri.into();
            Request::ReadResource(ReadResource { uri, resume, ..ReadResource::default() })
        };
        self.ask(request, &CallOptions::default()).await?.read()
    }

    /// Values that complete an argument.
    pub async fn complete(&self, complete: Complete) -> Result<Completion, CallError> {
        self.call(Request::Complete(complete)).await?.read()
    }

    /// Asks a legacy server for log messages from this level on. A modern server is asked in each
    /// call ([`CallOptions::log_level`]), so this does nothing.
    pub async fn set_level(&self, level: Level) -> Result<(), CallError> {
        match self.call(Request::SetLevel(level)).await {
            Ok(_) | Err(CallError::NotInEra(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn list<T: Listed>(
        &self,
        request: impl Fn(Page) -> Request,
    ) -> Result<Vec<T>, CallError> {
        let mut all = Vec::new();
        let mut cursor = None;
        for _ in 0..MAX_PAGES {
            let reply = self.call(request(Page { cursor: cursor.take() })).await?;
            let read = ListPage::<T>::read_tolerantly(&reply.raise()?);
            let (page, problems) = read.map_err(|error| CallError::Invalid(error.to_string()))?;
            for problem in problems {
                tracing::warn!(%problem, "left out an invalid item of the server");
            }
            all.extend(page.items.into_owned());
            match page.next {
                Some(next) => cursor = Some(next.into()),
                None => return Ok(all),
            }
        }
        Err(CallError::Invalid(format!("the list has too many pages (limit {MAX_PAGES})")))
    }

    /// Makes a request, and repeats it with answers as long as the server asks.
    async fn ask(
        &self,
        request: impl Fn(Resume) -> Request,
        options: &CallOptions,
    ) -> Result<Reply, CallError> {
        let mut resume = Resume::default();
        for _ in 0..MAX_ROUNDS {
            let request = CallRequest::new(request(resume)).with(options.clone());
            let method = request.method();
            let questions = match self.call(request).await {
                Ok(reply) => match reply.questions()? {
                    Some(questions) => questions,
                    None => return Ok(reply),
                },
                Err(CallError::Rpc(error)) => {
                    let revision = self.server().map(|info| info.revision).unwrap_or_default();
                    match raise::error(&method, revision, error.clone()) {
                        Ok(visits) if revision.era() == Era::Legacy => visits,
                        _ => return Err(CallError::Rpc(error)),
                    }
                }
                Err(error) => return Err(error),
            };
            resume = self.answers(questions).await?;
        }
        let reason = format!("the server asked in too many rounds (limit {MAX_ROUNDS})");
        Err(CallError::Questions(reason))
    }

    /// The answers to all questions, one after the other: a person answers them.
    async fn answers(&self, questions: Questions) -> Result<Resume, CallError> {
        let limit = self.config().limits.questions;
        if questions.questions.len() > limit {
            let reason = format!("the server asked too many questions (limit {limit})");
            return Err(CallError::Questions(reason));
        }
        let mut answers = Vec::new();
        for (key, question) in questions.questions {
            let method = question.method().to_owned();
            let answer = self.answer_one(question).await;
            let refused = |reason| CallError::Questions(format!("`{method}`: {reason}"));
            answers.push((key, answer.map_err(refused)?));
        }
        let state = questions.state.map(Into::into);
        Ok(Resume { answers, state, ..Resume::default() })
    }

    async fn answer_one(&self, question: Question) -> Result<Raw, String> {
        if let Some(missing) = self.config().capabilities.lacks(&question.needs()) {
            return Err(format!("the server asks for {}, which was not declared", missing.names()));
        }
        self.answerer().answer(question).await.map_err(|error| error.message.into_owned())
    }
}
