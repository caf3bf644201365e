//! The types and requests of the specification, and their members.

use sabir_wire::types::*;
use sabir_wire::{Raw, ReadJson, Revision, WriteJson};

use crate::object::Value::{self, List, Object, Text};
use crate::object::{Known, UNKNOWN};

pub(crate) const FIRST: Revision = Revision::V2024_11_05;
const AUDIO: Revision = Revision::V2025_03_26;
pub(crate) const STRUCTURED: Revision = Revision::V2025_06_18;
pub(crate) const ICONS: Revision = Revision::V2025_11_25;
pub(crate) const NEWEST: Revision = Revision::V2026_07_28;

const STRINGS: Value = Text(&[r#""""#, r#""text""#, r#""é\"\n""#]);
const NUMBERS: Value = Text(&["0", "-0", "1.0", "0.50", "1E2", "1e400", "12345678901234567890123"]);
const INTEGERS: Value = Text(&["0", "-0", "1.0", "7", "1e3", "1e400", "12345678901234567890123"]);
const FLAGS: Value = Text(&["true", "false"]);
const SCHEMAS: Value =
    Text(&[r#"{"type":"object"}"#, r#"{ "properties":{"n":{"maximum":1e400}}, "type":"object" }"#]);
const METAS: Value = Text(&["{}", r#"{"b":1.0,"a":{"n":12345678901234567890123}}"#]);
const TEXTS: Value = Text(&["{}", r#"{"z":"1","a":"2","é":""}"#]);
fn annotations() -> Vec<Known> {
    vec![
        ("audience", FIRST, Text(&["[]", r#"["user","assistant"]"#])),
        ("priority", FIRST, NUMBERS),
        ("lastModified", STRUCTURED, STRINGS),
    ]
}

fn icon() -> Vec<Known> {
    vec![
        ("src", ICONS, STRINGS),
        ("mimeType", ICONS, STRINGS),
        ("sizes", ICONS, Text(&["[]", r#"["48x48","any"]"#])),
        ("theme", ICONS, Text(&[r#""dark""#])),
    ]
}

fn text() -> Vec<Known> {
    vec![
        ("type", FIRST, Text(&[r#""text""#])),
        ("text", FIRST, STRINGS),
        ("annotations", FIRST, Object(annotations)),
        ("_meta", STRUCTURED, METAS),
    ]
}

fn image() -> Vec<Known> {
    vec![
        ("type", FIRST, Text(&[r#""image""#])),
        ("data", FIRST, STRINGS),
        ("mimeType", FIRST, STRINGS),
        ("annotations", FIRST, Object(annotations)),
        ("_meta", STRUCTURED, METAS),
    ]
}

fn link() -> Vec<Known> {
    let mut known = resource();
    known.push(("type", STRUCTURED, Text(&[r#""resource_link""#])));
    known
}

fn embedded() -> Vec<Known> {
    vec![
        ("type", FIRST, Text(&[r#""resource""#])),
        ("resource", FIRST, Object(contents)),
        ("annotations", FIRST, Object(annotations)),
        ("_meta", STRUCTURED, METAS),
    ]
}

fn other() -> Vec<Known> {
    vec![("type", FIRST, Text(&[r#""hologram""#, r#""text2""#])), ("text", FIRST, NUMBERS)]
}

fn contents() -> Vec<Known> {
    vec![
        ("uri", FIRST, STRINGS),
        ("mimeType", FIRST, STRINGS),
        ("blob", FIRST, STRINGS),
        ("_meta", STRUCTURED, METAS),
    ]
}

fn resource() -> Vec<Known> {
    vec![
        ("uri", FIRST, STRINGS),
        ("name", FIRST, STRINGS),
        ("title", STRUCTURED, STRINGS),
        ("description", FIRST, STRINGS),
        ("mimeType", FIRST, STRINGS),
        ("annotations", FIRST, Object(annotations)),
        ("size", FIRST, INTEGERS),
        ("icons", ICONS, List(icon)),
        ("_meta", STRUCTURED, METAS),
    ]
}

fn template() -> Vec<Known> {
    vec![
        ("uriTemplate", FIRST, STRINGS),
        ("name", FIRST, STRINGS),
        ("annotations", FIRST, Object(annotations)),
        ("icons", ICONS, List(icon)),
    ]
}

fn tool() -> Vec<Known> {
    vec![
        ("name", FIRST, STRINGS),
        ("title", STRUCTURED, STRINGS),
        ("description", FIRST, STRINGS),
        ("inputSchema", FIRST, SCHEMAS),
        ("outputSchema", STRUCTURED, SCHEMAS),
        ("annotations", AUDIO, Object(tool_annotations)),
        ("icons", ICONS, List(icon)),
        ("_meta", STRUCTURED, METAS),
    ]
}

fn tool_annotations() -> Vec<Known> {
    vec![
        ("title", AUDIO, STRINGS),
        ("readOnlyHint", AUDIO, FLAGS),
        ("destructiveHint", AUDIO, FLAGS),
        ("openWorldHint", AUDIO, FLAGS),
    ]
}

fn prompt() -> Vec<Known> {
    vec![
        ("name", FIRST, STRINGS),
        ("title", STRUCTURED, STRINGS),
        ("arguments", FIRST, List(argument)),
        ("icons", ICONS, List(icon)),
    ]
}

fn argument() -> Vec<Known> {
    vec![
        ("name", FIRST, STRINGS),
        ("title", STRUCTURED, STRINGS),
        ("description", FIRST, STRINGS),
        ("required", FIRST, FLAGS),
    ]
}

fn prompt_message() -> Vec<Known> {
    vec![("role", FIRST, Text(&[r#""user""#])), ("content", FIRST, Object(image))]
}

const COMPLETE: Known = ("resultType", NEWEST, Text(&[r#""complete""#]));
const TTL: Known = ("ttlMs", NEWEST, INTEGERS);
const SCOPE: Known = ("cacheScope", NEWEST, Text(&[r#""private""#, r#""public""#]));

fn tool_reply() -> Vec<Known> {
    vec![
        COMPLETE,
        ("content", FIRST, List(text)),
        ("structuredContent", STRUCTURED, METAS),
        ("isError", FIRST, FLAGS),
        ("_meta", FIRST, METAS),
    ]
}

fn prompt_reply() -> Vec<Known> {
    vec![
        COMPLETE,
        ("description", FIRST, STRINGS),
        ("messages", FIRST, List(prompt_message)),
        ("_meta", FIRST, METAS),
    ]
}

fn resource_reply() -> Vec<Known> {
    vec![COMPLETE, TTL, SCOPE, ("contents", FIRST, List(contents)), ("_meta", FIRST, METAS)]
}

fn completion() -> Vec<Known> {
    let values =
        Text(&[r#"{"values":["a"],"total":1.0,"x":1e400}"#, r#"{"hasMore":true,"values":[]}"#]);
    vec![COMPLETE, ("completion", FIRST, values), ("_meta", FIRST, METAS)]
}

fn tools_page() -> Vec<Known> {
    vec![COMPLETE, TTL, SCOPE, ("tools", FIRST, List(tool)), ("nextCursor", FIRST, STRINGS)]
}

fn server_capabilities() -> Vec<Known> {
    vec![
        ("logging", FIRST, METAS),
        ("completions", AUDIO, METAS),
        ("tools", FIRST, Text(&[r#"{"x":1.0}"#, r#"{"listChanged":true}"#])),
        ("prompts", FIRST, Text(&["{}", r#"{"listChanged":false}"#])),
        ("resources", FIRST, Text(&[r#"{"subscribe":true,"y":-0,"listChanged":true}"#])),
        ("extensions", NEWEST, METAS),
    ]
}

fn client_capabilities() -> Vec<Known> {
    vec![
        ("roots", FIRST, Text(&["{}", r#"{"listChanged":true}"#])),
        ("sampling", ICONS, Text(&["{}", r#"{"context":{},"tools":{"n":1.0}}"#])),
        ("elicitation", ICONS, Text(&["{}", r#"{"form":{}}"#, r#"{"url":{"z":1e400},"form":{}}"#])),
        ("experimental", FIRST, METAS),
    ]
}

fn implementation() -> Vec<Known> {
    vec![
        ("name", FIRST, STRINGS),
        ("version", FIRST, STRINGS),
        ("websiteUrl", ICONS, STRINGS),
        ("icons", ICONS, List(icon)),
    ]
}

fn initialize() -> Vec<Known> {
    vec![
        COMPLETE,
        ("protocolVersion", FIRST, Text(&[r#""2024-11-05""#])),
        ("capabilities", FIRST, Object(server_capabilities)),
        ("serverInfo", FIRST, Object(implementation)),
        ("instructions", FIRST, STRINGS),
    ]
}

fn discover() -> Vec<Known> {
    vec![
        COMPLETE,
        TTL,
        SCOPE,
        ("supportedVersions", NEWEST, Text(&[r#"["2026-07-28","2031-01-01"]"#])),
        ("capabilities", NEWEST, Object(server_capabilities)),
    ]
}

fn form() -> Vec<Known> {
    vec![
        ("mode", ICONS, Text(&[r#""form""#])),
        ("message", STRUCTURED, STRINGS),
        ("requestedSchema", STRUCTURED, SCHEMAS),
    ]
}

fn sample() -> Vec<Known> {
    vec![
        ("messages", ICONS, List(sampling_message)),
        ("maxTokens", ICONS, INTEGERS),
        ("temperature", ICONS, NUMBERS),
        ("modelPreferences", ICONS, Object(preferences)),
        ("toolChoice", ICONS, Text(&["{}", r#"{"mode":"required","x":1.0}"#])),
        ("tools", ICONS, List(tool)),
        ("includeContext", ICONS, Text(&[r#""none""#])),
    ]
}

fn preferences() -> Vec<Known> {
    vec![
        ("hints", FIRST, Text(&[r#"[{"name":"c","w":1.0},{}]"#])),
        ("costPriority", FIRST, NUMBERS),
    ]
}

fn sampling_message() -> Vec<Known> {
    vec![
        ("role", ICONS, Text(&[r#""assistant""#])),
        ("content", ICONS, Object(tool_use)),
        ("_meta", ICONS, METAS),
    ]
}

fn message_of_blocks() -> Vec<Known> {
    vec![("role", ICONS, Text(&[r#""assistant""#])), ("content", ICONS, List(tool_use))]
}

fn tool_use() -> Vec<Known> {
    vec![
        ("type", ICONS, Text(&[r#""tool_use""#])),
        ("id", ICONS, STRINGS),
        ("name", ICONS, STRINGS),
        ("input", ICONS, METAS),
    ]
}

fn tool_result() -> Vec<Known> {
    vec![
        ("type", ICONS, Text(&[r#""tool_result""#])),
        ("toolUseId", ICONS, STRINGS),
        ("content", ICONS, List(text)),
        ("structuredContent", ICONS, METAS),
        ("isError", ICONS, FLAGS),
    ]
}

fn sampled() -> Vec<Known> {
    vec![
        ("role", FIRST, Text(&[r#""assistant""#])),
        ("content", FIRST, Object(text)),
        ("model", FIRST, STRINGS),
        ("stopReason", FIRST, STRINGS),
    ]
}

fn elicited() -> Vec<Known> {
    vec![("action", FIRST, Text(&[r#""accept""#])), ("content", FIRST, METAS)]
}

fn roots() -> Vec<Known> {
    vec![("roots", FIRST, List(root))]
}

fn root() -> Vec<Known> {
    vec![("uri", FIRST, STRINGS), ("name", FIRST, STRINGS), ("_meta", FIRST, METAS)]
}

fn progress() -> Vec<Known> {
    vec![
        ("progressToken", FIRST, Text(&["-0", r#""t""#])),
        ("progress", FIRST, NUMBERS),
        ("total", FIRST, NUMBERS),
        ("message", AUDIO, STRINGS),
    ]
}

fn log() -> Vec<Known> {
    vec![("level", FIRST, Text(&[r#""info""#])), ("data", FIRST, Text(UNKNOWN))]
}

fn filter() -> Vec<Known> {
    vec![
        ("toolsListChanged", FIRST, FLAGS),
        ("resourceSubscriptions", FIRST, Text(&[r#"["a:b"]"#])),
    ]
}

fn prompt_reference() -> Vec<Known> {
    vec![("type", FIRST, Text(&[r#""ref/prompt""#])), ("name", FIRST, STRINGS)]
}

fn template_reference() -> Vec<Known> {
    vec![("type", FIRST, Text(&[r#""ref/resource""#])), ("uri", FIRST, STRINGS)]
}

fn completion_argument() -> Vec<Known> {
    vec![("name", FIRST, STRINGS), ("value", FIRST, STRINGS)]
}

fn completion_context() -> Vec<Known> {
    vec![("arguments", FIRST, TEXTS)]
}

fn call_tool() -> Vec<Known> {
    vec![("name", FIRST, STRINGS), ("arguments", FIRST, METAS), ("uri", FIRST, STRINGS)]
}

fn get_prompt() -> Vec<Known> {
    vec![("name", FIRST, STRINGS), ("arguments", FIRST, TEXTS), ("cursor", FIRST, NUMBERS)]
}

fn read_resource() -> Vec<Known> {
    vec![("uri", FIRST, STRINGS), ("name", FIRST, NUMBERS)]
}

fn read_folder() -> Vec<Known> {
    vec![("uri", FIRST, STRINGS), ("cursor", FIRST, STRINGS), ("level", FIRST, NUMBERS)]
}

fn complete_prompt() -> Vec<Known> {
    vec![
        ("ref", FIRST, Object(prompt_reference)),
        ("argument", FIRST, Object(completion_argument)),
        ("context", STRUCTURED, Object(completion_context)),
    ]
}

fn complete_template() -> Vec<Known> {
    vec![
        ("ref", FIRST, Object(template_reference)),
        ("argument", FIRST, Object(completion_argument)),
        ("name", FIRST, NUMBERS),
    ]
}

fn questions() -> Vec<Known> {
    vec![
        ("resultType", NEWEST, Text(&[r#""input_required""#])),
        ("inputRequests", NEWEST, Text(REQUIRED)),
        ("requestState", NEWEST, STRINGS),
        ("_meta", NEWEST, METAS),
    ]
}

const REQUIRED: &[&str] = &[
    r#"{"b":{"x":1.0,"params":{"y":[],"x":1e2},"method":"roots/list"},"a":{"method":"roots/list"}}"#,
    r#"{"q":{"method":"vendor/ask","params":{"z":1,"a":12345678901234567890123},"é":null}}"#,
    r#"{"q":{"params":{"requestedSchema":{},"x":1,"message":"\u0041"},"method":"elicitation/create"}}"#,
    r#"{"q":{"method":"sampling/createMessage","params":{"maxTokens":1.0,"messages":[]},"id":7}}"#,
];

/// The requests that are relayed, and the members of their params, some of which only other methods
/// know.
pub(crate) const REQUESTS: &[(&str, Members)] = &[
    ("tools/call", call_tool),
    ("prompts/get", get_prompt),
    ("resources/read", read_resource),
    ("resources/directory/read", read_folder),
    ("completion/complete", complete_prompt),
    ("completion/complete", complete_template),
];

/// Reads the text as one of the types and writes it again.
pub(crate) type Again = fn(&Raw, Revision) -> Raw;

pub(crate) fn again<T: ReadJson + WriteJson>(json: &Raw, revision: Revision) -> Raw {
    T::read_json(json).unwrap_or_else(|error| panic!("{json:?}: {error}")).to_raw(revision)
}

/// Makes the members of a type.
pub(crate) type Members = fn() -> Vec<Known>;

/// Each type, the first revision that has it, and its members.
pub(crate) const TYPES: &[(Again, Revision, Members)] = &[
    (again::<Tool>, FIRST, tool),
    (again::<Content>, FIRST, text),
    (again::<Content>, FIRST, image),
    (again::<Content>, STRUCTURED, link),
    (again::<Content>, FIRST, embedded),
    (again::<Content>, FIRST, other),
    (again::<ToolReply>, FIRST, tool_reply),
    (again::<Prompt>, FIRST, prompt),
    (again::<PromptReply>, FIRST, prompt_reply),
    (again::<Resource>, FIRST, resource),
    (again::<ResourceTemplate>, FIRST, template),
    (again::<ResourceReply>, FIRST, resource_reply),
    (again::<Completion>, FIRST, completion),
    (again::<Questions>, NEWEST, questions),
    (again::<Reference>, FIRST, prompt_reference),
    (again::<Reference>, FIRST, template_reference),
    (again::<CompletionArgument>, FIRST, completion_argument),
    (again::<CompletionContext>, FIRST, completion_context),
    (again::<ListPage<'_, Tool>>, FIRST, tools_page),
    (again::<ServerCapabilities>, FIRST, server_capabilities),
    (again::<ClientCapabilities>, FIRST, client_capabilities),
    (again::<InitializeResult>, FIRST, initialize),
    (again::<DiscoverResult>, NEWEST, discover),
    (again::<Elicit>, STRUCTURED, form),
    (again::<Sample>, ICONS, sample),
    (again::<SamplingMessage>, ICONS, message_of_blocks),
    (again::<SamplingContent>, ICONS, tool_result),
    (again::<Sampled>, FIRST, sampled),
    (again::<Elicited>, FIRST, elicited),
    (again::<Roots>, FIRST, roots),
    (again::<Progress>, FIRST, progress),
    (again::<LogMessage>, FIRST, log),
    (again::<SubscriptionFilter>, FIRST, filter),
];
