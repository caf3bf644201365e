//! Our own values: written in a revision and read again, they are the same without the members that
//! the revision lacks. `lower_*` removes those, independently of the crate.

use proptest::prelude::*;
use sabir_wire::types::*;
use sabir_wire::{Extra, Id, Method, Raw, ReadJson, Revision, WriteJson, raise, render};

use crate::values;

const AUDIO: Revision = Revision::V2025_03_26;
const STRUCTURED: Revision = Revision::V2025_06_18;
const ICONS: Revision = Revision::V2025_11_25;
const NEWEST: Revision = Revision::V2026_07_28;

fn since<T: Default>(first: Revision, revision: Revision, value: T) -> T {
    if revision >= first { value } else { T::default() }
}

fn lower_annotations(annotations: Annotations, to: Revision) -> Annotations {
    let last_modified = since(STRUCTURED, to, annotations.last_modified);
    Annotations { last_modified, ..annotations }
}

fn lower_resource(resource: Resource, to: Revision) -> Resource {
    Resource {
        title: since(STRUCTURED, to, resource.title),
        annotations: resource.annotations.map(|annotations| lower_annotations(annotations, to)),
        icons: since(ICONS, to, resource.icons),
        meta: since(STRUCTURED, to, resource.meta),
        ..resource
    }
}

fn lower_contents(contents: ResourceContents, to: Revision) -> ResourceContents {
    ResourceContents { meta: since(STRUCTURED, to, contents.meta), ..contents }
}

fn lower_content(content: Content, to: Revision) -> Content {
    let annotations = content.annotations.map(|annotations| lower_annotations(annotations, to));
    let meta = since(STRUCTURED, to, content.meta);
    let kind = match content.kind {
        ContentKind::Audio { data, mime_type } if to < AUDIO => {
            let body = ResourceBody::Blob(data);
            let contents = ResourceContents::new("embedded:audio", mime_type, body);
            return Content { annotations, meta, ..Content::resource(contents) };
        }
        ContentKind::Link(resource) if to < STRUCTURED => {
            let name = resource.title.unwrap_or(resource.name);
            let about = resource.description.map_or(String::new(), |text| format!(" ({text})"));
            return Content::text(format!("{name}: {}{about}", resource.uri));
        }
        ContentKind::Link(resource) => ContentKind::Link(Box::new(lower_resource(*resource, to))),
        ContentKind::Resource(contents) => ContentKind::Resource(lower_contents(contents, to)),
        same => same,
    };
    Content { kind, annotations, meta, ..content }
}

fn lower_tool(tool: Tool, to: Revision) -> Tool {
    let is_known = |schema: &Raw| to >= NEWEST || schema.text() == r#"{"type":"object"}"#;
    Tool {
        title: since(STRUCTURED, to, tool.title),
        output_schema: since(STRUCTURED, to, tool.output_schema.filter(is_known)),
        annotations: since(AUDIO, to, tool.annotations),
        icons: since(ICONS, to, tool.icons),
        meta: since(STRUCTURED, to, tool.meta),
        ..tool
    }
}

fn lower_tool_reply(reply: ToolReply, to: Revision) -> ToolReply {
    let is_known = |value: &Raw| to >= NEWEST || value.is_object();
    ToolReply {
        content: reply.content.into_iter().map(|content| lower_content(content, to)).collect(),
        structured: since(STRUCTURED, to, reply.structured.filter(is_known)),
        ..reply
    }
}

fn lower_prompt(prompt: Prompt, to: Revision) -> Prompt {
    let argument = |argument: PromptArgument| PromptArgument {
        title: since(STRUCTURED, to, argument.title),
        ..argument
    };
    Prompt {
        title: since(STRUCTURED, to, prompt.title),
        arguments: prompt.arguments.into_iter().map(argument).collect(),
        icons: since(ICONS, to, prompt.icons),
        meta: since(STRUCTURED, to, prompt.meta),
        ..prompt
    }
}

fn lower_prompt_reply(reply: PromptReply, to: Revision) -> PromptReply {
    let message = |message: PromptMessage| PromptMessage {
        content: lower_content(message.content, to),
        ..message
    };
    PromptReply { messages: reply.messages.into_iter().map(message).collect(), ..reply }
}

fn lower_resource_reply(reply: ResourceReply, to: Revision) -> ResourceReply {
    ResourceReply {
        contents: reply.contents.into_iter().map(|contents| lower_contents(contents, to)).collect(),
        cache: since(NEWEST, to, reply.cache),
        ..reply
    }
}

fn lower_implementation(implementation: Implementation, to: Revision) -> Implementation {
    Implementation {
        title: since(STRUCTURED, to, implementation.title),
        website_url: since(ICONS, to, implementation.website_url),
        icons: since(ICONS, to, implementation.icons),
        ..implementation
    }
}

fn lower_client(has: ClientCapabilities, to: Revision) -> ClientCapabilities {
    ClientCapabilities {
        sampling_tools: since(ICONS, to, has.sampling_tools),
        elicitation_form: since(STRUCTURED, to, has.elicitation_form),
        elicitation_url: since(ICONS, to, has.elicitation_url),
        ..has
    }
}

fn lower_server(has: ServerCapabilities, to: Revision) -> ServerCapabilities {
    ServerCapabilities { completions: since(AUDIO, to, has.completions), ..has }
}

fn lower_sample(sample: Sample, to: Revision) -> Sample {
    let block = |block| match block {
        SamplingContent::Block(content) => SamplingContent::Block(lower_content(content, to)),
        SamplingContent::ToolResult { tool_use_id, content, is_error, extra } => {
            let content = content.into_iter().map(|content| lower_content(content, to)).collect();
            SamplingContent::ToolResult { tool_use_id, content, is_error, extra }
        }
        same => same,
    };
    let messages = sample.messages.into_iter().map(|SamplingMessage { role, content, extra }| {
        SamplingMessage { role, content: content.into_iter().map(block).collect(), extra }
    });
    let split = |message: SamplingMessage| -> Vec<SamplingMessage> {
        let SamplingMessage { role, content, extra } = message;
        if to >= ICONS {
            return vec![SamplingMessage { role, content, extra }];
        }
        let alone = |block| SamplingMessage { role, content: vec![block], extra: extra.clone() };
        content.into_iter().map(alone).collect()
    };
    let tools = sample.tools.into_iter().map(|tool| lower_tool(tool, to)).collect();
    Sample {
        messages: messages.flat_map(split).collect(),
        tools: since(ICONS, to, tools),
        tool_choice: since(ICONS, to, sample.tool_choice),
        ..sample
    }
}

/// Writes the value and reads it, twice.
fn check<T>(value: T, lower: impl Fn(T, Revision) -> T)
where
    T: ReadJson + WriteJson + Clone + PartialEq + std::fmt::Debug,
{
    for revision in Revision::ALL {
        let written = value.to_raw(revision);
        let read = T::read_json(&written).unwrap_or_else(|error| panic!("{written:?}: {error}"));
        assert_eq!(read, lower(value.clone(), revision), "{revision}: {written:?}");
        assert_eq!(read.to_raw(revision), written, "{revision}");
    }
}

/// Sends the result in each revision, and raises the text that another server would get.
fn check_result(
    method: &Method,
    result: &ServerResult,
    lower: fn(ServerResult, Revision) -> ServerResult,
) {
    let server = values::raw(r#"{"name":"s","version":"1"}"#);
    for revision in Revision::ALL {
        let frame = render::response(&Id::from(1), result, revision, &server);
        let json = Raw::parse(frame).unwrap().member("result").unwrap();
        let raised = raise::result(method, revision, &json).unwrap();
        let read = ServerResult::read(method, &raised).unwrap();
        assert_eq!(without_server(read), lower(result.clone(), revision), "{revision}: {raised:?}");
    }
}

/// The result without the name of the server that answered.
fn without_server(result: ServerResult) -> ServerResult {
    let strip = |meta: Option<Raw>| {
        let members = meta.iter().flat_map(Raw::members);
        let own: Vec<_> = members.filter(|(name, _)| !name.ends_with("/serverInfo")).collect();
        let own = own.iter().map(|(name, value)| format!("{name:?}:{}", value.text()));
        let own = own.collect::<Vec<_>>().join(",");
        (!own.is_empty()).then(|| values::raw(&format!("{{{own}}}")))
    };
    match result {
        ServerResult::Tool(reply) => ToolReply { meta: strip(reply.meta), ..reply }.into(),
        ServerResult::Resource(reply) => ResourceReply { meta: strip(reply.meta), ..reply }.into(),
        other => other,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn content_reads_back(value in values::content()) {
        check(value, lower_content);
    }

    #[test]
    fn tools_read_back(value in values::tool()) {
        check(value, lower_tool);
    }

    #[test]
    fn replies_read_back(
        tool in values::tool_reply(),
        prompt in values::prompt_reply(),
        resource in values::resource_reply(),
        completion in values::completion(),
    ) {
        check(tool, lower_tool_reply);
        check(prompt, lower_prompt_reply);
        check(resource, lower_resource_reply);
        check(completion, |value, _| value);
    }

    #[test]
    fn items_read_back(prompt in values::prompt(), resource in values::resource(), server in values::implementation()) {
        check(prompt, lower_prompt);
        check(resource, lower_resource);
        check(server, lower_implementation);
    }

    #[test]
    fn capabilities_read_back(
        client in values::client_capabilities(),
        server in values::server_capabilities(),
    ) {
        check(client, lower_client);
        check(server, lower_server);
    }

    #[test]
    fn questions_read_back(questions in values::questions(), sample in values::sample()) {
        let written = questions.to_raw(NEWEST);
        prop_assert_eq!(ServerResult::read(&Method::CallTool, &written), Ok(ServerResult::InputRequired(questions.clone())));
        check(sample, lower_sample);
        for (_, question) in questions.questions {
            let Ok(params) = render::question(&question, ICONS, || "v".into()) else { continue };
            let read = raise::request(&Method::named(question.method()), params.as_ref()).unwrap();
            let raise::ServerRequest::Question(read) = read else { panic!("{read:?}") };
            match (read, question) {
                (Question::Elicit(Elicit::Url { id, message, url, extra }), question) => {
                    prop_assert_eq!(id.as_deref(), Some("v"));
                    let read = Question::Elicit(Elicit::Url { id: None, message, url, extra });
                    prop_assert_eq!(read, question);
                }
                (Question::Sample(read), Question::Sample(asked)) => {
                    prop_assert_eq!(*read, lower_sample(*asked, ICONS));
                }
                (read, question) => prop_assert_eq!(read, question),
            }
        }
    }

    #[test]
    fn results_of_older_servers_are_raised(tool in values::tool_reply(), resource in values::resource_reply()) {
        let tool = ToolReply { meta: tool.meta.filter(|meta| meta.text() != "{}"), ..tool };
        let resource = ResourceReply { meta: resource.meta.filter(|meta| meta.text() != "{}"), ..resource };
        check_result(&Method::CallTool, &tool.into(), |result, to| match result {
            ServerResult::Tool(reply) => lower_tool_reply(reply, to).into(),
            other => other,
        });
        check_result(&Method::ReadResource, &resource.into(), |result, to| match result {
            ServerResult::Resource(reply) => lower_resource_reply(reply, to).into(),
            other => other,
        });
    }

    #[test]
    fn the_result_of_a_handshake_is_raised_to_a_discovery(
        capabilities in values::server_capabilities(),
        server in values::implementation(),
        instructions in values::maybe_text(),
    ) {
        let welcome = InitializeResult { capabilities, server, instructions, ..InitializeResult::default() };
        for revision in &Revision::ALL[..4] {
            let welcome = InitializeResult { revision: *revision, ..welcome.clone() };
            let raised = raise::result(&Method::Initialize, *revision, &welcome.to_raw(*revision)).unwrap();
            let found = DiscoverResult::read_json(&raised).unwrap();
            prop_assert_eq!(found.revisions, [*revision]);
            prop_assert_eq!(found.capabilities, lower_server(welcome.capabilities, *revision));
            prop_assert_eq!(found.instructions, welcome.instructions);
            let server = found.meta.unwrap().member("io.modelcontextprotocol/serverInfo").unwrap();
            let server = Implementation::read_json(&server).unwrap();
            prop_assert_eq!(server, lower_implementation(welcome.server, *revision));
        }
    }

    #[test]
    fn pages_read_back(items in prop::collection::vec(values::tool(), 0..3), cache in values::cache()) {
        let page = ListPage::new(&items, Some("next".into()), cache);
        check(page, |page, to| ListPage {
            items: page.items.iter().map(|tool| lower_tool(tool.clone(), to)).collect(),
            cache: since(NEWEST, to, page.cache),
            ..page
        });
    }
}

#[test]
fn answers_and_notifications_read_back() {
    let same = |value, _: Revision| value;
    check(
        Elicited {
            action: Action::Accept,
            content: Some(values::raw(r#"{"a":1.0}"#)),
            extra: Extra::NONE,
        },
        same,
    );
    let root = Root { uri: "file:///a".into(), name: Some("a".into()), extra: Extra::NONE };
    check(Roots { roots: vec![root], extra: Extra::NONE }, |value, _| value);
    let block = |text: &str| Content::text(text).to_raw(NEWEST);
    let sampled = |content: Raw| Sampled {
        role: Role::Assistant,
        content,
        model: "m".into(),
        stop_reason: None,
        extra: Extra::NONE,
    };
    check(sampled(block("a")), |value, _| value);
    let both = values::raw(&format!("[{},{}]", block("a").text(), block("b").text()));
    check(sampled(both.clone()), |value, to| {
        let content = if to >= ICONS { both.clone() } else { block("ab") };
        Sampled { content, ..value }
    });
    check(
        Progress {
            meta: None,
            token: "t".into(),
            progress: 0.5,
            total: Some(7.0),
            message: Some("m".into()),
            extra: Extra::NONE,
        },
        |value, to| Progress { message: since(AUDIO, to, value.message), ..value },
    );
}
