//! The sources of the server under test.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sabir_registry::{
    Ask, CompleteCall, Offer, Outcome, Pending, PromptCall, ResourceCall, Source, SourceHandle,
    Starting, TaskMode, TaskPolicy, ToolCall,
};
use sabir_wire::types::{
    Completion, Elicit, Level, Prompt, PromptArgument, PromptReply, Question, Resource,
    ResourceContents, ResourceTemplate, Sample, Tool, ToolReply,
};
use sabir_wire::{Problem, Raw};
use serde_json::{Value, json};
use tokio::sync::{Notify, Semaphore};

/// One of everything.
pub(crate) struct Bazaar {
    pub(crate) signals: Arc<Signals>,
}

/// Signals between tests and tools.
#[derive(Default)]
pub(crate) struct Signals {
    /// Calls of `wait` that began.
    pub(crate) begun: AtomicUsize,
    /// Calls of `wait` that were dropped before they were done.
    pub(crate) dropped: AtomicUsize,
    /// One of these counts has changed.
    pub(crate) moved: Notify,
    /// Each permit lets one call of `wait` complete.
    pub(crate) gate: Gate,
    pub(crate) handle: std::sync::Mutex<Option<SourceHandle>>,
    /// Whether the tool `extra` is offered.
    pub(crate) has_extra: std::sync::atomic::AtomicBool,
    /// Whether calls become tasks.
    pub(crate) has_tasks: std::sync::atomic::AtomicBool,
}

pub(crate) struct Gate(pub(crate) Semaphore);

impl Default for Gate {
    fn default() -> Self {
        Self(Semaphore::new(0))
    }
}

impl Signals {
    pub(crate) async fn until(&self, what: impl Fn(&Self) -> bool) {
        let waited = async {
            loop {
                let moved = self.moved.notified();
                tokio::pin!(moved);
                moved.as_mut().enable();
                if what(self) {
                    return;
                }
                moved.await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), waited).await.expect("it never happened");
    }

    pub(crate) fn announce(&self) {
        if let Some(handle) = &*self.handle.lock().unwrap() {
            handle.changed().unwrap();
        }
    }
}

/// Counts a call that is dropped before it is done.
struct Running(Arc<Signals>, bool);

impl Drop for Running {
    fn drop(&mut self) {
        if !self.1 {
            self.0.dropped.fetch_add(1, Ordering::SeqCst);
        }
        self.0.moved.notify_waiters();
    }
}

fn tool(name: &str, properties: Value) -> Tool {
    let schema = json!({ "type": "object", "properties": properties });
    Tool::new(name, format!("The tool {name}."), Raw::of(&schema).unwrap())
}

impl Source for Bazaar {
    fn offer(&self) -> Offer {
        let mut tools = vec![
            tool("echo", json!({ "text": { "type": "string" } })),
            tool("wait", json!({})),
            tool(
                "progress",
                json!({ "steps": { "type": "integer" }, "pause": { "type": "boolean" } }),
            ),
            tool("logs", json!({})),
            tool("ask", json!({})),
            tool("sample", json!({})),
            tool("fail", json!({})),
            tool("panic", json!({})),
            tool("big", json!({ "bytes": { "type": "integer" } })),
            tool(
                "mirror",
                json!({
                    "region": { "type": "string", "x-mcp-header": "Region" },
                    "count": { "type": "integer", "x-mcp-header": "Count" },
                    "dry": { "type": "boolean", "x-mcp-header": "Dry" },
                    "where": { "type": "object", "properties": {
                        "zone": { "type": "string", "x-mcp-header": "Zone" },
                    } },
                }),
            ),
        ];
        if self.signals.has_extra.load(Ordering::SeqCst) {
            tools.push(tool("extra", json!({})));
        }
        Offer {
            tools,
            prompts: vec![Prompt {
                name: "greet".into(),
                description: Some("Greets.".into()),
                arguments: vec![PromptArgument {
                    name: "who".into(),
                    required: true,
                    ..PromptArgument::default()
                }],
                ..Prompt::default()
            }],
            resources: vec![Resource {
                uri: "test://note".into(),
                name: "note".into(),
                ..Resource::default()
            }],
            templates: vec![ResourceTemplate {
                uri_template: "test://notes/{name}".into(),
                name: "notes".into(),
                ..ResourceTemplate::default()
            }],
            completes: true,
            logs: true,
            updates: true,
            changes: true,
            task: match self.signals.has_tasks.load(Ordering::SeqCst) {
                true => TaskMode::Always.into(),
                false => TaskPolicy::default(),
            },
            ..Offer::default()
        }
    }

    fn call_tool(&self, call: ToolCall) -> Pending<ToolReply> {
        let signals = self.signals.clone();
        Box::pin(async move {
            let arguments: Value = call.arguments.read().unwrap();
            match &*call.name {
                "wait" => wait(signals, call).await,
                "progress" => progress(signals, &arguments, call).await,
                "logs" => {
                    let data = Raw::of("a word").unwrap();
                    call.context.call.log(Level::Debug, None, data.clone());
                    call.context.call.log(Level::Warning, None, data);
                    tokio::task::yield_now().await;
                    done("logged")
                }
                "ask" if call.context.answer("q").is_some() && arguments["then_wait"] == true => {
                    wait(signals, call).await
                }
                "ask" | "sample" => ask(&call),
                "fail" => Err(Problem::ToolFailed("it failed".into())),
                "panic" => panic!("a tool panicked, as the test wants"),
                "big" => done("x".repeat(arguments["bytes"].as_u64().unwrap_or(0) as usize)),
                _ => done(arguments["text"].as_str().unwrap_or("nothing")),
            }
        })
    }

    fn get_prompt(&self, call: PromptCall) -> Pending<PromptReply> {
        Box::pin(async move {
            Ok(Outcome::Done(PromptReply::user(format!("Hello, {}!", call.arguments[0].1))))
        })
    }

    fn read_resource(&self, call: ResourceCall) -> Pending<sabir_wire::types::ResourceReply> {
        Box::pin(async move {
            Ok(Outcome::Done(ResourceContents::text(&*call.uri, "text/plain", "a note").into()))
        })
    }

    fn complete(&self, _call: CompleteCall) -> Pending<Completion> {
        Box::pin(async { Ok(Outcome::Done(Completion::default())) })
    }

    fn start(&self, handle: SourceHandle) -> Starting {
        *self.signals.handle.lock().unwrap() = Some(handle);
        Box::pin(async { Ok(()) })
    }
}

fn done(text: impl Into<String>) -> Result<Outcome<ToolReply>, Problem> {
    Ok(Outcome::Done(ToolReply::text(text)))
}

async fn wait(signals: Arc<Signals>, call: ToolCall) -> Result<Outcome<ToolReply>, Problem> {
    let mut running = Running(signals.clone(), false);
    // The first poll is pending; the second is in a task.
    tokio::task::yield_now().await;
    signals.begun.fetch_add(1, Ordering::SeqCst);
    signals.moved.notify_waiters();
    tokio::select! {
        permit = signals.gate.0.acquire() => permit.unwrap().forget(),
        () = call.context.call.cancelled() => return Err(Problem::Internal("cancelled".into())),
    }
    running.1 = true;
    done("waited")
}

async fn progress(
    signals: Arc<Signals>,
    arguments: &Value,
    call: ToolCall,
) -> Result<Outcome<ToolReply>, Problem> {
    let steps = arguments["steps"].as_u64().unwrap_or(3);
    for step in 1..=steps {
        call.context.call.progress(step as f64, Some(steps as f64), None);
        if arguments["pause"] == true {
            tokio::task::yield_now().await;
        }
    }
    if arguments["then_wait"] == true {
        return wait(signals, call).await;
    }
    done("arrived")
}

fn ask(call: &ToolCall) -> Result<Outcome<ToolReply>, Problem> {
    if let Some(answer) = call.context.answer("q") {
        return done(format!("you said {}", answer.text()));
    }
    let question = if &*call.name == "ask" {
        let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
        let schema = Raw::of(&schema).unwrap();
        Question::Elicit(Elicit::form("Who are you?", schema))
    } else {
        Question::Sample(Box::new(Sample::user("Say something", 10)))
    };
    let questions = vec![("q".into(), question)];
    Ok(Outcome::NeedInput(Ask { questions, ..Ask::default() }))
}
