//! A command as a source: one tool, whose calls are calls of a program.
//!
//! The arguments are filled in and the place in the queue is taken while the call is being
//! started, so that calls run in the order in which they came. The program then runs in a task of
//! its own, which holds the call's [`Pass`](super::Pass) until nothing of the program is left: a
//! call that was cancelled makes room only when its program is gone. The task learns that nobody
//! wants the result by the drop of a channel, and so from a cancellation, a client that vanished
//! and the end of the server alike.

use std::ffi::OsString;
use std::sync::Arc;

use sabir_registry::{CallHandle, Offer, Outcome, Pending, Source, ToolCall};
use sabir_wire::types::{Level, Tool, ToolAnnotations, ToolReply};
use sabir_wire::{Problem, Raw};
use tokio::sync::oneshot;

use super::capture::{Observer, Stream};
use super::gate::{Gate, Turn};
use super::input::Input;
use super::program::Program;
use super::reply::{Output, reply};
use super::run::{Finish, RunError, run_until};
use super::template::{CommandLine, Stdin};
use super::values::{RenderError, Values};
use sabir_supervisor::{StartError, Supervisor};

/// A command, as decided.
#[derive(Clone, Debug)]
pub struct Command {
    /// The tool's name, for programs.
    pub name: String,
    /// Its name, for people.
    pub title: Option<String>,
    /// What it does, for the model.
    pub description: Option<String>,
    /// Hints for its use.
    pub annotations: ToolAnnotations,
    /// What may be asked.
    pub input: Input,
    /// The program's arguments.
    pub line: CommandLine,
    /// The program's standard input.
    pub stdin: Stdin,
    /// What is run, and within which limits.
    pub program: Program,
    /// What it gives.
    pub output: Output,
    /// How many calls run at once; the others wait in their order.
    pub concurrency: usize,
    /// How many calls may wait. One more is refused.
    pub max_waiting: usize,
    /// Whether lines of standard error go to the client's log, at the level of debugging.
    pub log_stderr: bool,
}

/// A command that is served.
#[derive(Clone, Debug)]
pub struct CommandSource(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    command: Command,
    supervisor: Supervisor,
    gate: Gate,
}

impl CommandSource {
    /// Serves a command, whose program `supervisor` will start and keep.
    pub fn new(command: Command, supervisor: Supervisor) -> Self {
        let gate = Gate::new(command.concurrency, command.max_waiting);
        Self(Arc::new(Inner { command, supervisor, gate }))
    }

    /// Everything about a call that is done before it waits for anybody.
    fn prepare(&self, arguments: &Raw) -> Result<Prepared, Problem> {
        let Command { input, line, stdin, .. } = &self.0.command;
        let refused = |error: RenderError| Problem::Arguments(error.to_string().into());
        let raw = arguments.read().map_err(|_| refused(RenderError::NotAnObject))?;
        let values = Values::parse(raw, input).map_err(refused)?;
        let args = line.render(&values).map_err(refused)?;
        let stdin = stdin.render(&values).map_err(refused)?;
        let busy = |error: super::Busy| Problem::ToolFailed(error.to_string().into());
        Ok(Prepared { args, stdin, turn: self.0.gate.enter().map_err(busy)? })
    }
}

/// A call that has its place in the queue.
struct Prepared {
    args: Vec<OsString>,
    stdin: Option<Vec<u8>>,
    turn: Turn,
}

impl Source for CommandSource {
    fn offer(&self) -> Offer {
        let command = &self.0.command;
        // A `Value` always has a JSON text.
        let raw = |schema| Raw::of(schema).unwrap_or_else(|_| Raw::empty_object());
        let output_schema = match &command.output {
            Output::Json(Some(schema)) => Some(raw(schema)),
            _ => None,
        };
        let annotations = &command.annotations;
        let tool = Tool {
            title: command.title.clone(),
            description: command.description.clone(),
            output_schema,
            annotations: (*annotations != ToolAnnotations::default()).then(|| annotations.clone()),
            ..Tool::new(&command.name, "", raw(command.input.schema()))
        };
        Offer { tools: vec![tool], logs: command.log_stderr, ..Offer::default() }
    }

    fn call_tool(&self, call: ToolCall) -> Pending<ToolReply> {
        let prepared = match self.prepare(&call.arguments) {
            Ok(prepared) => prepared,
            Err(problem) => return Box::pin(async { Err(problem) }),
        };
        let inner = self.0.clone();
        let handle = call.context.call;
        Box::pin(async move {
            // Dropped with this future, however it ends.
            let (_wanted, unwanted) = oneshot::channel();
            let work = inner.clone().work(prepared, handle.clone(), unwanted);
            let finish = tokio::select! {
                biased;
                () = handle.cancelled() => None,
                finish = tokio::spawn(work) => finish.ok().flatten(),
            };
            match finish {
                Some(Ok(finish)) => {
                    let Command { name, output, program, .. } = &inner.command;
                    Ok(Outcome::Done(reply(name, output, program, finish)))
                }
                Some(Err(error)) => Err(inner.problem(&error)),
                None => Err(Problem::Internal("the call was cancelled".into())),
            }
        })
    }
}

impl Inner {
    /// Waits for the call's turn and runs the program, until nothing of it is left. `None`: it was
    /// never started, because nobody wants it any more.
    async fn work(
        self: Arc<Self>,
        prepared: Prepared,
        handle: Arc<dyn CallHandle>,
        unwanted: oneshot::Receiver<()>,
    ) -> Option<Result<Finish, RunError>> {
        let Prepared { args, stdin, turn } = prepared;
        let mut unwanted = std::pin::pin!(async { drop(unwanted.await) });
        let _pass = tokio::select! {
            biased;
            () = &mut unwanted => return None,
            pass = turn => pass,
        };
        // The channel says it a moment later.
        if handle.is_cancelled() {
            return None;
        }
        let Command { output, program, log_stderr, name, .. } = &self.command;
        let tells_lines = *output == Output::Lines;
        let mut lines = 0u32;
        let mut observe = |stream, text: &[u8]| {
            let text = || String::from_utf8_lossy(text).into_owned();
            match stream {
                Stream::Output if tells_lines => {
                    lines += 1;
                    handle.progress(f64::from(lines), None, Some(text()));
                }
                Stream::Error if *log_stderr => {
                    if let Ok(data) = Raw::of(&text()) {
                        handle.log(Level::Debug, Some(name.clone()), data);
                    }
                }
                Stream::Output | Stream::Error => {}
            }
        };
        let observer: Option<&mut Observer<'_>> =
            (tells_lines || *log_stderr).then_some(&mut observe);
        Some(run_until(unwanted, &self.supervisor, program, args, stdin, observer).await)
    }

    /// What the client is told when the program did not run. Where it is the operator's concern,
    /// the log has the reason.
    fn problem(&self, error: &RunError) -> Problem {
        let name = &self.command.name;
        match error {
            RunError::Start(StartError::TooLarge) => Problem::Arguments(error.to_string().into()),
            RunError::Start(StartError::Full(_) | StartError::Closed)
            | RunError::NotStartedInTime => Problem::ToolFailed(error.to_string().into()),
            RunError::Start(_) | RunError::Sandbox(_) => {
                tracing::error!("command `{name}`: {error}");
                let reason = format!("the program of `{name}` could not be started");
                Problem::ToolFailed(reason.into())
            }
            RunError::MonitorLost => {
                tracing::error!("command `{name}`: {error}");
                Problem::ToolFailed(format!("the program of `{name}` was lost").into())
            }
        }
    }
}
