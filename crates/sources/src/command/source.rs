//! A command as a source with one tool, whose calls run a program.
//!
//! A call takes its place in the queue when it is started, so that calls run in the order in which
//! they arrived. The program runs in a task of its own, which keeps its place until all processes of
//! the program are gone: a cancelled call makes room only then. Dropping the call's future closes a
//! channel, which stops the program. So a cancellation, a lost client and the end of the server all
//! have the same effect.

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use sabir_budget::{CallQueue, ComputeError, QueueFull, QueuedCall, compute};
use sabir_registry::{
    Answer, CallHandle, Context, Offer, Outcome, Pending, Source, TaskPolicy, ToolCall,
};
use sabir_supervisor::{StartError, Supervisor};
use sabir_wire::types::{Level, Tool, ToolAnnotations, ToolReply};
use sabir_wire::{Problem, Raw};
use tokio::sync::oneshot;

use super::capture::{Observer, Stream};
use super::extras::{Extras, Scratch};
use super::input::Input;
use super::program::Program;
use super::reply::{Output, reply};
use super::run::{Finish, RunError, run_until};
use super::template::{CommandLine, Stdin};
use super::values::{RenderError, Values};

/// Longer arguments and longer output are read by the pool.
const IN_PLACE: usize = 64 << 10;

/// The definition of a command.
#[derive(Clone, Debug)]
pub struct Command {
    /// The name of the tool.
    pub name: String,
    /// The title for people.
    pub title: Option<String>,
    /// The description for the model.
    pub description: Option<String>,
    /// The annotations of the tool.
    pub annotations: ToolAnnotations,
    /// The arguments of the tool.
    pub input: Input,
    /// The program's arguments.
    pub line: CommandLine,
    /// The program's standard input.
    pub stdin: Stdin,
    /// The program and its limits.
    pub program: Program,
    /// The form of the result.
    pub output: Output,
    /// How many calls run at once. Further calls wait.
    pub concurrency: usize,
    /// How many calls may wait. Further calls fail.
    pub max_waiting: usize,
    /// Whether lines of standard error are sent to the client as log messages of level `debug`.
    pub log_stderr: bool,
    /// Files, a folder and progress.
    pub extras: Extras,
    /// Whether calls become tasks.
    pub task: TaskPolicy,
}

/// Serves a command.
#[derive(Clone, Debug)]
pub struct CommandSource(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    command: Command,
    supervisor: Supervisor,
    queue: CallQueue,
}

impl CommandSource {
    /// Serves a command, whose program is run by `supervisor`.
    pub fn new(command: Command, supervisor: Supervisor) -> Self {
        let queue = CallQueue::new(command.concurrency, command.max_waiting);
        Self(Arc::new(Inner { command, supervisor, queue }))
    }

    /// Renders the arguments and takes a place in the queue.
    fn prepare(&self, arguments: &Raw, share: u64) -> Result<Prepared, Problem> {
        let Command { input, line, stdin, extras, program, .. } = &self.0.command;
        let refused = |error: RenderError| Problem::Arguments(error.to_string().into());
        let raw = arguments.read().map_err(|_| refused(RenderError::NotAnObject))?;
        let (scratch, replaced) = Scratch::new(raw, input, extras).map_err(refused)?.unzip();
        let raw = match &replaced {
            Some(replaced) => {
                // Duplicate keys are refused here: the arguments that replace these no longer have
                // them.
                Values::parse(raw, input).map_err(refused)?;
                replaced.read().map_err(|_| refused(RenderError::NotAnObject))?
            }
            None => raw,
        };
        let values = Values::parse(raw, input).map_err(refused)?;
        let args = line.render(&values).map_err(refused)?;
        let stdin = stdin.render(&values).map_err(refused)?;
        let folder = extras.folder(&program.cwd, &values).map_err(refused)?;
        let full = |error: QueueFull| Problem::ToolFailed(error.to_string().into());
        let queued = self.0.queue.enter(share).map_err(full)?;
        Ok(Prepared { args, stdin, folder, scratch, queued, trace: None })
    }
}

/// A call that has a place in the queue.
struct Prepared {
    args: Vec<OsString>,
    stdin: Option<Vec<u8>>,
    folder: Option<PathBuf>,
    scratch: Option<Scratch>,
    queued: QueuedCall,
    /// The `traceparent` that the program gets.
    trace: Option<String>,
}

impl Prepared {
    /// The same, with the position of the call in a trace. Anything but a `traceparent` is left out:
    /// it is the client's own text.
    fn traced(mut self, context: &Context) -> Self {
        let is_valid = |text: &String| {
            let is_plain = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f' | b'-');
            text.len() == 55 && text.bytes().all(is_plain)
        };
        self.trace = context.trace().traceparent.filter(is_valid);
        self
    }
}

impl Source for CommandSource {
    fn offer(&self) -> Offer {
        let command = &self.0.command;
        // A `Value` can always be written as JSON.
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
        let (logs, task) = (command.log_stderr, command.task);
        Offer { tools: vec![tool], logs, task, ..Offer::default() }
    }

    fn call_tool(&self, call: ToolCall) -> Pending<ToolReply> {
        let ToolCall { arguments, context, .. } = call;
        let (inner, share) = (self.0.clone(), context.caller.share());
        if arguments.text().len() <= IN_PLACE {
            return match self.prepare(&arguments, share) {
                Ok(prepared) => {
                    Box::pin(inner.answer(share, prepared.traced(&context), context.call))
                }
                Err(problem) => Box::pin(async { Err(problem) }),
            };
        }
        let source = self.clone();
        let preparing = compute(share, move |_| Ok(source.prepare(&arguments, share)));
        Box::pin(async move {
            let prepared = preparing.await.map_err(busy)??.traced(&context);
            inner.answer(share, prepared, context.call).await
        })
    }
}

fn busy(error: ComputeError) -> Problem {
    Problem::ToolFailed(error.to_string().into())
}

impl Inner {
    async fn answer(
        self: Arc<Self>,
        share: u64,
        prepared: Prepared,
        handle: Arc<dyn CallHandle>,
    ) -> Answer<ToolReply> {
        // Closed when this future is dropped.
        let (_open, closed) = oneshot::channel();
        let work = self.clone().work(prepared, handle.clone(), closed);
        let finish = tokio::select! {
            biased;
            () = handle.cancelled() => None,
            finish = tokio::spawn(work) => finish.ok().flatten(),
        };
        match finish {
            Some(Ok(finish)) => self.reply(share, finish).await.map(Outcome::Done),
            Some(Err(error)) => Err(self.problem(&error)),
            None => Err(Problem::Internal("the call was cancelled".into())),
        }
    }

    /// Waits in the queue and runs the program until all its processes are gone. `None` if the call
    /// was cancelled before it started.
    async fn work(
        self: Arc<Self>,
        prepared: Prepared,
        handle: Arc<dyn CallHandle>,
        closed: oneshot::Receiver<()>,
    ) -> Option<Result<Finish, RunError>> {
        let Prepared { args, stdin, folder, mut scratch, queued, trace } = prepared;
        let mut closed = std::pin::pin!(async { drop(closed.await) });
        let _running = tokio::select! {
            biased;
            () = &mut closed => return None,
            running = queued => match running {
                Ok(running) => running,
                Err(full) => return Some(Err(RunError::Queue(full))),
            },
        };
        // The channel closes a moment later.
        if handle.is_cancelled() {
            return None;
        }
        let Command { output, program, log_stderr, name, extras, .. } = &self.command;
        let mut program = Cow::Borrowed(program);
        if let Some(folder) = folder {
            program.to_mut().cwd = folder;
        }
        if let Some(trace) = trace {
            program.to_mut().env.push(("TRACEPARENT".into(), trace.into()));
        }
        if let Some(mut files) = scratch.take() {
            files.open_to(program.to_mut());
            let written = tokio::task::spawn_blocking(move || files.write().map(|()| files)).await;
            match written {
                Ok(Ok(written)) => scratch = Some(written),
                Ok(Err(error)) => return Some(Err(RunError::Files(error.to_string()))),
                Err(_) => return None,
            }
        }
        let reports_lines = *output == Output::Lines;
        let reports_progress = extras.progress.is_some();
        let (mut lines, mut furthest) = (0u32, 0.0);
        let mut observe = |stream, text: &[u8]| {
            let text = || String::from_utf8_lossy(text).into_owned();
            if let Some((done, total)) =
                extras.progress(&text()).filter(|(done, _)| *done > furthest)
            {
                furthest = done;
                handle.progress(done, total, None);
            }
            match stream {
                Stream::Output if reports_lines && !reports_progress => {
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
            (reports_lines || reports_progress || *log_stderr).then_some(&mut observe);
        let mut done = run_until(closed, &self.supervisor, &program, args, stdin, observer).await;
        if let (Ok(finish), Some(scratch)) = (&mut done, scratch)
            && finish.success
        {
            let max = program.max_output;
            match tokio::task::spawn_blocking(move || scratch.result(max)).await.ok().flatten() {
                Some(Ok(bytes)) => {
                    if let Err(full) = finish.hold.grow(bytes.len()) {
                        return Some(Err(RunError::Memory(full)));
                    }
                    finish.stdout = bytes;
                }
                Some(Err(reason)) => return Some(Err(RunError::Files(reason))),
                None => {}
            }
        }
        Some(done)
    }

    /// The result for the client.
    async fn reply(self: Arc<Self>, share: u64, finish: Finish) -> Result<ToolReply, Problem> {
        let is_long = finish.stdout.len() > IN_PLACE;
        let make = move || {
            let Command { name, output, program, .. } = &self.command;
            reply(name, output, program, finish)
        };
        if !is_long {
            return Ok(make());
        }
        compute(share, move |_| Ok(make())).await.map_err(busy)
    }

    /// The error for the client when the program did not run. Reasons that concern the operator are
    /// logged.
    fn problem(&self, error: &RunError) -> Problem {
        let name = &self.command.name;
        match error {
            RunError::Start(StartError::TooLarge) => Problem::Arguments(error.to_string().into()),
            RunError::Start(StartError::Full(_) | StartError::Closed)
            | RunError::Queue(_)
            | RunError::Memory(_)
            | RunError::NotStartedInTime => Problem::ToolFailed(error.to_string().into()),
            RunError::Start(_) | RunError::Sandbox(_) => {
                tracing::error!("command `{name}`: {error}");
                let reason = format!("cannot start the program of `{name}`");
                Problem::ToolFailed(reason.into())
            }
            RunError::Files(_) => Problem::ToolFailed(error.to_string().into()),
            RunError::MonitorLost => {
                tracing::error!("command `{name}`: {error}");
                Problem::ToolFailed(format!("the program of `{name}` was lost").into())
            }
        }
    }
}
