//! Tools that ask the client: as requests in the legacy era, as results in the modern one. The
//! tools do not know which.

use sabir::{BadOffer, Context, Elicited, Error, Handle, Sample, ToolFunction};
use serde_json::{Value, json};

use crate::Nothing;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Prompt {
    /// What to ask the model
    prompt: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Message {
    /// What to tell the user
    message: String,
}

pub(crate) fn offer(handle: &Handle) -> Result<(), BadOffer> {
    let tools = [
        ToolFunction::new("test_sampling", "Asks the client's model", sampling),
        ToolFunction::new("test_elicitation", "Asks the user", elicitation),
        ToolFunction::new(
            "test_elicitation_sep1034_defaults",
            "Asks the user, with defaults",
            async |_: Nothing, context: Context| ask(&context, "Please review", &defaults()),
        ),
        ToolFunction::new(
            "test_elicitation_sep1330_enums",
            "Asks the user to choose",
            async |_: Nothing, context: Context| ask(&context, "Please choose", &choices()),
        ),
        ToolFunction::new("test_missing_capability", "Needs a model", needs_sampling),
        ToolFunction::new("test_streaming_elicitation", "Asks the user", streaming),
    ];
    tools.into_iter().try_for_each(|tool| handle.add_source(tool).map(drop))
}

async fn sampling(Prompt { prompt }: Prompt, context: Context) -> Result<String, Error> {
    let sampled = context.sample("model", Sample::user(prompt, 100))?;
    Ok(format!("LLM response: {}", sampled.text()))
}

async fn elicitation(Message { message }: Message, context: Context) -> Result<String, Error> {
    let schema = json!({
        "type": "object",
        "properties": {
            "username": { "type": "string", "description": "User's response" },
            "email": { "type": "string", "description": "User's email address" },
        },
        "required": ["username", "email"],
    });
    ask(&context, &message, &schema)
}

async fn needs_sampling(_: Nothing, context: Context) -> Result<String, Error> {
    Ok(context.sample("model", Sample::user("Who are you?", 10))?.text())
}

async fn streaming(_: Nothing, context: Context) -> Result<String, Error> {
    let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    ask(&context, "What is your name?", &schema)
}

fn ask(context: &Context, message: &str, schema: &Value) -> Result<String, Error> {
    let answer: Elicited<Value> = context.elicit_with("user", message, schema.clone())?;
    Ok(match answer {
        Elicited::Accepted(content) => {
            format!("Elicitation completed: action=accept, content={content}")
        }
        Elicited::Declined => "Elicitation completed: action=decline".into(),
        Elicited::Cancelled => "Elicitation completed: action=cancel".into(),
    })
}

fn defaults() -> Value {
    json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "default": "John Doe" },
            "age": { "type": "integer", "default": 30 },
            "score": { "type": "number", "default": 95.5 },
            "status": {
                "type": "string", "enum": ["active", "inactive", "pending"], "default": "active",
            },
            "verified": { "type": "boolean", "default": true },
        },
    })
}

fn choices() -> Value {
    let titled = |key: &str| json!({ "const": key, "title": key.to_uppercase() });
    json!({
        "type": "object",
        "properties": {
            "untitledSingle": { "type": "string", "enum": ["option1", "option2", "option3"] },
            "titledSingle": { "type": "string", "oneOf": [titled("value1"), titled("value2")] },
            "legacyEnum": {
                "type": "string", "enum": ["opt1", "opt2"], "enumNames": ["Option One", "Option Two"],
            },
            "untitledMulti": {
                "type": "array", "items": { "type": "string", "enum": ["option1", "option2"] },
            },
            "titledMulti": {
                "type": "array", "items": { "anyOf": [titled("value1"), titled("value2")] },
            },
        },
    })
}
