//! Members of requests that the relay does not know, and the order of arguments.

use sabir_client::Client;
use sabir_wire::types::{CompletionContext, Reference};
use sabir_wire::{CallTool, Complete, Extra, GetPrompt, Raw, ReadResource, Request, Revision};

use super::{Relay, fixture, listed};

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
