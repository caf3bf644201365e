//! Tasks of an upstream, in both forms, for clients of all kinds; and views and skills that cross.

mod killed; // tasks after the binary was killed
mod many; // very many tasks

use rustix::process::Signal;
use sabir_client::{CallError, CallOptions, CallRequest, Client};
use sabir_testkit::leftovers::kill;
use sabir_wire::types::{ClientCapabilities, TASKS, TaskSupport, UI};
use sabir_wire::{CallTool, Raw, Request, Resume, Revision, TaskResult, UpdateTask};
use serde_json::{Value, json};

use super::{Relay, at_url, callers, fixture, http_fixture, listed, raw, text, until};

/// The revisions with tasks.
const FORMS: [Revision; 2] = [Revision::NEWEST, Revision::NEWEST_LEGACY];

/// Makes a request as a client that knows tasks.
async fn ask(client: &Client, request: Request) -> Result<Value, CallError> {
    let capabilities = ClientCapabilities::everything().with_extension(TASKS, "{}");
    let options = CallOptions { capabilities: Some(capabilities), ..CallOptions::default() };
    let reply = client.call(CallRequest::new(request).with(options)).await?;
    Ok(serde_json::from_str(reply.json.text()).unwrap())
}

fn call(tool: &str, arguments: Value, task: Option<Raw>) -> Request {
    let (name, arguments, resume) = (tool.into(), Some(raw(arguments)), Resume::default());
    Request::CallTool(CallTool { name, arguments, resume, task, ..CallTool::default() })
}

/// Calls a tool whose call becomes a task at once, and gives its id.
async fn begin(client: &Client, tool: &str) -> Box<str> {
    begin_with(client, tool, json!({})).await
}

async fn begin_with(client: &Client, tool: &str, arguments: Value) -> Box<str> {
    let created = ask(client, call(tool, arguments, None)).await.unwrap();
    assert_eq!(created["resultType"], "task", "{created}");
    created["taskId"].as_str().unwrap().into()
}

async fn get(client: &Client, id: &str) -> Value {
    ask(client, Request::GetTask(id.into())).await.unwrap()
}

async fn wait_for(client: &Client, id: &str, status: &str) -> Value {
    until(status, async || get(client, id).await["status"] == status).await;
    get(client, id).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_of_an_upstream_is_a_task_of_ours() {
    for far in FORMS {
        let relay = Relay::start(&(callers::tokens() + &fixture("up", far)));
        let [(ann, _), (bob, _)] = callers::both(&relay).await;
        listed(&ann, "up_job").await;
        let id = begin(&ann, "up_job").await;
        let done = wait_for(&ann, &id, "completed").await;
        assert_eq!(done["result"]["content"][0]["text"], "0 cancelled", "{far:?}: {done}");
        assert_eq!(done["result"].get("_meta").and_then(|meta| meta.get("related-task")), None);
        let refused = ask(&bob, Request::GetTask(id)).await.unwrap_err();
        assert_eq!(refused.rpc().unwrap().code, -32602, "another caller's");
        let id = begin(&ann, "up_job_fails").await;
        let failed = wait_for(&ann, &id, "failed").await;
        assert_eq!(failed["error"]["code"], -31998, "{far:?}: {failed}");
        let id = begin(&ann, "up_job_asks").await;
        let asked = wait_for(&ann, &id, "input_required").await;
        let (key, _) = asked["inputRequests"].as_object().unwrap().iter().next().unwrap();
        let answers = vec![(key.clone(), raw(json!({ "action": "decline" })))];
        ask(&ann, Request::UpdateTask(UpdateTask { id: id.clone(), answers })).await.unwrap();
        let done = wait_for(&ann, &id, "completed").await;
        assert_eq!(done["result"]["content"][0]["text"], r#"{"action":"decline"}"#, "{far:?}");
        let id = begin(&ann, "up_job_waits").await;
        ask(&ann, Request::CancelTask(id.clone())).await.unwrap();
        assert_eq!(get(&ann, &id).await["status"], "cancelled");
        until("the upstream's task is cancelled", async || {
            let reply = ann.call_tool("up_job", Raw::empty_object()).await.unwrap();
            text(&reply) == "1 cancelled"
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_without_tasks_waits_for_the_result_of_a_task() {
    for far in FORMS {
        let relay = Relay::start(&fixture("up", far));
        for near in [Revision::NEWEST, Revision::NEWEST_LEGACY, Revision::ALL[0]] {
            let (client, _) = relay.client(near).await;
            listed(&client, "up_job").await;
            let reply = client.call_tool("up_job", Raw::empty_object()).await.unwrap();
            assert_eq!(text(&reply), "0 cancelled", "{near:?} to {far:?}");
            if near != Revision::ALL[0] {
                let reply = client.call_tool("up_job_asks", Raw::empty_object()).await.unwrap();
                assert!(text(&reply).contains("accept"), "{near:?} to {far:?}: {reply:?}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_of_the_older_form_gets_a_task_where_it_asks_for_one() {
    for far in FORMS {
        let relay = Relay::start(&fixture("up", far));
        let (client, _) = relay.client(Revision::NEWEST_LEGACY).await;
        listed(&client, "up_job").await;
        let tools = client.list_tools().await.unwrap();
        let job = tools.iter().find(|tool| tool.name == "up_job").unwrap();
        let support = job.execution.as_ref().and_then(|execution| execution.task_support);
        assert_eq!(support, Some(TaskSupport::Optional), "who waits gets the result, too");
        let created =
            ask(&client, call("up_job", json!({}), Some(Raw::empty_object()))).await.unwrap();
        let id = created["task"]["taskId"].as_str().unwrap().into();
        let wanted = TaskResult { id, resume: Resume::default() };
        let result = ask(&client, Request::TaskResult(wanted)).await.unwrap();
        assert_eq!(result["content"][0]["text"], "0 cancelled", "{far:?}: {result}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_of_an_upstream_without_tasks_can_be_tasks() {
    let upstream = fixture("up", Revision::ALL[2]) + "task = \"always\"\n";
    let relay = Relay::start(&upstream);
    let (client, _) = relay.client(Revision::NEWEST).await;
    listed(&client, "up_echo").await;
    let id = begin(&client, "up_echo").await;
    let done = wait_for(&client, &id, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "{}", "{done}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_of_a_server_behind_a_url_goes_on_after_a_restart() {
    let (_upstream, url) = http_fixture(&["http", Revision::NEWEST.date()]);
    let store = "[tasks]\nstore = \"tasks.redb\"\n".to_owned();
    let configuration = store + &callers::tokens() + &at_url(&url);
    let mut relay = Relay::start(&configuration);
    for (nth, signal) in [Signal::KILL, Signal::TERM].into_iter().enumerate() {
        let [(ann, _), _] = callers::both(&relay).await;
        listed(&ann, "up_job").await;
        let asks = begin(&ann, "up_job_asks").await;
        wait_for(&ann, &asks, "input_required").await;
        let waits = begin(&ann, "up_job_waits").await;
        let Relay { mut process, folder, .. } = relay;
        kill(process.child.id().try_into().unwrap(), signal);
        process.child.wait().unwrap();
        relay = Relay::start_in(folder, &configuration);
        let [(ann, _), (bob, _)] = callers::both(&relay).await;
        let open = wait_for(&ann, &asks, "input_required").await;
        assert!(ask(&bob, Request::GetTask(asks.clone())).await.is_err(), "another caller's");
        let (key, _) = open["inputRequests"].as_object().unwrap().iter().next().unwrap();
        let answers = vec![(key.clone(), raw(json!({ "action": "decline" })))];
        ask(&ann, Request::UpdateTask(UpdateTask { id: asks.clone(), answers })).await.unwrap();
        let done = wait_for(&ann, &asks, "completed").await;
        assert_eq!(done["result"]["content"][0]["text"], r#"{"action":"decline"}"#);
        assert_eq!(get(&ann, &waits).await["status"], "working");
        ask(&ann, Request::CancelTask(waits.clone())).await.unwrap();
        // Those that were cancelled, and no other.
        until("the upstream's task is cancelled", async || {
            let reply = ann.call_tool("up_job", Raw::empty_object()).await.unwrap();
            text(&reply) == format!("{} cancelled", nth + 1)
        })
        .await;
    }
}

/// Two more of the real binary, each behind the relay, that serve the same view and the same skill.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn views_and_skills_of_two_upstreams_cross() {
    let folder = tempfile::TempDir::new().unwrap();
    let skill = folder.path().join("skills/tidy");
    std::fs::create_dir_all(skill.join("scripts")).unwrap();
    std::fs::write(skill.join("SKILL.md"), "---\nname: tidy\ndescription: d\n---\nTidy.\n")
        .unwrap();
    std::fs::write(skill.join("scripts/run.sh"), "true\n").unwrap();
    for name in ["one", "two"] {
        let inner = format!(
            "[[skills]]\npath = \"skills\"\n\
             [[command]]\nname = \"show\"\ndescription = \"d\"\nrun = [\"echo\", \"{name}\"]\n\
             [[command]]\nname = \"only_{name}\"\ndescription = \"d\"\nrun = [\"echo\", \"{name}\"]\n\
             [[app]]\ntool = \"show\"\nbuilt_in = true\nborder = true\n"
        );
        std::fs::write(folder.path().join(format!("{name}.toml")), inner).unwrap();
    }
    let upstream = |name: &str| {
        let line = [env!("CARGO_BIN_EXE_sabir"), "serve", &format!("{name}.toml"), "--stdio"];
        format!("[[upstream]]\nname = \"{name}\"\nrun = {line:?}\n")
    };
    let relay = Relay::start_in(folder, &(upstream("one") + &upstream("two")));
    let (client, _) = relay.client(Revision::NEWEST).await;
    listed(&client, "one_show").await;
    listed(&client, "two_show").await;
    let server = client.open().await.unwrap();
    assert!(
        server.discovered.capabilities.has_extension(UI) || {
            // They were not known yet when the client was opened.
            let again = ask(&client, Request::Discover).await.unwrap();
            again["capabilities"]["extensions"].get(UI).is_some()
        }
    );
    let tools = client.list_tools().await.unwrap();
    for name in ["one", "two"] {
        let tool = tools.iter().find(|tool| tool.name == format!("{name}_show")).unwrap();
        let uri = format!("ui://{name}/views/show");
        let meta: Value = tool.meta.as_ref().unwrap().read().unwrap();
        assert_eq!(meta, json!({ "ui": { "resourceUri": uri } }));
        let page = client.read_resource(&uri).await.unwrap();
        let page = &page.contents[0];
        assert_eq!(
            (&*page.uri, page.mime_type.as_deref()),
            (&*uri, Some("text/html;profile=mcp-app"))
        );
        let meta: Value = page.meta.as_ref().unwrap().read().unwrap();
        assert_eq!(meta, json!({ "ui": { "prefersBorder": true } }));
        // A page calls the tools of its server by their own names.
        let reply = client.call_tool(&format!("only_{name}"), Raw::empty_object()).await.unwrap();
        assert_eq!(text(&reply), name);
    }
    assert!(client.call_tool("show", Raw::empty_object()).await.is_err(), "either could be meant");
    let skills = ask(&client, Request::ListSkills(Default::default())).await.unwrap();
    let skills = skills["skills"].as_array().unwrap().clone();
    let uris: Vec<_> = skills.iter().map(|skill| skill["uri"].as_str().unwrap()).collect();
    assert_eq!(uris, ["skill://one/tidy/SKILL.md", "skill://two/tidy/SKILL.md"]);
    for skill in &skills {
        let uri = skill["uri"].as_str().unwrap();
        let got = ask(&client, Request::GetSkill(uri.into())).await.unwrap();
        assert_eq!(got["skill"], *skill);
        let files = skill["resources"].as_array().unwrap();
        assert_eq!(files.len(), 2, "{skill}");
        for file in files {
            let read = client.read_resource(file["uri"].as_str().unwrap()).await.unwrap();
            let size = read.contents[0].body.as_text().unwrap().len();
            assert_eq!(file["size"], size, "{file}");
            assert_eq!(read.contents[0].uri, file["uri"].as_str().unwrap());
        }
        let folder = uri.strip_suffix("/SKILL.md").unwrap();
        let read =
            sabir_wire::ReadFolder { uri: folder.into(), ..sabir_wire::ReadFolder::default() };
        let children = ask(&client, Request::ReadFolder(read)).await.unwrap();
        let kinds = children["resources"].as_array().unwrap().iter().map(|one| &one["mimeType"]);
        assert_eq!(kinds.collect::<Vec<_>>(), ["text/markdown", "inode/directory"], "{children}");
    }
}

/// Only the server of a dynamic skill knows the contents of its folders.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_folders_of_a_generated_skill_are_read_at_the_upstream() {
    let folder = tempfile::TempDir::new().unwrap();
    let skill = folder.path().join("skills/news");
    std::fs::create_dir_all(skill.join("today")).unwrap();
    std::fs::write(skill.join("SKILL.md"), "---\nname: news\ndescription: d\n---\nRead.\n")
        .unwrap();
    std::fs::write(skill.join("today/first.md"), "new\n").unwrap();
    let inner = "[[skills]]\npath = \"skills\"\ndynamic = true\n\
                 [[command]]\nname = \"t\"\ndescription = \"d\"\nrun = [\"true\"]\n";
    std::fs::write(folder.path().join("inner.toml"), inner).unwrap();
    let line = [env!("CARGO_BIN_EXE_sabir"), "serve", "inner.toml", "--stdio"];
    let relay = Relay::start_in(folder, &format!("[[upstream]]\nname = \"up\"\nrun = {line:?}\n"));
    let (client, _) = relay.client(Revision::NEWEST).await;
    listed(&client, "up_t").await;
    let skills = ask(&client, Request::ListSkills(Default::default())).await.unwrap();
    assert_eq!(skills["skills"][0]["uri"], "skill://up/news/SKILL.md", "{skills}");
    assert_eq!(skills["skills"][0]["resources"], "dynamic", "{skills}");
    let read = async |uri: &str| {
        let read = sabir_wire::ReadFolder { uri: uri.into(), ..sabir_wire::ReadFolder::default() };
        ask(&client, Request::ReadFolder(read)).await
    };
    for (uri, children) in [
        ("skill://up/news", vec!["skill://up/news/SKILL.md", "skill://up/news/today"]),
        ("skill://up/news/today", vec!["skill://up/news/today/first.md"]),
    ] {
        let found = read(uri).await.unwrap();
        let found: Vec<_> =
            found["resources"].as_array().unwrap().iter().map(|one| &one["uri"]).collect();
        assert_eq!(found, children, "{uri}");
    }
    for uri in ["skill://up/news/none", "skill://up/news/SKILL.md", "skill://up", "skill://none"] {
        let refused = read(uri).await.unwrap_err();
        assert_eq!(refused.rpc().map(|error| error.code), Some(-32602), "{uri}: {refused}");
    }
}
