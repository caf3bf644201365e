//! A source that offers one of everything and needs no script: each call ends by itself.

use sabir_registry::{
    Answer, Ask, CompleteCall, Context, Offer, Outcome, Pending, PromptCall, ResourceCall, Source,
    ToolCall,
};
use sabir_wire::types::{
    Annotations, CacheHint, CacheScope, Completion, Content, Elicit, Elicited, Icon, Level,
    ModelPreferences, Prompt, PromptArgument, PromptReply, Question, Resource, ResourceContents,
    ResourceReply, ResourceTemplate, Role, Roots, Sample, Sampled, SamplingContent,
    SamplingMessage, Tool, ToolAnnotations, ToolReply,
};
use sabir_wire::{Problem, Raw};
use serde_json::{Value, json};

use crate::house::House;

/// One of everything. The descriptions of its tools say what they do.
#[derive(Clone, Copy, Debug, Default)]
pub struct StandIn;

impl StandIn {
    /// An icon.
    pub fn icons() -> Vec<Icon> {
        vec![icon()]
    }

    fn tools() -> Vec<Tool> {
        let nothing = json!({ "type": "object", "additionalProperties": false });
        let two_numbers = json!({
            "type": "object",
            "properties": { "a": { "type": "number" }, "b": { "type": "number" } },
            "required": ["a", "b"],
        });
        let sum = json!({
            "type": "object",
            "properties": { "sum": { "type": "number" } },
            "required": ["sum"],
        });
        vec![
            Tool {
                title: Some("Addition".into()),
                output_schema: Some(raw(&sum)),
                annotations: Some(ToolAnnotations {
                    read_only_hint: Some(true),
                    ..ToolAnnotations::default()
                }),
                icons: vec![icon()],
                meta: Some(raw(&json!({ "com.example/kind": "sum" }))),
                ..Tool::new("add", "Adds two numbers", raw(&two_numbers))
            },
            Tool::new("echo", "Gives its arguments back", raw(&json!({ "type": "object" }))),
            Tool {
                output_schema: Some(raw(&json!({ "type": "array" }))),
                ..Tool::new("count", "Gives a list", raw(&nothing))
            },
            Tool::new("everything", "Gives each kind of content", raw(&nothing)),
            Tool::new("fail", "Fails, and says so in its result", raw(&nothing)),
            Tool::new("broken", "Fails with an error", raw(&nothing)),
            Tool::new("noisy", "Logs, and tells how far it is", raw(&nothing)),
            Tool::new("ask_name", "Asks the user for a name", raw(&nothing)),
            Tool::new("ask_all", "Asks the user, the model and for the roots", raw(&nothing)),
            Tool::new("ask_model", "Asks the model and for the roots", raw(&nothing)),
            Tool::new("ask_page", "Asks the user to visit a page", raw(&nothing)),
            Tool::new("ask_tools", "Asks a model that may use tools", raw(&nothing)),
        ]
    }
}

impl Source for StandIn {
    fn offer(&self) -> Offer {
        let annotations = Annotations {
            audience: vec![Role::User, Role::Assistant],
            priority: Some(0.5),
            last_modified: Some("2025-01-12T15:00:58Z".into()),
            ..Annotations::default()
        };
        Offer {
            tools: Self::tools(),
            prompts: vec![Prompt {
                name: "greeting".into(),
                title: Some("Greeting".into()),
                description: Some("Greets somebody".into()),
                arguments: vec![PromptArgument {
                    name: "name".into(),
                    title: Some("Name".into()),
                    description: Some("Whom".into()),
                    required: true,
                    ..PromptArgument::default()
                }],
                icons: vec![icon()],
                meta: Some(raw(&json!({ "com.example/kind": "greeting" }))),
                ..Prompt::default()
            }],
            resources: vec![Resource {
                uri: "memo:///a".into(),
                name: "a".into(),
                title: Some("Memo A".into()),
                description: Some("The first memo".into()),
                mime_type: Some("text/plain".into()),
                annotations: Some(annotations.clone()),
                size: Some(5),
                icons: vec![icon()],
                meta: Some(raw(&json!({ "com.example/kind": "memo" }))),
                ..Resource::default()
            }],
            templates: vec![ResourceTemplate {
                uri_template: "memo:///x/{id}".into(),
                name: "x".into(),
                title: Some("Memos".into()),
                description: Some("All memos".into()),
                mime_type: Some("text/plain".into()),
                annotations: Some(annotations),
                icons: vec![icon()],
                meta: Some(raw(&json!({ "com.example/kind": "memo" }))),
                ..ResourceTemplate::default()
            }],
            ..House::capable()
        }
    }

    fn call_tool(&self, call: ToolCall) -> Pending<ToolReply> {
        let answer = call_tool(&call);
        Box::pin(async { answer })
    }

    fn get_prompt(&self, call: PromptCall) -> Pending<PromptReply> {
        let name = call.arguments.into_iter().find(|(name, _)| name == "name");
        let name = name.map(|(_, value)| value).unwrap_or_default();
        let reply = PromptReply {
            description: Some("A greeting".into()),
            ..PromptReply::user(format!("Please greet {name}."))
        };
        let reply = everything().into_iter().fold(reply, |all, one| all.says(Role::Assistant, one));
        Box::pin(async { Ok(Outcome::Done(reply)) })
    }

    fn read_resource(&self, call: ResourceCall) -> Pending<ResourceReply> {
        let answer = match (&*call.uri, call.variables.get("id")) {
            ("memo:///a", _) => Ok(ResourceReply {
                cache: CacheHint { ttl_ms: 1000, scope: CacheScope::Public },
                contents: vec![
                    ResourceContents {
                        meta: Some(raw(&json!({ "com.example/n": 1 }))),
                        ..ResourceContents::text("memo:///a", "text/plain", "hello")
                    },
                    ResourceContents::blob("memo:///a", "application/octet-stream", b"\x00\xff"),
                ],
                ..ResourceReply::default()
            }),
            (uri, Some(id)) if id != "none" => {
                Ok(ResourceContents::text(uri, "text/plain", format!("memo {id}")).into())
            }
            (uri, _) => Err(Problem::UnknownResource(uri.into())),
        };
        Box::pin(async { answer.map(Outcome::Done) })
    }

    fn complete(&self, call: CompleteCall) -> Pending<Completion> {
        let all = ["Ada", "Alan", "Grace"].into_iter();
        let fitting: Completion =
            all.filter(|name| name.starts_with(&*call.argument.value)).collect();
        Box::pin(async { Ok(Outcome::Done(fitting)) })
    }
}

fn call_tool(call: &ToolCall) -> Answer<ToolReply> {
    let context = &call.context;
    match &*call.name {
        "add" => add(&call.arguments),
        "echo" => Ok(Outcome::Done(ToolReply {
            structured: Some(call.arguments.clone()),
            ..ToolReply::default()
        })),
        "count" => structured(&json!([1, 2, 3])),
        "everything" => Ok(Outcome::Done(ToolReply {
            content: everything(),
            structured: Some(raw(&json!({ "n": 1 }))),
            meta: Some(raw(&json!({ "com.example/took": 3 }))),
            ..ToolReply::default()
        })),
        "fail" => Ok(Outcome::Done(ToolReply::failed("it did not work"))),
        "broken" => Err(Problem::Internal("the disk is full".into())),
        "noisy" => noisy(context),
        "ask_name" => ask_name(context),
        "ask_all" => ask_all(context),
        "ask_model" => ask_model(context),
        "ask_page" => ask_page(context),
        "ask_tools" => ask_tools(context),
        other => Err(Problem::UnknownTool(other.into())),
    }
}

fn add(arguments: &Raw) -> Answer<ToolReply> {
    let arguments: Value = arguments.read().unwrap_or_default();
    let sum = arguments["a"].as_f64().unwrap_or(0.0) + arguments["b"].as_f64().unwrap_or(0.0);
    structured(&json!({ "sum": sum }))
}

fn structured(value: &Value) -> Answer<ToolReply> {
    Ok(Outcome::Done(ToolReply { structured: Some(raw(value)), ..ToolReply::default() }))
}

fn noisy(context: &Context) -> Answer<ToolReply> {
    for (level, text) in [(Level::Debug, "begin"), (Level::Info, "half"), (Level::Error, "end")] {
        context.call.log(level, Some("noisy".into()), raw(&json!({ "text": text })));
    }
    context.call.progress(1.0, Some(2.0), Some("half".into()));
    context.call.progress(1.0, Some(2.0), Some("still half".into()));
    context.call.progress(2.0, Some(2.0), None);
    Ok(Outcome::Done(ToolReply::text("done")))
}

fn ask_name(context: &Context) -> Answer<ToolReply> {
    let Some(answer) = context.answer("name") else {
        return ask(vec![("name", name_form())], None);
    };
    let Ok(Elicited { content: Some(content), .. }) = answer.read() else {
        return Ok(Outcome::Done(ToolReply::text("nobody wants to be greeted")));
    };
    let content: Value = content.read().unwrap_or_default();
    let name = content["name"].as_str().unwrap_or("stranger");
    Ok(Outcome::Done(ToolReply::text(format!("hello {name}"))))
}

/// Asks the user, then the model and for the roots at once, and keeps state meanwhile.
fn ask_all(context: &Context) -> Answer<ToolReply> {
    if context.answer("name").is_none() {
        return ask(vec![("name", name_form())], Some(json!({ "round": 1 })));
    }
    let (Some(sampled), Some(roots)) = (context.answer("model"), context.answer("roots")) else {
        let sample = Question::Sample(Box::new(Sample {
            system_prompt: Some("Be brief.".into()),
            ..Sample::user("What is the capital of France?", 100)
        }));
        let both = vec![("model", sample), ("roots", Question::roots())];
        return ask(both, Some(json!({ "round": 2 })));
    };
    let said = sampled.read::<Sampled>().map(|sampled| sampled.text()).unwrap_or_default();
    let roots = roots.read::<Roots>().map_or(0, |roots| roots.roots.len());
    let kept = context.state.as_ref().map_or("nothing", Raw::text);
    Ok(Outcome::Done(ToolReply::text(format!("{said}, {roots} roots, kept {kept}"))))
}

/// Asks the model and for the roots, with every field that all revisions have.
fn ask_model(context: &Context) -> Answer<ToolReply> {
    if context.answer("model").is_some() {
        return Ok(Outcome::Done(ToolReply::text("thank you")));
    }
    let content = vec![
        SamplingContent::Block(Content::text("Here it is.")),
        SamplingContent::Block(Content::image(b"\x89PNG", "image/png")),
    ];
    let picture = SamplingMessage::new(Role::Assistant, content);
    let mut sample = Sample {
        system_prompt: Some("Be brief.".into()),
        preferences: Some(ModelPreferences {
            hints: vec!["claude".into()],
            cost_priority: Some(0.1),
            speed_priority: Some(0.2),
            intelligence_priority: Some(0.7),
            ..ModelPreferences::default()
        }),
        temperature: Some(0.5),
        stop_sequences: vec!["END".into()],
        metadata: Some(raw(&json!({ "a": 1 }))),
        ..Sample::user("What do you see?", 100)
    };
    sample.messages.push(picture);
    ask(vec![("model", Question::Sample(Box::new(sample))), ("roots", Question::roots())], None)
}

fn ask_page(context: &Context) -> Answer<ToolReply> {
    match context.answer("page") {
        Some(_) => Ok(Outcome::Done(ToolReply::text("you were there"))),
        None => {
            let page = Elicit::url("Please sign in", "https://example.com/sign-in");
            ask(vec![("page", Question::Elicit(page))], None)
        }
    }
}

fn ask_tools(context: &Context) -> Answer<ToolReply> {
    match context.answer("model") {
        Some(_) => Ok(Outcome::Done(ToolReply::text("thank you"))),
        None => {
            let sample =
                Sample { tools: StandIn::tools()[..1].to_vec(), ..Sample::user("1 + 1?", 10) };
            ask(vec![("model", Question::Sample(Box::new(sample)))], None)
        }
    }
}

fn ask<T>(questions: Vec<(&str, Question)>, state: Option<Value>) -> Answer<T> {
    let questions = questions.into_iter().map(|(key, question)| (key.to_owned(), question));
    let state = state.as_ref().map(raw);
    let questions = questions.collect();
    Ok(Outcome::NeedInput(Ask { questions, state, ..Ask::default() }))
}

fn name_form() -> Question {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "minLength": 1, "default": "Ada" },
            "size": { "type": "string", "oneOf": [{ "const": "s", "title": "Small" }] },
            "sure": { "type": "boolean", "default": true },
            "age": { "type": "integer", "minimum": 0 },
        },
        "required": ["name"],
    });
    Question::Elicit(Elicit::form("What is your name?", raw(&schema)))
}

/// Each kind of content, each with what it may carry.
fn everything() -> Vec<Content> {
    let annotations = Annotations {
        audience: vec![Role::User],
        priority: Some(1.0),
        last_modified: Some("2025-01-12T15:00:58Z".into()),
        ..Annotations::default()
    };
    let link = Resource {
        uri: "memo:///a".into(),
        name: "a".into(),
        title: Some("Memo A".into()),
        ..Resource::default()
    };
    let kinds = [
        Content::text("text"),
        Content::image(b"\x89PNG", "image/png"),
        Content::audio(b"RIFF", "audio/wav"),
        Content::link(link),
        Content::resource(ResourceContents::text("memo:///a", "text/plain", "hello")),
        Content::resource(ResourceContents::blob("memo:///b", "application/pdf", b"%PDF")),
    ];
    let meta = raw(&json!({ "com.example/n": 1 }));
    let dress = |content: Content| Content { meta: Some(meta.clone()), ..content };
    kinds.into_iter().map(|content| dress(content.annotated(annotations.clone()))).collect()
}

fn icon() -> Icon {
    Icon {
        src: "https://example.com/icon.png".into(),
        mime_type: Some("image/png".into()),
        sizes: vec!["48x48".into()],
        theme: Some("light".into()),
        ..Icon::default()
    }
}

fn raw(value: &Value) -> Raw {
    Raw::of(value).unwrap_or_else(|_| Raw::empty_object())
}
