//! The client that the official suite drives: `conformance-client URL`, with the scenario in the
//! environment. It does what the scenario's mock server expects, with the published client library.

mod login; // how it gets its tokens

use std::error::Error;
use std::sync::Arc;

use sabir::client::{
    Answerer, Answering, CallTool, Client, ClientConfig, Era, HttpTarget, Reply, Request, Resume,
    Skill, SkillFiles,
};
use sabir::{ClientCapabilities, Elicit, ErrorObject, Question, Raw, Revision};
use sabir_sources::skills::verify;
use serde_json::{Map, Value, json};

type Done = Result<(), Box<dyn Error>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Done {
    let url = std::env::args().next_back().ok_or("no URL")?;
    let scenario = std::env::var("MCP_CONFORMANCE_SCENARIO").unwrap_or_default();
    let version = std::env::var("MCP_CONFORMANCE_PROTOCOL_VERSION").unwrap_or_default();
    let context = std::env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_else(|_| "{}".to_owned());
    let context: Value = serde_json::from_str(&context)?;
    let mut target = HttpTarget::new(&*url)?;
    if scenario.starts_with("auth/") {
        login::authorize(&mut target, &context)?;
    }
    let client = Client::new(target.transport(), config(&version), Arc::new(Defaults));
    client.open().await?;
    let played = play(&client, &scenario, &context).await;
    client.close().await;
    played
}

/// A client of this revision that answers all questions.
fn config(version: &str) -> ClientConfig {
    let capabilities = ClientCapabilities {
        elicitation_form: true,
        sampling: true,
        roots: true,
        ..ClientCapabilities::default()
    };
    let mut config = ClientConfig { capabilities, ..ClientConfig::new("sabir-conformance", "1") };
    if let Some(revision) = Revision::parse(version) {
        config.era = Some(revision.era());
        if revision.era() == Era::Legacy {
            config.legacy_revision = revision;
        }
    }
    config
}

async fn play(client: &Client, scenario: &str, context: &Value) -> Done {
    let tools = client.list_tools().await?;
    let call = async |name: &str, arguments: Value| client.call_tool(name, arguments).await;
    match scenario {
        "tools_call" => {
            call("add_numbers", json!({ "a": 5, "b": 3 })).await?;
        }
        "elicitation-sep1034-client-defaults" => {
            call("test_client_elicitation_defaults", json!({})).await?;
        }
        scenario if scenario.starts_with("auth/") => {
            call("test-tool", json!({})).await?;
        }
        "sse-retry" => {
            call("test_reconnection", json!({})).await?;
        }
        "sep-2322-client-request-state" => rounds(client).await?,
        "http-custom-headers" => {
            for one in context["toolCalls"].as_array().into_iter().flatten() {
                let name = one["name"].as_str().unwrap_or_default();
                call(name, one["arguments"].clone()).await?;
            }
        }
        "json-schema-2020-12-preservation" => {
            let tool = tools.iter().find(|tool| tool.name == "json_schema_2020_12_tool");
            let schema: Value = tool.ok_or("the tool is not listed")?.input_schema.read()?;
            call("json_schema_echo", json!({ "schema": schema })).await?;
        }
        "http-standard-headers" => {
            for tool in &tools {
                call(&tool.name, json!({})).await?;
            }
            for resource in client.list_resources().await? {
                client.read_resource(&resource.uri).await?;
            }
            for prompt in client.list_prompts().await? {
                client.get_prompt(&prompt.name, []).await?;
            }
        }
        // Tools with invalid annotations are not in the list.
        "http-invalid-tool-headers" => {
            for tool in &tools {
                call(&tool.name, json!({})).await?;
            }
        }
        "sep-2640-client-no-prefetch" => drop(client.list_skills().await?),
        scenario if scenario.starts_with("sep-2640-client-verify-") => {
            for skill in client.list_skills().await? {
                load(client, &skill).await?;
            }
        }
        _ => {}
    }
    Ok(())
}

/// Reads the files of a skill, each of which is checked before the next.
async fn load(client: &Client, skill: &Skill) -> Done {
    let SkillFiles::Listed(files) = &skill.files else { return Ok(()) };
    for file in files {
        let read = client.read_resource(&file.uri).await?;
        let contents = read.contents.first().and_then(|one| one.body.as_text());
        verify(skill, &file.uri, contents.ok_or("no text")?.as_bytes())?;
    }
    Ok(())
}

/// Rounds of questions by hand, with another call between two of them.
async fn rounds(client: &Client) -> Done {
    let first = raw_call(client, "test_mrtr_echo_state", Resume::default()).await?;
    let questions = first.questions()?.ok_or("no questions")?;
    client.call_tool("test_mrtr_unrelated", json!({})).await?;
    let mut answers = Vec::new();
    for (key, question) in questions.questions {
        let answer = Defaults.answer(question).await;
        answers.push((key, answer.map_err(|error| error.message)?));
    }
    let state = questions.state.map(Into::into);
    let resume = Resume { answers, state, ..Resume::default() };
    raw_call(client, "test_mrtr_echo_state", resume).await?;
    client.call_tool("test_mrtr_no_state", json!({})).await?;
    client.call_tool("test_mrtr_no_result_type", json!({})).await?;
    Ok(())
}

async fn raw_call(client: &Client, name: &str, resume: Resume) -> Result<Reply, Box<dyn Error>> {
    let arguments = Some(Raw::from(json!({})));
    let request =
        Request::CallTool(CallTool { name: name.into(), arguments, resume, ..CallTool::default() });
    Ok(client.call(request).await?)
}

/// Accepts every form, with the defaults of its fields.
#[derive(Debug)]
struct Defaults;

impl Answerer for Defaults {
    fn answer(&self, question: Question) -> Answering<'_> {
        let answer = match question {
            Question::Elicit(Elicit::Form { schema, .. }) => {
                json!({ "action": "accept", "content": defaults(&schema) })
            }
            Question::Elicit(Elicit::Url { .. }) => json!({ "action": "decline" }),
            Question::Sample(_) => json!({
                "role": "assistant", "model": "none",
                "content": { "type": "text", "text": "an answer" },
            }),
            Question::Roots { .. } => json!({ "roots": [] }),
            Question::Other { .. } => json!({}),
        };
        Box::pin(async { Ok::<_, ErrorObject>(Raw::from(answer)) })
    }
}

fn defaults(schema: &Raw) -> Map<String, Value> {
    let schema: Value = schema.read().unwrap_or_default();
    let properties = schema["properties"].as_object().cloned().unwrap_or_default();
    let value = |property: &Value| match (property.get("default"), property["type"].as_str()) {
        (Some(default), _) => default.clone(),
        (None, Some("boolean")) => json!(true),
        (None, Some("integer" | "number")) => json!(1),
        (None, _) => property["enum"].get(0).cloned().unwrap_or_else(|| json!("text")),
    };
    properties.iter().map(|(name, property)| (name.clone(), value(property))).collect()
}
