//! Results and questions, from the JSON of a script, in the shape of the newest revision.
//!
//! What a script writes as raw JSON (structured content, schemas, `_meta`) keeps its text.

use sabir_registry::Ask;
use sabir_wire::Raw;
use sabir_wire::types::{
    Annotations, CacheHint, CacheScope, Completion, Content, ContentKind, Elicit, ModelPreferences,
    PromptMessage, PromptReply, Question, Resource, ResourceBody, ResourceContents, ResourceReply,
    Role, Sample, SamplingContent, SamplingMessage, Tool, ToolChoice, ToolReply,
};
use serde_json::Value;

/// A tool's reply.
pub fn tool_reply(json: &Raw) -> ToolReply {
    ToolReply {
        content: list(json, "content").iter().map(content).collect(),
        structured: part(json, "structuredContent"),
        is_error: value(json)["isError"] == true,
        meta: part(json, "_meta"),
    }
}

/// A prompt, filled in.
pub fn prompt_reply(json: &Raw) -> PromptReply {
    let message =
        |json: &Raw| PromptMessage { role: role(json), content: content(&needed(json, "content")) };
    PromptReply {
        description: text(json, "description"),
        messages: list(json, "messages").iter().map(message).collect(),
        meta: part(json, "_meta"),
    }
}

/// A resource, read.
pub fn resource_reply(json: &Raw) -> ResourceReply {
    let fields = value(json);
    let is_public = fields["cacheScope"] == "public";
    ResourceReply {
        contents: list(json, "contents").iter().map(contents).collect(),
        cache: CacheHint {
            ttl_ms: fields["ttlMs"].as_u64().unwrap_or(0),
            scope: if is_public { CacheScope::Public } else { CacheScope::Private },
        },
        meta: part(json, "_meta"),
    }
}

/// What could stand there.
pub fn completion(json: &Raw) -> Completion {
    let json = needed(json, "completion");
    let values = list(&json, "values").iter().map(plain).collect();
    let total = value(&json)["total"].as_u64().map(|total| total as usize);
    Completion { values, total }
}

/// Questions, and what to keep until they are answered.
pub fn questions(json: &Raw) -> Ask {
    let asked = part(json, "inputRequests").map(|all| all.members()).unwrap_or_default();
    let questions = asked.into_iter().map(|(key, json)| (key, question(&json))).collect();
    Ask { questions, state: part(json, "requestState") }
}

fn question(json: &Raw) -> Question {
    let params = part(json, "params").unwrap_or_else(Raw::empty_object);
    match text(json, "method").as_deref() {
        Some("roots/list") => Question::Roots,
        Some("sampling/createMessage") => Question::Sample(Box::new(sample(&params))),
        Some("elicitation/create") => Question::Elicit(match text(&params, "url") {
            Some(url) => Elicit::Url { message: said(&params, "message"), url },
            None => Elicit::Form {
                message: said(&params, "message"),
                schema: needed(&params, "requestedSchema"),
            },
        }),
        other => panic!("the script asks {other:?}"),
    }
}

fn sample(json: &Raw) -> Sample {
    let fields = value(json);
    let choice = fields["toolChoice"]["mode"].as_str().map(|mode| match mode {
        "auto" => ToolChoice::Auto,
        "required" => ToolChoice::Required,
        _ => ToolChoice::None,
    });
    let strings = |json: Raw| list(&json, "").iter().map(plain).collect();
    Sample {
        messages: list(json, "messages").iter().map(sampling_message).collect(),
        max_tokens: fields["maxTokens"].as_u64().unwrap_or(0),
        system_prompt: text(json, "systemPrompt"),
        preferences: part(json, "modelPreferences").map(|json| preferences(&json)),
        temperature: fields["temperature"].as_f64(),
        stop_sequences: part(json, "stopSequences").map(strings).unwrap_or_default(),
        metadata: part(json, "metadata"),
        tools: list(json, "tools").iter().map(tool).collect(),
        tool_choice: choice,
    }
}

fn preferences(json: &Raw) -> ModelPreferences {
    let fields = value(json);
    ModelPreferences {
        hints: list(json, "hints").iter().map(|hint| said(hint, "name")).collect(),
        cost_priority: fields["costPriority"].as_f64(),
        speed_priority: fields["speedPriority"].as_f64(),
        intelligence_priority: fields["intelligencePriority"].as_f64(),
    }
}

fn sampling_message(json: &Raw) -> SamplingMessage {
    let content = needed(json, "content");
    let blocks = if content.is_object() { vec![content] } else { list(&content, "") };
    SamplingMessage { role: role(json), content: blocks.iter().map(sampling_content).collect() }
}

fn sampling_content(json: &Raw) -> SamplingContent {
    match text(json, "type").as_deref() {
        Some("tool_use") => SamplingContent::ToolUse {
            id: said(json, "id"),
            name: said(json, "name"),
            input: needed(json, "input"),
        },
        Some("tool_result") => SamplingContent::ToolResult {
            tool_use_id: said(json, "toolUseId"),
            content: list(json, "content").iter().map(content).collect(),
            is_error: value(json)["isError"] == true,
        },
        _ => SamplingContent::Block(content(json)),
    }
}

fn tool(json: &Raw) -> Tool {
    Tool {
        description: text(json, "description"),
        ..Tool::new(said(json, "name"), "", needed(json, "inputSchema"))
    }
}

fn content(json: &Raw) -> Content {
    let kind = match text(json, "type").as_deref() {
        Some("text") => ContentKind::Text(said(json, "text")),
        Some("image") => {
            ContentKind::Image { data: said(json, "data"), mime_type: said(json, "mimeType") }
        }
        Some("audio") => {
            ContentKind::Audio { data: said(json, "data"), mime_type: said(json, "mimeType") }
        }
        Some("resource_link") => ContentKind::Link(Box::new(Resource {
            uri: said(json, "uri"),
            name: said(json, "name"),
            title: text(json, "title"),
            description: text(json, "description"),
            mime_type: text(json, "mimeType"),
            ..Resource::default()
        })),
        Some("resource") => ContentKind::Resource(contents(&needed(json, "resource"))),
        other => panic!("the script has content of type {other:?}"),
    };
    let annotations = part(json, "annotations").and_then(|a| a.read::<Annotations>().ok());
    Content { kind, annotations, meta: part(json, "_meta") }
}

fn contents(json: &Raw) -> ResourceContents {
    let body = match text(json, "text") {
        Some(text) => ResourceBody::Text(text),
        None => ResourceBody::Blob(said(json, "blob")),
    };
    let mime_type = text(json, "mimeType");
    ResourceContents { uri: said(json, "uri"), mime_type, body, meta: part(json, "_meta") }
}

fn role(json: &Raw) -> Role {
    if value(json)["role"] == "assistant" { Role::Assistant } else { Role::User }
}

fn value(json: &Raw) -> Value {
    json.read().unwrap_or_default()
}

fn part(json: &Raw, key: &str) -> Option<Raw> {
    json.members().into_iter().find(|(name, _)| name == key).map(|(_, value)| value)
}

fn needed(json: &Raw, key: &str) -> Raw {
    part(json, key).unwrap_or_else(|| panic!("the script has no `{key}` in {json:?}"))
}

/// The items of the member `key`, or of the value itself without a key.
fn list(json: &Raw, key: &str) -> Vec<Raw> {
    let json = if key.is_empty() { Some(json.clone()) } else { part(json, key) };
    json.and_then(|json| json.read::<Vec<Raw>>().ok()).unwrap_or_default()
}

fn text(json: &Raw, key: &str) -> Option<String> {
    part(json, key).map(|json| plain(&json))
}

fn said(json: &Raw, key: &str) -> String {
    plain(&needed(json, key))
}

fn plain(json: &Raw) -> String {
    json.read().unwrap_or_else(|_| panic!("the script has {json:?} where a string belongs"))
}
