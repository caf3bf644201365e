use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use sabir::{Args, Call, Caller, Context, Elicited, Error, FromCall, FromRef, Json, Raw, State};
use sabir::{Revision, ToolFunction};
use serde_json::json;

use crate::{connect, server};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Add {
    /// The first number
    a: i64,
    b: Option<i64>,
}

#[derive(Clone)]
struct App {
    pool: Pool,
    base: i64,
}

#[derive(Clone)]
struct Pool(&'static str);

impl FromRef<App> for Pool {
    fn from_ref(app: &App) -> Self {
        app.pool.clone()
    }
}

#[tokio::test]
async fn parameters_come_in_any_order() {
    async fn last(State(app): State<App>, caller: Caller, Add { a, .. }: Add) -> String {
        format!("{} {}", caller.subject(), app.base + a)
    }
    async fn first(Args(add): Args<Add>, State(pool): State<Pool>, context: Context) -> String {
        format!("{} {} {}", add.a, pool.0, context.caller().subject())
    }
    async fn six(
        context: Context,
        State(pool): State<Pool>,
        raw: Raw,
        _: Caller,
        add: Args<Add>,
        State(app): State<App>,
    ) -> String {
        let Args(Add { a, b }) = add;
        format!("{} {} {a} {b:?} {} {}", context.is_cancelled(), pool.0, app.base, raw.text())
    }
    let app = App { pool: Pool("pool"), base: 40 };
    let server = server()
        .state(app)
        .tool("last", "", last)
        .tool("first", "", first)
        .tool("six", "", six)
        .tool("none", "", async || "nothing");
    let mut client = connect(server);
    let given = json!({ "a": 2 });
    assert_eq!(client.call_tool("last", given.clone()).await.unwrap().text(), "local 42");
    assert_eq!(client.call_tool("first", given.clone()).await.unwrap().text(), "2 pool local");
    let six = client.call_tool("six", given).await.unwrap().text();
    assert_eq!(six, "false pool 2 None 40 {\"a\":2}");
    assert_eq!(client.call_tool("none", json!({})).await.unwrap().text(), "nothing");

    let tools = client.list_tools().await.unwrap();
    for tool in &tools[..3] {
        assert_eq!(tool["inputSchema"]["required"], json!(["a"]), "{tool}");
        assert_eq!(tool["inputSchema"]["properties"]["a"]["description"], "The first number");
    }
    assert_eq!(tools[3]["inputSchema"], json!({ "type": "object" }));
}

#[tokio::test]
async fn methods_of_one_struct_are_a_group_of_tools() {
    #[derive(Default)]
    struct Counter(AtomicU32);

    impl Counter {
        async fn count(self: Arc<Self>) -> String {
            (self.0.fetch_add(1, Ordering::Relaxed) + 1).to_string()
        }

        async fn reset(self: Arc<Self>, Add { a, .. }: Add) -> Result<(), Error> {
            self.0.store(a.try_into()?, Ordering::Relaxed);
            Ok(())
        }
    }
    let server = server()
        .state(Arc::new(Counter::default()))
        .tool("count", "", Counter::count)
        .tool("reset", "", Counter::reset)
        .state(Pool("other"))
        .tool("other", "", async |State(pool): State<Pool>| pool.0);
    let mut client = connect(server);
    assert_eq!(client.call_tool("count", json!({})).await.unwrap().text(), "1");
    assert_eq!(client.call_tool("reset", json!({ "a": 7 })).await.unwrap().text(), "");
    assert_eq!(client.call_tool("count", json!({})).await.unwrap().text(), "8");
    assert!(client.call_tool("reset", json!({ "a": -1 })).await.unwrap().is_error());
    assert_eq!(client.call_tool("other", json!({})).await.unwrap().text(), "other");
}

#[tokio::test]
async fn a_closure_may_capture_if_each_call_has_a_clone() {
    let name = Arc::new(String::from("captured"));
    let tool = move |Add { a, .. }: Add| {
        let name = name.clone();
        async move { format!("{name} {a}") }
    };
    let mut client = connect(server().tool("tool", "", tool));
    assert_eq!(client.call_tool("tool", json!({ "a": 1 })).await.unwrap().text(), "captured 1");
}

#[tokio::test]
async fn an_extractor_of_ones_own_may_refuse_the_call() {
    struct Admin(String);

    impl<S> FromCall<S> for Admin {
        fn from_call(call: &Call<'_, S>) -> Result<Self, Error> {
            let caller = call.caller();
            if !caller.has_scope("admin") {
                return Err(Error::failed(format!("{caller} is not an admin")));
            }
            Ok(Self(caller.subject().to_owned()))
        }
    }
    let build = || server().tool("who", "", async |Admin(name): Admin| name);
    let reply = connect(build()).call_tool("who", json!({})).await.unwrap();
    assert!(reply.is_error());
    assert_eq!(reply.text(), "local is not an admin");
    let ann = Caller::new("https://login.example", "ann").with_scopes(["admin"]);
    let reply = connect(build()).caller(ann).call_tool("who", json!({})).await.unwrap();
    assert_eq!(reply.text(), "ann");
}

#[tokio::test]
async fn a_described_tool_says_more_about_itself() {
    #[derive(serde::Serialize, schemars::JsonSchema)]
    struct Sum {
        sum: i64,
    }
    let sum = async |Add { a, b }: Add| Json(Sum { sum: a + b.unwrap_or(1) });
    let sum = ToolFunction::new("sum", "Adds", sum).title("Sum").read_only().output::<Sum>();
    let schema = json!({ "type": "object", "properties": { "x": { "type": "integer" } } });
    let raw = ToolFunction::new("raw", "Repeats", async |given: Raw| given.text().to_owned());
    let mut client = connect(server().source(sum).source(raw.input_schema(schema.clone())));

    let reply = client.call_tool("sum", json!({ "a": 1 })).await.unwrap();
    assert_eq!(reply.0["structuredContent"], json!({ "sum": 2 }));
    let reply = client.call_tool("raw", json!({ "x": 1, "y": [2] })).await.unwrap();
    assert_eq!(reply.text(), r#"{"x":1,"y":[2]}"#);
    assert!(client.call_tool("raw", json!({ "x": "no number" })).await.unwrap().is_error());
    let tools = client.list_tools().await.unwrap();
    assert_eq!(tools[0]["title"], "Sum");
    assert_eq!(tools[0]["annotations"]["readOnlyHint"], true);
    assert_eq!(tools[1]["inputSchema"], schema);
}

#[tokio::test]
async fn one_handler_asks_clients_of_every_revision_that_can_be_asked() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Confirm {
        sure: bool,
    }
    async fn delete(context: Context) -> Result<&'static str, Error> {
        context.progress(0.5, None, None);
        Ok(match context.elicit("sure", "Delete it?")? {
            Elicited::Accepted(Confirm { sure: true }) => "deleted",
            _ => "kept",
        })
    }
    for revision in Revision::ALL {
        let server = server().tool("delete", "", delete);
        let mut client = connect(server).revision(revision).answer(|method, params| {
            assert_eq!(method, "elicitation/create");
            assert_eq!(params["message"], "Delete it?");
            json!({ "action": "accept", "content": { "sure": true } })
        });
        let reply = client.call_tool("delete", json!({})).await;
        if revision >= Revision::V2025_06_18 {
            assert_eq!(reply.unwrap().text(), "deleted", "{revision:?}");
            let notified = client.take_notifications();
            assert!(notified.iter().all(|note| note["method"] == "notifications/progress"));
            assert!(!notified.is_empty(), "{revision:?}");
        } else {
            assert!(reply.is_err(), "{revision:?} has no elicitation");
        }
    }
}

#[tokio::test]
async fn a_client_that_cannot_be_asked_is_not_asked() {
    let ask = async |context: Context| -> Result<String, Error> {
        Ok(format!("{} roots", context.roots("roots")?.len()))
    };
    let error = connect(server().tool("ask", "", ask)).call_tool("ask", json!({})).await;
    assert_eq!(error.unwrap_err().code, -32021);
}
