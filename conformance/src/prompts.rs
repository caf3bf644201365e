//! Prompts.

use std::collections::BTreeMap;

use sabir::{BadOffer, Completion, Content, Context, Elicited, Error, Handle};
use sabir::{PromptFunction, PromptReply, ResourceContents, Role};
use serde_json::{Value, json};

use crate::content::PNG;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Two {
    /// First test argument
    arg1: String,
    /// Second test argument
    arg2: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Included {
    /// URI of the resource to include
    resource_uri: String,
}

pub(crate) fn offer(handle: &Handle) -> Result<(), BadOffer> {
    let prompts = [
        PromptFunction::new(
            "test_simple_prompt",
            "Says one thing",
            async || "This is a simple prompt for testing.",
        ),
        PromptFunction::new(
            "test_prompt_with_arguments",
            "Says what it is given",
            async |Two { arg1, arg2 }| format!("arg1='{arg1}', arg2='{arg2}'"),
        )
        .completed_by("arg1", completed),
        PromptFunction::new(
            "test_prompt_with_embedded_resource",
            "Includes a resource",
            async |Included { resource_uri }| {
                let text = "Embedded resource content for testing.";
                let contents = ResourceContents::text(resource_uri, "text/plain", text);
                PromptReply::default()
                    .says(Role::User, Content::resource(contents))
                    .says(Role::User, Content::text("Please process the resource above."))
            },
        ),
        PromptFunction::new("test_prompt_with_image", "Includes a picture", async || {
            PromptReply::default()
                .says(Role::User, Content::image(PNG, "image/png"))
                .says(Role::User, Content::text("Please analyze the picture above."))
        }),
        PromptFunction::new(
            "test_input_required_result_prompt",
            "Asks before it says anything",
            ask_first,
        ),
    ];
    prompts.into_iter().try_for_each(|prompt| handle.add_source(prompt).map(drop))
}

fn completed(typed: &str, _: &BTreeMap<String, String>) -> Completion {
    let known = ["testing", "test", "tested"];
    known.into_iter().filter(|value| value.starts_with(typed)).collect()
}

async fn ask_first(context: Context) -> Result<String, Error> {
    let schema = json!({ "type": "object", "properties": { "context": { "type": "string" } } });
    Ok(match context.elicit_with("user_context", "In which context?", schema)? {
        Elicited::Accepted(Value::Object(given)) => format!("Context: {}", json!(given)),
        _ => "No context".into(),
    })
}
