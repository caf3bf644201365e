//! JSON of clients and servers: it is read into a type and written again at the same revision.
//! Unknown members, the order of all members and the spelling of numbers stay.

use proptest::prelude::*;
use sabir_wire::types::*;
use sabir_wire::{Meta, Method, ParsedRequest, Raw, ReadJson, Revision, WriteJson};

/// A member that a type knows: its name, the first revision that has it, and its value.
type Known = (&'static str, Revision, Value);

/// How to make a value.
#[derive(Clone, Copy)]
enum Value {
    /// One of these texts.
    Text(&'static [&'static str]),
    /// An object.
    Object(fn() -> Vec<Known>),
    /// An array of objects.
    List(fn() -> Vec<Known>),
}

use Value::{List, Object, Text};

const FIRST: Revision = Revision::V2024_11_05;
const AUDIO: Revision = Revision::V2025_03_26;
const STRUCTURED: Revision = Revision::V2025_06_18;
const ICONS: Revision = Revision::V2025_11_25;
const NEWEST: Revision = Revision::V2026_07_28;

const STRINGS: Value = Text(&[r#""""#, r#""text""#, r#""é\"\n""#]);
const NUMBERS: Value = Text(&["0", "-0", "1.0", "0.50", "1E2", "1e400", "12345678901234567890123"]);
const INTEGERS: Value = Text(&["0", "-0", "1.0", "7", "1e3", "1e400", "12345678901234567890123"]);
const FLAGS: Value = Text(&["true", "false"]);
const SCHEMAS: Value =
    Text(&[r#"{"type":"object"}"#, r#"{ "properties":{"n":{"maximum":1e400}}, "type":"object" }"#]);
const METAS: Value = Text(&["{}", r#"{"b":1.0,"a":{"n":12345678901234567890123}}"#]);
const TEXTS: Value = Text(&["{}", r#"{"z":"1","a":"2","é":""}"#]);
const UNKNOWN: &[&str] =
    &["null", "1.0", "-0", "1e400", "12345678901234567890123", r#"{"z":[1.50,{}],"a":"\u00e9"}"#];

/// An object with all `known` members of `revision` in any order, and unknown ones between them.
fn object(known: Vec<Known>, revision: Revision) -> BoxedStrategy<String> {
    let known = known.into_iter().filter(|(_, since, _)| *since <= revision);
    let known: Vec<_> = known
        .map(|(name, _, value)| value.texts(revision).prop_map(move |text| (name.to_owned(), text)))
        .collect();
    let unknown = ("(x-[a-c]{1,2}|é)", prop::sample::select(UNKNOWN));
    let unknown = prop::collection::vec(unknown, 0..3);
    (known, unknown, any::<u64>())
        .prop_map(|(mut members, unknown, seed)| {
            for (name, value) in unknown {
                if members.iter().all(|(known, _)| *known != name) {
                    members.push((name, value.to_owned()));
                }
            }
            shuffle(&mut members, seed);
            let members = members.iter().map(|(name, value)| format!("\"{name}\":{value}"));
            format!("{{{}}}", members.collect::<Vec<_>>().join(","))
        })
        .boxed()
}

fn shuffle<T>(items: &mut [T], mut seed: u64) {
    for at in (1..items.len()).rev() {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        items.swap(at, (seed >> 33) as usize % (at + 1));
    }
}

impl Value {
    fn texts(self, revision: Revision) -> BoxedStrategy<String> {
        match self {
            Text(texts) => prop::sample::select(texts).prop_map(str::to_owned).boxed(),
            Object(known) => object(known(), revision),
            List(known) => prop::collection::vec(object(known(), revision), 0..3)
                .prop_map(|items| format!("[{}]", items.join(",")))
                .boxed(),
        }
    }
}

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
const REQUESTS: &[(&str, Members)] = &[
    ("tools/call", call_tool),
    ("prompts/get", get_prompt),
    ("resources/read", read_resource),
    ("resources/directory/read", read_folder),
    ("completion/complete", complete_prompt),
    ("completion/complete", complete_template),
];

fn any_request() -> impl Strategy<Value = (&'static str, Revision, String)> {
    (prop::sample::select(REQUESTS), prop::sample::select(&Revision::ALL[..])).prop_flat_map(
        |((method, known), revision)| {
            object(known(), revision).prop_map(move |params| (method, revision, params))
        },
    )
}

/// Reads the text as one of the types and writes it again.
type Again = fn(&Raw, Revision) -> Raw;

fn again<T: ReadJson + WriteJson>(json: &Raw, revision: Revision) -> Raw {
    T::read_json(json).unwrap_or_else(|error| panic!("{json:?}: {error}")).to_raw(revision)
}

/// Makes the members of a type.
type Members = fn() -> Vec<Known>;

/// Each type, the first revision that has it, and its members.
const TYPES: &[(Again, Revision, Members)] = &[
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

fn any_type() -> impl Strategy<Value = (usize, Revision, String)> {
    (0..TYPES.len(), prop::sample::select(&Revision::ALL[..])).prop_flat_map(|(nth, revision)| {
        let (_, since, known) = TYPES[nth];
        let revision = revision.max(since);
        object(known(), revision).prop_map(move |text| (nth, revision, text))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn what_is_read_is_written_again_as_it_was((nth, revision, text) in any_type()) {
        let json = Raw::parse(text).unwrap();
        let written = TYPES[nth].0(&json, revision);
        prop_assert_eq!(written.text(), json.text());
    }

    /// The members of the params may change places: they are those of several authors.
    #[test]
    fn a_request_is_written_again_with_all_its_members((method, revision, text) in any_request()) {
        let frame = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{text}}}"#);
        let params = Raw::parse(text).unwrap();
        let careful = ParsedRequest::read(1.into(), Method::named(method), Some(params.clone()));
        let quick = ParsedRequest::decode(&frame.into(), 9).map(|quick| quick.request.unwrap());
        let request = careful.request.unwrap();
        prop_assert_eq!(quick.as_ref().unwrap_or(&request), &request);
        let meta = Meta { raw: Some(Raw::parse(r#"{"a":1}"#).unwrap()), ..Meta::default() };
        let written = request.to_params(&meta, revision).unwrap();
        let (mut written, mut sent) = (written.members(), params.members());
        written.retain(|(name, _)| name != "_meta");
        let order = |(name, _): &(String, Raw)| name.clone();
        written.sort_by_key(order);
        sent.sort_by_key(order);
        prop_assert_eq!(written, sent);
    }

    #[test]
    fn unknown_members_survive_in_every_revision(
        (nth, _, text) in any_type(),
        revision in prop::sample::select(&Revision::ALL[..]),
    ) {
        let json = Raw::parse(text).unwrap();
        let unknown = |json: &Raw| -> Vec<_> {
            let members = json.members().into_iter();
            members.filter(|(name, _)| name.starts_with("x-") || name == "é").collect()
        };
        let written = TYPES[nth].0(&json, revision);
        // In an old revision a link is plain text.
        if json.member("type").is_none() {
            prop_assert_eq!(unknown(&written), unknown(&json));
        }
    }
}

#[test]
fn an_array_of_one_block_is_one_block_in_a_revision_without_arrays() {
    let sample = |content: &str| {
        let message = format!(r#"{{"x":1,"content":{content},"role":"user"}}"#);
        Raw::parse(format!(r#"{{"messages":[{message}],"maxTokens":1}}"#)).unwrap()
    };
    let (one, array) = (r#"{"type":"text","text":"a"}"#, r#"[{"type":"text","text":"a"}]"#);
    for (written, revision) in [(array, NEWEST), (array, ICONS), (one, STRUCTURED), (one, FIRST)] {
        assert_eq!(again::<Sample>(&sample(array), revision), sample(written), "{revision:?}");
    }
}
