use serde_json::{Value, json};

use super::*;
use crate::error::{Code, ErrorObject, Problem};
use crate::json::WriteJson;
use crate::raw::Raw;
use crate::revision::Revision;
use crate::types::*;

fn server() -> Raw {
    Raw::parse(r#"{"name":"s","version":"1"}"#).unwrap()
}

fn said(result: &ServerResult, revision: Revision) -> Value {
    let response: Value =
        serde_json::from_slice(&response(&7.into(), result, revision, &server())).unwrap();
    assert_eq!(response["id"], 7);
    response["result"].clone()
}

fn item(value: &impl WriteJson, revision: Revision) -> Value {
    value.to_raw(revision).read().unwrap()
}

const FIRST: Revision = Revision::V2024_11_05;
const BATCHES: Revision = Revision::V2025_03_26;
const STRUCTURED: Revision = Revision::V2025_06_18;
const ICONS: Revision = Revision::V2025_11_25;
const NEWEST: Revision = Revision::V2026_07_28;

#[test]
fn only_the_newest_marks_results() {
    let reply = ToolReply::text("hi").into();
    let content = json!([{ "type": "text", "text": "hi" }]);
    assert_eq!(said(&reply, ICONS), json!({ "content": content }));
    assert_eq!(
        said(&reply, NEWEST),
        json!({
            "resultType": "complete",
            "content": content,
            "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "s", "version": "1" } },
        })
    );
    assert_eq!(said(&ServerResult::Empty, ICONS), json!({}));
}

#[test]
fn a_results_own_meta_stands_beside_ours() {
    let meta = Some(Raw::parse(r#"{"com.example/n":123456789012345678901}"#).unwrap());
    let reply = ServerResult::Tool(ToolReply { meta, ..ToolReply::text("hi") });
    let text = String::from_utf8(response(&7.into(), &reply, NEWEST, &server()).to_vec()).unwrap();
    assert!(text.contains(r#""com.example/n":123456789012345678901"#), "{text}");
    assert!(text.contains("serverInfo"), "{text}");
    assert_eq!(said(&reply, FIRST)["_meta"].as_object().unwrap().len(), 1);
}

#[test]
fn who_answers_is_said_once_even_of_a_result_that_was_relayed() {
    let meta = r#"{"io.modelcontextprotocol/serverInfo":{"name":"other","version":"2"},"a":1}"#;
    let meta = Some(Raw::parse(meta).unwrap());
    let reply = ServerResult::Tool(ToolReply { meta, ..ToolReply::text("hi") });
    let text = String::from_utf8(response(&7.into(), &reply, NEWEST, &server()).to_vec()).unwrap();
    assert_eq!(text.matches("serverInfo").count(), 1, "{text}");
    assert!(text.contains(r#"{"name":"s","version":"1"}"#), "{text}");
    assert_eq!(said(&reply, ICONS)["_meta"], json!({ "a": 1 }));
}

#[test]
fn structured_content_is_said_as_far_as_the_revision_can() {
    let object = ToolReply::structured(&json!({ "n": 1 })).unwrap().into();
    let text = json!([{ "type": "text", "text": r#"{"n":1}"# }]);
    assert_eq!(said(&object, BATCHES), json!({ "content": text }));
    assert_eq!(
        said(&object, STRUCTURED),
        json!({ "content": text, "structuredContent": { "n": 1 } })
    );
    let list = ToolReply::structured(&[1, 2]).unwrap().into();
    assert_eq!(said(&list, ICONS).get("structuredContent"), None);
    assert_eq!(said(&list, NEWEST)["structuredContent"], json!([1, 2]));
}

#[test]
fn links_become_text_and_sounds_become_resources() {
    let link = Content::link(Resource {
        uri: "file:///a".into(),
        name: "a".into(),
        description: Some("first".into()),
        ..Resource::default()
    });
    assert_eq!(item(&link, BATCHES), json!({ "type": "text", "text": "a: file:///a (first)" }));
    assert_eq!(
        item(&link, STRUCTURED),
        json!({ "type": "resource_link", "uri": "file:///a", "name": "a", "description": "first" })
    );
    let annotated =
        link.clone().annotated(Annotations { priority: Some(1.0), ..Annotations::default() });
    assert_eq!(item(&annotated, STRUCTURED)["annotations"], json!({ "priority": 1.0 }));
    let with_meta = Content { meta: Some(Raw::parse(r#"{"a":1}"#).unwrap()), ..link };
    assert_eq!(item(&with_meta, STRUCTURED)["_meta"], json!({ "a": 1 }));
    let sound = Content::audio(b"wav", "audio/wav");
    assert_eq!(
        item(&sound, FIRST),
        json!({ "type": "resource", "resource": {
            "uri": "embedded:audio", "mimeType": "audio/wav", "blob": "d2F2",
        } })
    );
    assert_eq!(
        item(&sound, BATCHES),
        json!({ "type": "audio", "data": "d2F2", "mimeType": "audio/wav" })
    );
}

#[test]
fn a_tool_loses_what_a_revision_has_no_word_for() {
    let tool = Tool {
        title: Some("T".into()),
        output_schema: Some(Raw::parse(r#"{"type":"array"}"#).unwrap()),
        annotations: Some(ToolAnnotations { read_only_hint: Some(true), ..Default::default() }),
        icons: vec![Icon { src: "data:,".into(), ..Icon::default() }],
        meta: Some(Raw::parse(r#"{"a":1}"#).unwrap()),
        ..Tool::new("t", "d", Raw::parse(r#"{"type":"object"}"#).unwrap())
    };
    let keys = |revision| -> Vec<String> {
        item(&tool, revision).as_object().unwrap().keys().cloned().collect()
    };
    assert_eq!(keys(FIRST), ["name", "description", "inputSchema"]);
    assert_eq!(keys(BATCHES), ["name", "description", "inputSchema", "annotations"]);
    assert_eq!(
        keys(STRUCTURED),
        ["name", "title", "description", "inputSchema", "annotations", "_meta"]
    );
    assert_eq!(
        keys(ICONS),
        ["name", "title", "description", "inputSchema", "annotations", "icons", "_meta"]
    );
    assert_eq!(
        keys(NEWEST),
        [
            "name",
            "title",
            "description",
            "inputSchema",
            "outputSchema",
            "annotations",
            "icons",
            "_meta"
        ]
    );
}

#[test]
fn capabilities_are_said_exactly() {
    let nothing_but_tools = ServerCapabilities { tools: true, ..Default::default() };
    assert_eq!(item(&nothing_but_tools, NEWEST), json!({ "tools": {} }));
    let all = ServerCapabilities {
        tools: true,
        prompts: true,
        resources: true,
        completions: true,
        logging: true,
        subscribe: true,
        ..ServerCapabilities::default()
    }
    .with_list_changed(true);
    assert_eq!(
        item(&all, NEWEST),
        json!({
            "logging": {}, "completions": {}, "prompts": { "listChanged": true },
            "resources": { "subscribe": true, "listChanged": true }, "tools": { "listChanged": true },
        })
    );
    assert_eq!(item(&all, FIRST).get("completions"), None);
}

#[test]
fn extensions_are_declared_where_a_revision_has_room_for_them() {
    let all = ServerCapabilities { tasks: true, skills: true, ui: true, ..Default::default() };
    let skills = json!({ "directoryRead": true });
    let [newest, core, first] = [NEWEST, ICONS, FIRST].map(|revision| item(&all, revision));
    assert_eq!(newest, json!({ "extensions": { TASKS: {}, UI: {}, SKILLS: skills } }));
    assert_eq!(core["extensions"], json!({ UI: {}, SKILLS: skills }), "tasks are of the core");
    assert!(core["tasks"].is_object());
    // Its tools have no metadata that could name a view.
    assert_eq!(first, json!({ "extensions": { SKILLS: skills } }));
}

#[test]
fn a_list_of_skills_has_cache_hints_in_every_revision() {
    let cache = CacheHint { ttl_ms: 7, scope: CacheScope::Private };
    let server = Raw::empty_object();
    for revision in Revision::ALL {
        let skills = page(&ListPage::<Skill>::new(&[], None, cache), revision, &server);
        let skills: Value = serde_json::from_slice(&skills).unwrap();
        assert_eq!((&skills["ttlMs"], &skills["cacheScope"]), (&json!(7), &json!("private")));
        let tools = page(&ListPage::<Tool>::new(&[], None, cache), revision, &server);
        let tools: Value = serde_json::from_slice(&tools).unwrap();
        assert_eq!(tools.get("ttlMs").is_some(), revision == NEWEST, "{revision}");
    }
}

#[test]
fn a_completion_carries_a_hundred_values() {
    let completion: Completion = (0..101).map(|n| n.to_string()).collect();
    let many = said(&completion.into(), ICONS);
    assert_eq!(many["completion"]["values"].as_array().unwrap().len(), 100);
    assert_eq!(many["completion"]["total"], 101);
    assert_eq!(many["completion"]["hasMore"], true);
    let few: Completion = ["a"].into_iter().collect();
    assert_eq!(said(&few.into(), ICONS)["completion"]["hasMore"], false);
}

#[test]
fn a_missing_resource_has_a_code_of_its_own_up_to_the_last_handshake() {
    let problem = Problem::UnknownResource("a:b".into());
    assert_eq!(error(&problem, ICONS).code, Code::RESOURCE_NOT_FOUND);
    let newest = error(&problem, NEWEST);
    assert_eq!(newest.code, Code::INVALID_PARAMS);
    assert_eq!(newest.data.unwrap().text(), r#"{"uri":"a:b"}"#);
}

#[test]
fn a_code_that_was_chosen_is_one_that_the_revision_allows() {
    let chosen =
        |code, revision| error(&Problem::Chosen(ErrorObject::new(code, "m")), revision).code;
    for (code, newest) in [
        (-32002, -32602),
        (-32042, -32603),
        (-32099, -32603),
        (-32023, -32603),
        (-32021, -32021),
        (-32000, -32000),
        (-32602, -32602),
        (-7, -7),
        (404, 404),
    ] {
        assert_eq!(chosen(code, NEWEST), newest);
        assert_eq!(chosen(code, ICONS), code, "older revisions reserve no codes");
    }
}

#[test]
fn arguments_that_break_the_schema_are_a_result_since_2025_11_25() {
    let problem = Problem::Arguments("`a` is missing".into());
    assert!(settle(&problem, ICONS).is_ok());
    assert_eq!(settle(&problem, STRUCTURED).unwrap_err().code, Code::INVALID_PARAMS);
}

#[test]
fn a_form_is_asked_as_the_revision_can() {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "default": "x" },
            "sure": { "type": "boolean", "default": true },
            "size": { "type": "string", "oneOf": [{ "const": "s", "title": "Small" }] },
        },
    });
    let form = |schema: &Value| Question::Elicit(Elicit::form("m", Raw::of(schema).unwrap()));
    let asked = |question_: &Question, revision| -> Result<Value, Unsupported> {
        Ok(question(question_, revision, || "e1".to_owned())?.unwrap().read().unwrap())
    };
    assert!(asked(&form(&schema), BATCHES).is_err());
    assert_eq!(
        asked(&form(&schema), STRUCTURED).unwrap(),
        json!({ "message": "m", "requestedSchema": { "type": "object", "properties": {
            "name": { "type": "string" },
            "sure": { "type": "boolean", "default": true },
            "size": { "type": "string", "enum": ["s"], "enumNames": ["Small"] },
        } } })
    );
    assert_eq!(asked(&form(&schema), ICONS).unwrap()["requestedSchema"], schema);
    let several = json!({ "type": "object", "properties": { "a": { "type": "array" } } });
    assert!(asked(&form(&several), STRUCTURED).is_err());
    let visit = Question::Elicit(Elicit::url("m", "https://x"));
    assert_eq!(asked(&visit, ICONS).unwrap()["elicitationId"], "e1");
    assert!(asked(&visit, STRUCTURED).is_err());
}

#[test]
fn questions_inside_a_result_are_whole_requests_without_ids() {
    let questions = Questions {
        questions: vec![
            ("who".into(), Question::Sample(Box::new(Sample::user("who?", 9)))),
            ("where".into(), Question::roots()),
        ],
        state: Some("s".into()),
        ..Questions::default()
    };
    let said = said(&ServerResult::InputRequired(questions), NEWEST);
    assert_eq!(said["resultType"], "input_required");
    assert_eq!(said["inputRequests"]["where"], json!({ "method": "roots/list" }));
    assert_eq!(
        said["inputRequests"]["who"]["params"]["messages"],
        json!([{ "role": "user", "content": { "type": "text", "text": "who?" } }])
    );
    assert_eq!(said["requestState"], "s");
}

#[test]
fn notifications_are_written_whole() {
    let text = |frame: bytes::Bytes| String::from_utf8(frame.to_vec()).unwrap();
    assert_eq!(
        text(progressed(&"t".into(), 50.0, Some(0.5), Some("m"), BATCHES)),
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":50,"total":0.5,"message":"m"}}"#
    );
    assert!(!text(progressed(&1.into(), 1.0, None, Some("m"), FIRST)).contains("message"));
    assert_eq!(
        text(changed(&Topic::Resource("a:b".into()), Some(&"listen:0".into()))),
        r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"listen:0"},"uri":"a:b"}}"#
    );
    assert_eq!(
        text(changed(&Topic::Tools, None)),
        r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#
    );
    assert_eq!(
        text(acknowledged(&1.into(), &SubscriptionFilter::default())),
        r#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1},"notifications":{}}}"#
    );
}
