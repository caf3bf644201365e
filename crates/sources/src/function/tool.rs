//! A function that is a tool.

use std::sync::Arc;

use sabir_registry::{Offer, Outcome, Pending, Source, ToolCall};
use sabir_wire::types::{Icon, Tool, ToolAnnotations, ToolReply};
use sabir_wire::{Problem, Raw};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::function::context::Context;
use crate::function::handler::Handler;
use crate::function::reply::IntoReply;
use crate::function::schema;

type Run = Arc<dyn Fn(ToolCall) -> Pending<ToolReply> + Send + Sync>;

/// A tool that is a Rust function.
#[derive(Clone)]
pub struct ToolFunction {
    tool: Tool,
    logs: bool,
    run: Run,
}

impl ToolFunction {
    /// A tool whose arguments are a type: its schema is derived from it.
    pub fn typed<A, H, Form>(
        name: impl Into<String>,
        description: impl Into<String>,
        handler: H,
    ) -> ToolBuilder
    where
        A: DeserializeOwned + JsonSchema + Send,
        H: Handler<A, Form, Output: IntoReply>,
    {
        ToolBuilder::new(Tool::new(name, description, schema::of_arguments::<A>()), run(handler))
    }

    /// A tool whose arguments are described by a JSON Schema, and given as they came.
    pub fn raw<H, Form>(
        name: impl Into<String>,
        description: impl Into<String>,
        schema: Raw,
        handler: H,
    ) -> ToolBuilder
    where
        H: Handler<Raw, Form, Output: IntoReply>,
    {
        ToolBuilder::new(Tool::new(name, description, schema), run(handler))
    }
}

/// Describes a tool further.
#[derive(Clone)]
pub struct ToolBuilder(ToolFunction);

impl ToolBuilder {
    fn new(tool: Tool, run: Run) -> Self {
        Self(ToolFunction { tool, logs: false, run })
    }

    /// A name for people.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.0.tool.title = Some(title.into());
        self
    }

    /// What it gives: results are checked against the schema of `T`.
    pub fn output<T: JsonSchema>(self) -> Self {
        self.output_schema(schema::of::<T>())
    }

    /// What it gives: results are checked against a JSON Schema.
    pub fn output_schema(mut self, schema: Raw) -> Self {
        self.0.tool.output_schema = Some(schema);
        self
    }

    /// Hints for its use.
    pub fn annotations(mut self, annotations: ToolAnnotations) -> Self {
        self.0.tool.annotations = Some(annotations);
        self
    }

    /// It changes nothing.
    pub fn read_only(mut self) -> Self {
        self.0.tool.annotations.get_or_insert_default().read_only_hint = Some(true);
        self
    }

    /// How it looks.
    pub fn icon(mut self, icon: Icon) -> Self {
        self.0.tool.icons.push(icon);
        self
    }

    /// What it says about itself to programs.
    pub fn meta(mut self, meta: Raw) -> Self {
        self.0.tool.meta = Some(meta);
        self
    }

    /// It writes to the client's log, so the server must declare that.
    pub fn logs(mut self) -> Self {
        self.0.logs = true;
        self
    }

    /// The tool.
    pub fn build(self) -> ToolFunction {
        self.0
    }
}

impl From<ToolBuilder> for ToolFunction {
    fn from(builder: ToolBuilder) -> Self {
        builder.0
    }
}

impl Source for ToolFunction {
    fn offer(&self) -> Offer {
        Offer { tools: vec![self.tool.clone()], logs: self.logs, ..Offer::default() }
    }

    fn call_tool(&self, call: ToolCall) -> Pending<ToolReply> {
        (self.run)(call)
    }
}

fn run<A, H, Form>(handler: H) -> Run
where
    A: DeserializeOwned + Send,
    H: Handler<A, Form, Output: IntoReply>,
{
    Arc::new(move |call| {
        // The schema let it pass, but the type may be stricter than its schema.
        let argument: A = match call.arguments.read() {
            Ok(argument) => argument,
            Err(error) => {
                let problem = Problem::Arguments(error.to_string().into());
                return Box::pin(async { Err(problem) });
            }
        };
        let work = handler.call(argument, Context::new(call.context));
        Box::pin(async move {
            match work.await.into_reply() {
                Ok(reply) => Ok(Outcome::Done(reply)),
                Err(error) => error.into_tool_answer(),
            }
        })
    })
}
