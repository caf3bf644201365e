//! Tools whose scenarios look at how `input_required` results are made.

use sabir::{BadOffer, Context, Elicit, Elicited, Error, Handle, Question, Sample, ToolFunction};
use serde_json::{Value, json};

use crate::Nothing;

pub(crate) fn offer(handle: &Handle) -> Result<(), BadOffer> {
    let tools = [
        ToolFunction::new(
            "test_input_required_result_elicitation",
            "Asks for a name",
            async |_: Nothing, context: Context| -> Result<_, Error> {
                Ok(format!("Hello, {}!", name(&context, "user_name", "What is your name?")?))
            },
        ),
        ToolFunction::new(
            "test_input_required_result_sampling",
            "Asks the client's model",
            async |_: Nothing, context: Context| -> Result<_, Error> {
                let question = Sample::user("What is the capital of France?", 100);
                Ok(context.sample("capital_question", question)?.text())
            },
        ),
        ToolFunction::new(
            "test_input_required_result_list_roots",
            "Asks for the client's folders",
            async |_: Nothing, context: Context| -> Result<_, Error> {
                Ok(format!("{} roots", context.roots("client_roots")?.len()))
            },
        ),
        ToolFunction::new(
            "test_input_required_result_request_state",
            "Keeps a state while it asks",
            request_state,
        ),
        ToolFunction::new(
            "test_input_required_result_multiple_inputs",
            "Asks three things at once",
            multiple_inputs,
        ),
        ToolFunction::new(
            "test_input_required_result_multi_round",
            "Asks one thing after the other",
            multi_round,
        ),
        ToolFunction::new(
            "test_input_required_result_tampered_state",
            "Keeps a state that cannot be changed",
            request_state,
        ),
        ToolFunction::new(
            "test_input_required_result_capabilities",
            "Asks only what the client can be asked",
            by_capability,
        ),
    ];
    tools.into_iter().try_for_each(|tool| handle.add_source(tool).map(drop))
}

fn name_form() -> Value {
    let name = json!({ "type": "string", "description": "Your name" });
    json!({ "type": "object", "properties": { "name": name }, "required": ["name"] })
}

/// Asks for a name. The suite answers some questions with forms of its own.
fn name(context: &Context, key: &str, message: &str) -> Result<String, Error> {
    match context.elicit_with::<Value>(key, message, name_form())? {
        Elicited::Accepted(form) => Ok(form["name"].as_str().unwrap_or("somebody").to_owned()),
        Elicited::Declined | Elicited::Cancelled => Ok("stranger".into()),
    }
}

async fn request_state(_: Nothing, context: Context) -> Result<String, Error> {
    context.keep("state-ok")?;
    let name = name(&context, "confirm", "Who confirms?")?;
    let state: Option<String> = context.kept();
    Ok(format!("{}, {name}", state.unwrap_or_default()))
}

async fn multiple_inputs(_: Nothing, context: Context) -> Result<String, Error> {
    let form = Elicit::form("Your name?", name_form());
    let greeting = Sample::user("Write a greeting.", 50);
    context.keep("three questions")?;
    context.ask_all([
        ("user_name".into(), Question::Elicit(form)),
        ("greeting".into(), Question::Sample(Box::new(greeting.clone()))),
        ("client_roots".into(), Question::roots()),
    ])?;
    let name = name(&context, "user_name", "Your name?")?;
    let greeting = context.sample("greeting", greeting)?.text();
    let roots = context.roots("client_roots")?.len();
    Ok(format!("{greeting} {name}, you have {roots} roots"))
}

async fn multi_round(_: Nothing, context: Context) -> Result<String, Error> {
    context.keep(&1)?;
    let first = name(&context, "step1", "Step 1: your name?")?;
    context.keep(&2)?;
    let second = name(&context, "step2", "Step 2: your other name?")?;
    Ok(format!("{first} {second}"))
}

async fn by_capability(_: Nothing, context: Context) -> Result<String, Error> {
    let can = context.capabilities();
    if can.elicitation_form {
        return name(&context, "user_name", "Your name?");
    }
    if can.sampling {
        return Ok(context.sample("question", Sample::user("Who are you?", 20))?.text());
    }
    Ok("nobody can be asked".into())
}
