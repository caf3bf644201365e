//! Members of requests that the relay does not know, and the order of arguments.

use sabir_client::Client;
use sabir_wire::types::{CompletionContext, Reference};
use sabir_wire::{CallTool, Complete, Extra, GetPrompt, Raw, ReadResource, Request, Revision};

use super::{Relay, fixture, listed, text};

const ERAS: [Revision; 2] = [Revision::NEWEST, Revision::NEWEST_LEGACY];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unknown_members_and_the_order_of_arguments_cross_in_both_eras() {
    for far in ERAS {
        let relay = Relay::start(&fixture("up", far));
        for near in ERAS {
            let (client, _) = relay.client(near).await;
            listed(&client, "up_meta").await;
            for (request, received) in requests() {
                let seen = ask(&client, request).await;
                assert!(seen.contains(received), "{near:?} -> {far:?}: no {received} in {seen}");
            }
        }
    }
}

/// A result that asks two questions, one of which the protocol does not know.
const ASKS: &str = r#"{"x-top":1.0,"inputRequests":{"r":{"x":1e2,"params":{"y":"é"},"method":"roots/list"},"v":{"method":"vendor/ask","params":{"z":1,"a":2}}},"resultType":"input_required"}"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unknown_questions_and_unknown_members_of_questions_cross() {
    let relay = Relay::start(&fixture("up", Revision::NEWEST));
    let arguments = Raw::parse(format!(r#"{{"result":{ASKS}}}"#)).unwrap();
    let (modern, _) = relay.client(Revision::NEWEST).await;
    listed(&modern, "up_roots").await;
    let (name, given) = ("up_roots".into(), Some(arguments.clone()));
    let call = CallTool { name, arguments: given, ..CallTool::default() };
    let asked = modern.call(Request::CallTool(call)).await.unwrap();
    let kept = ASKS.rsplit_once(r#","resultType""#).unwrap().0;
    assert!(asked.json.text().starts_with(kept), "{:?}", asked.json);
    // A client of the legacy era is sent the request, and refuses it.
    let (legacy, person) = relay.client(Revision::NEWEST_LEGACY).await;
    let reply = legacy.call_tool("up_roots", arguments).await.unwrap();
    assert!(text(&reply).contains("the client refused vendor/ask"), "{reply:?}");
    // The refusal ends the call, maybe before the other question is read.
    assert!(person.asked.lock().unwrap().iter().all(|method| method == "roots/list"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn params_of_a_question_for_roots_cross_in_both_eras() {
    let asks = r#"{"inputRequests":{"r":{"method":"roots/list","params":{"y":"é"}}}}"#;
    let arguments = Raw::parse(format!(r#"{{"result":{asks}}}"#)).unwrap();
    for far in ERAS {
        let relay = Relay::start(&fixture("up", far));
        for near in ERAS {
            let (client, _) = relay.client(near).await;
            listed(&client, "up_roots").await;
            let reply = client.call_tool("up_roots", arguments.clone()).await.unwrap();
            let seen = text(&reply);
            assert!(seen.contains(r#""params":{"y":"é"}"#), "{near:?} -> {far:?}: {seen}");
        }
    }
}

async fn ask(client: &Client, request: Request) -> String {
    let reply = client.call(request).await.unwrap();
    reply.json.text().replace(r#"\""#, "\"")
}

/// Requests, and what the upstream says that it got.
fn requests() -> [(Request, &'static str); 4] {
    let mut extra = Extra::NONE;
    extra.set("x-vendor", Raw::parse("[1.0,12345678901234567890123]").unwrap());
    let text = |text: &str| text.to_owned();
    let arguments = vec![(text("z"), text("1")), (text("name"), text("2")), (text("a"), text("3"))];
    let extra = || extra.clone();
    let call = CallTool { name: "up_meta".into(), extra: extra(), ..CallTool::default() };
    let get = GetPrompt {
        name: "up_greet".into(),
        arguments: arguments.clone(),
        extra: extra(),
        ..GetPrompt::default()
    };
    let read =
        ReadResource { uri: "fixture://item".into(), extra: extra(), ..ReadResource::default() };
    let complete = Complete {
        reference: Reference::Prompt { name: "up_greet".into(), extra: extra() },
        argument: sabir_wire::types::CompletionArgument {
            name: "name".into(),
            value: "v".into(),
            extra: extra(),
        },
        given: CompletionContext { arguments, extra: extra() },
        extra: extra(),
    };
    [
        (Request::CallTool(call), r#""text":"[1.0,12345678901234567890123]""#),
        (
            Request::GetPrompt(get),
            r#"[("z", "1"), ("name", "2"), ("a", "3")] [1.0,12345678901234567890123]"#,
        ),
        (Request::ReadResource(read), r#""x-received":"[1.0,12345678901234567890123]""#),
        (
            Request::Complete(complete),
            concat!(
                r#"{"x-vendor":[1.0,12345678901234567890123],"type":"ref/prompt","name":"greet"} "#,
                r#"{"x-vendor":[1.0,12345678901234567890123],"name":"name","value":"v"} "#,
                r#"{"x-vendor":[1.0,12345678901234567890123],"arguments":{"z":"1","name":"2","a":"3"}} "#,
                r#"[1.0,12345678901234567890123]"#,
            ),
        ),
    ]
}
