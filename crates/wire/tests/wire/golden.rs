//! Fixed texts and the values that they are.

use sabir_wire::types::*;
use sabir_wire::{Code, ErrorObject, Method, Problem, ReadJson, Revision, WriteJson, raise};

use crate::values::raw;

#[test]
fn a_tool_of_another_server_keeps_its_text() {
    let text = r#"{"inputSchema":{"type":"object","x":1.0},"experimental":{"taskSupport":"optional"},"annotations":{"b":12345678901234567890123,"readOnlyHint":true},"name":"t","_meta":{"n":-0}}"#;
    let mut tool = Tool::read_json(&raw(text)).unwrap();
    assert_eq!(tool.name, "t");
    assert_eq!(tool.annotations.as_ref().unwrap().read_only_hint, Some(true));
    assert_eq!(tool.extra.get("experimental").unwrap().text(), r#"{"taskSupport":"optional"}"#);
    assert_eq!(tool.to_raw(Revision::NEWEST).text(), text);
    tool.name = "up_t".into();
    tool.title = Some("T".into());
    let changed = text.replace(r#""name":"t""#, r#""name":"up_t""#);
    let changed = changed.replace(r#""_meta":{"n":-0}}"#, r#""_meta":{"n":-0},"title":"T"}"#);
    assert_eq!(tool.to_raw(Revision::NEWEST).text(), changed);
    assert_eq!(
        tool.to_raw(Revision::V2024_11_05).text(),
        r#"{"inputSchema":{"type":"object","x":1.0},"experimental":{"taskSupport":"optional"},"name":"up_t"}"#
    );
}

#[test]
fn a_number_is_spelled_anew_only_if_it_changed() {
    let text = r#"{"size":1.0,"uri":"a:b","annotations":{"priority":1e-0},"name":"n"}"#;
    let mut resource = Resource::read_json(&raw(text)).unwrap();
    assert_eq!(resource.size, Some(1));
    assert_eq!(resource.to_raw(Revision::NEWEST).text(), text);
    resource.size = Some(2);
    assert_eq!(resource.to_raw(Revision::NEWEST).text(), text.replace("1.0", "2"));
}

#[test]
fn an_optional_null_is_absent_and_defaults_that_were_there_stay() {
    let read = |text| ToolReply::read_json(&raw(text)).unwrap();
    let reply = read(
        r#"{"isError":false,"content":[{"type":"text","text":"a","annotations":null}],"_meta":null}"#,
    );
    assert_eq!(reply, ToolReply::text("a"));
    assert_eq!(
        reply.to_raw(Revision::NEWEST_LEGACY).text(),
        r#"{"isError":false,"content":[{"type":"text","text":"a"}]}"#
    );
    let null = read(r#"{"content":[],"structuredContent":null}"#);
    assert_eq!(null.structured, Some(raw("null")));
}

#[test]
fn the_wrong_member_is_named() {
    for (text, wrong) in [
        (r#"[]"#, "invalid value (expected an object)"),
        (r#"{"tools":{}}"#, "invalid `tools` (expected an array)"),
        (
            r#"{"tools":[{"name":"a","inputSchema":{}},{"name":7}]}"#,
            "invalid `tools[1].name` (expected a string)",
        ),
        (r#"{"tools":[{"name":"a"}]}"#, "missing `tools[0].inputSchema`"),
        (r#"{"tools":[],"tools":[]}"#, "invalid `tools` (expected a single member of that name)"),
        (r#"{"tools":[],"ttlMs":-1}"#, "invalid `ttlMs` (expected an integer from 0)"),
    ] {
        let error = ListPage::<Tool>::read_json(&raw(text)).unwrap_err();
        assert_eq!(error.to_string(), wrong);
    }
}

#[test]
fn a_bad_item_of_a_page_is_left_out_and_reported() {
    let text =
        r#"{"tools":[{"name":"a","inputSchema":{}},{"name":7},{"name":"b","inputSchema":{}}]}"#;
    let (page, bad) = ListPage::<Tool>::read_tolerantly(&raw(text)).unwrap();
    let names: Vec<_> = page.items.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(bad.len(), 1);
    assert_eq!(bad[0].path, "tools[1].name");
}

#[test]
fn a_missing_resource_is_raised_from_every_revision() {
    for revision in Revision::ALL {
        let problem = Problem::UnknownResource("a:b".into());
        let error = sabir_wire::render::error(&problem, revision);
        assert_eq!(raise::error(&Method::ReadResource, revision, error), Err(problem));
    }
    let plain = ErrorObject::new(Code::RESOURCE_NOT_FOUND, "Resource not found");
    let raised = raise::error(&Method::ReadResource, Revision::V2025_06_18, plain.clone());
    assert_eq!(raised, Err(Problem::Chosen(plain)));
}

#[test]
fn an_error_that_demands_visits_is_raised_to_questions() {
    let data = raw(
        r#"{"elicitations":[{"mode":"url","elicitationId":"e1","url":"https://x","message":"m"}]}"#,
    );
    let error = ErrorObject { data: Some(data), ..ErrorObject::new(-32042, "visit") };
    let asked = raise::error(&Method::CallTool, Revision::V2025_11_25, error).unwrap();
    let (key, question) = &asked.questions[0];
    assert_eq!(key, "e1");
    assert_eq!(
        question.to_raw(Revision::NEWEST).text(),
        r#"{"method":"elicitation/create","params":{"mode":"url","url":"https://x","message":"m"}}"#
    );
    let empty = ErrorObject::new(-32042, "visit");
    assert!(raise::error(&Method::CallTool, Revision::V2025_11_25, empty).is_err());
}

#[test]
fn requests_of_a_server_are_read() {
    let request = |method: &str, params| raise::request(&Method::named(method), params);
    assert_eq!(request("ping", None), Ok(raise::ServerRequest::Ping));
    assert_eq!(request("roots/list", None), Ok(raise::ServerRequest::Question(Question::roots())));
    let params =
        raw(r#"{"message":"m","_meta":{"progressToken":1},"requestedSchema":{},"task":{}}"#);
    let form = Question::Elicit(Elicit::form("m", raw("{}")));
    assert_eq!(
        request("elicitation/create", Some(&params)),
        Ok(raise::ServerRequest::Question(form))
    );
    assert_eq!(request("tools/call", None), Err(Problem::Method("tools/call".into())));
    let wrong = request("sampling/createMessage", None);
    assert_eq!(wrong, Err(Problem::Params("missing `maxTokens`".into())));
}

#[test]
fn notifications_of_a_server_are_read() {
    let read = |method: &str, params: &str| {
        ServerNotification::read(&Method::named(method), Some(&raw(params))).unwrap()
    };
    let updated = read(
        "notifications/resources/updated",
        r#"{"uri":"a:b","_meta":{"io.modelcontextprotocol/subscriptionId":"l"}}"#,
    );
    let updated = updated.unwrap();
    assert_eq!(updated.subscription(), Some("l".into()));
    assert!(
        matches!(updated, ServerNotification::Changed(changed) if changed.topic == Topic::Resource("a:b".into()))
    );
    let tools = ServerNotification::read(&Method::ToolsChanged, None).unwrap().unwrap();
    assert!(matches!(tools, ServerNotification::Changed(changed) if changed.topic == Topic::Tools));
    let log = read("notifications/message", r#"{"level":"info","data":null}"#).unwrap();
    assert!(matches!(log, ServerNotification::Log(log) if log.data.is_null()));
    let done = read("notifications/elicitation/complete", r#"{"elicitationId":"e1"}"#).unwrap();
    assert!(matches!(done, ServerNotification::ElicitationComplete(done) if done.id == "e1"));
    assert_eq!(read("tools/call", "{}"), None);
}
