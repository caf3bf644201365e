//! A function that is a tool.

use std::sync::Arc;
use std::time::Duration;

use sabir_registry::{Offer, Pending, ResourceCall, Source, TaskMode, TaskPolicy, ToolCall};
use sabir_wire::types::{Icon, ResourceReply, Tool, ToolAnnotations, ToolReply};
use sabir_wire::{Problem, Raw};
use schemars::JsonSchema;

use crate::app::{App, AppSource};
use crate::function::error::FunctionOptions;
use crate::function::handler::{Handler, Run, run};
use crate::function::reply::IntoReply;
use crate::function::schema;
use crate::function::source::{Bound, IntoSource};

/// A tool that is a Rust function, with optional details besides its name and description.
///
/// ```
/// use sabir_sources::function::{Json, ToolFunction};
///
/// #[derive(serde::Serialize, schemars::JsonSchema)]
/// struct Time {
///     hours: u8,
/// }
///
/// let clock: ToolFunction = ToolFunction::new("time", "Tells the time", async || Json(Time { hours: 7 }))
///     .title("Clock")
///     .read_only()
///     .output::<Time>();
/// ```
#[must_use]
pub struct ToolFunction<S = ()> {
    tool: Tool,
    logs: bool,
    task: TaskPolicy,
    app: Option<AppSource>,
    run: Run<S, ToolReply>,
}

impl<S> ToolFunction<S> {
    /// A tool. The input schema is derived from the parameter that takes the arguments.
    pub fn new<H, Form>(name: impl Into<String>, description: impl Into<String>, handler: H) -> Self
    where
        H: Handler<S, Form, Output: IntoReply>,
    {
        let schema = H::schema().unwrap_or_else(schema::of_any_object);
        let tool = Tool::new(name, description, schema::raw(&schema));
        Self { tool, logs: false, task: TaskPolicy::default(), app: None, run: run(handler) }
    }

    /// Sets a name for people.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.tool.title = Some(title.into());
        self
    }

    /// Replaces the input schema by any JSON Schema of an object. The handler may take the arguments
    /// as the client wrote them, as [`Raw`].
    ///
    /// ```
    /// use sabir_sources::function::ToolFunction;
    /// use sabir_wire::Raw;
    /// use serde_json::json;
    ///
    /// let schema = json!({ "type": "object", "properties": { "text": { "type": "string" } } });
    /// let echo: ToolFunction =
    ///     ToolFunction::new("echo", "Returns its arguments", async |given: Raw| given.text().to_owned())
    ///         .input_schema(schema);
    /// ```
    pub fn input_schema(mut self, schema: impl Into<Raw>) -> Self {
        self.tool.input_schema = schema.into();
        self
    }

    /// Sets the output schema to that of `T`, which results are checked against.
    pub fn output<T: JsonSchema>(self) -> Self {
        self.output_schema(schema::of::<T>())
    }

    /// Sets the output schema, which results are checked against.
    pub fn output_schema(mut self, schema: impl Into<Raw>) -> Self {
        self.tool.output_schema = Some(schema.into());
        self
    }

    /// Sets the hints for clients. They replace what [`ToolFunction::read_only`] has set.
    pub fn annotations(mut self, annotations: ToolAnnotations) -> Self {
        self.tool.annotations = Some(annotations);
        self
    }

    /// Declares that the tool changes nothing, so that clients may call it without asking.
    pub fn read_only(mut self) -> Self {
        self.tool.annotations.get_or_insert_default().read_only_hint = Some(true);
        self
    }

    /// Adds an icon that clients may show.
    pub fn icon(mut self, icon: Icon) -> Self {
        self.tool.icons.push(icon);
        self
    }

    /// Sets the `_meta` of the tool, a JSON object for programs.
    pub fn meta(mut self, meta: impl Into<Raw>) -> Self {
        self.tool.meta = Some(meta.into());
        self
    }

    /// Lets calls become tasks: the client gets a handle and fetches the result later. Questions are
    /// asked through the task. A client that knows no tasks waits for the result, unless they are
    /// [required](TaskMode::Required).
    ///
    /// ```
    /// use sabir_registry::TaskMode;
    /// use sabir_sources::function::ToolFunction;
    ///
    /// let build: ToolFunction =
    ///     ToolFunction::new("build", "Builds the project", async || "built").task(TaskMode::Auto);
    /// ```
    pub fn task(mut self, mode: TaskMode) -> Self {
        self.task.mode = mode;
        self
    }

    /// With [`TaskMode::Auto`], sets how long the client waits for the result before it gets a
    /// handle. The default is the server's time: 10 seconds, unless set otherwise.
    pub fn task_after(mut self, after: Duration) -> Self {
        self.task.after = Some(after);
        self
    }

    /// Adds an HTML view, which hosts that know MCP Apps show for the results. Its data is the
    /// structured content of a result; all other clients get the text beside it.
    ///
    /// ```
    /// use sabir_sources::app::App;
    /// use sabir_sources::function::{Json, ToolFunction};
    ///
    /// let tides: ToolFunction =
    ///     ToolFunction::new("tides", "Tells the tides", async || Json([1.2, 3.4])).app(&App::built_in());
    /// ```
    pub fn app(mut self, app: &App) -> Self {
        self.app = Some(AppSource::new(&self.tool.name, app));
        self
    }

    /// Declares that the tool writes to the client's log, so that the server declares it too.
    pub fn logs(mut self) -> Self {
        self.logs = true;
        self
    }
}

impl<S: Send + Sync + 'static> IntoSource<S> for ToolFunction<S> {
    fn into_source(self, state: S, options: FunctionOptions) -> Arc<dyn Source> {
        let name = self.tool.name.clone();
        Arc::new(Bound::new(self, "tool", &name, state, options))
    }
}

impl<S: Send + Sync> Source for Bound<ToolFunction<S>, S> {
    fn offer(&self) -> Offer {
        let ToolFunction { tool, logs, task, app, .. } = &self.described;
        let of_app = app.as_ref().map(AppSource::offer).unwrap_or_default();
        Offer { tools: vec![tool.clone()], logs: *logs, task: *task, ..of_app }
    }

    fn call_tool(&self, call: ToolCall) -> Pending<ToolReply> {
        self.call(&self.described.run, call.arguments, None, call.context)
    }

    fn read_resource(&self, call: ResourceCall) -> Pending<ResourceReply> {
        match &self.described.app {
            Some(app) => app.read_resource(call),
            None => Box::pin(async { Err(Problem::UnknownResource(call.uri)) }),
        }
    }
}
