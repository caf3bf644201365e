//! Requests that a client writes are those that a server reads.

use sabir_wire::types::{ClientCapabilities, CompletionArgument, CompletionContext, Level};
use sabir_wire::types::{Reference, SubscriptionFilter};
use sabir_wire::{CallTool, Complete, Extra, GetPrompt, Initialize, Listen, Page, ReadResource};
use sabir_wire::{Meta, ReadFolder, Request, Resume, Revision};

use crate::values::raw;

fn requests() -> Vec<Request> {
    let resume = Resume {
        answers: vec![("who".into(), raw(r#"{"action":"accept","content":{"n":1.0}}"#))],
        state: Some("sealed".into()),
        ..Resume::default()
    };
    let page = Page { cursor: Some("c".into()) };
    let given = vec![("z".to_owned(), "1".to_owned()), ("a".to_owned(), "2".to_owned())];
    let mut extra = Extra::NONE;
    extra.set("x-vendor", raw("1.0"));
    let roots = ClientCapabilities { roots: true, ..ClientCapabilities::default() };
    vec![
        Request::Initialize(Initialize {
            version: "2025-06-18".into(),
            capabilities: roots,
            client: Some(raw(r#"{"name":"c","version":"1"}"#)),
        }),
        Request::Ping,
        Request::Discover,
        Request::ListTools(page.clone()),
        Request::ListPrompts(page.clone()),
        Request::ListResources(page),
        Request::ListTemplates(Page::default()),
        Request::CallTool(CallTool {
            name: "t\"".into(),
            arguments: Some(raw(r#"{"n":12345678901234567890123}"#)),
            resume: resume.clone(),
            task: None,
            extra: extra.clone(),
        }),
        Request::GetTask("i\"".into()),
        Request::UpdateTask(sabir_wire::UpdateTask {
            id: "i".into(),
            answers: resume.answers.clone(),
        }),
        Request::CancelTask("i".into()),
        Request::GetPrompt(GetPrompt {
            name: "p".into(),
            arguments: given.clone(),
            resume: resume.clone(),
            extra: extra.clone(),
        }),
        Request::ReadResource(ReadResource { uri: "a:b".into(), resume, extra: extra.clone() }),
        Request::Subscribe("a:b".into()),
        Request::Unsubscribe("a:b".into()),
        Request::Complete(Complete {
            reference: Reference::Prompt { name: "p".into(), extra: extra.clone() },
            argument: CompletionArgument {
                name: "a".into(),
                value: "v".into(),
                extra: extra.clone(),
            },
            given: CompletionContext { arguments: given, extra: extra.clone() },
            extra: extra.clone(),
        }),
        Request::ReadFolder(ReadFolder { uri: "a:b".into(), cursor: Some("c".into()), extra }),
        Request::SetLevel(Level::Warning),
        Request::Listen(Listen {
            filter: SubscriptionFilter {
                tools_list_changed: true,
                ..SubscriptionFilter::default()
            },
        }),
    ]
}

#[test]
fn a_request_is_read_as_it_was_written() {
    let meta = Meta {
        raw: Some(raw(r#"{"traceparent":"00-1","com.example/n":1.0}"#)),
        progress_token: Some("p".into()),
        client: Some(raw(r#"{"name":"c","version":"1"}"#)),
        capabilities: Some(ClientCapabilities { sampling: true, ..Default::default() }),
        log_level: Some(Level::Info),
        version: None,
    };
    for request in requests() {
        let params = request.to_params(&meta, Revision::NEWEST);
        let (read_meta, read) = Request::parse(&request.method(), params.as_ref());
        assert_eq!(read.unwrap(), request);
        let read_meta = read_meta.unwrap();
        assert_eq!(read_meta.version.as_deref(), Some("2026-07-28"));
        assert_eq!(read_meta.trace().traceparent.as_deref(), Some("00-1"));
        let written =
            Meta { raw: read_meta.raw.clone(), version: read_meta.version.clone(), ..meta.clone() };
        assert_eq!(read_meta, written);
    }
}

#[test]
fn the_legacy_era_has_no_metadata_of_the_client_and_no_answers() {
    let meta = Meta { capabilities: Some(ClientCapabilities::default()), ..Meta::default() };
    let texts: Vec<_> = requests()
        .iter()
        .map(|request| request.to_params(&meta, Revision::V2025_03_26))
        .map(|params| params.map_or("-".to_owned(), |params| params.text().to_owned()))
        .collect();
    assert_eq!(
        texts,
        [
            r#"{"protocolVersion":"2025-06-18","capabilities":{"roots":{}},"clientInfo":{"name":"c","version":"1"}}"#,
            "-",
            "-",
            r#"{"cursor":"c"}"#,
            r#"{"cursor":"c"}"#,
            r#"{"cursor":"c"}"#,
            "-",
            r#"{"name":"t\"","arguments":{"n":12345678901234567890123},"x-vendor":1.0}"#,
            r#"{"taskId":"i\""}"#,
            r#"{"taskId":"i","inputResponses":{"who":{"action":"accept","content":{"n":1.0}}}}"#,
            r#"{"taskId":"i"}"#,
            r#"{"name":"p","arguments":{"z":"1","a":"2"},"x-vendor":1.0}"#,
            r#"{"uri":"a:b","x-vendor":1.0}"#,
            r#"{"uri":"a:b"}"#,
            r#"{"uri":"a:b"}"#,
            r#"{"ref":{"x-vendor":1.0,"type":"ref/prompt","name":"p"},"argument":{"x-vendor":1.0,"name":"a","value":"v"},"x-vendor":1.0}"#,
            r#"{"uri":"a:b","cursor":"c","x-vendor":1.0}"#,
            r#"{"level":"warning"}"#,
            r#"{"notifications":{"toolsListChanged":true}}"#,
        ]
    );
}
