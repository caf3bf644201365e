use std::collections::BTreeMap;

use sabir::{App, Args, Error, Json, Permission, PromptArgument, PromptFunction};
use sabir::{ResourceFunction, State, ToolFunction, Uri, Visibility};
use serde_json::json;

use crate::{connect, server};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Review {
    /// What to review
    code: String,
    /// How many remarks are wanted
    remarks: Option<u32>,
    #[serde(default)]
    kind: bool,
}

async fn review(State(name): State<&'static str>, Args(review): Args<Review>) -> String {
    let Review { code, remarks, kind } = review;
    format!("{name}: {code} {remarks:?} {kind}")
}

#[tokio::test]
async fn the_arguments_of_a_prompt_are_the_fields_of_its_type() {
    let mut client = connect(server().state("ann").prompt("review", "Reviews code", review));
    let prompts = client.list_prompts().await.unwrap();
    assert_eq!(
        prompts[0]["arguments"],
        json!([
            { "name": "code", "description": "What to review", "required": true },
            { "name": "remarks", "description": "How many remarks are wanted" },
            { "name": "kind" },
        ])
    );
    let given = json!({ "code": "1", "remarks": "3", "kind": "true" });
    let reply = client.get_prompt("review", given).await.unwrap();
    assert_eq!(reply.text(), "ann: 1 Some(3) true");
    assert_eq!(reply.0["messages"][0]["role"], "user");
    let given = json!({ "code": "1", "remarks": "many" });
    let error = client.get_prompt("review", given).await.unwrap_err();
    assert_eq!(error.code, -32602);
    assert!(error.message.contains("expected u32"), "{}", error.message);
    let error = client.get_prompt("review", json!({})).await.unwrap_err();
    assert_eq!(error.code, -32602);
}

#[tokio::test]
async fn a_prompt_may_list_arguments_that_no_type_names() {
    let argument =
        PromptArgument { name: "topic".into(), required: true, ..PromptArgument::default() };
    let prompt = PromptFunction::new("ask", "", async |given: BTreeMap<String, String>| {
        format!("What is {}?", given["topic"])
    });
    let mut client = connect(server().source(prompt.argument(argument)));
    let listed = client.list_prompts().await.unwrap();
    assert_eq!(listed[0]["arguments"], json!([{ "name": "topic", "required": true }]));
    let reply = client.get_prompt("ask", json!({ "topic": "42" })).await.unwrap();
    assert_eq!(reply.text(), "What is 42?");
}

#[tokio::test]
async fn a_resource_is_text_or_bytes() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Page {
        book: String,
        number: u32,
    }
    async fn page(Uri(uri): Uri, Page { book, number }: Page) -> Result<String, Error> {
        if number == 0 {
            return Err(Error::no_such_resource(uri));
        }
        Ok(format!("{book} {number}"))
    }
    let pages = ResourceFunction::template("lib://{book}/{number}", "pages", page)
        .mime_type("text/markdown")
        .completed_by("book", |typed, _| {
            ["poems", "plays"].into_iter().filter(|book| book.starts_with(typed)).collect()
        });
    let server = server()
        .resource("lib://motto", "motto", async || "Deal!")
        .source(
            ResourceFunction::new("lib://logo", "logo", async || vec![1, 2, 3]).mime_type("x/y"),
        )
        .source(pages);
    let mut client = connect(server);

    let motto = client.read_resource("lib://motto").await.unwrap();
    assert_eq!(motto.0["contents"], json!([{ "uri": "lib://motto", "text": "Deal!" }]));
    let logo = client.read_resource("lib://logo").await.unwrap();
    let expected = json!([{ "uri": "lib://logo", "mimeType": "x/y", "blob": "AQID" }]);
    assert_eq!(logo.0["contents"], expected);
    let page = client.read_resource("lib://7/12").await.unwrap();
    let expected = json!([{ "uri": "lib://7/12", "mimeType": "text/markdown", "text": "7 12" }]);
    assert_eq!(page.0["contents"], expected);
    assert_eq!(client.read_resource("lib://poems/0").await.unwrap_err().code, -32602);
    assert_eq!(client.read_resource("lib://poems/x").await.unwrap_err().code, -32602);

    let completed = client.request(
        "completion/complete",
        json!({
            "ref": { "type": "ref/resource", "uri": "lib://{book}/{number}" },
            "argument": { "name": "book", "value": "pl" },
        }),
    );
    assert_eq!(completed.await.unwrap()["completion"]["values"], json!(["plays"]));
    assert_eq!(client.list_resources().await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_tool_may_have_a_view() {
    let view = App::html("<!DOCTYPE html><title>Tides</title>")
        .connect("https://tides.example.com")
        .permission(Permission::Camera)
        .visibility([Visibility::Model]);
    let tides = ToolFunction::new("tides", "", async || Json(json!({ "high": 3 }))).app(&view);
    let mut client = connect(server().source(tides));
    let tools = client.list_tools().await.unwrap();
    assert_eq!(
        tools[0]["_meta"],
        json!({ "ui": { "resourceUri": "ui://views/tides", "visibility": ["model"] } })
    );
    let read = client.read_resource("ui://views/tides").await.unwrap();
    let contents = &read.0["contents"][0];
    assert_eq!(contents["mimeType"], "text/html;profile=mcp-app");
    assert_eq!(contents["text"], "<!DOCTYPE html><title>Tides</title>");
    assert_eq!(
        contents["_meta"]["ui"],
        json!({
            "csp": { "connectDomains": ["https://tides.example.com"] },
            "permissions": { "camera": {} },
        })
    );
    // Clients without views read the text.
    let reply = client.call_tool("tides", json!({})).await.unwrap();
    assert_eq!(reply.text(), r#"{"high":3}"#);
}
