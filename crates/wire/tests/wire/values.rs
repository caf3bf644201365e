//! Strategies for values that we build ourselves.

use proptest::prelude::*;
use sabir_wire::types::*;
use sabir_wire::{Extra, Raw};

pub(crate) fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z ]{0,6}", "\\PC{0,4}", Just("\u{0}\n\"\\\u{7f}\u{2028}".to_owned())]
}

pub(crate) fn maybe_text() -> impl Strategy<Value = Option<String>> {
    prop::option::of(text())
}

pub(crate) fn raw(json: &str) -> Raw {
    Raw::parse(json.to_owned()).unwrap()
}

fn object() -> impl Strategy<Value = Raw> {
    prop::sample::select(vec!["{}", r#"{"z":1.0,"a":[1e400,null]}"#, r#"{"type":"object"}"#])
        .prop_map(raw)
}

fn extra() -> impl Strategy<Value = Extra> {
    prop::collection::vec(("x-[a-c]", object()), 0..3).prop_map(|members| {
        let mut extra = Extra::default();
        members.into_iter().for_each(|(name, value)| extra.set(&name, value));
        extra
    })
}

fn role() -> impl Strategy<Value = Role> {
    prop_oneof![Just(Role::User), Just(Role::Assistant)]
}

pub(crate) fn annotations() -> impl Strategy<Value = Annotations> {
    let audience = prop::collection::vec(role(), 0..3);
    let priority = prop::option::of(prop_oneof![Just(0.0), Just(1.0), 0.0..1.0]);
    (audience, priority, maybe_text(), extra()).prop_map(
        |(audience, priority, last_modified, extra)| Annotations {
            audience,
            priority,
            last_modified,
            extra,
        },
    )
}

fn icons() -> impl Strategy<Value = Vec<Icon>> {
    let icon = (text(), maybe_text(), prop::collection::vec(text(), 0..2), maybe_text(), extra());
    let icon = icon.prop_map(|(src, mime_type, sizes, theme, extra)| Icon {
        src,
        mime_type,
        sizes,
        theme,
        extra,
    });
    prop::collection::vec(icon, 0..2)
}

pub(crate) fn resource() -> impl Strategy<Value = Resource> {
    let names = (text(), text(), maybe_text(), maybe_text(), maybe_text());
    let rest = (prop::option::of(annotations()), any::<Option<u64>>(), icons());
    (names, rest, prop::option::of(object()), extra()).prop_map(
        |((uri, name, title, description, mime_type), (annotations, size, icons), meta, extra)| {
            Resource {
                uri,
                name,
                title,
                description,
                mime_type,
                annotations,
                size,
                icons,
                meta,
                extra,
            }
        },
    )
}

pub(crate) fn contents() -> impl Strategy<Value = ResourceContents> {
    let body =
        prop_oneof![text().prop_map(ResourceBody::Text), text().prop_map(ResourceBody::Blob),];
    (text(), maybe_text(), body, prop::option::of(object()), extra()).prop_map(
        |(uri, mime_type, body, meta, extra)| ResourceContents {
            uri,
            mime_type,
            body,
            meta,
            extra,
        },
    )
}

pub(crate) fn content() -> impl Strategy<Value = Content> {
    let kind = prop_oneof![
        3 => text().prop_map(ContentKind::Text),
        1 => (text(), text())
            .prop_map(|(data, mime_type)| ContentKind::Image { data, mime_type }),
        1 => (text(), text())
            .prop_map(|(data, mime_type)| ContentKind::Audio { data, mime_type }),
        1 => contents().prop_map(ContentKind::Resource),
    ];
    let dressed = (kind, prop::option::of(annotations()), prop::option::of(object()), extra());
    let dressed = dressed.prop_map(|(kind, annotations, meta, extra)| Content {
        kind,
        annotations,
        meta,
        extra,
    });
    prop_oneof![
        6 => dressed,
        1 => resource().prop_map(Content::link),
        1 => Just(ContentKind::Other(raw(r#"{"n":1e400,"type":"hologram"}"#)).into()),
    ]
}

pub(crate) fn tool() -> impl Strategy<Value = Tool> {
    let hints = (maybe_text(), any::<Option<bool>>(), any::<Option<bool>>(), extra());
    let hints = hints.prop_map(|(title, read_only_hint, open_world_hint, extra)| ToolAnnotations {
        title,
        read_only_hint,
        open_world_hint,
        extra,
        ..ToolAnnotations::default()
    });
    let schemas = (object(), prop::option::of(object()));
    let rest = (prop::option::of(hints), icons(), prop::option::of(object()), extra());
    (text(), maybe_text(), maybe_text(), schemas, rest).prop_map(
        |(name, title, description, (input_schema, output_schema), rest)| {
            let (annotations, icons, meta, extra) = rest;
            Tool {
                name,
                title,
                description,
                input_schema,
                output_schema,
                annotations,
                icons,
                execution: None,
                meta,
                extra,
            }
        },
    )
}

/// With content: structured content alone is written as text too.
pub(crate) fn tool_reply() -> impl Strategy<Value = ToolReply> {
    let structured = prop_oneof![object(), Just(raw("[1.0]")), Just(raw("null"))];
    let content = prop::collection::vec(content(), 1..4);
    let rest = (prop::option::of(structured), any::<bool>(), prop::option::of(object()), extra());
    (content, rest).prop_map(|(content, (structured, is_error, meta, extra))| ToolReply {
        content,
        structured,
        is_error,
        meta,
        extra,
    })
}

pub(crate) fn prompt() -> impl Strategy<Value = Prompt> {
    let argument = (text(), maybe_text(), maybe_text(), any::<bool>(), extra());
    let argument = argument.prop_map(|(name, title, description, required, extra)| {
        PromptArgument { name, title, description, required, extra }
    });
    let arguments = prop::collection::vec(argument, 0..3);
    (text(), maybe_text(), maybe_text(), arguments, icons(), prop::option::of(object()), extra())
        .prop_map(|(name, title, description, arguments, icons, meta, extra)| Prompt {
            name,
            title,
            description,
            arguments,
            icons,
            meta,
            extra,
        })
}

pub(crate) fn prompt_reply() -> impl Strategy<Value = PromptReply> {
    let message = (role(), content(), extra());
    let message = message.prop_map(|(role, content, extra)| PromptMessage { role, content, extra });
    let messages = prop::collection::vec(message, 0..3);
    (maybe_text(), messages, prop::option::of(object()), extra()).prop_map(
        |(description, messages, meta, extra)| PromptReply { description, messages, meta, extra },
    )
}

pub(crate) fn resource_reply() -> impl Strategy<Value = ResourceReply> {
    let contents = prop::collection::vec(contents(), 0..3);
    (contents, cache(), prop::option::of(object()), extra())
        .prop_map(|(contents, cache, meta, extra)| ResourceReply { contents, cache, meta, extra })
}

pub(crate) fn cache() -> impl Strategy<Value = CacheHint> {
    let scope = prop_oneof![Just(CacheScope::Private), Just(CacheScope::Public)];
    (any::<u64>(), scope).prop_map(|(ttl_ms, scope)| CacheHint { ttl_ms, scope })
}

pub(crate) fn completion() -> impl Strategy<Value = Completion> {
    let values = prop::collection::vec(text(), 0..5);
    (values, any::<bool>(), extra()).prop_map(|(values, is_part, extra)| Completion {
        total: is_part.then_some(values.len() + 7),
        values,
        extra,
        ..Completion::default()
    })
}

pub(crate) fn sample() -> impl Strategy<Value = Sample> {
    let block = prop_oneof![
        2 => content().prop_map(SamplingContent::Block),
        1 => (text(), text(), object(), extra()).prop_map(|(id, name, input, extra)| {
            SamplingContent::ToolUse { id, name, input, extra }
        }),
        1 => (text(), prop::collection::vec(content(), 0..2), any::<bool>(), extra()).prop_map(
            |(tool_use_id, content, is_error, extra)| {
                SamplingContent::ToolResult { tool_use_id, content, is_error, extra }
            }
        ),
    ];
    let blocks = prop::collection::vec(block, 0..3);
    let message = (role(), blocks, extra());
    let message =
        message.prop_map(|(role, content, extra)| SamplingMessage { role, content, extra });
    let preferences = (prop::collection::vec(text(), 0..2), prop::option::of(0.0..1.0));
    let preferences = preferences.prop_map(|(hints, speed_priority)| ModelPreferences {
        hints,
        speed_priority,
        ..ModelPreferences::default()
    });
    let choice = prop_oneof![Just(ToolChoice::Auto), Just(ToolChoice::None)];
    let options = (prop::option::of(preferences), maybe_text(), prop::option::of(0.0..2.0));
    let tools = (prop::collection::vec(tool(), 0..2), prop::option::of(choice));
    (prop::collection::vec(message, 0..3), any::<u64>(), options, tools, extra()).prop_map(
        |(messages, max_tokens, (preferences, system_prompt, temperature), tools, extra)| Sample {
            messages,
            max_tokens,
            preferences,
            system_prompt,
            temperature,
            stop_sequences: vec!["END".into()],
            metadata: None,
            tools: tools.0,
            tool_choice: tools.1,
            extra,
        },
    )
}

pub(crate) fn questions() -> impl Strategy<Value = Questions> {
    let question = prop_oneof![
        Just(Question::roots()),
        sample().prop_map(|sample| Question::Sample(Box::new(sample))),
        (text(), object(), extra()).prop_map(|(message, schema, extra)| {
            Question::Elicit(Elicit::Form { message, schema, extra })
        }),
        (text(), text(), extra()).prop_map(|(message, url, extra)| {
            Question::Elicit(Elicit::Url { message, url, id: None, extra })
        }),
    ];
    let questions = prop::collection::vec(question, 0..3);
    (questions, maybe_text(), extra()).prop_map(|(questions, state, extra)| Questions {
        questions: questions.into_iter().enumerate().map(|(n, q)| (format!("q{n}"), q)).collect(),
        state,
        extra,
        ..Questions::default()
    })
}

pub(crate) fn server_capabilities() -> impl Strategy<Value = ServerCapabilities> {
    (any::<[bool; 6]>(), extra()).prop_map(|(has, extra)| {
        ServerCapabilities {
            tools: has[0],
            prompts: has[1],
            resources: has[2],
            completions: has[3],
            logging: has[4],
            subscribe: has[2] && has[5],
            extra,
            ..ServerCapabilities::default()
        }
        .with_list_changed(has[5])
    })
}

pub(crate) fn client_capabilities() -> impl Strategy<Value = ClientCapabilities> {
    (any::<[bool; 5]>(), extra()).prop_map(|(has, extra)| ClientCapabilities {
        roots: has[0],
        sampling: has[1],
        sampling_tools: has[1] && has[2],
        elicitation_form: has[3],
        elicitation_url: has[4],
        extra,
    })
}

pub(crate) fn implementation() -> impl Strategy<Value = Implementation> {
    (text(), text(), maybe_text(), maybe_text(), icons(), extra()).prop_map(
        |(name, version, title, website_url, icons, extra)| Implementation {
            name,
            version,
            title,
            website_url,
            icons,
            extra,
            ..Implementation::default()
        },
    )
}
