//! Prompts.

use std::collections::BTreeMap;

use sabir::{
    BadOffer, Completion, Content, Context, Elicited, Handle, PromptFunction, PromptReply,
};
use sabir::{Raw, ResourceContents, Role};
use serde_json::{Value, json};

use crate::content::PNG;

type Arguments = BTreeMap<String, String>;

pub(crate) fn offer(handle: &Handle) -> Result<(), BadOffer> {
    let prompts = [
        PromptFunction::named("test_simple_prompt", "Says one thing").filled_in_by(
            async |_: Arguments| Ok(PromptReply::user("This is a simple prompt for testing.")),
        ),
        PromptFunction::named("test_prompt_with_arguments", "Says what it is given")
            .argument("arg1", "First test argument")
            .argument("arg2", "Second test argument")
            .completed_by("arg1", completed)
            .filled_in_by(async |given: Arguments| {
                Ok(PromptReply::user(format!("arg1='{}', arg2='{}'", given["arg1"], given["arg2"])))
            }),
        PromptFunction::named("test_prompt_with_embedded_resource", "Includes a resource")
            .argument("resourceUri", "URI of the resource to include")
            .filled_in_by(async |given: Arguments| {
                let text = "Embedded resource content for testing.";
                let contents = ResourceContents::text(&given["resourceUri"], "text/plain", text);
                Ok(PromptReply::default()
                    .says(Role::User, Content::resource(contents))
                    .says(Role::User, Content::text("Please process the resource above.")))
            }),
        PromptFunction::named("test_prompt_with_image", "Includes a picture").filled_in_by(
            async |_: Arguments| {
                Ok(PromptReply::default()
                    .says(Role::User, Content::image(PNG, "image/png"))
                    .says(Role::User, Content::text("Please analyze the picture above.")))
            },
        ),
        PromptFunction::named("test_input_required_result_prompt", "Asks before it says anything")
            .filled_in_by(ask_first),
    ];
    prompts.into_iter().try_for_each(|prompt| handle.offer(prompt).map(drop))
}

fn completed(typed: &str, _: &Arguments) -> Completion {
    let known = ["testing", "test", "tested"];
    known.into_iter().filter(|value| value.starts_with(typed)).collect()
}

async fn ask_first(_: Arguments, context: Context) -> Result<PromptReply, sabir::Error> {
    let schema = json!({ "type": "object", "properties": { "context": { "type": "string" } } });
    let answer = context.elicit_with("user_context", "In which context?", Raw::of(&schema)?)?;
    let text = match answer {
        Elicited::Accepted(Value::Object(given)) => format!("Context: {}", json!(given)),
        _ => "No context".into(),
    };
    Ok(PromptReply::user(text))
}
