//! Tools whose calls become tasks.

use std::time::Duration;

use sabir::{BadOffer, Context, Elicit, Elicited, Error, Handle, Question, TaskMode, ToolFunction};
use serde_json::{Value, json};

use crate::Nothing;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Greet {
    name: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Compute {
    seconds: f64,
    label: Option<String>,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Delete {
    filename: String,
}

pub(crate) fn offer(handle: &Handle) -> Result<(), BadOffer> {
    let tools = [
        ToolFunction::new("greet", "Greets", async |Greet { name }: Greet| {
            format!("Hello, {name}!")
        }),
        ToolFunction::new("slow_compute", "Takes its time", slow_compute)
            .task(TaskMode::Auto)
            .task_after(Duration::ZERO),
        ToolFunction::new("failing_job", "Fails, as a task only", async |_: Nothing| {
            tokio::time::sleep(MOMENT).await;
            Err::<String, _>(Error::failed("the job failed"))
        })
        .task(TaskMode::Required),
        ToolFunction::new("protocol_error_job", "Ends with an error", async |_: Nothing| {
            tokio::time::sleep(MOMENT).await;
            Err::<String, _>(Error::protocol(-32603, "the job broke"))
        })
        .task(TaskMode::Always),
        ToolFunction::new("confirm_delete", "Asks before it deletes", confirm_delete)
            .task(TaskMode::Always),
        ToolFunction::new("multi_input", "Asks two things at once", multi_input)
            .task(TaskMode::Always),
        ToolFunction::new("test_tool_with_task", "Asks first, then takes its time", asks_first)
            .task(TaskMode::Auto)
            .task_after(Duration::ZERO),
    ];
    tools.into_iter().try_for_each(|tool| handle.add_source(tool).map(drop))
}

/// Work that does not end at once.
const MOMENT: Duration = Duration::from_millis(50);

async fn slow_compute(Compute { seconds, label }: Compute) -> String {
    if seconds > 0.0 {
        tokio::time::sleep(Duration::from_secs_f64(seconds.min(600.0))).await;
    }
    format!("{} took {seconds} s", label.as_deref().unwrap_or("it"))
}

async fn confirm_delete(Delete { filename }: Delete, context: Context) -> Result<String, Error> {
    let confirmed = context.elicit_with(
        "confirm",
        &format!("Delete {filename}?"),
        form("confirm", "boolean"),
    )?;
    Ok(match confirmed {
        Elicited::Accepted(Value::Object(form)) if form["confirm"] == true => {
            format!("{filename} is deleted")
        }
        _ => format!("{filename} is kept"),
    })
}

async fn multi_input(_: Nothing, context: Context) -> Result<String, Error> {
    let (name, sure) = (form("name", "string"), form("confirm", "boolean"));
    context.ask_all([
        ("name".into(), Question::Elicit(Elicit::form("Your name?", name.clone()))),
        ("confirm".into(), Question::Elicit(Elicit::form("Are you sure?", sure.clone()))),
    ])?;
    let name: Elicited<Value> = context.elicit_with("name", "Your name?", name)?;
    let sure: Elicited<Value> = context.elicit_with("confirm", "Are you sure?", sure)?;
    Ok(format!("{name:?}, {sure:?}"))
}

async fn asks_first(_: Nothing, context: Context) -> Result<String, Error> {
    let form = form("name", "string");
    let name: Elicited<Value> = context.elicit_with("user_name", "What is your name?", form)?;
    tokio::time::sleep(MOMENT).await;
    Ok(match name {
        Elicited::Accepted(form) => format!("Hello, {}!", form["name"].as_str().unwrap_or("you")),
        _ => "Hello, stranger!".into(),
    })
}

fn form(name: &str, kind: &str) -> Value {
    json!({ "type": "object", "properties": { name: { "type": kind } }, "required": [name] })
}
